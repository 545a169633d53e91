"""Tables as data sets: of DCAT-AP for portals, of schema.org for search engines."""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from sfumato.frame.periods import Period, in_time
from sfumato.serve.core.access import Settings
from sfumato.serve.core.model import ServedTable
from sfumato.serve.core.selection import everything
from sfumato.serve.core.stream import MOST
from sfumato.serve.dcat.graph import Address, Literal, Thing, Value
from sfumato.serve.formats import FORMATS, media_type_of
from sfumato.serve.formats.json_stat import BASE, LANGUAGE

CATALOG = "/catalog"
SDMX = "/sdmx/2.1"
_CREATIVE = re.compile(r"CC-(BY(?:-NC|-ND|-SA)*)-(\d\.\d)", re.IGNORECASE)
_ENDS = re.compile(r"(\S+?)(?:\s*[-–/]\s*|\s+to\s+)(\S+)")
_SHORTEST, _LONGEST = 50, 5_000
"""Letters that search engines want a description to have."""
_LANGUAGES = {"en": "http://publications.europa.eu/resource/authority/language/ENG"}
_PUBLIC = "http://publications.europa.eu/resource/authority/access-right/PUBLIC"
_FREQUENCIES = {1: "ANNUAL", 4: "QUARTERLY", 12: "MONTHLY"}
_FREQUENCY = "http://publications.europa.eu/resource/authority/frequency/"
_MEDIA = "https://www.iana.org/assignments/media-types/"


def license_address(license: str) -> str:  # noqa: A002 — the setting has this name
    """Where a licence is found, if that is known.

    >>> license_address("CC-BY-4.0"), license_address("CC0-1.0"), license_address("ours")
    ('https://creativecommons.org/licenses/by/4.0/', 'https://creativecommons.org/publicdomain/zero/1.0/', '')
    """
    if license.upper() == "CC0-1.0":
        return "https://creativecommons.org/publicdomain/zero/1.0/"
    creative = _CREATIVE.fullmatch(license)
    if creative:
        return f"https://creativecommons.org/licenses/{creative[1].lower()}/{creative[2]}/"
    return license if license.startswith(("https://", "http://")) else ""


def description_of(table: ServedTable) -> str:
    """A table in words: what it has of whom, how it is protected, and what was done to the numbers."""
    kinds = ", ".join(metric.label for metric in table.metrics if metric.kind == "value")
    by = ", ".join(dimension.label for dimension in table.dimensions)
    first = f"{table.title}, {table.period}. {kinds} of {table.population}" + (f" by {by}." if by else ".")
    return " ".join([first, *table.guarantee, *table.notes])[:_LONGEST]


def downloads_of(table: ServedTable, settings: Settings, base: str) -> Iterator[tuple[str, str, str]]:
    """What may be downloaded of a table: a name, an address, and its media type without parameters.

    Of a table that is larger than one answer may be, these are the formats that are written in parts, and its files.
    """
    chosen = "".join(f"&valueCodes%5B{dimension.name}%5D=*" for dimension in table.dimensions)
    cells = everything(table).cells
    large, endless = cells > settings.most_cells, cells > max(MOST, settings.most_cells)
    for name, written in FORMATS.items():
        if endless if written.parts is not None else large:
            continue
        media_type = written.media_type.split(";")[0]
        yield name, f"{base}{BASE}/tables/{table.id}/data?outputFormat={name}{chosen}", media_type
    if not endless:
        yield "SDMX-ML", f"{base}{SDMX}/data/{table.id}", "application/vnd.sdmx.genericdata+xml"
        yield "SDMX-CSV", f"{base}{SDMX}/data/{table.id}?format=csvdata", "application/vnd.sdmx.data+csv"
    for file in table.files if large else ():
        if file.name.startswith(("tables/", "cubes/")):
            media_type = media_type_of(file.name).split(";")[0]
            yield file.name, f"{base}/tables/{table.id}/files/{quote(file.name)}", media_type


