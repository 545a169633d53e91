"""The formats of data and structures, which one a client wants, and SDMX-JSON."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.serve.core.errors import RefusedError
from sfumato.serve.sdmx.flow import CONF_STATUS, DECIMALS, OBS_STATUS, UNIT_MEASURE
from sfumato.serve.sdmx.series import STATUS_NAMES, Chosen, Parts, SeriesData, statuses, write_csv_1, write_csv_2
from sfumato.serve.sdmx.xml import timestamp, write_generic, write_structure_specific
from sfumato.serve.sdmx.xml3 import write_structure_specific_3

# Data as SDMX-JSON 1.0, with header, structure and data sets at the top, where clients look for them.

_STATUS_WORDS = {OBS_STATUS: "Observation status", CONF_STATUS: "Confidentiality status"}


def write_json(parts: Parts, source: str) -> Iterator[str]:
    """The data as an SDMX-JSON message; it names codes by their place in the whole, so that it has one part."""
    (data,) = parts
    flow = data.flow
    notes = [*(("NOTE", note) for note in data.notes), *flow.annotations]
    content = {
        "header": {
            "id": flow.id,
            "test": False,
            "prepared": timestamp(flow.table.updated),
            "sender": {"id": flow.agency, "name": source or flow.agency},
        },
        "structure": {
            "name": flow.table.title,
            "dimensions": {
                "dataSet": [],
                "series": [_dimension(data, one) for one in data.series],
                "observation": [_dimension(data, one) for one in data.observation],
            },
            "attributes": _attributes(data),
            "annotations": [{"type": kind, "text": text} for kind, text in notes],
        },
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    said = json.dumps(list(range(len(notes))))
    # Figures are text already: they are put in rather than turned back into numbers.
    figures = "".join(("{", ",".join(_series(data)), "}")) if data.series else next(_series(data))
    name = "series" if data.series else "observations"
    yield f'{text[:-1]},"dataSets":[{{"action":"Information","annotations":{said},"{name}":{figures}}}]}}'


def _dimension(data: SeriesData, one: Chosen) -> dict[str, Any]:
    described = {
        "id": one.id,
        "name": one.component.dimension.label,
        "keyPosition": data.flow.components.index(one.component),
        "values": [{"id": code, "name": label} for code, label in zip(one.codes, one.labels, strict=True)],
    }
    return described | ({"role": "time"} if one.component.is_time else {})


def _attributes(data: SeriesData) -> dict[str, list[dict[str, Any]]]:
    """The attributes of series and those of observations, with the values that may be named by their places."""
    found: dict[str, list[dict[str, Any]]] = {"dataSet": [], "series": [], "observation": []}
    if not data.query.has_attributes:
        return found
    found["observation"] += [
        {"id": id, "name": _STATUS_WORDS[id], "values": [{"id": code, "name": name} for code, name in names.items()]}
        for id, names in STATUS_NAMES.items()  # noqa: A001 — the standard has this word
    ]
    units, decimals = _units(data)
    found["series" if data.flow.contents in [one.component for one in data.series] else "observation"] += [
        {"id": UNIT_MEASURE, "name": "Unit of measure", "values": [{"name": unit} for unit in units]},
        {"id": DECIMALS, "name": "Decimals worth showing", "values": [{"name": str(number)} for number in decimals]},
    ]
    return found


def _units(data: SeriesData) -> tuple[list[str], list[int]]:
    return sorted({metric.unit for metric in data.metrics}), sorted({metric.decimals for metric in data.metrics})


def _series(data: SeriesData) -> Iterator[str]:
    """Every series with its key; the one object of observations if there are no series."""
    units, decimals = _units(data)
    places = [f"{units.index(metric.unit)},{decimals.index(metric.decimals)}" for metric in data.metrics]
    of_series, of_observations = data.of_metrics(places if data.query.has_attributes else [""] * len(places))
    series = data.series_keys(_place, ":")
    starts = [
        f'"{key}":{{' + (f'"attributes":[{said}]' if said else "") for key, said in zip(series, of_series, strict=True)
    ]
    if not data.query.has_observations:
        yield from (f"{start}}}" for start in starts)
        return
    keys = data.observation_keys(_place, ":")
    after = [f",{said}" if said else "" for said in of_observations]
    marks = {letter: _status_places(letter) for letter in {*data.status}} | {"": ""}
    for start, (values, letters) in zip(starts, data.blocks(), strict=True):
        observations = ",".join(
            f'"{key}":[{"null" if value is None else value}{marks[letter]}{said}]'
            for key, value, letter, said in zip(keys, values, letters, after, strict=True)
        )
        if data.series:
            yield f'{start}{"," if start[-1] == "]" else ""}"observations":{{{observations}}}}}'
        else:
            yield f"{{{observations}}}"


def _status_places(letter: str) -> str:
    """The places of a figure's statuses in their lists, each with the comma before it."""
    return "".join(f",{list(STATUS_NAMES[id]).index(code)}" for id, code in statuses(letter).items())  # noqa: A001


