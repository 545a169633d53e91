"""A table as SDMX sees it: a dataflow whose dimensions are those of the table, the metrics, and time last."""

from dataclasses import dataclass
from functools import cached_property

from sfumato.serve.model import ServedDimension, ServedTable
from sfumato.serve.roles import role_of
from sfumato.serve.sdmx.ids import code_id, component_ids, period_id

VERSION = "1.0"
"""Of everything: a new release of a table replaces the old one."""
ALL_DIMENSIONS = "AllDimensions"
TIME_PERIOD, OBS_VALUE, OBS_STATUS = "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS"
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
    return axis.total is None and role_of(axis.name, axis.codes) == "time"
