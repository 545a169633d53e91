"""Log-Laplace: the count times a random factor, which needs no knowledge of the establishments."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, localcontext
from fractions import Fraction
from functools import cached_property
from math import exp
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.methods.method import PlannedError
from sfumato.methods.parameters import (
    MARGIN,
    PRECISE,
    check_parameters,
    decimal,
    largest_alpha_to,
    log_growth,
    on_grid,
    smallest_from,
)
from sfumato.methods.smooth import LIMIT
from sfumato.methods.vector_figures import OUTWARD
from sfumato.noise.log_laplace import LogLaplace as Noise
from sfumato.noise.randomness import Randomness
from sfumato.privacy.composition import parallel, sequential
from sfumato.privacy.guarantee import EmployerEmployee


@dataclass(frozen=True, kw_only=True)
class LogLaplace:
    """Pure (α, ε) privacy by Laplace noise on ln(n + γ), γ = 1/α, of the published scale λ = 2·ln(1+α)/ε.

    With `tight` it is λ = ln(1+α)/ε, which suffices. Published values are too high on average by a factor 1/(1 − λ²)
    about −γ; with `debias` they are divided by it. `epsilon` and `worker_cells` are as for Smooth Pareto.
    docs/methods/log-laplace.md has the proofs.

    >>> method = LogLaplace(alpha=Fraction("0.1"), epsilon=Fraction(2))
    >>> round(float(method.spread), 4)
    0.0953
    """

    name: ClassVar[str] = "log-laplace"
    description: ClassVar[str] = (
        "every count was multiplied by a random factor (Log-Laplace: Laplace noise was added to its logarithm, after "
        "1/alpha had been added to the count and before it was taken off again) and rounded to whole jobs"
    )
    needs: ClassVar[frozenset[str]] = frozenset({"count"})

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0
    tight: bool = False
    debias: bool = False

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        _ = self.spread  # refuses parameters at which the published value has no mean

    @cached_property
    def spread(self) -> Fraction:
        """λ, rounded up to whole billionths: public and exact."""
        spread = _spread(self.alpha, self.epsilon / self.shares, self.tight)
        if spread >= 1:
            raise self._inadmissible()
        return spread

    @property
    def shrink(self) -> Fraction:
        """What n + γ is multiplied by beforehand, so that its mean is right afterwards."""
        return 1 - self.spread**2 if self.debias else Fraction(1)

    @cached_property
    def noise(self) -> Noise:
        """The noise about a whole multiple of 1/p, where α = p/q: n + γ = (p·n + q)/p."""
        return Noise(unit=self.shrink / self.alpha.numerator, spread=self.spread, offset=1 / self.alpha)

    @property
    def shares(self) -> int:
        """Into how many equal parts the table's ε is divided."""
        return max(self.worker_cells, 1)

    def guarantee(self) -> EmployerEmployee:
        """Strong on workplace attributes, weak on worker attributes; ε for the whole table either way."""
        cell = EmployerEmployee(
            definition="weak" if self.worker_cells else "strong",
            alpha=self.alpha,
            epsilon=self.epsilon / self.shares,
        )
        # One establishment is in all worker cells of its workplace cell, and in no other workplace cell.
        return parallel([sequential([cell] * self.shares)])

    def planned_error(self) -> PlannedError:
        """The error of an empty cell, and above that its share of the count."""
        over, under = self.noise.expected_deviation(np.array([0]), np.array([self.alpha.denominator]))
        return PlannedError(floor=float(over[0] + under[0]), floor_size=0, share=self._relative_error, of="its count")

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from its true count: confidential."""
        over, under = self._deviations(cells)
        return over + under

    @property
    def unbiased(self) -> bool:
        """Whether the mean was put right beforehand; rounding leaves a bias of hundredths of a job."""
        return self.debias

    def expected_bias(self, cells: Cells) -> Floats:
        """How far published values are above the true count on average: confidential."""
        over, under = self._deviations(cells)
        return over - under

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count times a random factor about −γ: whole numbers, none below −γ."""
        value = np.clip(self.noise.sample(self._multiples(cells["count"]), randomness), -LIMIT, LIMIT)
        return Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": value})

    def published_error(self, values: Integers) -> Floats:
        """The error as if the published count were the true one; its mean is not below the true mean error."""
        error: Floats = self._relative_error * (np.maximum(values, 0) + float(1 / self.alpha))
        return error

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts n ≥ 0 that a factor within the quantiles, and rounding, takes to the published value.

        A negative value has the upper end of 0, since no count is below 0.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
        factor = exp(self.noise.quantile(confidence)) * (1 + OUTWARD)
        y, offset, shrink = values.astype(np.float64), float(1 / self.alpha), float(self.shrink)
        low = (y + offset - 0.5) / (shrink * factor) - offset
        high = (np.maximum(y, 0) + offset + 0.5) * factor / shrink - offset
        low = np.maximum(np.ceil(low - OUTWARD * (offset + np.abs(y))), 0.0)
        high = np.maximum(np.floor(high + OUTWARD * (offset + np.abs(y) + np.abs(high))), 0.0)
        return low, high

    @property
    def _relative_error(self) -> float:
        """E|X − n| as a share of n + γ, before rounding."""
        spread = float(self.spread)
        if self.debias:
            return float((1 - spread**2) ** (1 / spread) * spread / (1 - spread))
        return spread / (1 - spread**2)

    def _deviations(self, cells: Cells) -> tuple[Floats, Floats]:
        counts, where = np.unique(cells["count"], return_inverse=True)
        over, under = self.noise.expected_deviation(counts, self._multiples(counts))
        return over[where], under[where]

    def _multiples(self, counts: Integers) -> Integers:
        """n + γ in units of 1/p, where α = p/q: p·n + q, exactly."""
        p, q = self.alpha.numerator, self.alpha.denominator
        # The error names no number: these are confidential.
        if len(counts) and not (int(counts.min()) >= 0 and int(counts.max()) < min(LIMIT, (2**62 - q) // p)):
            raise MethodError(
                self.name,
                expected=f"0 ≤ count < 2^61 and count·{p} + {q} < 2^62 in every cell",
                found="a cell outside these limits",
                do="check the counts, or choose an alpha with fewer decimals",
            )
        multiples: Integers = counts * p + q
        return multiples

    def _inadmissible(self) -> MethodError:
        steps = 1 if self.tight else 2
        times = "".join(f"{factor} · " for factor in (steps, self.shares) if factor > 1)
        with localcontext(PRECISE):
            bound = steps * self.shares * log_growth(self.alpha)
            widest = (decimal(self.epsilon) / (steps * self.shares)).exp() - 1
        least = smallest_from(bound, lambda epsilon: _spread(self.alpha, epsilon / self.shares, self.tight) < 1)
        remedies = [f"epsilon = {least} or more"]
        finest = largest_alpha_to(widest, lambda alpha: _spread(alpha, self.epsilon / self.shares, self.tight) < 1)
        if finest is not None:
            remedies.append(f"alpha = {finest} or less")
        fewer = int(1 / _spread(self.alpha, self.epsilon, self.tight))
        if self.shares > 1 and fewer >= 1 and _spread(self.alpha, self.epsilon / fewer, self.tight) < 1:
            remedies.append(f"at most {fewer} worker cells")
        if not self.tight and _spread(self.alpha, self.epsilon / self.shares, True) < 1:
            remedies.append("tight = true")
        return MethodError(
            self.name,
            expected=f"epsilon > {times}ln(1 + alpha) = {times}ln({float(1 + self.alpha):g}) = {bound:.4g}, "
            "or the published value has no mean",
            found=f"epsilon = {float(self.epsilon):g}",
            do="choose " + ", or ".join(remedies),
        )


def _spread(alpha: Fraction, epsilon: Fraction, tight: bool) -> Fraction:
    """λ for one cell; rounding it up is on the safe side."""
    with localcontext(PRECISE):
        return on_grid((1 if tight else 2) * log_growth(alpha) / decimal(epsilon) + MARGIN, ROUND_CEILING)
