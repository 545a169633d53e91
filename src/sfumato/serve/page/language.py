"""The languages of the page: every text it says, from catalogues of texts, and numbers as people write them."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from fastapi import Request
from markupsafe import Markup, escape

from sfumato.errors import Said

_QUALITY = re.compile(r"[01](\.[0-9]{0,3})?")
_LONGEST = 500
MADE = (
    "Weighted number of {what}",
    "Weighted total of {what}",
    "Weighted mean of {what}",
    "Total of {what}",
    "Mean of {what}",
    "Growth of {what}",
)
"""How labels of figures are made of what is measured."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """A language of the page; English is what the code and the templates say, the catalogues have the others."""

    code: str
    name: str
    thousands: str
    """What stands between thousands, and what before decimals."""
    decimal: str
    small: bool
    """Whether the first letter of a noun is small within a sentence."""
    counts: Mapping[str, tuple[str, str]] = field(repr=False)
    """Of a noun how one and how several are said, with the number where it stands."""
    texts: Mapping[str, str] = field(repr=False)
    synonyms: tuple[tuple[str, ...], ...] = field(repr=False)
    """Words that readers use for the same thing."""

    def __call__(self, text: str, /, **values: Any) -> str:
        """A text with what stands in its braces; texts in markup stay what they are.

        >>> ENGLISH("{begin} to {end}", begin=1, end=2)
        '1 to 2'
        """
        found = self.texts.get(text, text)
        if not values:
            return found
        if any(isinstance(value, Markup) for value in values.values()):
            return Markup(escape(found)).format(**values)  # noqa: S704 — escaped
        return found.format(**values)

    def said(self, error: Said) -> str:
        """An error as a sentence, with its numbers as the language writes them.

        >>> ENGLISH.said(Said("At least ε = {least}, and {most} cells.", {"least": Fraction(1, 4), "most": 1200}))
        'At least ε = 0.25, and 1,200 cells.'
        """
        return self(error.text, **{name: self._fact(fact) for name, fact in error.facts.items()})

    def _fact(self, fact: str | int | Fraction) -> str:
        if isinstance(fact, str):
            return fact
        return (
            self.number(fact) if isinstance(fact, int) else self.figures(f"{float(fact):,.6f}".rstrip("0").rstrip("."))
        )

    def count(self, number: int, noun: str) -> str:
        """A number with its noun.

        >>> ENGLISH.count(1, "row"), ENGLISH.count(1200, "row"), ENGLISH.count(2, "match")
        ('1 row', '1,200 rows', '2 matches')
        """
        one, many = self.counts[noun]
        return f"{self.number(number)} {one if number == 1 else many}"

    def number(self, number: float) -> str:
        """A whole number."""
        return self.figures(f"{number:,}")

    def figures(self, text: str) -> str:
        """Figures that are written the English way, as this language writes them."""
        if self.thousands == ",":
            return text
        signs = {",": self.thousands, ".": self.decimal}
        return re.sub(r"(?<=\d)[,.](?=\d)", lambda sign: signs[sign[0]], text)

    def label(self, text: str) -> str:
        """A label of a figure: each of its parts, where they are known; what a cube counts and adds up is a part.

        >>> languages()["de"].label("Weighted total of hours, standard error")
        'Gewichtete Summe von hours, Standardfehler'
        """
        return self.texts.get(text) or ", ".join(map(self._part, text.split(", ")))

    def _part(self, text: str) -> str:
        for made in MADE:
            before = made.removesuffix("{what}")
            if text.startswith(before) and text not in self.texts:
                return self(made, what=self(text.removeprefix(before)))
        return self(text)

    def within(self, label: str) -> str:
        """A label within a sentence: its first letter small, unless it is one of an abbreviation.

        >>> ENGLISH.within("Industry"), ENGLISH.within("NACE section"), ENGLISH.within("State, origin")
        ('industry', 'NACE section', 'state, origin')
        """
        return label if label[1:2].isupper() or not self.small else label[:1].lower() + label[1:]


@cache
def languages() -> Mapping[str, Language]:
    """All languages by their codes, English first."""
    found = {}
    for file in (files("sfumato.serve.page") / "languages").iterdir():
        if PurePath(file.name).suffix == ".toml":
            read = tomllib.loads(file.read_text(encoding="utf-8"))
            counts = {noun: (one, many) for noun, (one, many) in read.pop("counts").items()}
            synonyms = tuple(tuple(words) for words in read.pop("synonyms"))
            found[read["code"]] = Language(counts=counts, synonyms=synonyms, **read)
    return {code: found[code] for code in sorted(found, key=lambda code: (code != "en", code))}


ENGLISH = languages()["en"]


def language_of(request: Request) -> Language:
    """The language that the address names, or the one the browser would like best; English where there is neither."""
    return languages().get(chosen_language(request)) or preferred_language(request.headers.get("accept-language", ""))


def chosen_language(request: Request) -> str:
    """The language that the address names, if there is one of this name."""
    code = request.query_params.get("lang", "").lower()
    return code if code in languages() else ""


def preferred_language(accept: str) -> Language:
    """The language that a browser would like best, of several that it likes alike the first.

    >>> preferred_language("fr, de-AT;q=0.8, en;q=0.5").code, preferred_language("fr").code
    ('de', 'en')
    """
    best, most = ENGLISH, 0.0
    for part in accept[:_LONGEST].split(","):
        name, *parameters = (text.strip().lower() for text in part.split(";"))
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        number = float(quality) if _QUALITY.fullmatch(quality) else 0.0
        known = languages().get(name.split("-")[0])
        if known is not None and number > most:
            best, most = known, number
    return best
