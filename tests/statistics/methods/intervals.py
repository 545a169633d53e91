"""Counts protected many times over, and how often the published interval holds them, for every formal method."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.cells import Cells, Dimension
from sfumato.method import Method, PublishedFigures, published_figures
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.laplace import Laplace, NodeLaplace
from sfumato.statistics.people.small_samples import RecordLaplace
from sfumato.statistics.registry import build

CONFIDENCE = 0.9
SMALL, SIZES = (0, 1, 2, 5, 10), (1, 10, 100, 1_000)
"""True counts whose coverage, and whose width, docs/bundle.md shows."""
BLOCK = 4
"""Worker cells of a workplace cell, where a method draws them together."""
IN_BLOCKS = ("vector-pareto", "smooth-box", "log-box", "auto", "vector-bell", "box-bell", "sinh-box", "auto-bell")
OPTIONS: dict[str, dict[str, Any]] = {
    "smooth-laplace": {"delta": Fraction(1, 2000)},
    "node-laplace": {"threshold": 20},
    "log-laplace": {"debias": True},
}
FORMAL = (
    *("smooth-pareto", "vector-pareto", "smooth-gamma", "smooth-laplace", "log-laplace", "smooth-box", "log-box"),
    *("auto", "vector-bell", "box-bell", "sinh-box", "auto-bell"),
    *("laplace", "node-laplace", "laplace-records"),
)


@dataclass(frozen=True, kw_only=True)
class Protected:
    """One true count, drawn many times, with the figures beside it; in a workplace cell of its own or in a block."""

    count: int
    values: np.ndarray
    figures: PublishedFigures

    @property
    def covered(self) -> float:
        """How often the interval holds the count; an empty upper end is none."""
        return float(((self.figures.low <= self.count) & ~(self.figures.high < self.count)).mean())

    @property
    def width(self) -> float:
        """The mean width of the interval; infinite where it has no upper end."""
        return float(np.where(np.isnan(self.figures.high), np.inf, self.figures.high - self.figures.low).mean())

    @property
    def contradictions(self) -> int:
        """Values outside their interval, intervals of fewer than two counts, and errors too small for the value."""
        low, high, y = self.figures.low, np.nan_to_num(self.figures.high, nan=np.inf), self.values
        wrong = (low < 0) | (low >= high) | (high < y) | (low > np.maximum(y, 0)) | (self.figures.error < -y)
        return int(wrong.sum())


def page_row(name: str, epsilon: str, *, draws: int) -> str:
    """How often the interval holds counts of some sizes, and how wide it is, as docs/bundle.md shows it."""
    method = method_at(name, epsilon=epsilon)
    holds = (f"{100 * covered(method, count, draws=draws):.1f}" for count in SMALL)
    widths = (protected(method, count, draws=draws).width for count in SIZES)
    shown = (f"{width:,.1f}" if np.isfinite(width) else "no limit" for width in widths)
    return f"| {name} | {epsilon} | {' | '.join(holds)} | {' | '.join(shown)} |"


def covered(method: Method, count: int, *, draws: int) -> float:
    """How often the interval holds a count: by the probabilities of the noise where they are those of every cell."""
    if not isinstance(method, Laplace | NodeLaplace):
        return protected(method, count, draws=draws).covered
    off = np.arange(-5_000, 5_001)
    low, high = method.published_interval(count + off, CONFIDENCE)
    figures = PublishedFigures(error=np.zeros(len(off)), low=low, high=high).beside(count + off)
    held = (figures.low <= count) & ~(figures.high < count)
    return float(np.exp(method.noise.log_mass(off))[held].sum())


def method_at(name: str, *, alpha: str = "0.1", epsilon: str = "2", options: Mapping[str, Any] | None = None) -> Method:
    """A formal method with what it needs besides α and ε."""
    if name == "laplace-records":
        return RecordLaplace(alpha=Fraction(alpha), epsilon=Fraction(epsilon), periods=2)
    worker_cells = BLOCK if name in IN_BLOCKS else 0
    given = OPTIONS.get(name, {}) | dict(options or {})
    return build(name, alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=worker_cells, options=given)


def protected(method: Method, count: int, *, draws: int, seed: int = 1) -> Protected:
    """The count as one establishment, the worst case, drawn so often; in blocks it is beside empty worker cells."""
    width = BLOCK if method.name in IN_BLOCKS else 1
    counts = np.zeros((draws, width), dtype=np.int64)
    counts[:, 0] = count
    own = counts.ravel()
    supply = {
        "count": own,
        "largest": own,
        "largest_employer": np.full(own.size, count),
        "establishments": np.ones(own.size, dtype=np.int64),
        "count_below_threshold": own,
    }
    place = Dimension(name="place", codes=tuple(map(str, range(draws))))
    kind = Dimension(name="kind", codes=tuple(map(str, range(width))), public=False)
    cells = Cells(
        dimensions=(place, kind) if width > 1 else (place,),
        positions=np.arange(own.size),
        columns={name: supply[name] for name in method.needs},
    )
    answer = method.protect(cells, Seeded(seed))
    if "establishments" in method.needs:
        answer = answer.with_column("establishments", supply["establishments"])
    figures = published_figures(method, answer, CONFIDENCE).beside(answer["value"])
    first = slice(None, None, width)
    return Protected(
        count=count,
        values=answer["value"][first],
        figures=PublishedFigures(error=figures.error[first], low=figures.low[first], high=figures.high[first]),
    )
