"""A table as SDMX sees it: a dataflow, its identifiers, and the structures that refer to each other."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

from sfumato.errors import SfumatoError
from sfumato.frame.periods import Period, in_time
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import ServedDimension, ServedTable
from sfumato.serve.core.roles import role_of

# Identifiers of SDMX from the names and codes of a bundle.

_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_@-]")
_MISREAD = re.compile(r"[_@-].*|\d+(?:e-?\d+)?|inf|infinity|nan|na|null|none|true|false", re.IGNORECASE)
_AGENCY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*")
_TAKEN = ("ALL", "SDMX")
"""What stands for any agency, and who maintains the standard."""
_RESERVED = frozenset(
    [
        "TIME_PERIOD",
        "OBS_VALUE",
        "OBS_STATUS",
        "CONF_STATUS",
        "UNIT_MEASURE",
        "DECIMALS",
        "REPORTING_YEAR_START_DAY",
        "DATAFLOW",
        "STRUCTURE",
        "STRUCTURE_ID",
        "STRUCTURE_NAME",
        "ACTION",
        "SERIES_KEY",
        "OBS_KEY",
    ]
)
"""What the standard, or a column of its CSV, is called: no dimension may be."""


def code_id(code: str) -> str:
    """The identifier of a code, from which the code can be had back.

    A character that identifiers may not have is written as its number between dollar signs. An underscore goes before
    what a reader of CSV would take for a number, a truth value, a missing value or a formula, and before an underscore.

    >>> [code_id(code) for code in ("A", "200+", "01", "_T", "NA")]
    ['A', '200$2B$', '_01', '__T', '_NA']
    """
    written = _NOT_IN_AN_ID.sub(lambda found: f"${ord(found[0]):X}$", code)
    return f"_{written}" if not written or _MISREAD.fullmatch(written) else written


def period_id(code: str) -> str:
    """A quarter or year as SDMX writes it.

    >>> period_id("2025Q3"), period_id("2025")
    ('2025-Q3', '2025')
    """
    return str(Period.read(code))


def component_ids(names: Sequence[str]) -> tuple[str, ...]:
    """Identifiers of dimensions: names in capitals, no two alike and none that the standard has a meaning for.

    >>> component_ids(["place", "place size", "2nd", "obs_value"])
    ('PLACE', 'PLACE_SIZE', 'D_2ND', 'OBS_VALUE_2')
    """
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Z0-9_-]", "_", name.upper())
        plain = plain if re.match(r"[A-Z]", plain) else f"D_{plain}"
        variations = (plain, *(f"{plain}_{number}" for number in range(2, len(names) + 3)))
        found.append(next(one for one in variations if one not in _RESERVED and one not in found))
    return tuple(found)


def checked_agency(agency: str) -> str:
    """The agency, if SDMX can write it."""
    if not _AGENCY.fullmatch(agency) or agency.upper() in _TAKEN:
        raise SfumatoError(
            "agency of SDMX, --agency",
            expected="letters, digits, _ and -, the first a letter, such as OFFICE or OFFICE.LABOUR; not SDMX, not all",
            found=repr(agency),
            do="choose an identifier of this form",
        )
    return agency


def own_id(agency: str) -> str:
    """What a part of an agency is called on the list of that agency, and as the sender of a message.

    >>> own_id("OFFICE.LABOUR"), own_id("OFFICE")
    ('LABOUR', 'OFFICE')
    """
    return agency.rpartition(".")[-1]


VERSION = "1.0"
"""Of everything: a new release of a table replaces the old one."""
ALL_DIMENSIONS = "AllDimensions"
TIME_PERIOD, OBS_VALUE = "TIME_PERIOD", "OBS_VALUE"
OBS_STATUS, CONF_STATUS = "OBS_STATUS", "CONF_STATUS"
UNIT_MEASURE, DECIMALS = "UNIT_MEASURE", "DECIMALS"


@dataclass(frozen=True, kw_only=True, eq=False)
class Component:
    """A dimension of a dataflow."""

    id: str
    axis: int
    """Its place among the axes of the table."""
    dimension: ServedDimension

    @property
    def is_time(self) -> bool:
        """Whether it is the dimension of time, which no key has."""
        return self.id == TIME_PERIOD

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The identifiers of its codes."""
        return tuple(map(period_id if self.is_time else code_id, self.dimension.codes))

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of every code, by its identifier or, where that is nothing else, as the bundle writes it."""
        return self.dimension.places | {code: place for place, code in enumerate(self.codes)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Flow:
    """A dataflow with its data structure."""

    table: ServedTable
    agency: str

    @property
    def id(self) -> str:
        """The identifier of the dataflow, that of the table."""
        return self.table.id

    @property
    def structure_id(self) -> str:
        """The identifier of the data structure."""
        return f"DSD_{self.id}"

    @property
    def concepts_id(self) -> str:
        """The identifier of the concept scheme."""
        return f"CS_{self.id}"

    def codelist_id(self, component: Component) -> str:
        """The identifier of the code list of a dimension."""
        return f"CL_{self.id}_{component.id}"

    def hierarchical_id(self, component: Component) -> str:
        """The identifier of the hierarchical code list of a dimension that has levels above it."""
        return f"HCL_{self.id}_{component.id}"

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The dimensions in their order: those of the table, the metrics, then time."""
        table = self.table
        time = next((at for at, axis in enumerate(table.dimensions) if axis is table.time and _is_time(axis)), None)
        names = component_ids([axis.name for axis in table.axes])
        found = [
            Component(id=TIME_PERIOD if at == time else name, axis=at, dimension=axis)
            for at, (name, axis) in enumerate(zip(names, table.axes, strict=True))
        ]
        return tuple(sorted(found, key=lambda component: component.is_time))

    @property
    def key(self) -> tuple[Component, ...]:
        """The dimensions of a key."""
        return tuple(component for component in self.components if not component.is_time)

    @property
    def time(self) -> Component | None:
        """The dimension of time, if there is one."""
        return self.components[-1] if self.components[-1].is_time else None

    @property
    def contents(self) -> Component:
        """The dimension of the metrics."""
        return self.key[-1]

    @property
    def at_observation(self) -> str:
        """The dimension that tells observations of a series apart where nobody asks for another one."""
        if not self.table.dimensions:
            return ALL_DIMENSIONS
        return (self.time or self.contents).id

    @property
    def annotations(self) -> tuple[tuple[str, str], ...]:
        """What readers of the figures have to know, each with its kind."""
        table = self.table
        return (
            ("RELEASE", table.release),
            ("POPULATION", table.population),
            ("PERIOD", table.period),
            ("METHOD", table.method),
            *(("GUARANTEE", paragraph) for paragraph in table.guarantee),
            *(("NOTE", paragraph) for paragraph in table.notes),
        )


