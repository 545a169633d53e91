"""Data as XML: GenericData, which names every part, and StructureSpecificData, whose attributes are the dimensions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from sfumato.serve.sdmx.arranged import Arranged, Writing
from sfumato.serve.sdmx.flow import DECIMALS, OBS_STATUS, UNIT_MEASURE, VERSION
from sfumato.serve.sdmx.xml import escaped, footer, header, opening, structured_by


@dataclass(frozen=True, kw_only=True)
class Style:
    """How the parts of a data set are written."""

    code: Writing
    """A code of a key."""
    code_alone: Writing
    """A code of an observation in a series, which is all of its key."""
    whole_key: Callable[[str], str]
    """The key of an observation without a series."""
    attribute: Callable[[str, str], str]
    """An attribute, by its identifier and value."""
    observation: Callable[[str, str | None, str], str]
    """An observation of a key, a figure and attributes."""
    series: Callable[[str, str, str], str]
    """A series of a key, attributes and observations."""


def write_generic(data: Arranged, source: str) -> bytes:
    """The data as a GenericData message."""
    structure = structured_by(data.flow, data.query.at_observation)
    begin = (
        f"{opening('GenericData', 'gen')}{_header(data, structure, source)}"
        f'<mes:DataSet structureRef="{escaped(data.flow.structure_id)}" action="Information">'
    )
    return _joined(begin, _parts(data, _GENERIC), f"</mes:DataSet>{footer(data.notes)}</mes:GenericData>")


def write_structure_specific(data: Arranged, source: str) -> bytes:
    """The data as a StructureSpecificData message."""
    flow, at_observation = data.flow, data.query.at_observation
    urn = (
        f"urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure="
        f"{flow.agency}:{flow.structure_id}({VERSION}):ObsLevelDim:{at_observation}"
    )
    structure = structured_by(flow, at_observation, urn)
    begin = (
        f"{opening('StructureSpecificData', 'ss', 'xsi', ns1=urn)}{_header(data, structure, source)}"
        f'<mes:DataSet ss:structureRef="{escaped(flow.structure_id)}" xsi:type="ns1:DataSetType" '
        f'ss:dataScope="DataStructure" ss:action="Information">'
    )
    end = f"</mes:DataSet>{footer(data.notes)}</mes:StructureSpecificData>"
    return _joined(begin, _parts(data, _STRUCTURE_SPECIFIC), end)


def _joined(begin: str, parts: Iterator[str], end: str) -> bytes:
    """A message as bytes; its parts, which may be large together, are never one text before."""
    return b"".join(part.encode() for part in chain((begin,), parts, (end,)))


def _header(data: Arranged, structure: str, source: str) -> str:
    flow = data.flow
    return header(flow.agency, message=flow.id, prepared=flow.table.updated, structure=structure, source=source)


def _parts(data: Arranged, style: Style) -> Iterator[str]:
    """The series of a data set one after the other, or its observations if there are no series."""
    units = [
        style.attribute(UNIT_MEASURE, metric.unit) + style.attribute(DECIMALS, str(metric.decimals))
        for metric in data.metrics
    ]
    of_series, of_observations = data.of_metrics(units if data.query.has_attributes else [""] * len(units))
    series = data.series_keys(style.code)
    if not data.query.has_observations:
        yield from (style.series(key, said, "") for key, said in zip(series, of_series, strict=True))
        return
    if data.series:
        keys = data.observation_keys(style.code_alone)
    else:
        keys = [style.whole_key(key) for key in data.observation_keys(style.code)]
    marks = {letter: style.attribute(OBS_STATUS, letter) if letter else "" for letter in {*data.status, ""}}
    for key, said, (values, letters) in zip(series, of_series, data.blocks(), strict=True):
        observations = "".join(
            style.observation(own, value, marks[letter] + unit)
            for own, value, letter, unit in zip(keys, values, letters, of_observations, strict=True)
        )
        yield style.series(key, said, observations) if data.series else observations


def _named(id: str, value: str) -> str:  # noqa: A002 — the standard has this word
    return f'<gen:Value id="{id}" value="{escaped(value)}"/>'


def _generic_observation(key: str, value: str | None, attributes: str) -> str:
    figure = "" if value is None else f'<gen:ObsValue value="{value}"/>'
    return f"<gen:Obs>{key}{figure}{_generic_attributes(attributes)}</gen:Obs>"


def _generic_attributes(attributes: str) -> str:
    return f"<gen:Attributes>{attributes}</gen:Attributes>" if attributes else ""


_GENERIC = Style(
    code=lambda id, _place, code: _named(id, code),  # noqa: A006
    code_alone=lambda _id, _place, code: f'<gen:ObsDimension value="{code}"/>',
    whole_key=lambda key: f"<gen:ObsKey>{key}</gen:ObsKey>",
    attribute=_named,
    observation=_generic_observation,
    series=lambda key, said, observations: (
        f"<gen:Series><gen:SeriesKey>{key}</gen:SeriesKey>{_generic_attributes(said)}{observations}</gen:Series>"
    ),
)


def _pair(id: str, value: str) -> str:  # noqa: A002 — the standard has this word
    return f' {id}="{escaped(value)}"'


_STRUCTURE_SPECIFIC = Style(
    code=lambda id, _place, code: _pair(id, code),  # noqa: A006
    code_alone=lambda id, _place, code: _pair(id, code),  # noqa: A006
    whole_key=lambda key: key,
    attribute=_pair,
    observation=lambda key, value, said: (
        f"<Obs{key}{said}/>" if value is None else f'<Obs{key} OBS_VALUE="{value}"{said}/>'
    ),
    series=lambda key, said, observations: f"<Series{key}{said}>{observations}</Series>",
)
