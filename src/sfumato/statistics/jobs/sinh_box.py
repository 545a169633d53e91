"""Sinh Box: noise on inverse hyperbolic sines of counts; and Auto Bell, which chooses among it and bell noise."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.method import PlannedError, check_confidence
from sfumato.noise.box_sinh import BoxSinh
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import Law, NoiseParts
from sfumato.statistics.jobs.auto import Auto, Mechanism, ReferenceCells
from sfumato.statistics.jobs.bell import BoxBell, VectorBell
from sfumato.statistics.jobs.calibration import exists
from sfumato.statistics.jobs.logarithms import LogBox, log_scale
from sfumato.statistics.jobs.vector import OUTWARD, rounded_down, rounded_up


@dataclass(frozen=True, kw_only=True)
class SinhBox(LogBox):
    """Weak, pure (α, ε) privacy by noise z on asinh(n_c/κ), all worker cells of a workplace cell at once.

    κ = 2(1+α)/(α(2+α)), about 1/α. The value is κ·sinh(asinh(n_c/κ) + z_c)/E[cosh z_c], rounded, so it is unbiased up
    to its rounding, and its error is a share of √(n_c² + κ²), where that of Log Box is the same share of n_c + 1/α.
    docs/methods/bell.md has the proofs.

    >>> float(SinhBox(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=8).size)
    10.476190476190476
    """

    name: ClassVar[str] = "sinh-box"
    description: ClassVar[str] = (
        "random noise was added to the inverse hyperbolic sines of the counts of all worker cells of a workplace cell "
        "together (Sinh Box), and the results were corrected for bias and rounded to whole jobs"
    )

    @cached_property
    def size(self) -> Fraction:
        """κ = 1/sinh(ln(1+α)): where one worker more moves an empty cell by ln(1+α)."""
        return 2 * (1 + self.alpha) / (self.alpha * (2 + self.alpha))

    @cached_property
    def sines(self) -> BoxSinh:
        """The noise of scale b ≥ g/ε, so that one step within [0, g] in every cell costs at most ε."""
        return BoxSinh(scale=log_scale(self.alpha, self.epsilon), cells=self.cells, size=self.size)

    def model_error(self, model: ReferenceCells, establishments: int) -> float:
        """The mean error of a worker cell under the public model of ordinary workplace cells."""
        return self.error_share * model.mean_of(establishments, lambda jobs: np.hypot(jobs, float(self.size)))

    @cached_property
    def error_share(self) -> float:
        """The mean absolute error of a cell is at most this share of √(n_c² + κ²), before rounding."""
        return self.sines.error_share

    def planned_error(self) -> PlannedError:
        """The error of an empty cell, and above that its share of the count."""
        over, under = self.sines.expected_deviation(np.array([0]))
        return PlannedError(floor=float(over[0] + under[0]), floor_size=0, share=self.error_share, of="its count")

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Counts moved by noise that is about the same up to κ jobs, and a share of the count far above."""
        blocks = self._blocks(cells)
        return blocks.published(self.sines.sample(blocks["count"], randomness))

    def published_error(self, values: Integers) -> Floats:
        """The error at the published count, which is a convex function of it and so not too small on average."""
        error: Floats = self.error_share * np.hypot(np.maximum(values, 0), float(self.size))
        return error

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts whose value was rounded from one within the quantile of |z|: there is always an upper end.

        A negative value has that of 0, since no count is below 0.
        """
        check_confidence(confidence)
        size, height = float(self.size), float(self.size * self.sines.factor)
        reach = float(self.sines.scale) * self.sines.logarithm.one_cell.quantile(confidence) * (1 + OUTWARD)
        y = values.astype(np.float64)
        near, far = np.arcsinh((y - 0.5) / height), np.arcsinh((np.maximum(y, 0) + 0.5) / height)
        return rounded_up(size * np.sinh(near - reach), y), rounded_down(size * np.sinh(far + reach), y)

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:
        """One piece for the cells of a workplace cell that are in one sum, as if all moved together."""
        scale, back = float(self.sines.scale), 1 / float(self.sines.factor)

        def below(x: Floats) -> Floats:
            # Far above κ a value is n·e^z/E[e^z]; nearer zero its noise is more even.
            logs = np.log(np.maximum(1 + x, 1e-300) * back)
            half = self.sines.logarithm.one_cell.at(np.abs(logs) / scale) / 2
            return np.where(logs < 0, half, 1 - half)

        law = Law(below, self.error_share, slope=1.0)
        return NoiseParts.of_blocks(law, answer.blocks(), sums, error / self.error_share)[0]

    def _deviations(self, counts: Integers) -> tuple[Floats, Floats]:
        return self.sines.expected_deviation(counts)


@dataclass(frozen=True, kw_only=True)
class AutoBell(Auto):
    """Weak, pure (α, ε) privacy by vector-bell, sinh-box or box-bell, whichever suits a workplace cell.

    The choice is made as `auto` makes it, by the public number of establishments and by nothing that is counted.

    >>> method = AutoBell(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=8)
    >>> print(method.describe_choice())
    1 establishment: vector-bell; 2 to 19 establishments: sinh-box; 20 or more establishments: box-bell
    """

    name: ClassVar[str] = "auto-bell"

    @cached_property
    def mechanisms(self) -> tuple[VectorBell | SinhBox | BoxBell, ...]:
        """Those that exist here: sinh-box always does where any does."""
        alpha, epsilon, worker_cells = self.alpha, self.epsilon, self.worker_cells
        sinh = SinhBox(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells)
        if not exists(alpha=alpha, epsilon=epsilon, cells=self.cells):
            return (sinh,)
        vector = VectorBell(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells)
        if self.cells == 1:
            return (vector,)  # strong, and hardly ever the worst
        return vector, sinh, BoxBell(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells)

    def model_error(self, mechanism: Mechanism, establishments: int) -> float:
        """The mean error of a worker cell under the public model of ordinary workplace cells."""
        return next(one for one in self.mechanisms if one is mechanism).model_error(self._model, establishments)
