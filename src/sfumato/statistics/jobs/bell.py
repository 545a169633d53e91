"""Bell noise: one draw for all worker cells of a workplace cell, less of it than of Pareto noise."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, localcontext
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.method import MARGIN, PRECISE, decimal, log_growth, on_grid
from sfumato.noise.bell import SimplexBell
from sfumato.noise.box_bell import BoxBell as BoxBellNoise
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import Law, symmetric
from sfumato.statistics.jobs.calibration import bell_rate, check_cells
from sfumato.statistics.jobs.vector import SmoothBox, VectorPareto

if TYPE_CHECKING:
    from sfumato.statistics.jobs.auto import ReferenceCells

_PARTS = 64
"""Scales are whole multiples of this part of a worker."""
_LARGEST = 2**55


def smallest_workforce(alpha: Fraction) -> Fraction:
    """F ≥ 1/ln(1+α), the workforce below which all are hidden alike, in whole parts of a worker.

    >>> float(smallest_workforce(Fraction("0.1")))
    10.5
    """
    with localcontext(PRECISE):
        exact = (1 / log_growth(alpha)) * (1 + MARGIN)
        return Fraction(int((exact * _PARTS).to_integral_value(ROUND_CEILING)), _PARTS)


@dataclass(frozen=True, kw_only=True)
class VectorBell(VectorPareto):
    """Strong, pure (α, ε) privacy for all worker cells of a workplace cell at once, with about half the noise.

    The noise has scale X = max(x, B·F) in every cell of the block, x being the largest total workforce of an
    establishment, and F = 1/ln(1+α) rounded up. The logarithm of its density falls by the least of (e−d)/(1−w) and
    (e+d)/(1+w), w being the sum of all magnitudes over X and e = ε/ln(1+α). docs/methods/bell.md has the proof.

    >>> VectorBell(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=8).guarantee().definition
    'strong'
    """

    name: ClassVar[str] = "vector-bell"
    description: ClassVar[str] = (
        "random noise from a bell-shaped distribution with heavy tails (Vector Bell) was drawn for all worker cells of "
        "a workplace cell together, added to their counts and rounded to whole jobs"
    )

    def __post_init__(self) -> None:
        _ = self.rate, self.bought  # refuses parameters at which the mechanism does not exist
        if self.floor != 1:
            raise MethodError(
                self.name,
                expected="a count of jobs",
                found="a total",
                do="use vector-pareto, whose noise is drawn at scales of money too",
            )

    @cached_property
    def rate(self) -> Fraction:
        """e = ε/ln(1+α), rounded down: public and exact."""
        return bell_rate(self.name, alpha=self.alpha, epsilon=self.epsilon, cells=self.cells)

    @cached_property
    def noise(self) -> SimplexBell:  # type: ignore[override]
        """The noise whose scale is a whole multiple of a 64th of a worker."""
        return SimplexBell(unit=Fraction(1, _PARTS), rate=self.rate, cells=self.cells)

    @property
    def variance(self) -> float | None:
        """Not told: where establishments are small it is not that of S = max(αx, 1)."""
        return None

    @cached_property
    def least(self) -> Fraction:
        """The least S = αX there is."""
        return self.alpha * smallest_workforce(self.alpha)

    @cached_property
    def error_in_scales(self) -> float:
        """E|Z_c|/S before rounding, S = αX."""
        return self.noise.marginal.mean / float(self.alpha)

    def reach(self, confidence: float) -> float:
        """The number of S that the noise of one cell stays below with this probability."""
        return self.noise.marginal.quantile(confidence) / float(self.alpha)

    def sum_reach(self, miss: float) -> float:
        """The number of S that the noises of a workplace cell add up to more than with this probability."""
        return self.noise.sum_quantile(self.cells, miss) / float(self.alpha)

    def noise_law(self, cells: int) -> Law:
        """The noise in the sum of so many cells of a workplace cell, in units of S."""
        alpha = float(self.alpha)
        mean = self.noise.sum_mean(cells) / alpha
        return symmetric(lambda x: 2 * self.noise.sum_beyond(cells, x * alpha), mean, slope=alpha)

    def model_error(self, model: "ReferenceCells", establishments: int) -> float:
        """The mean error of a worker cell under the public model of ordinary workplace cells."""
        alpha, least = float(self.alpha), float(self.least)
        return self.error_in_scales * model.largest_at_least(establishments, share=alpha, least=least)

    def _noise(self, employer: Integers, randomness: Randomness) -> Integers:
        return self.noise.sample(self._workforces(employer), randomness)

    def _rounded_error(self, employer: Integers) -> Floats:
        return self.noise.marginal.expected_magnitude(self._workforces(employer) / _PARTS)

    def _workforces(self, employer: Integers) -> Integers:
        """X = max(x, F) of every block in 64ths of a worker, exactly."""
        if len(employer) and int(employer.max()) >= _LARGEST:  # the error names no number: these are confidential
            raise MethodError(
                self.name,
                expected="establishments of fewer than 2^55 workers",
                found="one outside this limit",
                do="check the counts",
            )
        least = int(smallest_workforce(self.alpha) * _PARTS)
        found: Integers = np.maximum(employer * _PARTS, least)
        return found


# Box Bell: the same for the weak definition, scaled to the largest contribution in each worker cell.


@dataclass(frozen=True, kw_only=True)
class BoxBell(SmoothBox):
    """Weak, pure (α, ε) privacy for all worker cells of a workplace cell at once, with less noise than Smooth Box.

    The noise of cell c has scale X_c = max(x_c, 1 + 1/α), x_c being the largest contribution of one establishment to
    that cell. The logarithm of its density falls by the least of (e−d)/(1−w), σ and (e+1)/(1+w), w being the norm of
    all noises over their scales, e = ε/g, g = ln(1+α) and σ = (ε − (d−1)g)·(1+α)/α. docs/methods/bell.md has the proof.

    >>> BoxBell(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=8).guarantee().definition
    'weak'
    """

    name: ClassVar[str] = "box-bell"
    description: ClassVar[str] = (
        "random noise from a bell-shaped distribution with heavy tails (Box Bell) was drawn for all worker cells of a "
        "workplace cell together, scaled in each, added to their counts and rounded to whole jobs"
    )

    def __post_init__(self) -> None:
        _ = self.rate, self.steepest  # refuses parameters at which the mechanism does not exist
        check_cells(self.name, self.cells)

    @cached_property
    def rate(self) -> Fraction:
        """e = ε/ln(1+α), rounded down: public and exact."""
        return bell_rate(self.name, alpha=self.alpha, epsilon=self.epsilon, cells=self.cells)

    @cached_property
    def steepest(self) -> Fraction:
        """σ, rounded down: public and exact."""
        with localcontext(PRECISE):
            left = decimal(self.epsilon) - (self.cells - 1) * log_growth(self.alpha) - MARGIN
            return on_grid(left * decimal(1 + 1 / self.alpha), ROUND_FLOOR)

    @cached_property
    def noise(self) -> BoxBellNoise:  # type: ignore[override]
        """The noise whose scales are whole multiples of 1/p, where α = p/q."""
        unit = Fraction(1, self.alpha.numerator)
        return BoxBellNoise(unit=unit, rate=self.rate, steepest=self.steepest, cells=self.cells)

    @cached_property
    def error_in_scales(self) -> float:
        """E|Z_c| in units of αX_c = max(αx_c, 1+α), before rounding."""
        return self.noise.marginal.mean / float(self.alpha)

    def reach(self, confidence: float) -> float:
        """The number of αX_c that the noise of one cell stays below with this probability."""
        return self.noise.marginal.quantile(confidence) / float(self.alpha)

    def beyond(self, x: Floats) -> Floats:
        """The probability that its noise is more than so many of them."""
        return self.noise.marginal.survival(x * float(self.alpha))

    def model_error(self, model: "ReferenceCells", establishments: int) -> float:
        """The mean error of a worker cell under the public model of ordinary workplace cells."""
        share, least = float(self.alpha) / self.cells, float(1 + self.alpha)
        return self.error_in_scales * model.largest_at_least(establishments, share=share, least=least)