def _periods(table: ServedTable) -> tuple[Period, ...]:
    """The periods that a table is about, or the first and the last: `2025`, `2010-2011`, `2026-Q1 to 2026-Q3`."""
    if table.time is not None:
        return in_time(table.time.codes)
    ends = _ENDS.fullmatch(table.period)
    return in_time([table.period]) or (in_time(ends.groups()) if ends else ())


def _span(table: ServedTable) -> tuple[str, str] | None:
    """The first and the last day that a table is about."""
    periods = _periods(table)
    if not periods:
        return None
    first, last = periods[0], periods[-1]
    months = 12 // first.in_a_year
    begin, end = (first.part - 1) * months + 1, last.part * months
    days = {
        2: 28 + (last.year % 4 == 0 and (last.year % 100 != 0 or last.year % 400 == 0)),
        4: 30,
        6: 30,
        9: 30,
        11: 30,
    }
    return f"{first.year:04}-{begin:02}-01", f"{last.year:04}-{end:02}-{days.get(end, 31):02}"


# DCAT-AP: the catalogue, its data sets, how each can be had, and the services.


def catalogue_of(tables: Iterable[ServedTable], settings: Settings, base: str) -> list[Thing]:
    """Everything: the catalogue first, then what is in it."""
    listed = list(tables)
    place = f"{base}{CATALOG}"
    services = _services(listed, settings, base)
    newest = max((table.updated for table in listed), default=None)
    catalogue = Thing(
        kind="dcat:Catalog",
        address=place,
        said=[
            ("dct:title", _words(f"Tables of {settings.source}" if settings.source else "Tables")),
            (
                "dct:description",
                _words("Published tables with stated privacy protection and the errors of their figures"),
            ),
            ("dct:publisher", _publisher(settings, base)),
            ("foaf:homepage", Thing(kind="foaf:Document", address=f"{base}/")),
            *_language(),
            *_license(settings),
            *((("dct:modified", Literal(text=f"{newest:%Y-%m-%d}", kind="xsd:date")),) if newest else ()),
            *(("dcat:dataset", Address(address=f"{place}/{table.id}")) for table in listed),
            *(("dcat:service", Address(address=service.address)) for service in services),
        ],
    )
    return [catalogue, *services, *(thing for table in listed for thing in dataset_of(table, settings, base))]


def dataset_of(table: ServedTable, settings: Settings, base: str) -> list[Thing]:
    """A table as a data set, with its distributions."""
    place = f"{base}{CATALOG}/{table.id}"
    span = _span(table)
    periods = in_time(table.time.codes) if table.time else ()
    distributions = [
        Thing(
            kind="dcat:Distribution",
            address=f"{place}#{name}",
            said=[
                ("dct:title", _words(f"{table.title}, {table.period}: {name}")),
                ("dcat:accessURL", Address(address=address)),
                ("dcat:downloadURL", Address(address=address)),
                ("dcat:mediaType", Address(address=f"{_MEDIA}{media_type}")),
                *_license(settings),
            ],
        )
        for name, address, media_type in downloads_of(table, settings, base)
    ]
    keywords = dict.fromkeys((table.counted, table.release, *(dimension.label for dimension in table.dimensions)))
    said: list[tuple[str, Value]] = [
        ("dct:title", _words(f"{table.title}, {table.period}")),
        ("dct:description", _words(description_of(table))),
        ("dct:identifier", Literal(text=table.id)),
        ("dct:publisher", _publisher(settings, base)),
        ("dct:modified", Literal(text=f"{table.updated:%Y-%m-%d}", kind="xsd:date")),
        ("dct:accessRights", Thing(kind="dct:RightsStatement", address=_PUBLIC)),
        ("dcat:landingPage", Thing(kind="foaf:Document", address=f"{base}/tables/{table.id}")),
        ("dct:provenance", Thing(kind="dct:ProvenanceStatement", said=[("rdfs:label", _words(table.method))])),
        *_language(),
        *(("dcat:keyword", _words(word)) for word in keywords),
    ]
    if span is not None:
        days = [
            (name, Literal(text=day, kind="xsd:date"))
            for name, day in zip(("dcat:startDate", "dcat:endDate"), span, strict=True)
        ]
        said.append(("dct:temporal", Thing(kind="dct:PeriodOfTime", said=days)))
    if periods:
        frequency = f"{_FREQUENCY}{_FREQUENCIES[periods[0].in_a_year]}"
        said.append(("dct:accrualPeriodicity", Thing(kind="dct:Frequency", address=frequency)))
    said += [("dcat:distribution", Address(address=one.address)) for one in distributions]
    return [Thing(kind="dcat:Dataset", address=place, said=said), *distributions]


