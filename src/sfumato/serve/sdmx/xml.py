"""Messages in XML: structures with their components and codes, and data."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Literal

from sfumato.serve.core.model import ServedDimension
from sfumato.serve.sdmx.flow import (
    CONF_STATUS,
    DECIMALS,
    OBS_STATUS,
    OBS_VALUE,
    STATUS_LISTS,
    UNIT_MEASURE,
    VERSION,
    Artefact,
    Component,
    Flow,
    Kind,
    code_id,
    own_id,
)
from sfumato.serve.sdmx.series import STATUS_NAMES, Parts, SeriesData, Writing, obs_status_meaning, statuses

# What all XML messages share: escaped text, namespaces, the header.

_SCHEMAS = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
NAMESPACES = {
    "mes": f"{_SCHEMAS}/message",
    "com": f"{_SCHEMAS}/common",
    "str": f"{_SCHEMAS}/structure",
    "gen": f"{_SCHEMAS}/data/generic",
    "ss": f"{_SCHEMAS}/data/structurespecific",
    "foot": f"{_SCHEMAS}/message/footer",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
}
LANGUAGE = "en"
_ESCAPED = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escaped(text: str) -> str:
    """A text as it may stand in an element or an attribute; what XML has no way to write becomes a question mark."""
    return _UNWRITABLE.sub("\ufffd", text).translate(_ESCAPED)


def worded(tag: str, text: str) -> str:
    """An element with a text in the language of the server."""
    return f'<{tag} xml:lang="{LANGUAGE}">{escaped(text)}</{tag}>'


def timestamp(moment: datetime) -> str:
    """A moment of universal time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def opening(root: str, *prefixes: str, **namespaces: str) -> str:
    """The declaration and the opening of a message."""
    declared = {**{prefix: NAMESPACES[prefix] for prefix in ("mes", "com", *prefixes)}, **namespaces}
    spaces = " ".join(f'xmlns:{prefix}="{escaped(space)}"' for prefix, space in declared.items())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<mes:{root} {spaces}>'


def header(agency: str, *, message: str, prepared: datetime, structure: str = "", source: str = "") -> str:
    """The header of a message."""
    return (
        f"<mes:Header><mes:ID>{escaped(message)}</mes:ID><mes:Test>false</mes:Test>"
        f'<mes:Prepared>{timestamp(prepared)}</mes:Prepared><mes:Sender id="{own_id(agency)}"/>{structure}'
        f"{worded('mes:Source', source) if source else ''}</mes:Header>"
    )


def structured_by(flow: Flow, at_observation: str, namespace: str = "") -> str:
    """The part of a header that says which structure the data have."""
    space = f' namespace="{escaped(namespace)}"' if namespace else ""
    name = escaped(flow.structure_id)
    return (
        f'<mes:Structure structureID="{name}"{space} dimensionAtObservation="{at_observation}"><com:Structure>'
        f'<Ref agencyID="{flow.agency}" id="{name}" version="{VERSION}" class="DataStructure"/>'
        f"</com:Structure></mes:Structure><mes:DataSetAction>Information</mes:DataSetAction>"
    )


def footer(notes: Sequence[str]) -> str:
    """What is to be said of the answer as a whole, after the data; nothing if there is nothing to say."""
    if not notes:
        return ""
    texts = "".join(worded("com:Text", note) for note in notes)
    # Annotations of a data set would say the same, but sdmx1 refuses messages that have some.
    return (
        f'<foot:Footer xmlns:foot="{NAMESPACES["foot"]}"><foot:Message code="0" severity="Information">{texts}'
        "</foot:Message></foot:Footer>"
    )


# Codes and concepts as XML, each with its name and what is to be said of it.

_SHARED = (
    (OBS_VALUE, "Observation value", ""),
    (OBS_STATUS, "Observation status", "whether the figure is normal, estimated, missing, suppressed or unreliable"),
    (CONF_STATUS, "Confidentiality status", "whether the figure is free for publication, or withheld"),
    (UNIT_MEASURE, "Unit of measure", ""),
    (DECIMALS, "Decimals worth showing", "figures are given in full; further digits say nothing"),
)
_CONCEPTS = {id: name for id, name, _ in _SHARED}  # noqa: A001 — the standard has this word
_TOTAL = "total with a protection of its own: the cells need not add up to it"


def concepts(flow: Flow) -> Iterator[str]:
    """The concepts of a dataflow: its dimensions, the figure and the attributes."""
    for one in flow.components:
        yield _item("Concept", one.id, one.dimension.label)
    for id, name, text in _SHARED:  # noqa: A001 — the standard has this word
        yield _item("Concept", id, name, text)


