"""A noisy scale, bought for error figures: how large the largest establishment of a cell can be, for an epsilon.

The noise of a count has scale k·S, S = max(αx, 1), x being the workers of the largest establishment of its cell. S is
confidential, and what published values say of it may be far too much. One step between neighbours multiplies S by at
most 1 + α, so that its logarithm can be released. docs/errors.md has the proof and the figures.
"""

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, localcontext
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, log, log1p
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import (
    ADDED,
    FOR_THE_LARGEST,
    LARGEST_EPSILON,
    LEAST_EPSILON,
    PRECISE,
    SCALE,
    added,
    log_growth,
    on_grid,
)
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness

LIKELY = 0.1
"""An error supposes a largest establishment that is exceeded in so many cases: an upper estimate, and no mean."""
LEAST_ALPHA = Fraction(1, 1000)
"""Scales of a smaller alpha would need very many steps."""

_FINE = 0.01
"""No step is larger than this share of a scale, unless 1 + α is one step."""
_LARGEST = 2**62
_WIDENED = 1 + 1e-8
"""Thresholds are whole billionths in their first steps, rounded up, and these are floating-point numbers."""


@dataclass(frozen=True, kw_only=True)
class BoughtScale:
    """A release of S = M/q of every cell, M = max(p·x, q) and α = p/q, that costs `epsilon` for the whole table.

    There are m steps in a factor of 1 + α. The thresholds T are so that T[u + m] = (1 + α)·T[u] exactly: a scale that
    is multiplied by at most 1 + α goes up by at most m of them, which two-sided geometric noise of ε/m hides.

    >>> bought = BoughtScale(alpha=Fraction("0.1"), epsilon=Fraction("0.2"))
    >>> bought.steps, round(bought.factor(0.1), 2)
    (10, 2.17)
    """

    alpha: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.alpha < LEAST_ALPHA:
            raise MethodError(
                "error_epsilon",
                expected=f"alpha ≥ {float(LEAST_ALPHA):g}",
                found=f"alpha = {float(self.alpha):g}",
                do="leave error_epsilon out: errors are those of the worst case, or by finer tables",
            )

    @property
    def steps(self) -> int:
        """m, the number of steps in a factor of 1 + α."""
        return max(ceil(log1p(float(self.alpha)) / _FINE), 1)

    @cached_property
    def noise(self) -> Geometric:
        """Of the number of steps."""
        return Geometric(epsilon=self.epsilon / self.steps)

    @cached_property
    def thresholds(self) -> Integers:
        """The least M of every number of steps from 0 on, as far as 62 bits reach."""
        p, q = self.alpha.numerator, self.alpha.denominator
        with localcontext(PRECISE):
            growth = log_growth(self.alpha)
            # Any rational numbers that increase would do: what has to be exact is their growth by 1 + α.
            first = [on_grid((growth * step / self.steps).exp(), ROUND_CEILING) for step in range(self.steps)]
        tops, bottoms = [q * one.numerator for one in first], [one.denominator for one in first]
        found: list[int] = []
        while not found or found[-1] < _LARGEST:
            found += [-(-top // bottom) for top, bottom in zip(tops, bottoms, strict=True)]
            tops, bottoms = [top * (p + q) for top in tops], [bottom * q for bottom in bottoms]
        return np.array([one for one in found if one < _LARGEST], dtype=np.int64)

    def measure(self, multiples: Integers, randomness: Randomness) -> Integers:
        """The scales of all cells in steps, with noise: may be published. `multiples` are M of every cell."""
        steps = np.searchsorted(self.thresholds, multiples, side="right") - 1
        return steps.astype(np.int64) + self.noise.sample(len(multiples), randomness)

    def most(self, measured: Integers, miss: float) -> Floats:
        """The most workers that the largest establishment of each cell has, missed with `miss` at most."""
        above = measured + self.reach(miss) + 1
        grown = np.exp(np.clip(above, 0, len(self.thresholds)) * (log1p(float(self.alpha)) / self.steps)) * _WIDENED
        known = above < len(self.thresholds)
        # S is below the next threshold; where that is 1 or less, noise took it there, and x is at most 1/α.
        most: Floats = np.where(known, np.maximum(grown, 1.0) / float(self.alpha), np.inf)
        return most

    def middle(self, measured: Integers) -> Floats:
        """The workers of the largest establishment of each cell, as often too few as too many; 1/α at least."""
        steps = np.clip(measured + 0.5, 0.0, len(self.thresholds))
        found: Floats = np.exp(steps * (log1p(float(self.alpha)) / self.steps)) / float(self.alpha)
        return found

    def reach(self, miss: float) -> int:
        """The number of steps that noise goes below zero with a probability of `miss` at most."""
        rate = float(self.noise.epsilon)
        # P(J ≤ −k − 1) = r^(k+1)/(1 + r) with r = e^−rate.
        return max(ceil(-log(miss * (1 + exp(-rate))) / rate * (1 + 1e-12)) - 1, 0)

    def factor(self, miss: float) -> float:
        """By what a scale that is exceeded so rarely is above the true one, in the middle."""
        return exp((self.reach(miss) + 1) * log1p(float(self.alpha)) / self.steps)


class ScaleForEach(MethodError):  # noqa: N818  (what is found)
    """A scale that was to be bought of a table whose workplace cells have several."""


def worth_buying(alpha: Fraction) -> Fraction:
    """An epsilon of one digit for which errors come out about twice as large as they are."""
    found = log1p(float(alpha)) * log(1 / (2 * LIKELY)) / log(2)
    return Fraction(f"{found:.1g}")


@dataclass(frozen=True, kw_only=True)
class BuysScale:
    """A method whose noise follows the largest establishment, and that can buy its scale for error figures.

    `error_epsilon` is what the scales of the whole table cost on top of what its values do; 0 buys none.
    """

    name: ClassVar[str]

    alpha: Fraction
    error_epsilon: Fraction = field(default=Fraction(0), repr=False, metadata={ADDED: True})
    floor: int = added(1, of_table=True)
    """B, what one job adds at most: 1 to counts, and to totals the cap of the measure."""

    @cached_property
    def bought(self) -> BoughtScale | None:
        """How scales are released; None where they are not."""
        if not self.error_epsilon:
            return None
        if self.floor != 1:
            raise MethodError(
                self.name,
                expected="error_epsilon of a count of jobs",
                found="a total",
                do="leave it out; errors of totals are those of the worst case, or by finer tables",
            )
        if not LEAST_EPSILON <= self.error_epsilon <= LARGEST_EPSILON:
            raise MethodError(
                self.name,
                expected=f"error_epsilon = 0, or {float(LEAST_EPSILON):g} ≤ error_epsilon ≤ {LARGEST_EPSILON}",
                found=f"error_epsilon = {self.error_epsilon}",
                do=f"choose one such as {float(worth_buying(self.alpha)):g}, or leave it out",
            )
        return BoughtScale(alpha=self.alpha, epsilon=self.error_epsilon)

    def with_scale(self, answer: Cells, multiples: Integers, randomness: Randomness) -> Cells:
        """An answer with the noisy scale of its workplace cells, where it is bought; a multiple for each of these."""
        if self.bought is None:
            return answer
        order = answer.blocks()
        column = np.empty(len(answer), dtype=np.int64)
        column[order] = self.bought.measure(multiples, randomness)[:, None]
        return answer.with_column(SCALE, column)

    def measured_largest(self, answer: Cells, miss: float) -> Floats | None:
        """The most workers that an establishment of each cell has, missed with `miss`; None where it is not bought."""
        return None if self.bought is None else self.bought.most(answer[SCALE], miss)

    @property
    def bought_steps(self) -> int:
        """How many steps of the released scale a factor of 1 + α is; 0 where no scale is bought."""
        return 0 if self.bought is None else self.bought.steps

    @property
    def bought_widening(self) -> float:
        """By what the largest establishment that intervals suppose is above the one that errors do; 1 without any."""
        return 1.0 if self.bought is None else self.bought.factor(FOR_THE_LARGEST) / self.bought.factor(LIKELY)

    def estimated_largest(self, answer: Cells) -> Floats | None:
        """The workers of the largest establishment of each cell, as often too few as too many; None likewise."""
        return None if self.bought is None else self.bought.middle(answer[SCALE])

    def likely_largest(self, answer: Cells, largest: Floats) -> Floats:
        """The largest establishment that errors suppose, which is at most `largest`."""
        measured = self.measured_largest(answer, LIKELY)
        return largest if measured is None else np.minimum(largest, measured)