def _services(tables: Iterable[ServedTable], settings: Settings, base: str) -> list[Thing]:
    listed = list(tables)
    return [
        Thing(
            kind="dcat:DataService",
            address=f"{base}{CATALOG}#{name}",
            said=[
                ("dct:title", _words(title)),
                ("dcat:endpointURL", Address(address=f"{base}{path}")),
                ("dcat:endpointDescription", Address(address=f"{base}/openapi.json")),
                *_license(settings),
                *(("dcat:servesDataset", Address(address=f"{base}{CATALOG}/{table.id}")) for table in listed),
            ],
        )
        for name, title, path in (("pxweb", "PxWebApi 2", BASE), ("sdmx", "SDMX REST 2.1", SDMX))
    ]


def _words(text: str) -> Literal:
    return Literal(text=text, language=LANGUAGE)


def _publisher(settings: Settings, base: str) -> Thing:
    return Thing(kind="foaf:Agent", said=[("foaf:name", _words(settings.source or base or "The office"))])


def _license(settings: Settings) -> Iterator[tuple[str, Value]]:
    if address := license_address(settings.license):
        yield "dct:license", Thing(kind="dct:LicenseDocument", address=address)
    elif settings.license:
        yield "dct:rights", Thing(kind="dct:RightsStatement", said=[("rdfs:label", _words(settings.license))])


def _language() -> Iterator[tuple[str, Value]]:
    yield "dct:language", Thing(kind="dct:LinguisticSystem", address=_LANGUAGES[LANGUAGE])


# Data sets of schema.org, as search engines read them from the head of a page.


def schema_org(table: ServedTable, settings: Settings, base: str) -> dict[str, Any]:
    """A table as a data set of schema.org."""
    span = _span(table)
    office = {"@type": "Organization", "name": settings.source or base or "The office"}
    license = license_address(settings.license) or settings.license  # noqa: A001 — the word of schema.org
    return {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "@id": f"{base}{CATALOG}/{table.id}",
        "name": f"{table.title}, {table.period}",
        "description": description_of(table).ljust(_SHORTEST, "."),
        "identifier": table.id,
        "url": f"{base}/tables/{table.id}",
        "creator": office,
        "publisher": office,
        "dateModified": f"{table.updated:%Y-%m-%d}",
        "isAccessibleForFree": True,
        "measurementTechnique": table.method,
        "inLanguage": LANGUAGE,
        "keywords": list(dict.fromkeys((table.counted, *(dimension.label for dimension in table.dimensions)))),
        "variableMeasured": [
            {"@type": "PropertyValue", "name": metric.label, "unitText": metric.unit} for metric in table.metrics
        ],
        "includedInDataCatalog": {"@type": "DataCatalog", "url": f"{base}{CATALOG}"},
        **({"license": license} if license else {}),
        **({"temporalCoverage": "/".join(span)} if span else {}),
        "distribution": [
            {"@type": "DataDownload", "name": name, "contentUrl": address, "encodingFormat": media_type}
            for name, address, media_type in downloads_of(table, settings, base)
        ],
    }


def schema_org_catalogue(tables: Iterable[ServedTable], settings: Settings, base: str) -> dict[str, Any]:
    """All tables as a catalogue of schema.org."""
    datasets = [schema_org(table, settings, base) for table in tables]
    for dataset in datasets:
        del dataset["@context"]
    return {
        "@context": "https://schema.org/",
        "@type": "DataCatalog",
        "@id": f"{base}{CATALOG}",
        "name": f"Tables of {settings.source}" if settings.source else "Tables",
        "url": f"{base}/",
        "dataset": datasets,
    }