def codes(flow: Flow, component: Component) -> Iterator[str]:
    """The codes of a dimension; one whose identifier differs says what the bundle calls it."""
    dimension = component.dimension
    described = {metric.code: metric.description for metric in flow.table.metrics} if dimension.role == "metric" else {}
    if dimension.total is not None:
        described[dimension.total] = _TOTAL
    for id, code, label in zip(component.codes, dimension.codes, dimension.labels, strict=True):  # noqa: A001
        original = annotations([("CODE", code)]) if id != code else ""
        inside = dimension.total is not None and code != dimension.total
        parent = f'<str:Parent><Ref id="{escaped(code_id(str(dimension.total)))}"/></str:Parent>' if inside else ""
        yield _item("Code", id, label, described.get(code, ""), original, after=parent)


def status_codes(attribute: str) -> Iterator[str]:
    """The codes of a list of statuses."""
    said = obs_status_meaning if attribute == OBS_STATUS else lambda _: ""
    return (_item("Code", letter, name, said(letter)) for letter, name in STATUS_NAMES[attribute].items())


def annotations(said: Iterable[tuple[str, str]]) -> str:
    """Annotations, each with its kind."""
    found = "".join(
        f"<com:Annotation><com:AnnotationType>{kind}</com:AnnotationType>{worded('com:AnnotationText', text)}"
        "</com:Annotation>"
        for kind, text in said
    )
    return f"<com:Annotations>{found}</com:Annotations>"


def _item(tag: str, id: str, name: str, description: str = "", before: str = "", *, after: str = "") -> str:  # noqa: A002
    text = worded("com:Description", description) if description else ""
    return f'<str:{tag} id="{escaped(id)}">{before}{worded("com:Name", name or id)}{text}{after}</str:{tag}>'


# Codes of a dimension below those of the levels above it, which are in code lists of other tables.


def hierarchies(one: Artefact, flow: Flow, component: Component) -> str:
    """A hierarchy for every way up from a dimension, from the highest level down to its codes."""
    lists = {component.dimension.name: (flow.codelist_id(component), component), **one.levels}
    known = [some for some in component.dimension.groupings if some.path and {*some.path} <= one.levels.keys()]
    paths = [grouping.path for grouping in known]
    ways = [path for path in paths if not any(path == other[: len(path)] != other for other in paths)]
    included = "".join(
        f'<str:IncludedCodelist alias="{of.id}">{reference(flow, "codelist", "Codelist", name)}</str:IncludedCodelist>'
        for name, of in lists.values()
    )
    above = {
        grouping.path[-1]: {code: up for up, (_, some) in grouping.groups.items() for code in some}
        for grouping in known
    }
    return included + "".join(
        _hierarchy(flow, component.dimension, {name: above[name] for name in way}, lists) for way in ways
    )


def _hierarchy(
    flow: Flow,
    dimension: ServedDimension,
    above: Mapping[str, Mapping[str, str]],
    lists: Mapping[str, tuple[str, Component]],
) -> str:
    """The codes on one way up, each within the one above it; a code that is in none of a level skips it."""
    children: dict[tuple[str, str] | None, dict[tuple[str, str], None]] = {}
    for code in dimension.codes:
        line = [(dimension.name, code), *((name, ups[code]) for name, ups in above.items() if code in ups)]
        for low, high in zip(line, [*line[1:], None], strict=True):
            children.setdefault(high, {})[low] = None

    def written(node: tuple[str, str]) -> str:
        listed, of = lists[node[0]]
        id = escaped(code_id(node[1]))  # noqa: A001
        return (
            f'<str:HierarchicalCode id="{of.id}@{id}"><str:Code><Ref id="{id}" '
            f'maintainableParentID="{escaped(listed)}" maintainableParentVersion="{VERSION}" agencyID="{flow.agency}" '
            f'package="codelist" class="Code"/></str:Code>{"".join(map(written, children.get(node, ())))}'
            f'<str:Level><Ref id="{of.id}"/></str:Level></str:HierarchicalCode>'
        )

    levels, components = "", [lists[name][1] for name in (dimension.name, *above)]
    for of in components:
        levels = f'<str:Level id="{of.id}">{worded("com:Name", of.dimension.label)}{levels}</str:Level>'
    name = worded("com:Name", " › ".join(of.dimension.label for of in reversed(components)))
    id = "_".join(of.id for of in reversed(components))  # noqa: A001
    codes = "".join(map(written, children[None]))
    return f'<str:Hierarchy id="{id}" leveled="true">{name}{codes}{levels}</str:Hierarchy>'


# The components of a data structure as XML: dimensions, attributes and the measure, each with its concept.


