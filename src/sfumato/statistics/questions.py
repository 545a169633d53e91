"""What a table asks of the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal, get_args

from sfumato.cells import Dimension
from sfumato.frame import Frame

COLUMNS = frozenset(
    {"count", "largest", "establishments", "largest_employer", "count_below_threshold", "distorted", "remainder"}
)
"""The columns that tabulation can supply for every cell of a count of jobs."""
SUMS = frozenset({"count", "distorted", "remainder", "factors", "deviation", "available"})
"""The columns that tabulation supplies for indicators, flows and graphs.

`count` is the true statistic. `distorted` and `remainder` are Σ factor·label over its observations: whole units, and
millionths of a unit below one. `factors` is the number of distinct factors in it, `deviation` the standard deviation
that they give it, in millionths, and `available` is 1 where the periods it looks at are in the panel.
"""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Count the jobs `by` some attributes, among those whose attributes are in `where`."""

    by: tuple[Dimension, ...]
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    """Columns beyond count, largest and establishments that the method asked for, such as `largest_employer`."""
    threshold: int = 100
    """For the column `count_below_threshold`: establishments with so many workers in all, or more, are left out."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute the question looks at, each once."""
        return tuple(dict.fromkeys([*(dimension.name for dimension in self.by), *self.where]))

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return frozenset(self.attributes)

    @property
    def cells(self) -> int:
        """The number of cells, those without any establishment included."""
        return prod(map(len, self.by))

    def worker_attributes(self, frame: Frame) -> tuple[str, ...]:
        """The attributes that describe workers or their jobs, and so are confidential."""
        return tuple(name for name in self.attributes if not frame.is_public(name))

    def workplace_attributes(self, frame: Frame) -> tuple[str, ...]:
        """The attributes that describe workplaces, and so are public."""
        return tuple(name for name in self.attributes if frame.is_public(name))

    def worker_cells(self, frame: Frame) -> int:
        """The number of worker-attribute cells in each workplace cell; 0 when no worker attribute is used."""
        if not self.worker_attributes(frame):
            return 0
        return prod(len(dimension) for dimension in self.by if not frame.is_public(dimension.name))


@dataclass(frozen=True, kw_only=True)
class IndicatorQuestion:
    """The workforce indicators of a panel.

    `by` holds attributes of workplaces and workers and the period, in any order, and last the dimension `indicator`
    with all codes of `sfumato.statistics.panel.indicators`. `where` keeps some codes of attributes, or some periods.
    """

    by: tuple[Dimension, ...]
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute whose values decide the answer."""
        return frozenset([*(dimension.name for dimension in self.by), *self.where])

    @property
    def cells(self) -> int:
        """The number of cells, those without any establishment included."""
        return prod(map(len, self.by))


@dataclass(frozen=True, kw_only=True)
class PairQuestion:
    """Pairs of employers, or of workers, by an attribute of both.

    A graph counts pairs of employers that share a worker, or pairs of workers that share an employer, in all jobs; a
    flow counts the pairs of employers of which a worker left the first and joined the second in the same period.
    `by` begins with the attributes of the one, then of the other, then the period and worker attributes (flows only).
    Undirected pairs are listed once: the place of the first in the codelists is not after that of the second.
    """

    by: tuple[Dimension, ...]
    attributes: tuple[str, ...]
    """The attributes of each end, by which both are classified."""
    kind: Literal["graph", "flow"]
    between: Literal["employers", "workers"] = "employers"
    weight: Literal["edges", "multiplicity"] = "edges"
    """Whether a pair counts once, or as often as its members are linked: by shared workers, moves or employers."""
    directed: bool = False
    rule: Literal["keyed", "twelve-characters"] = "keyed"
    """Which of its two employers' factors an edge takes."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Codes of worker attributes and periods to keep; only in flows."""

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute whose values decide the answer."""
        others = (dimension.name for dimension in self.by[2 * len(self.attributes) :])
        return frozenset([*self.attributes, *others, *self.where])

    @property
    def cells(self) -> int:
        """The number of cells that are listed."""
        ends = prod(len(dimension) for dimension in self.by[: len(self.attributes)])
        others = prod(len(dimension) for dimension in self.by[2 * len(self.attributes) :])
        return others * (ends * ends if self.directed else ends * (ends + 1) // 2)


TOTAL = "total"
"""The last code of a dimension with totals: all its other codes together."""


@dataclass(frozen=True, kw_only=True)
class ContributorQuestion:
    """Sum a measure of records `by` some attributes, and say who contributes most to every cell.

    With `margins` every dimension ends with the code `TOTAL`. The answer lists every combination of codes, with the
    integer columns that `engine.contributors` documents.
    """

    by: tuple[Dimension, ...]
    measure: str | None
    """None counts records: each has the value 1."""
    contributors: int
    """How many of the largest units are told of every cell."""
    margins: bool = False
    ratio: bool = False
    """Whether the sampling error of the mean is asked for too."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return frozenset([*(dimension.name for dimension in self.by), *self.where, *filter(None, [self.measure])])

    @property
    def cells(self) -> int:
        """The number of cells."""
        return prod(map(len, self.by))


