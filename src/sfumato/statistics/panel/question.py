"""What indicators, flows and graphs ask of the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from sfumato.cells import Dimension

SUMS = frozenset({"count", "distorted", "remainder", "factors", "deviation", "available"})
"""The columns that tabulation supplies for indicators, flows and graphs.

`count` is the true statistic. `distorted` and `remainder` are Σ factor·label over its observations: whole units, and
millionths of a unit below one. `factors` is the number of distinct factors in it, `deviation` the standard deviation
that they give it, in millionths, and `available` is 1 where the periods it looks at are in the panel.
"""


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