def components(flow: Flow) -> str:
    """All components of a data structure."""
    dimensions = "".join(_dimension(flow, one, place) for place, one in enumerate(flow.components, 1))
    of_contents = f'<str:Dimension><Ref id="{flow.contents.id}"/></str:Dimension>'
    of_figure = f'<str:PrimaryMeasure><Ref id="{OBS_VALUE}"/></str:PrimaryMeasure>'
    attributes = (
        "".join(_attribute(flow, id, _enumeration(flow, name), of_figure) for name, id in STATUS_LISTS.items())  # noqa: A001
        + _attribute(flow, UNIT_MEASURE, _text("String"), of_contents)
        + _attribute(flow, DECIMALS, _text("Integer"), of_contents)
    )
    return (
        "<str:DataStructureComponents>"
        f'<str:DimensionList id="DimensionDescriptor">{dimensions}</str:DimensionList>'
        f'<str:AttributeList id="AttributeDescriptor">{attributes}</str:AttributeList>'
        f'<str:MeasureList id="MeasureDescriptor"><str:PrimaryMeasure id="{OBS_VALUE}">'
        f"{_concept(flow, OBS_VALUE)}{_text('Double')}</str:PrimaryMeasure></str:MeasureList>"
        "</str:DataStructureComponents>"
    )


def reference(flow: Flow, package: str, tag: str, id: str) -> str:  # noqa: A002 — the standard has this word
    """A reference to another structure of the dataflow's agency."""
    return f'<Ref id="{escaped(id)}" version="{VERSION}" agencyID="{flow.agency}" package="{package}" class="{tag}"/>'


def _dimension(flow: Flow, one: Component, place: int) -> str:
    tag, representation = (
        ("TimeDimension", _text("ObservationalTimePeriod"))
        if one.is_time
        else ("Dimension", _enumeration(flow, flow.codelist_id(one)))
    )
    return f'<str:{tag} id="{one.id}" position="{place}">{_concept(flow, one.id)}{representation}</str:{tag}>'


def _attribute(flow: Flow, id: str, representation: str, related: str) -> str:  # noqa: A002
    return (
        f'<str:Attribute id="{id}" assignmentStatus="Conditional">{_concept(flow, id)}{representation}'
        f"<str:AttributeRelationship>{related}</str:AttributeRelationship></str:Attribute>"
    )


def _concept(flow: Flow, id: str) -> str:  # noqa: A002
    return (
        f'<str:ConceptIdentity><Ref id="{id}" maintainableParentID="{escaped(flow.concepts_id)}" '
        f'maintainableParentVersion="{VERSION}" agencyID="{flow.agency}" package="conceptscheme" class="Concept"/>'
        "</str:ConceptIdentity>"
    )


def _enumeration(flow: Flow, codelist: str) -> str:
    found = reference(flow, "codelist", "Codelist", codelist)
    return f"<str:LocalRepresentation><str:Enumeration>{found}</str:Enumeration></str:LocalRepresentation>"


def _text(kind: str) -> str:
    return f'<str:LocalRepresentation><str:TextFormat textType="{kind}"/></str:LocalRepresentation>'


# Structures as XML: a message of dataflows, data structures, code lists, concept schemes and the list of agencies.

Shown = Literal["full", "complete", "stub"]
"""Everything; or what it is and where the rest is found, with or without what is said of it."""
_TAGS: dict[Kind, tuple[str, str, str]] = {
    "agencyscheme": ("OrganisationSchemes", "AgencyScheme", "base"),
    "dataflow": ("Dataflows", "Dataflow", "datastructure"),
    "codelist": ("Codelists", "Codelist", "codelist"),
    "hierarchicalcodelist": ("HierarchicalCodelists", "HierarchicalCodelist", "codelist"),
    "conceptscheme": ("Concepts", "ConceptScheme", "conceptscheme"),
    "datastructure": ("DataStructures", "DataStructure", "datastructure"),
}
"""By kind the element around all, the element of one, and the package its name belongs to."""


@dataclass(frozen=True, kw_only=True)
class Office:
    """Who maintains the structures."""

    agency: str
    name: str
    address: str
    """Where structures are found."""


def write_structures(
    artefacts: Sequence[Artefact], *, shown: Callable[[Artefact], Shown], office: Office, prepared: datetime
) -> bytes:
    """A message with structures, which come by kind, each as far as it is to be shown."""
    groups = []
    for kind, some in groupby(artefacts, key=lambda one: one.kind):
        around = _TAGS[kind][0]
        groups.append(f"<str:{around}>{''.join(_artefact(one, shown(one), office) for one in some)}</str:{around}>")
    top = header(office.agency, message="structures", prepared=prepared, source=office.name)
    body = f"<mes:Structures>{''.join(groups)}</mes:Structures>"
    return f"{opening('Structure', 'str')}{top}{body}</mes:Structure>".encode()


