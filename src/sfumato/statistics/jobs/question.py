"""What a count of jobs, or a total of what they have of a measure, asks of the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from sfumato.cells import Dimension
from sfumato.frame.data import Frame

COLUMNS = frozenset(
    {"count", "largest", "establishments", "largest_employer", "count_below_threshold", "distorted", "remainder"}
)
"""The columns that tabulation can supply for every cell of a count of jobs."""
THRESHOLD = 100
"""Of the column `count_below_threshold`, where a release names none."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Count the jobs `by` some attributes, among those whose attributes are in `where`; or add up a measure of them.

    Of a total, the columns are in units of the measure: `count` is the total, and `largest` what the establishment with
    the largest part of it adds.
    """

    by: tuple[Dimension, ...]
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    """Columns beyond count, largest and establishments that the method asked for, such as `largest_employer`."""
    threshold: int = THRESHOLD
    """For the column `count_below_threshold`: establishments with so many workers in all, or more, are left out."""
    every_cell: bool = False
    """Whether combinations without any establishment are cells like others: nothing then tells where there is one."""
    measure: str | None = None
    """What is added up; None counts jobs."""
    measured: str = ""
    """The same with what makes its values, by which its cap is kept apart from others: `Data.measured`."""
    cap: int | None = None
    """The most that one job adds: what is above is cut off before anything else."""
    unit: str = "jobs"
    """What is counted, or in which unit it is added up, for people."""
    population: str = ""
    """Of a panel, which of its jobs are counted at a period: one of `sfumato.frame.jobs.POPULATIONS`."""
    periods: tuple[str, ...] = ()
    """The periods of a panel that jobs are counted at; each is an answer of its own."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute the question looks at, each once."""
        return tuple(dict.fromkeys([*(dimension.name for dimension in self.by), *self.where]))

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return frozenset((*self.attributes, *filter(None, [self.measure])))

    @property
    def cells(self) -> int:
        """The number of cells, those without any establishment included."""
        return prod(map(len, self.by))

    def worker_attributes(self, frame: Frame) -> tuple[str, ...]:
        """The attributes that describe workers or their jobs, and so are confidential."""
        return tuple(name for name in self.attributes if not frame.is_known(name))

    def workplace_attributes(self, frame: Frame) -> tuple[str, ...]:
        """The attributes that describe workplaces, and so are public."""
        return tuple(name for name in self.attributes if frame.is_known(name))

    def worker_cells(self, frame: Frame) -> int:
        """The number of worker-attribute cells in each workplace cell; 0 when no worker attribute is used."""
        if not self.worker_attributes(frame):
            return 0
        return prod(len(dimension) for dimension in self.by if not frame.is_known(dimension.name))
