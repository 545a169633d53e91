"""What statistics of groups of people ask of the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal, get_args

from sfumato.cells import Dimension
from sfumato.frame.records import UnitLimit

SAMPLES = frozenset({"count", "class", "sum_x", "sum_y", "sum_xx", "sum_xy", "sum_yy", "samples"})
"""What can be told of groups of people for predictions; `samples` stands for the values themselves."""


PeopleStatistic = Literal["count", "predict", "mean", "quantiles", "total"]


STATISTICS: tuple[PeopleStatistic, ...] = get_args(PeopleStatistic)
"""What can be asked of groups of people."""
SUMMED: tuple[PeopleStatistic, ...] = ("predict", "mean", "total")
"""Those that need sums of values, which weights multiply."""


AT = "at"
"""The last dimension of predictions, means and percentiles: which of them a value is."""


@dataclass(frozen=True, kw_only=True)
class BoundedMeasure:
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


_MILLION = 10**6
_FINE = 1_000
"""The largest weight is so many steps at least, where values are added up times the weight."""


@dataclass(frozen=True, kw_only=True)
class Weight:
    """How records count: by the numbers of a column, none beyond a largest one that everybody may know.

    Weights are added up in whole steps of 1/`fraction`, so that sums are exact and alike on every engine.
    """

    column: str
    largest: int
    clips: bool = False
    """Whether heavier records count with the largest weight; else data with one are refused."""
    fraction: int = _MILLION

    @classmethod
    def of_values(cls, *, column: str, largest: int, clips: bool) -> "Weight":
        """For sums of values times weights, which need room in 64 bits: in tenths, hundredths or thousandths at most.

        >>> [Weight.of_values(column="w", largest=most, clips=False).steps for most in (1, 80, 500, 20_000)]
        [1000, 8000, 5000, 20000]
        """
        fraction = next(of for of in (1, 10, 100, 1_000) if largest * of >= _FINE)
        return cls(column=column, largest=largest, clips=clips, fraction=fraction)

    @property
    def steps(self) -> int:
        """The largest weight in steps."""
        return self.largest * self.fraction

    @property
    def bound(self) -> str:
        """The column and the largest weight, in words."""
        return f"{self.column} above {self.largest:,}"


@dataclass(frozen=True, kw_only=True)
class SampleQuestion:
    """Count people in groups, and add up what a statistic of their measures needs; one record a person and period.

    The answer lists every combination of the codes of `groups`. It has the columns that are needed: `count`; `class`;
    `sum_x`, `sum_y`, `sum_xx`, `sum_xy` or `sum_yy`. Percentiles of `y` get the `count` of every bin. A method that
    needs `samples` gets the values themselves.
    """

    groups: tuple[Dimension, ...]
    statistic: PeopleStatistic
    at: tuple[str, ...] = ()
    """The codes of what is published of every group; none for counts."""
    x: BoundedMeasure | None = None
    y: BoundedMeasure | None = None
    edges: tuple[int, ...] = ()
    """The ends of the bins of percentiles; a value below all of them is in the first bin, one above in the last."""
    tails: tuple[int, int] = (1, 1)
    """How many of these bins make up the first bin of equal mass, and how many the last one."""
    step: int = 1
    """Of percentiles: values are rounded to multiples of this."""
    classes: tuple[Dimension, ...] = ()
    """Attributes of calibration classes; every group must be in one class, whose place is the column `class`."""
    needs: frozenset[str] = frozenset({"count"})
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weight: Weight | None = None
    """By what records count; None counts each once. Counts are whole numbers, and sums are in steps of the weight."""
    limit: UnitLimit | None = None
    """How many records of a larger unit are counted at most; None counts all."""

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
    def in_steps(self) -> bool:
        """Whether numbers of people, and sums of their values, are in steps of the weight."""
        return self.weight is not None and self.statistic in SUMMED

    @property
    def of_values(self) -> bool:
        """Whether the values themselves are asked for."""
        return "samples" in self.needs

    @property
    def sums(self) -> tuple[str, ...]:
        """What is added up of each group: words of x and y such as `xy`, the sum of their products."""
        measures = {"x": self.x, "y": self.y}
        if self.of_values or self.statistic not in SUMMED:
            return ()
        words = ("x", "y", "xx", "xy", "yy")
        return tuple(word for word in words if f"sum_{word}" in self.needs and all(measures[of] for of in word))