SAMPLES = frozenset({"count", "class", "sum_x", "sum_y", "sum_xx", "sum_xy", "sum_yy", "samples"})
"""What can be told of groups of people for predictions; `samples` stands for the values themselves."""
Statistic = Literal["count", "predict", "mean", "quantiles"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
"""What can be asked of groups of people."""
AT = "at"
"""The last dimension of predictions, means and percentiles: which of them a value is."""


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """A measure of people, with the public ends of its values; values beyond an end count as that end."""

    name: str
    low: int | None
    high: int | None
    """None where there is no limit."""

    @property
    def largest(self) -> int:
        """The largest size of a value that is bounded on both sides."""
        if self.low is None or self.high is None:
            raise ValueError(f"{self.name!r} has no bounds")
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True, kw_only=True)
class SampleQuestion:
    """Count people in groups, and add up what a statistic of their measures needs; one record a person and period.

    The answer lists every combination of the codes of `groups`. It has the columns that are needed: `count`; `class`;
    `sum_x`, `sum_y`, `sum_xx`, `sum_xy` or `sum_yy`. Percentiles of `y` get the `count` of every bin. A method that
    needs `samples` gets the values themselves.
    """

    groups: tuple[Dimension, ...]
    statistic: Statistic
    at: tuple[str, ...] = ()
    """The codes of what is published of every group; none for counts."""
    x: Bounded | None = None
    y: Bounded | None = None
    edges: tuple[int, ...] = ()
    """The ends of the bins of percentiles; a value below all of them is in the first bin, one above in the last."""
    tails: tuple[int, int] = (1, 1)
    """How many of these bins make up the first bin of equal mass, and how many the last one."""
    classes: tuple[Dimension, ...] = ()
    """Attributes of calibration classes; every group must be in one class, whose place is the column `class`."""
    needs: frozenset[str] = frozenset({"count"})
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        classified = (dimension.name for dimension in (*self.groups, *self.classes))
        return frozenset([*classified, *self.where, *(measure.name for measure in (self.x, self.y) if measure)])

    @property
    def by(self) -> tuple[Dimension, ...]:
        """The dimensions of the published table."""
        return (*self.groups, Dimension(name=AT, codes=self.at)) if self.at else self.groups

    @property
    def cells(self) -> int:
        """The number of published values."""
        return prod(map(len, self.by))

    @property
    def of_values(self) -> bool:
        """Whether the values themselves are asked for."""
        return "samples" in self.needs

    @property
    def sums(self) -> tuple[str, ...]:
        """What is added up of each group: words of x and y such as `xy`, the sum of their products."""
        measures = {"x": self.x, "y": self.y}
        if self.of_values or self.statistic not in ("predict", "mean"):
            return ()
        words = ("x", "y", "xx", "xy", "yy")
        return tuple(word for word in words if f"sum_{word}" in self.needs and all(measures[of] for of in word))


Asked = Question | IndicatorQuestion | PairQuestion | ContributorQuestion | SampleQuestion