def _artefact(one: Artefact, shown: Shown, office: Office) -> str:
    _, tag, package = _TAGS[one.kind]
    name = escaped(one.id)
    urn = f"urn:sdmx:org.sdmx.infomodel.{package}.{tag}={one.agency}:{name}({VERSION})"
    external = ""
    if shown != "full":
        place = f"{office.address}/{one.kind}/{one.agency}/{one.id}/{VERSION}"
        external = f' isExternalReference="true" structureURL="{escaped(place)}"'
    final = ' isFinal="true"' if one.agency == office.agency else ""  # the list of agencies never is
    said = annotations(one.flow.annotations) if one.flow and one.kind == "dataflow" and shown != "stub" else ""
    return (
        f'<str:{tag} id="{name}" urn="{urn}" agencyID="{one.agency}" version="{VERSION}"{final}{external}>'
        f"{said}{worded('com:Name', _name(one))}{_content(one, office) if shown == 'full' else ''}</str:{tag}>"
    )


def _name(one: Artefact) -> str:
    if one.component is not None:
        return one.component.dimension.label
    if one.flow is None:
        return "Agencies" if one.kind == "agencyscheme" else _CONCEPTS[STATUS_LISTS[one.id]]
    return f"Concepts: {one.flow.table.title}" if one.kind == "conceptscheme" else one.flow.table.title


def _content(one: Artefact, office: Office) -> str:
    if one.kind == "agencyscheme":
        name = worded("com:Name", office.name or office.agency)
        return f'<str:Agency id="{own_id(office.agency)}">{name}</str:Agency>'
    if one.flow is None:
        return "".join(status_codes(STATUS_LISTS[one.id]))
    if one.component is not None:
        is_list = one.kind == "codelist"
        return "".join(codes(one.flow, one.component)) if is_list else hierarchies(one, one.flow, one.component)
    if one.kind == "conceptscheme":
        return "".join(concepts(one.flow))
    if one.kind == "datastructure":
        return components(one.flow)
    found = reference(one.flow, "datastructure", "DataStructure", one.flow.structure_id)
    return f"<str:Structure>{found}</str:Structure>"


# Data as XML: GenericData, which names every part, and StructureSpecificData, whose attributes are the dimensions.


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


def write_generic(parts: Parts, source: str) -> Iterator[str]:
    """The data as a GenericData message."""

    def begin(data: SeriesData) -> str:
        structure = structured_by(data.flow, data.query.at_observation)
        return (
            f"{opening('GenericData', 'gen')}{_header(data, structure, source)}"
            f'<mes:DataSet structureRef="{escaped(data.flow.structure_id)}" action="Information">'
        )

    return _message(begin, parts, _GENERIC, "</mes:GenericData>")


def write_structure_specific(parts: Parts, source: str) -> Iterator[str]:
    """The data as a StructureSpecificData message."""
    return _message(lambda data: _specific(data, source), parts, _STRUCTURE_SPECIFIC, "</mes:StructureSpecificData>")


def _specific(data: SeriesData, source: str) -> str:
    """The beginning of a StructureSpecificData message."""
    flow, at_observation = data.flow, data.query.at_observation
    urn = (
        f"urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure="
        f"{flow.agency}:{flow.structure_id}({VERSION}):ObsLevelDim:{at_observation}"
    )
    structure = structured_by(flow, at_observation, urn)
    return (
        f"{opening('StructureSpecificData', 'ss', 'xsi', ns1=urn)}{_header(data, structure, source)}"
        f'<mes:DataSet ss:structureRef="{escaped(flow.structure_id)}" xsi:type="ns1:DataSetType" '
        f'ss:dataScope="DataStructure" ss:action="Information">'
    )


def _message(begin: Callable[[SeriesData], str], parts: Parts, style: Style, end: str) -> Iterator[str]:
    """A message in texts, one or two for each part of the data; what is to be said of any of them comes at the end."""
    notes: dict[str, None] = {}
    for number, data in enumerate(parts):
        if not number:
            yield begin(data)
        yield "".join(_written(data, style))
        notes |= dict.fromkeys(data.notes)
    yield f"</mes:DataSet>{footer(tuple(notes))}{end}"


def _header(data: SeriesData, structure: str, source: str) -> str:
    flow = data.flow
    return header(flow.agency, message=flow.id, prepared=flow.table.updated, structure=structure, source=source)


def _written(data: SeriesData, style: Style) -> Iterator[str]:
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
    marks = {
        letter: "".join(style.attribute(*one) for one in statuses(letter).items()) for letter in {*data.status}
    } | {"": ""}
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
