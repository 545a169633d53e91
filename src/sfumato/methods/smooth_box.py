"""Smooth Box: one draw of heavy-tailed noise for all worker cells, scaled to the largest contribution in each; weak."""

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
from sfumato.methods.vector_figures import check_confidence, counts_within
from sfumato.noise.box_pareto import BoxPareto
from sfumato.noise.randomness import Randomness
from sfumato.privacy.guarantee import EmployerEmployee


@dataclass(frozen=True, kw_only=True)
class SmoothBox:
    """Weak, pure (α, ε) privacy for all worker cells of a workplace cell at once, at the cost of ε once.

    The noise of cell c has scale k·max(αx_c, 1+α), x_c being the largest contribution of one establishment to that
    cell. `worker_cells` is the number of cells in a block, 0 when workers are not told apart: the guarantee is then
    strong. docs/methods/vector.md has the proofs.

    >>> SmoothBox(alpha=Fraction("0.05"), epsilon=Fraction(2), worker_cells=8).guarantee().definition
    'weak'
    """

    name: ClassVar[str] = "smooth-box"
    needs: ClassVar[frozenset[str]] = frozenset({"count", "largest"})
    description: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Smooth Box) was drawn for all worker cells of a "
        "workplace cell together, scaled in each, added to their counts and rounded to whole jobs"
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
        """The tail γ − d of the noise and its scale k = 1/a in units of max(αx_c, 1+α), public and exact."""
        return calibrate_block(self.name, "box", alpha=self.alpha, epsilon=self.epsilon, cells=self.worker_cells or 1)

    @cached_property
    def noise(self) -> BoxPareto:
        """The noise whose scales are whole multiples of k/q, where α = p/q."""
        unit = self.calibration.scale / self.alpha.denominator
        return BoxPareto(unit=unit, tail=self.calibration.tail, cells=self.cells)

    @property
    def error_in_scales(self) -> float:
        """E|Z_c| in units of max(αx_c, 1+α), before rounding, which only lowers it: k(d+2)/(3(γ−d−1))."""
        return float(self.calibration.scale / (self.calibration.tail - 1)) * (self.cells + 2) / 3

    def guarantee(self) -> EmployerEmployee:
        """Weak on worker attributes, and ε once: an establishment is in one block, and a block is one output."""
        return EmployerEmployee(
            definition="weak" if self.worker_cells else "strong", alpha=self.alpha, epsilon=self.epsilon
        )

    def planned_error(self) -> PlannedError:
        """The error where no establishment has more than 1/α + 1 workers in the cell, and its share above that."""
        smallest = np.array([self.alpha.numerator + self.alpha.denominator])
        return PlannedError(
            floor=float(self.noise.expected_magnitude(smallest)[0]),
            floor_size=int(1 / self.alpha) + 1,
            share=float(self.alpha) * self.error_in_scales,
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from its true largest contribution: confidential."""
        blocks = self._blocks(cells)
        return laid_back(blocks.order, self.noise.expected_magnitude(self._multiples(blocks)))

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count plus noise: whole numbers, possibly negative; zeros get noise like any other count."""
        blocks = self._blocks(cells)
        return blocks.published(blocks["count"] + self.noise.sample(self._multiples(blocks), randomness))

    def published_error(self, values: Integers) -> Floats:
        """The error as if the whole published count were one establishment; on average not below the true one.

        The published count is unbiased, the largest contribution is at most the count, and the figure is a convex
        function of the published count (Jensen's inequality).
        """
        alpha = float(self.alpha)
        error: Floats = self.error_in_scales * np.maximum(alpha * np.maximum(values, 0), 1 + alpha)
        return error

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts that a test at this confidence does not reject, whatever their largest contribution."""
        check_confidence(confidence)
        scales = float(self.calibration.scale) * self.noise.quantile(confidence)
        return counts_within(values, width=scales * float(1 + self.alpha), slope=scales * float(self.alpha))

    def _blocks(self, cells: Cells) -> Blocks:
        return Blocks.of(cells, needs=self.needs, method=self.name, width=self.cells, alpha=self.alpha)

    def _multiples(self, blocks: Blocks) -> Integers:
        """The scale max(αx_c, 1+α) of every cell in units of 1/q, where α = p/q: max(p·x_c, p+q), exactly."""
        p, q = self.alpha.numerator, self.alpha.denominator
        multiples: Integers = np.maximum(blocks["largest"] * p, p + q)
        return multiples
