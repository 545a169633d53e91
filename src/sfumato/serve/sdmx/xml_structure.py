"""Structures as XML: a message of dataflows, data structures, code lists, concept schemes and the list of agencies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Literal

from sfumato.serve.sdmx.artefacts import Artefact, Kind
from sfumato.serve.sdmx.flow import VERSION
from sfumato.serve.sdmx.ids import own_id
from sfumato.serve.sdmx.xml import escaped, header, opening, worded
from sfumato.serve.sdmx.xml_components import components, reference
from sfumato.serve.sdmx.xml_items import annotations, codes, concepts, statuses

Shown = Literal["full", "complete", "stub"]
"""Everything; or what it is and where the rest is found, with or without what is said of it."""
_TAGS: dict[Kind, tuple[str, str, str]] = {
    "agencyscheme": ("OrganisationSchemes", "AgencyScheme", "base"),
    "dataflow": ("Dataflows", "Dataflow", "datastructure"),
    "codelist": ("Codelists", "Codelist", "codelist"),
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
        return "Agencies" if one.kind == "agencyscheme" else "Observation status"
    return f"Concepts: {one.flow.table.title}" if one.kind == "conceptscheme" else one.flow.table.title


def _content(one: Artefact, office: Office) -> str:
    if one.kind == "agencyscheme":
        name = worded("com:Name", office.name or office.agency)
        return f'<str:Agency id="{own_id(office.agency)}">{name}</str:Agency>'
    if one.flow is None:
        return "".join(statuses())
    if one.component is not None:
        return "".join(codes(one.flow, one.component))
    if one.kind == "conceptscheme":
        return "".join(concepts(one.flow))
    if one.kind == "datastructure":
        return components(one.flow)
    found = reference(one.flow, "datastructure", "DataStructure", one.flow.structure_id)
    return f"<str:Structure>{found}</str:Structure>"
