"""The components of a data structure as XML: dimensions, attributes and the measure, each with its concept."""

from sfumato.serve.sdmx.artefacts import STATUS_LIST
from sfumato.serve.sdmx.flow import DECIMALS, OBS_STATUS, OBS_VALUE, UNIT_MEASURE, VERSION, Component, Flow
from sfumato.serve.sdmx.xml import escaped


def components(flow: Flow) -> str:
    """All components of a data structure."""
    dimensions = "".join(_dimension(flow, one, place) for place, one in enumerate(flow.components, 1))
    of_contents = f'<str:Dimension><Ref id="{flow.contents.id}"/></str:Dimension>'
    of_figure = f'<str:PrimaryMeasure><Ref id="{OBS_VALUE}"/></str:PrimaryMeasure>'
    attributes = (
        _attribute(flow, OBS_STATUS, _enumeration(flow, STATUS_LIST), of_figure)
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
