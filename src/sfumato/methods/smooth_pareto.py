"""Smooth Pareto: heavy-tailed noise scaled to the largest establishment of each cell."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.methods.method import PlannedError
from sfumato.methods.pareto_calibration import Calibration, calibrate, worst_loss
from sfumato.noise.double_pareto import DoublePareto
from sfumato.noise.randomness import Randomness
from sfumato.privacy.composition import parallel, sequential
from sfumato.privacy.guarantee import EmployerEmployee

__all__ = ["SmoothPareto", "worst_loss"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Published values are cut here. The noise saturates at 2^62, so the cut sees every sum that reaches beyond
# it: the output is a function of the exact sum, which is post-processing, and never of the noise alone.
_LIMIT = 2**61
# Interval ends are moved outward by this share before they are rounded, more than floating point can err.
_OUTWARD = 1e-12


@dataclass(frozen=True, kw_only=True)
class SmoothPareto:
    """Pure (α, ε) privacy by double Pareto noise of scale k·max(αx, 1), x being the largest establishment.

    `epsilon` is what the whole table spends. `worker_cells` is the number of worker-attribute cells inside
    each workplace cell, 0 when the table uses workplace attributes only: the guarantee is then strong.
    Otherwise it is weak, and each worker cell gets an equal share of ε. docs/methods/smooth-pareto.md has the
    proofs.

    >>> SmoothPareto(alpha=Fraction("0.1"), epsilon=Fraction(2)).planned_error().floor_size
    10
    """

    name: ClassVar[str] = "smooth-pareto"
    needs: ClassVar[frozenset[str]] = frozenset({"count", "largest"})

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0

    def __post_init__(self) -> None:
        if self.worker_cells < 0:
            raise MethodError(
                self.name,
                expected="worker_cells ≥ 0",
                found=f"worker_cells = {self.worker_cells}",
                do="give the number of worker-attribute cells in a workplace cell, 0 for none",
            )
        _ = self.calibration  # refuses parameters at which the mechanism does not exist

    @cached_property
    def calibration(self) -> Calibration:
        """The tail and the scale of the noise, public and exact."""
        return calibrate(alpha=self.alpha, epsilon=self.epsilon, shares=max(self.worker_cells, 1))

    @cached_property
    def noise(self) -> DoublePareto:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""
        return DoublePareto(unit=self.calibration.scale / self.alpha.denominator, tail=self.calibration.tail)

    def guarantee(self) -> EmployerEmployee:
        """Strong on workplace attributes, weak on worker attributes; ε for the whole table either way."""
        cell = EmployerEmployee(
            definition="weak" if self.worker_cells else "strong",
            alpha=self.alpha,
            epsilon=self.epsilon / max(self.worker_cells, 1),
        )
        # One establishment is in all worker cells of its workplace cell, and in no other workplace cell.
        return parallel([sequential([cell] * max(self.worker_cells, 1))])

    def planned_error(self) -> PlannedError:
        """The error where αx ≤ 1, and above that its share of the largest establishment's workers."""
        smallest = np.array([self.alpha.denominator])
        return PlannedError(
            floor=float(self.noise.expected_magnitude(smallest)[0]),
            floor_size=int(1 / self.alpha),
            share=float(self.alpha) * self._error_in_scales,
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from its true largest establishment: confidential."""
        return self.noise.expected_magnitude(self._multiples(cells))

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count plus noise: whole numbers, possibly negative; zeros get noise like any other count."""
        noisy = cells["count"] + self.noise.sample(self._multiples(cells), randomness)
        value = np.clip(noisy, -_LIMIT, _LIMIT)
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": value})

    def published_error(self, values: Integers) -> Floats:
        """The error as if the whole published count were one establishment.

        Its mean is never below the true mean error: the published count is unbiased, the largest
        establishment is at most the count, and the figure is a convex function of the published count
        (Jensen's inequality).
        """
        as_one_establishment = np.maximum(float(self.alpha) * np.maximum(values, 0), 1.0)
        error: Floats = self._error_in_scales * as_one_establishment
        return error

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts that a test at this confidence does not reject, whatever their largest establishment.

        It keeps every n ≥ 0 with |value − n| ≤ w·max(αn, 1) + ½, where w is k times the quantile of the
        noise. Where αw ≥ 1 the noise of a large establishment may hide any count, and the upper end is NaN.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
        width = float(self.calibration.scale) * self.noise.quantile(confidence) * (1 + _OUTWARD)
        slope = float(self.alpha) * width
        y = values.astype(np.float64)
        low = np.minimum(y - width - 0.5, (y - 0.5) / (1 + slope))
        low = np.maximum(np.ceil(low - _OUTWARD * (1 + np.abs(y))), 0.0)
        if slope >= 1:
            return low, np.full(len(y), np.nan)
        high = np.maximum(y + width + 0.5, (y + 0.5) / (1 - slope))
        high = np.maximum(np.floor(high + _OUTWARD * (1 + np.abs(y) + np.abs(high))), 0.0)
        return low, high

    @property
    def _error_in_scales(self) -> float:
        """E|Z|/S before rounding, which E|J|/S never exceeds because the survival function is convex."""
        return float(self.calibration.scale / (self.calibration.tail - 1))

    def _multiples(self, cells: Cells) -> Integers:
        """The scale S = max(αx, 1) of every cell in units of 1/q, where α = p/q: max(p·x, q), exactly."""
        count, largest = cells["count"], cells["largest"]
        p, q = self.alpha.numerator, self.alpha.denominator
        # The error names no number: these are confidential.
        if len(cells) and not (
            bool(np.all((largest >= 0) & (largest <= count)))
            and int(count.max()) < _LIMIT
            and int(largest.max()) <= (2**63 - 1) // p
        ):
            raise MethodError(
                self.name,
                expected=f"0 ≤ largest ≤ count < 2^61 and largest·{p} < 2^63 in every cell",
                found="a cell outside these limits",
                do="check the counts, or choose an alpha with fewer decimals",
            )
        multiples: Integers = np.maximum(largest * p, q)
        return multiples