def _is_time(axis: ServedDimension) -> bool:
    """Whether all codes are periods: a total over time is none, and TIME_PERIOD has no place for it."""
    if axis.total is not None:
        return False
    return role_of(axis.name, axis.codes) == "time" or (axis.role == "time" and bool(in_time(axis.codes)))


# The structures there are, which of them refer to which, and how they are asked for.

Kind = Literal["agencyscheme", "dataflow", "codelist", "hierarchicalcodelist", "conceptscheme", "datastructure"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order in which a message has them."""
REFERENCES = ("none", "parents", "parentsandsiblings", "children", "descendants", "all", *KINDS)
STATUS_LISTS = {f"CL_{attribute}": attribute for attribute in (OBS_STATUS, CONF_STATUS)}
"""The code lists that all tables share, each with the attribute of an observation that is from it."""
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
    levels: Mapping[str, tuple[str, Component]] = field(default_factory=dict, compare=False, repr=False)
    """Of a hierarchical code list, by every level above the dimension a code list and the dimension it belongs to."""


Together = Iterable[Artefact]


@dataclass(frozen=True, kw_only=True, eq=False)
class Artefacts:
    """All structures of a server."""

    agency: str
    flows: tuple[Flow, ...]

    @cached_property
    def children(self) -> Mapping[Artefact, tuple[Artefact, ...]]:
        """Every structure, with those it refers to."""
        shared = [Artefact(kind="codelist", agency=self.agency, id=name) for name in STATUS_LISTS]
        found: dict[Artefact, tuple[Artefact, ...]] = {
            Artefact(kind="agencyscheme", agency=self.agency.rpartition(".")[0] or STANDARD, id="AGENCIES"): (),
            **dict.fromkeys(shared, ()),
        }
        for flow in self.flows:
            lists = [self._of("codelist", flow.codelist_id(one), flow, one) for one in flow.key]
            concepts = self._of("conceptscheme", flow.concepts_id, flow)
            structure = self._of("datastructure", flow.structure_id, flow)
            found |= dict.fromkeys((*lists, concepts), ())
            found[structure] = (*lists, *shared, concepts)
            found[self._of("dataflow", flow.id, flow)] = (structure,)
        by_id = {(one.kind, one.id): one for one in found}
        for flow in self.flows:
            for one in flow.key:
                levels = self._levels(flow, one)
                included = [flow.codelist_id(one), *(name for name, _ in levels.values())]
                if levels:
                    hierarchical = replace(
                        self._of("hierarchicalcodelist", flow.hierarchical_id(one), flow, one), levels=levels
                    )
                    found[hierarchical] = tuple(by_id["codelist", name] for name in included)
        return found

    @cached_property
    def parents(self) -> Mapping[Artefact, tuple[Artefact, ...]]:
        """Every structure that others refer to, with these."""
        found: dict[Artefact, tuple[Artefact, ...]] = {}
        for parent, children in self.children.items():
            for child in children:
                found[child] = (*found.get(child, ()), parent)
        return found

    def _levels(self, flow: Flow, component: Component) -> dict[str, tuple[str, Component]]:
        """The levels above a dimension, each with the code list of a table of the bundle that has all of its codes."""
        found: dict[str, tuple[str, Component]] = {}
        for grouping in component.dimension.groupings:
            for other in (other for other in self.flows if other.table.digest == flow.table.digest and grouping.path):
                for one in other.key:
                    same = one.dimension.name == grouping.path[-1]
                    if same and grouping.groups.keys() <= one.dimension.places.keys():
                        found.setdefault(grouping.path[-1], (other.codelist_id(one), one))
        return found

    def find(self, kind: str, *, agency: str, id: str, version: str) -> list[Artefact]:  # noqa: A002
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
