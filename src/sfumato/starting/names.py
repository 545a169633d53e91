"""What names of columns tell: words that offices use, and codes that everybody knows."""

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches


def _listed(words: str) -> list[str]:
    return words.split()


def _set(words: str) -> frozenset[str]:
    return frozenset(_listed(words))


WORKER = _set(
    "worker person pers persons employee individual pik pid respondent student graduate child kid member resident "
    "mitarbeiter arbeitnehmer pracownik osoba osoby personne salarie salarié individu persona trabajador lavoratore "
    "human household hh persnr personnr personennr personennummer personalnummer pesel matricule befragter haushalt "
    "menage ménage hogar dni persoon werknemer anställd medarbejder versnr versicherungsnummer"
)
WORKPLACE = _set(
    "workplace establishment establishments estab firm employer company enterprise business plant site betrieb "
    "unternehmen firma arbeitgeber arbeitsstätte arbeitsstaette zaklad entreprise etablissement empresa impresa "
    "organisation organization agency store local betriebs betriebsnr betriebsnummer bnr unternehmens unternehmensnr "
    "unternehmensnummer urs zakład regon przedsiębiorstwo przedsiebiorstwo siret siren établissement establecimiento "
    "cif nif stabilimento bedrijf vestiging företag virksomhed"
)
WEIGHT = _set(
    "weight weights wgt wt pweight gewicht gewichtung waga poids pond ponderation pondération ponderacion ponderación "
    "peso hochrechnungsfaktor hochrechnung hrf extri fexp weging vikt paino gew pgew hgew gewf wgts wts perwt finalwt "
    "finalwgt pweights"
)
FACTOR = _set("factor faktor facteur coef coefficient coeficiente współczynnik mnożnik")
"""With decimals these may be weights, and may be anything else."""
HEADCOUNT = _set(
    "employees employment headcount workers jobs staff persons beschäftigte beschaeftigte beschäftigten mitarbeiter "
    "employed emp nemp zatrudnienie zatrudnieni pracujacy pracujący pracownicy effectif effectifs salaries salariés "
    "empleados trabajadores addetti dipendenti personnel fte werknemers"
)
EARNINGS = _set(
    "earnings earning wage wages salary pay lohn gehalt income payroll verdienst salaire rémunération salario sueldo "
    "retribuzione wynagrodzenie płaca loon lön entgelt"
)
CODES = _set(
    "code codes nace naics sic isic isco soc noc cpa nuts lau region county state district industry branch sector "
    "class group type category status level land kreis gemeinde zip postcode plz fips msa wz naf ape cnae ateco pkd "
    "sni sbi branche schlüssel schluessel kod código codice région comarca gmina powiat województwo"
)
PUBLIC = _set(
    "nace naics sic isic industry branch branche wirtschaftszweig activity sector region state county district "
    "municipality gemeinde kreis land place city nuts lau province country ownership legal form rechtsform zip "
    "plz fips msa bundesland voivodship powiat commune departement postcode location wz naf ape cnae ateco pkd sni "
    "sbi section abschnitt abteilung secteur activité actividad comune provincia région gmina województwo sekcja"
)
"""Of establishments these are mostly in public registers; whether they are is for the office to say."""
PERSONAL = _set(
    "sex gender geschlecht geschl plec płeć sexe sexo sesso age alter wiek edad âge race ethnicity education bildung "
    "nationality citizenship staatsangehörigkeit marital familienstand"
)
WOMEN = _set("women female females frauen weiblich kobiety femmes mujeres donne vrouwen kvinnor")
SEXES = WOMEN | _set("men male males männer maenner männlich mężczyźni mezczyzni hommes hombres uomini mannen män")
TIME = _set(
    "period periods year years quarter month time wave round jahr jahre quartal monat welle berichtsjahr rok kwartał "
    "kwartal miesiąc miesiac annee année trimestre mois anno mese año mes kwartaal maand kvartal månad"
)
AREA = _set(
    "bgrp blockgroup geoid geocode tract block county fips area msa zip postcode plz ags gemeinde kreis bundesland "
    "nuts lau commune municipality region state comune gmina powiat"
)
"""A row that one of these names is an area, and its numbers were counted already."""
LABELS = _set(
    "label labels name title description bezeichnung titel text beschreibung libelle libellé intitule intitulé nazwa "
    "opis descripcion descripción descrizione omschrijving benämning"
)
IDS = _set("id nr no number num nummer key code ident numer numero numéro número")
COUNTING = _set(
    "number num no of count total anzahl zahl insgesamt gesamt summe nombre nb de liczba ogółem numero número"
)
"""Words beside those for workers that say no more than how many."""
AGE = frozenset(("age", "alter", "wiek", "edad", "alder", "ålder"))
AGE_CLASSES = {"0-14": 0, "15-24": 15, "25-34": 25, "35-44": 35, "45-54": 45, "55-64": 55, "65+": 65}
"""Age groups that offices publish everywhere: known before any data."""


_COMPOUND = 5
"""Shorter words end others by chance."""


def words(name: str) -> set[str]:
    """The words of a name, and the whole of it.

    >>> sorted(words("workplaceID")), sorted(words("NET.PROFIT"))
    (['id', 'workplace', 'workplaceid'], ['net', 'netprofit', 'profit'])
    """
    parts = re.sub(r"([a-zäöüåß])([A-ZÄÖÜ])", r"\1 \2", name)
    found = re.findall(r"[^\W\d_]+", parts.casefold())
    return {*found, "".join(found)}