def _place(_id: str, place: int, _code: str) -> str:
    return str(place)


_LONGEST = 4_000


@dataclass(frozen=True, kw_only=True)
class DataFormat:
    """A format: its name, and the media types a client may ask for it by, the first of which is its own."""

    name: str
    version: str
    media_types: tuple[str, ...]
    in_parts: bool = True
    """Whether it can be written part by part."""

    def content_type(self, media_type: str) -> str:
        """How the answer calls itself to a client that asked for one of the media types."""
        own = media_type == self.media_types[0]
        return f"{media_type};version={self.version}" if own else f"{media_type}; charset=utf-8"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A media type or range that a client accepts."""

    media_type: str
    version: str | None
    quality: float

    def fits(self, data_format: DataFormat) -> str | None:
        """The media type of a format that is accepted, if one is."""
        if self.version is not None and _short(self.version) != _short(data_format.version):
            return None
        if self.media_type == "*/*":
            return data_format.media_types[0]
        kind, _, rest = self.media_type.partition("/")
        if rest == "*":
            return next((one for one in data_format.media_types if one.startswith(f"{kind}/")), None)
        return next((one for one in data_format.media_types if one == self.media_type), None)


def negotiate(formats: Sequence[DataFormat], *, accept: str | None, name: str | None) -> tuple[DataFormat, str]:
    """The format to write, and its content type; a name comes before the header, and without either the first one."""
    if name is not None:
        for data_format in formats:
            if data_format.name == name.lower():
                return data_format, data_format.content_type(data_format.media_types[0])
        known = ", ".join(data_format.name for data_format in formats)
        raise RefusedError("format", expected=f"one of {known}", found=name, do="choose one of them")
    ranked = sorted(_read(accept or "*/*"), key=lambda one: (-one.quality, one.media_type.count("*")))
    for wanted in ranked:
        for data_format in formats:
            media_type = wanted.fits(data_format)
            if media_type is not None and wanted.quality > 0:
                return data_format, data_format.content_type(media_type)
    raise RefusedError(
        "Accept",
        expected=" or ".join(data_format.content_type(data_format.media_types[0]) for data_format in formats),
        found=accept or "",
        do="accept one of them, or anything",
        status=406,
    )


def _read(accept: str) -> Iterator[Wanted]:
    for text in accept[:_LONGEST].split(","):
        media_type, *parameters = (part.strip() for part in text.split(";"))
        named: Mapping[str, str] = {
            name.strip().lower(): value.strip().strip('"') for name, _, value in (p.partition("=") for p in parameters)
        }
        yield Wanted(
            media_type=media_type.lower() or "*/*", version=named.get("version"), quality=_quality(named.get("q", "1"))
        )


def _quality(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def _short(version: str) -> str:
    """Versions differ in how many zeros they are written with.

    >>> _short("1.0.0") == _short("1.0") == _short("1")
    True
    """
    return re.sub(r"(?:\.0+)+$", "", version)


_CSV = "application/vnd.sdmx.data+csv"
_XML = ("application/xml", "text/xml")
Writer = Callable[[Parts, str], Iterator[str]]
"""From data, and who is their source, to a message in texts that follow each other."""

WRITERS: Mapping[DataFormat, Writer] = {
    DataFormat(
        name="genericdata",
        version="2.1",
        media_types=("application/vnd.sdmx.genericdata+xml", "application/vnd.sdmx.generic+xml", *_XML),
    ): write_generic,
    DataFormat(
        name="structurespecificdata",
        version="2.1",
        media_types=("application/vnd.sdmx.structurespecificdata+xml",),
    ): write_structure_specific,
    DataFormat(
        name="jsondata",
        version="1.0.0",
        media_types=("application/vnd.sdmx.data+json", "application/json", "text/json"),
        in_parts=False,
    ): write_json,
    DataFormat(name="csvdata", version="1.0.0", media_types=(_CSV, "text/csv")): write_csv_1,
    DataFormat(name="csvdata2", version="2.0.0", media_types=(_CSV,)): write_csv_2,
}
"""How data are written; the first is for clients that do not mind."""
WRITERS_3: Mapping[DataFormat, Writer] = {
    DataFormat(
        name="structurespecificdata3", version="3.0.0", media_types=("application/vnd.sdmx.data+xml", *_XML)
    ): write_structure_specific_3,
    **WRITERS,
}
"""The same for the addresses of version 3.0."""
CSV = tuple(data_format for data_format in WRITERS if data_format.media_types[0] == _CSV)
"""The formats that are rows."""
_STRUCTURE = "application/vnd.sdmx.structure+xml"
STRUCTURE = DataFormat(name="structure", version="2.1", media_types=(_STRUCTURE, *_XML))
"""How structures are written."""
STRUCTURE_3 = DataFormat(name="structure3", version="3.0.0", media_types=(_STRUCTURE, *_XML))
"""How structures of version 3.0 are written."""
