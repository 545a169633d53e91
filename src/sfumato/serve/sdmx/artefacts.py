"""The structures there are, which of them refer to which, and how they are asked for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from sfumato.serve.errors import RefusedError
from sfumato.serve.sdmx.flow import VERSION, Component, Flow

Kind = Literal["agencyscheme", "dataflow", "codelist", "conceptscheme", "datastructure"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order in which a message has them."""
REFERENCES = ("none", "parents", "parentsandsiblings", "children", "descendants", "all", *KINDS)
STATUS_LIST = "CL_OBS_STATUS"
STANDARD = "SDMX"
"""The agency that maintains the list of agencies; a part of an agency is on the list of that agency."""
_ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Artefact:
    """A structure, told apart by its kind, agency and identifier."""

    kind: Kind
    agency: str
    id: str
    flow: Flow | None = field(default=None, compare=False, repr=False)
    """The dataflow it describes, if it is not shared by all."""
    component: Component | None = field(default=None, compare=False, repr=False)
    """The dimension of a code list."""


Together = Iterable[Artefact]


@dataclass(frozen=True, kw_only=True, eq=False)
class Artefacts:
    """All structures of a server."""

    agency: str
    flows: tuple[Flow, ...]

    @cached_property
    def children(self) -> Mapping[Artefact, tuple[Artefact, ...]]:
        """Every structure, with those it refers to."""
        shared = Artefact(kind="codelist", agency=self.agency, id=STATUS_LIST)
        found: dict[Artefact, tuple[Artefact, ...]] = {
            Artefact(kind="agencyscheme", agency=self.agency.rpartition(".")[0] or STANDARD, id="AGENCIES"): (),
            shared: (),
        }
        for flow in self.flows:
            lists = [self._of("codelist", flow.codelist_id(one), flow, one) for one in flow.key]
            concepts = self._of("conceptscheme", flow.concepts_id, flow)
            structure = self._of("datastructure", flow.structure_id, flow)
            found |= dict.fromkeys((*lists, concepts), ())
            found[structure] = (*lists, shared, concepts)
            found[self._of("dataflow", flow.id, flow)] = (structure,)
        return found

    @cached_property
    def parents(self) -> Mapping[Artefact, tuple[Artefact, ...]]:
        """Every structure that others refer to, with these."""
        found: dict[Artefact, tuple[Artefact, ...]] = {}
        for parent, children in self.children.items():
            for child in children:
                found[child] = (*found.get(child, ()), parent)
        return found

    def asked(self, kind: str, *, agency: str, id: str, version: str) -> list[Artefact]:  # noqa: A002
        """The structures of a kind that an address names; `all` and lists with + are understood."""
        versions, ids, agencies = ({*text.split("+")} for text in (version, id, agency))
        if not versions & {VERSION, "latest", _ALL}:
            return []
        return [
            one
            for one in self.children
            if kind in (one.kind, "structure")
            and (one.id in ids or _ALL in ids)
            and (one.agency in agencies or _ALL in agencies)
        ]

    def with_references(self, asked: Together, references: str) -> list[Artefact]:
        """The structures with those they refer to, or that refer to them, in the order of a message."""
        wanted = dict.fromkeys(asked)
        if references not in REFERENCES:
            raise RefusedError(
                "references", expected=f"one of {', '.join(REFERENCES)}", found=references, do="choose one of them"
            )
        above = _next(wanted, self.parents)
        beside = above | _next(above, self.children)
        below = _next(wanted, self.children)
        further = below | _next(below, self.children)
        by_name = {
            "none": {},
            "parents": above,
            "parentsandsiblings": beside,
            "children": below,
            "descendants": further,
            "all": beside | further,
        }
        if references in by_name:
            more = by_name[references]
        else:
            more = {one: None for one in beside | further if one.kind == references}
        return sorted(wanted | more, key=lambda one: KINDS.index(one.kind))

    def _of(self, kind: Kind, id: str, flow: Flow, component: Component | None = None) -> Artefact:  # noqa: A002
        return Artefact(kind=kind, agency=self.agency, id=id, flow=flow, component=component)


def _next(some: Together, links: Mapping[Artefact, tuple[Artefact, ...]]) -> dict[Artefact, None]:
    return {other: None for one in some for other in links.get(one, ())}