def speaks_of(name: str, known: Collection[str]) -> bool:
    """Whether a name has one of some words, or a long one that ends with one, as German ones do.

    >>> speaks_of("Berichtsmonat", {"monat"}), speaks_of("landline", {"land"})
    (True, False)
    """
    found = words(name)
    return bool(found & set(known)) or any(
        word.endswith(end) and len(word) >= len(end) + 3 for word in found for end in known if len(end) >= _COMPOUND
    )


def near_ones(name: str, known: Collection[str]) -> str:
    """What to do about a name that is not known: the known ones that are spelt like it.

    >>> near_ones("Betreib", ["Betrieb", "NACE"]), near_ones("x", ["NACE"])
    ("write 'Betrieb'", 'write one of these')
    """
    spelt = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), spelt, n=3)
    return f"write {' or '.join(repr(spelt[one]) for one in near)}" if near else "write one of these"


def names_one(name: str, known: Collection[str]) -> bool:
    """Whether a name has one of some words and no others but id and the like: firm_id, but not firm_size.

    >>> names_one("firm_id", {"firm"}), names_one("firmSize", {"firm"})
    (True, False)
    """
    parts = words(name) - {"".join(re.findall(r"[^\W\d_]+", name.casefold()))} or words(name)
    return speaks_of(name, known) and parts <= {*known, *IDS}


_SEX: Sequence[Mapping[str, str]] = (
    {"F": "Female", "M": "Male"},
    {"f": "Female", "m": "Male"},
    {"1": "Male", "2": "Female"},
    {"female": "Female", "male": "Male"},
    {"Female": "Female", "Male": "Male"},
    {"women": "Women", "men": "Men"},
    {"W": "Weiblich", "M": "Männlich"},
    {"w": "Weiblich", "m": "Männlich"},
    {"K": "Kobiety", "M": "Mężczyźni"},
    {"F": "Femmes", "H": "Hommes"},
    {"M": "Mujeres", "H": "Hombres"},
)
_STATES = {
    code: code
    for code in _listed(
        "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH "
        "OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY AS GU MP PR VI"
    )
}
_NAICS = {
    "11": "Agriculture, forestry, fishing and hunting",
    "21": "Mining, quarrying, oil and gas",
    "22": "Utilities",
    "23": "Construction",
    "31": "Manufacturing",
    "32": "Manufacturing",
    "33": "Manufacturing",
    "31-33": "Manufacturing",
    "42": "Wholesale trade",
    "44": "Retail trade",
    "45": "Retail trade",
    "44-45": "Retail trade",
    "48": "Transportation and warehousing",
    "49": "Transportation and warehousing",
    "48-49": "Transportation and warehousing",
    "51": "Information",
    "52": "Finance and insurance",
    "53": "Real estate, rental and leasing",
    "54": "Professional, scientific and technical services",
    "55": "Management of companies",
    "56": "Administrative, support and waste services",
    "61": "Educational services",
    "62": "Health care and social assistance",
    "71": "Arts, entertainment and recreation",
    "72": "Accommodation and food services",
    "81": "Other services",
    "92": "Public administration",
    "99": "Not classified",
}
_NACE = {
    "A": "Agriculture, forestry and fishing",
    "B": "Mining and quarrying",
    "C": "Manufacturing",
    "D": "Electricity, gas and steam",
    "E": "Water supply, sewerage and waste",
    "F": "Construction",
    "G": "Wholesale and retail trade",
    "H": "Transportation and storage",
    "I": "Accommodation and food service",
    "J": "Information and communication",
    "K": "Financial and insurance activities",
    "L": "Real estate activities",
    "M": "Professional, scientific and technical activities",
    "N": "Administrative and support activities",
    "O": "Public administration",
    "P": "Education",
    "Q": "Human health and social work",
    "R": "Arts, entertainment and recreation",
    "S": "Other services",
    "T": "Households as employers",
    "U": "Extraterritorial organisations",
}
_KNOWN: Sequence[tuple[frozenset[str], Sequence[Mapping[str, str]], str]] = (
    (_set("sex gender geschlecht geschl plec płeć sexe sexo sesso kön sukupuoli"), _SEX, "a list that everybody knows"),
    (frozenset(("state",)), (_STATES,), "the postal codes of all states of the United States"),
    (frozenset(("naics",)), (_NAICS,), "all sectors of NAICS"),
    (frozenset(("nace", "section")), (_NACE,), "all sections of NACE Rev. 2"),
)


def known_codes(name: str, seen: Collection[str]) -> tuple[dict[str, str], str] | None:
    """A list that everybody knows, in full, where the name of a column and all its codes speak of one; and which.

    >>> known_codes("sex", ["M"])
    ({'F': 'Female', 'M': 'Male'}, 'a list that everybody knows')
    """
    for named, lists, which in _KNOWN:
        if speaks_of(name, named):
            for listed in lists:
                if seen and set(seen) <= listed.keys():
                    whole = {code: label for code, label in listed.items() if _spelt_like(code, seen)}
                    return whole, which
    return None


def _spelt_like(code: str, seen: Collection[str]) -> bool:
    """Whether ranges such as 31-33 are meant, or their single codes."""
    ranges = any("-" in one for one in seen)
    within = {"31", "32", "33", "44", "45", "48", "49"}
    return not ("-" in code and not ranges) and not (code in within and ranges)
