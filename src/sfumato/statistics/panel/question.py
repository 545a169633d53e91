"""What indicators, flows and graphs ask of the data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from sfumato.cells import Dimension
from sfumato.statistics.panel.section import EARNINGS, Weight

SUMS = frozenset({"count", "distorted", "remainder", "factors", "deviation", "available"})
"""The columns that tabulation supplies for indicators, flows and graphs.

`count` is the true statistic. `distorted` and `remainder` are Σ factor·label over its observations: whole units, and
millionths of a unit below one. `factors` is the number of distinct factors in it, `deviation` the standard deviation
that they give it, in millionths, and `available` is 1 where the periods it looks at are in the panel.
"""
BEHIND = "behind"
"""Of sums of earnings, a further column: the distorted number of workers behind them, in whole units."""


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
class FormalQuestion(IndicatorQuestion):
    """Indicators with a guarantee: every job counts for at most the cap, and empty cells are cells like others."""

    cap: int | None = None
    """The most that one job adds to a payroll; None where no payroll is asked for."""
    measured: str = ""
    """The measure of payrolls, with what makes its values."""
    unit: str = ""
    every_cell: bool = False
    """Whether cells without any establishment are protected, too."""

    @property
    def worker_cells(self) -> int:
        """The number of cells that workers are told apart by."""
        return prod(len(dimension) for dimension in self.by if not dimension.public)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which jobs make the links of a graph, and by what these are kept apart.

    Questions with the same selection are about the same links, which are then looked up once.
    """

    by: tuple[str, ...] = ()
    """The period, or attributes of workers, that keep links apart."""
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The codes of the period and of attributes that jobs need."""
    loops: bool = False
    directed: bool = False
    earnings: bool = False


EVERY_JOB = Selection()
"""All jobs, each worker at each employer once."""


@dataclass(frozen=True, kw_only=True)
class PairQuestion:
    """Pairs of employers, or of workers, by an attribute of both.

    A graph counts pairs of employers that share a worker, or pairs of workers that share an employer, in the jobs that
    are selected; a flow counts the pairs of employers of which a worker left the first and joined the second in the
    same period. `by` begins with the attributes of the one end, then of the other; then come the period and attributes
    of what links the two: of workers between employers, of employers between workers. Undirected pairs are listed once:
    the place of the first in the codelists is not after that of the second.
    """

    by: tuple[Dimension, ...]
    attributes: tuple[str, ...]
    """The attributes of each end, by which both are classified."""
    kind: Literal["graph", "flow"]
    between: Literal["employers", "workers"] = "employers"
    weight: Weight = "edges"
    """What a pair counts: once, as often as its members are linked, or what those who link it earn."""
    directed: bool = False
    rule: Literal["keyed", "twelve-characters"] = "keyed"
    """Which of its two employers' factors an edge takes."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Codes to keep: of periods and of what links two ends; and of ends, under the names that `filters` lists."""
    filters: Mapping[str, tuple[str, tuple[bool, bool]]] = field(default_factory=dict)
    """Names in `where` that are about ends: the attribute, and whether the one and the other end must have a code."""
    loops: bool = False
    """Of graphs: whether what links only one end to itself counts as a pair of it with itself."""

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute whose values decide the answer."""
        named = (self.filters[name][0] if name in self.filters else name for name in self.where)
        return frozenset([*self.attributes, *self.others, *named])

    @property
    def others(self) -> tuple[str, ...]:
        """The period and the attributes beside those of the ends."""
        return tuple(dimension.name for dimension in self.by[2 * len(self.attributes) :])

    @property
    def classes(self) -> int:
        """The number of classes of each end."""
        return prod(len(dimension) for dimension in self.by[: len(self.attributes)])

    @property
    def of_earnings(self) -> bool:
        """Whether pairs are weighted by earnings."""
        return self.weight in EARNINGS

    @property
    def selection(self) -> Selection:
        """Which jobs make its links."""
        chosen = {name: codes for name, codes in self.where.items() if name not in self.filters}
        return Selection(
            by=self.others,
            where=tuple(sorted((name, tuple(sorted(codes))) for name, codes in chosen.items())),
            loops=self.loops,
            directed=self.directed,
            earnings=self.of_earnings,
        )

    @property
    def cells(self) -> int:
        """The number of cells that are listed."""
        ends, others = self.classes, prod(len(dimension) for dimension in self.by[2 * len(self.attributes) :])
        return others * (ends * ends if self.directed else ends * (ends + 1) // 2)
