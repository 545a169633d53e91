"""Vector Pareto: one draw of heavy-tailed noise for all worker cells of a workplace cell; strong and pure."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.methods.method import PlannedError
from sfumato.methods.pareto_calibration import Calibration
from sfumato.methods.vector_blocks import Blocks, laid_back
from sfumato.methods.vector_calibration import calibrate_block
from sfumato.methods.vector_figures import (
    PublishedFigures,
    check_confidence,
    counts_within,
    rounded_down,
    rounded_up,
)
from sfumato.noise.box_tail import sum_tail
from sfumato.noise.randomness import Randomness
from sfumato.noise.simplex_pareto import SimplexPareto
from sfumato.privacy.guarantee import EmployerEmployee

# Of the probability with which an interval may miss, the part that is spent on bounding the largest employer.
_FOR_THE_EMPLOYER = 0.1


@dataclass(frozen=True, kw_only=True)
class VectorPareto:
    """Strong, pure (α, ε) privacy for all worker cells of a workplace cell at once, at the cost of ε once.

    The noise has scale k·max(αx, 1) in every cell of the block, x being the largest *total* workforce of an
    establishment in the workplace cell. `worker_cells` is the number of cells in a block, 0 when workers are not told
    apart. docs/methods/vector.md has the proofs.

    >>> VectorPareto(alpha=Fraction("0.05"), epsilon=Fraction(2), worker_cells=8).guarantee().definition
    'strong'
    """

    name: ClassVar[str] = "vector-pareto"
    needs: ClassVar[frozenset[str]] = frozenset({"count", "largest_employer"})
    description: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Vector Pareto) was drawn for all worker cells of "
        "a workplace cell together, added to their counts and rounded to whole jobs"
    )

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0

    def __post_init__(self) -> None:
        _ = self.calibration  # refuses parameters at which the mechanism does not exist

    @property
    def cells(self) -> int:
        """The number of cells in a block."""
        return max(self.worker_cells, 1)

    @cached_property
    def calibration(self) -> Calibration:
        """The tail γ − d of the noise and its scale k = 1/a in units of S, public and exact."""
        return calibrate_block(
            self.name, "simplex", alpha=self.alpha, epsilon=self.epsilon, cells=self.worker_cells or 1
        )

    @cached_property
    def noise(self) -> SimplexPareto:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""
        unit = self.calibration.scale / self.alpha.denominator
        return SimplexPareto(unit=unit, tail=self.calibration.tail, cells=self.cells)

    @property
    def error_in_scales(self) -> float:
        """E|Z_c|/S before rounding, which rounding only lowers: k/(γ − d − 1)."""
        return float(self.calibration.scale / (self.calibration.tail - 1))

    def guarantee(self) -> EmployerEmployee:
        """Strong, and ε once: an establishment is in one block, and a block is one output."""
        return EmployerEmployee(definition="strong", alpha=self.alpha, epsilon=self.epsilon)

    def planned_error(self) -> PlannedError:
        """The error where no establishment of the workplace cell exceeds 1/α workers, and its share above that."""
        return PlannedError(
            floor=float(self.noise.marginal.expected_magnitude(np.array([self.alpha.denominator]))[0]),
            floor_size=int(1 / self.alpha),
            share=float(self.alpha) * self.error_in_scales,
            of="the largest establishment of its workplace cell",
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from the true largest employer: confidential."""
        blocks = self._blocks(cells)
        error = self.noise.marginal.expected_magnitude(self._multiples(blocks))
        return laid_back(blocks.order, np.repeat(error, self.cells))

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count plus noise: whole numbers, possibly negative; zeros get noise like any other count."""
        blocks = self._blocks(cells)
        return blocks.published(blocks["count"] + self.noise.sample(self._multiples(blocks), randomness))

    def published_error(self, values: Integers) -> Floats:
        """The error as if each value were a workplace cell of its own, which it is when workers are not told apart."""
        self._alone()
        return self._error(values)

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts that a test at this confidence does not reject, each value a workplace cell of its own."""
        self._alone()
        check_confidence(confidence)
        width = float(self.calibration.scale) * self.noise.marginal.quantile(confidence)
        return counts_within(values, width=width, slope=float(self.alpha) * width)

    def published_figures(self, answer: Cells, confidence: float) -> PublishedFigures:
        """The figures from all published values of a workplace cell: the largest employer is at most their true sum.

        With the probability that is not spent on a cell's own noise the true sum is bounded first: the sum of the
        published values misses it by at most a known number of scales. Where that bound is none, or the noise of
        a large establishment may hide any count, the interval has no upper end. A negative value has the upper
        end of 0. Where a value and the others of its workplace cell exclude each other, the interval spans both.
        """
        check_confidence(confidence)
        order = answer.blocks()
        totals = answer["value"][order].sum(axis=1)
        error = laid_back(order, np.repeat(self._error(totals), self.cells))
        if self.cells == 1:
            low, high = self.published_interval(answer["value"], confidence)
            return PublishedFigures(error=error, low=low, high=high)
        missed = 1 - confidence
        k, tail, alpha = float(self.calibration.scale), float(self.calibration.tail), float(self.alpha)
        own = k * self.noise.marginal.quantile(1 - (1 - _FOR_THE_EMPLOYER) * missed)
        together = k * sum_tail(self.cells).mixed_quantile(1 - _FOR_THE_EMPLOYER * missed, tail)
        # Half a job of rounding in every cell, on the side that makes the bound larger.
        _, most = counts_within(totals + self.cells // 2, width=together, slope=alpha * together)
        reach = (own * np.maximum(alpha * most, 1) + 0.5)[:, None]
        values = answer["value"][order].astype(np.float64)
        low = np.where(np.isnan(reach), 0.0, rounded_up(values - reach, values))
        high = np.minimum(rounded_down(np.maximum(values, 0) + reach, values), most[:, None])
        low, high = np.fmin(low, high), np.maximum(low, high)
        return PublishedFigures(error=error, low=laid_back(order, low), high=laid_back(order, high))

    def _error(self, totals: Integers) -> Floats:
        """The error when the whole workplace cell is one establishment.

        Its mean is never below the true mean error: the published total is unbiased, the largest employer is at most
        the true total, and the figure is a convex function of the published one (Jensen's inequality).
        """
        scale = np.maximum(float(self.alpha) * np.maximum(totals, 0), 1.0)
        error: Floats = self.error_in_scales * scale
        return error

    def _alone(self) -> None:
        if self.cells > 1:
            raise ValueError("the figures of one value need all values of its workplace cell: ask published_figures")

    def _blocks(self, cells: Cells) -> Blocks:
        return Blocks.of(cells, needs=self.needs, method=self.name, width=self.cells, alpha=self.alpha)

    def _multiples(self, blocks: Blocks) -> Integers:
        """The scale S = max(αx, 1) of every block in units of 1/q, where α = p/q: max(p·x, q), exactly."""
        p, q = self.alpha.numerator, self.alpha.denominator
        multiples: Integers = np.maximum(blocks["largest_employer"][:, 0] * p, q)
        return multiples
