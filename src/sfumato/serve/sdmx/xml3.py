"""The messages of SDMX-ML 3.0, made of those of 2.1: references are names in text, and some structures have others.

So whatever a structure has, it has in both.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from sfumato.serve.sdmx.flow import OBS_VALUE
from sfumato.serve.sdmx.series import Parts
from sfumato.serve.sdmx.xml import NAMESPACES, write_structure_specific

_OLD, _NEW = "/schemas/v2_1/", "/schemas/v3_0/"
_SPACES = {prefix: space.replace(_OLD, _NEW) for prefix, space in NAMESPACES.items()}
_STR, _COM, _MES = (f"{{{_SPACES[prefix]}}}" for prefix in ("str", "com", "mes"))
_RENAMED = {
    "OrganisationSchemes": "AgencySchemes",
    "Concepts": "ConceptSchemes",
    "Constraints": "DataConstraints",
    "ContentConstraint": "DataConstraint",
}
_OF_CONSTRAINTS = ("KeyValue", "Value", "TimeRange", "StartPeriod", "EndPeriod")
"""What is among what all messages share in the version before."""
_ORDER = (
    *("AgencySchemes", "Codelists", "ConceptSchemes", "DataConstraints", "Dataflows"),
    *("DataStructures", "Hierarchies", "HierarchyAssociations"),
)
_STRUCTURE = re.compile(r"<com:Structure>(<Ref [^>]*/>)</com:Structure>")


def structures_3(message: bytes) -> bytes:
    """A message of structures, or of what is available, as version 3.0 writes it."""
    for prefix, space in _SPACES.items():
        ElementTree.register_namespace(prefix, space)
    root = ElementTree.fromstring(message.decode().replace(_OLD, _NEW))  # noqa: S314 — it is ours
    found = root.find(f"{_MES}Structures")
    if found is not None:
        _named_by_urn(found)
        for components in found.iter(f"{_STR}DataStructureComponents"):
            _components(components)
        _hierarchies(found)
        for element in found.iter():
            element.attrib.pop("isFinal", None)
            name = element.tag.removeprefix(_STR)
            if name == "AgencyScheme":
                element.attrib.pop("version", None)
            element.tag = f"{_STR}{_RENAMED[name]}" if name in _RENAMED else element.tag
            if name == "ContentConstraint":
                element.set("role", element.attrib.pop("type"))
            if element.tag.removeprefix(_COM) in _OF_CONSTRAINTS:
                element.tag = element.tag.replace(_COM, _STR)
        found[:] = sorted(found, key=lambda one: _ORDER.index(one.tag.removeprefix(_STR)))
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def write_structure_specific_3(parts: Parts, source: str) -> Iterator[str]:
    """The data as a StructureSpecificData message of version 3.0."""
    for text in write_structure_specific(parts, source):
        if text.startswith("<?xml"):
            begin = text.replace(_OLD, _NEW)
            yield _STRUCTURE.sub(
                lambda found: f"<com:Structure>{_urn(ElementTree.fromstring(found[1]))}</com:Structure>",  # noqa: S314
                begin,
            )
        else:
            yield text.replace(_OLD, _NEW) if text.startswith("</mes:DataSet>") else text


def _named_by_urn(within: Element) -> None:
    """Put names in text in the place of elements that refer to something."""
    for element in within.iter():
        if len(element) == 1 and element[0].tag == "Ref":
            element.text = _urn(element[0])
            del element[0]


def _urn(reference: Element) -> str:
    """The name of what is referred to; its identifier alone where that is in the same structure."""
    to = reference.attrib
    if "agencyID" not in to:
        return to["id"]
    package = to.get("package", to["class"].lower())
    parent = to.get("maintainableParentID")
    version = to["version"] if parent is None else to["maintainableParentVersion"]
    whole = f"urn:sdmx:org.sdmx.infomodel.{package}.{to['class']}={to['agencyID']}:{parent or to['id']}({version})"
    return whole if parent is None else f"{whole}.{to['id']}"


def _components(components: Element) -> None:
    """What a data structure has: measures are a list, and attributes belong to observations rather than to one."""
    for time in components.iter(f"{_STR}TimeDimension"):
        time.attrib.pop("position", None)
    for attribute in components.iter(f"{_STR}Attribute"):
        attribute.attrib.pop("assignmentStatus", None)
        attribute.set("usage", "optional")
    for related in components.iter(f"{_STR}AttributeRelationship"):
        for measure in related.findall(f"{_STR}PrimaryMeasure"):
            measure.tag, measure.text = f"{_STR}Observation", None
    for measure in components.iter(f"{_STR}PrimaryMeasure"):
        measure.tag = f"{_STR}Measure"
        measure.set("id", OBS_VALUE)
        measure.set("usage", "optional")


def _hierarchies(structures: Element) -> None:
    """Every way up from a dimension as a hierarchy of its own, and what says which codes it is of."""
    listed = structures.find(f"{_STR}HierarchicalCodelists")
    if listed is None:
        return
    structures.remove(listed)
    hierarchies = SubElement(structures, f"{_STR}Hierarchies")
    associations = SubElement(structures, f"{_STR}HierarchyAssociations")
    for one in listed:
        first = one.find(f"{_STR}IncludedCodelist")
        ways = one.findall(f"{_STR}Hierarchy")
        for number, way in enumerate(ways, 1):
            id = one.attrib["id"] + (f"_{number}" if number > 1 else "")  # noqa: A001 — the standard has this word
            kept = {name: said for name, said in one.attrib.items() if name != "urn"}
            hierarchy = SubElement(hierarchies, f"{_STR}Hierarchy", {**kept, "id": id, "hasFormalLevels": "true"})
            order = [f"{_COM}Name", f"{_STR}Level"]  # levels come before codes here
            hierarchy.extend(sorted(way, key=lambda one: order.index(one.tag) if one.tag in order else len(order)))
            association = SubElement(associations, f"{_STR}HierarchyAssociation", {**kept, "id": f"HA_{id}"})
            association.extend(way.findall(f"{_COM}Name"))
            name = f"{one.attrib['agencyID']}:{id}({one.attrib['version']})"
            linked = SubElement(association, f"{_STR}LinkedHierarchy")
            linked.text = f"urn:sdmx:org.sdmx.infomodel.codelist.Hierarchy={name}"
            if first is not None:
                SubElement(association, f"{_STR}LinkedObject").text = first.text
        if not ways:  # a stub says only that it is there
            kept = {name: said for name, said in one.attrib.items() if name != "urn"}
            hierarchy = SubElement(hierarchies, f"{_STR}Hierarchy", {**kept, "hasFormalLevels": "true"})
            hierarchy.extend(one)
