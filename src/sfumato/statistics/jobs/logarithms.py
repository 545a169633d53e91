"""Noise on logarithms: Log-Laplace for a cell, Log Box for all worker cells; no scale depends on data."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from math import exp
from typing import ClassVar

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import (
    MARGIN,
    PRECISE,
    PlannedError,
    check_confidence,
    check_parameters,
    decimal,
    largest_alpha_to,
    log_growth,
    on_grid,
    smallest_from,
)
from sfumato.noise.box_laplace import BoxLaplace, expected_deviation, relative_deviation
from sfumato.noise.laplace import LogLaplace as Noise
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import Law, NoiseParts
from sfumato.privacy.account import parallel, sequential
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.calibration import check_cells
from sfumato.statistics.jobs.smooth import LIMIT
from sfumato.statistics.jobs.vector import OUTWARD, Blocks, rounded_down, rounded_up

# Log-Laplace: the count times a random factor, which needs no knowledge of the establishments.


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

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:  # noqa: ARG002
        """Every cell has a factor of its own, and noise that is a share of n + γ."""
        power, shrink = 1 / float(self.spread), float(self.shrink)

        def below(x: Floats) -> Floats:
            factor = np.maximum(1 + x, 1e-300) / shrink
            half = np.minimum(factor, 1 / factor) ** power / 2
            return np.where(factor < 1, half, 1 - half)

        return NoiseParts.of_cells(Law(below, self._relative_error, slope=1.0), sums, error / self._relative_error)

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


# Log Box: one draw of noise on the logarithms of all worker cells; no scale depends on the data; weak.

_FINE = 10**18  # the scale is rounded up to this grid: finer than the billionths of others, since it may be tiny
_LARGEST_SCALE = Fraction(999, 1000)  # at one the mean of the exponential is infinite


@dataclass(frozen=True, kw_only=True)
class LogBox:
    """Weak, pure (α, ε) privacy by noise z on ln(n_c + 1/α), all worker cells of a workplace cell at once.

    The value is (n_c + 1/α)·e^(z_c)/E[e^(z_c)] − 1/α, rounded, so it is unbiased up to its rounding, and its error is a
    share of n_c + 1/α. `worker_cells` is the number of cells in a block, 0 when workers are not told apart: the
    guarantee is then strong. docs/methods/vector.md has the proofs.

    >>> LogBox(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=8).guarantee().definition
    'weak'
    """

    name: ClassVar[str] = "log-box"
    needs: ClassVar[frozenset[str]] = frozenset({"count"})
    description: ClassVar[str] = (
        "random noise was added to the logarithms of the counts of all worker cells of a workplace cell together (Log "
        "Box), and the results were corrected for bias and rounded to whole jobs"
    )
    unbiased: ClassVar[bool] = True  # but for rounding, which `expected_bias` tells

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        check_cells(self.name, self.worker_cells)
        if log_scale(self.alpha, self.epsilon) > _LARGEST_SCALE:
            raise self._no_mean()

    @property
    def cells(self) -> int:
        """The number of cells in a block."""
        return max(self.worker_cells, 1)

    @cached_property
    def noise(self) -> BoxLaplace:
        """The noise of scale b ≥ g/ε, so that one step within [0, g] in every cell costs at most ε."""
        return BoxLaplace(scale=log_scale(self.alpha, self.epsilon), cells=self.cells)

    @cached_property
    def correction(self) -> Fraction:
        """1/E[e^z] to twelve digits, the public factor that takes the bias away."""
        return Fraction(f"{1 / self.noise.growth:.12g}")

    @cached_property
    def error_share(self) -> float:
        """The mean absolute error of a cell as a share of n_c + 1/α, before rounding."""
        return relative_deviation(self.noise)

    def guarantee(self) -> EmployerEmployee:
        """Weak on worker attributes, and ε once: an establishment is in one block, and a block is one output."""
        return EmployerEmployee(
            definition="weak" if self.worker_cells else "strong", alpha=self.alpha, epsilon=self.epsilon
        )

    def planned_error(self) -> PlannedError:
        """The error of an empty cell, and above that its share of the count."""
        over, under = self._deviations(np.array([0]))
        return PlannedError(floor=float(over[0] + under[0]), floor_size=0, share=self.error_share, of="its count")

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from its true count: confidential."""
        counts, where = np.unique(self._blocks(cells).cells["count"], return_inverse=True)
        over, under = self._deviations(counts)
        return (over + under)[where]

    def expected_bias(self, cells: Cells) -> Floats:
        """What rounding brings back of the bias, a few thousandths of a job: confidential."""
        counts, where = np.unique(self._blocks(cells).cells["count"], return_inverse=True)
        over, under = self._deviations(counts)
        return (over - under)[where]

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count times a random factor about one, on a scale that begins at −1/α; zeros move like any other."""
        blocks = self._blocks(cells)
        bases = self._bases(blocks["count"])
        return blocks.published(self.noise.sample(bases, randomness, unit=self._unit, offset=1 / self.alpha))

    def published_error(self, values: Integers) -> Floats:
        """The error at the published count, which is a convex function of it and so not too small on average."""
        error: Floats = self.error_share * (np.maximum(values, 0) + 1 / float(self.alpha))
        return error

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts whose value was rounded from one within the quantile of |z|: there is always an upper end.

        A negative value has that of 0, since no count is below 0.
        """
        check_confidence(confidence)
        offset = 1 / float(self.alpha)
        factor = np.exp(float(self.noise.scale) * self.noise.one_cell.quantile(confidence) * (1 + OUTWARD))
        y = values.astype(np.float64)
        back = 1 / float(self.correction)
        near, far = np.maximum(y - 0.5 + offset, 0) * back, (np.maximum(y, 0) + 0.5 + offset) * back
        return rounded_up(near / factor - offset, y), rounded_down(far * factor - offset, y)

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:
        """One piece for the cells of a workplace cell that are in one sum, as if all moved together."""
        scale, back = float(self.noise.scale), 1 / float(self.correction)

        def below(x: Floats) -> Floats:
            logs = np.log(np.maximum(1 + x, 1e-300) * back)
            half = self.noise.one_cell.at(np.abs(logs) / scale) / 2
            return np.where(logs < 0, half, 1 - half)

        law = Law(below, self.error_share, slope=1.0)
        return NoiseParts.of_blocks(law, answer.blocks(), sums, error / self.error_share)[0]

    @property
    def _unit(self) -> Fraction:
        return self.correction / self.alpha.numerator

    def _bases(self, counts: Integers) -> Integers:
        """n + 1/α in units of 1/p, where α = p/q: p·n + q, exactly."""
        return counts * self.alpha.numerator + self.alpha.denominator

    def _deviations(self, counts: Integers) -> tuple[Floats, Floats]:
        bases, offset = self._bases(counts), 1 / self.alpha
        return expected_deviation(self.noise, counts, bases, unit=self._unit, offset=offset)

    def _blocks(self, cells: Cells) -> Blocks:
        return Blocks.of(cells, needs=self.needs, method=self.name, width=self.cells, alpha=self.alpha)

    def _no_mean(self) -> MethodError:
        with localcontext(PRECISE):
            bound = (1 + decimal(self.alpha)).ln()
            widest = decimal(self.epsilon).exp() - 1
        least = smallest_from(bound, lambda epsilon: log_scale(self.alpha, epsilon) <= _LARGEST_SCALE)
        finest = largest_alpha_to(widest, lambda alpha: log_scale(alpha, self.epsilon) <= _LARGEST_SCALE)
        other = f", or alpha = {finest} or less" if finest is not None else ""
        return MethodError(
            self.name,
            expected=f"epsilon > ln(1 + alpha) = ln({float(1 + self.alpha):g}) = {bound:.4g}; at and below that the "
            "mean error is infinite",
            found=f"epsilon = {float(self.epsilon):g}",
            do=f"choose epsilon = {least} or more{other}",
        )


def log_scale(alpha: Fraction, epsilon: Fraction) -> Fraction:
    """b = g/ε, rounded up."""
    with localcontext(PRECISE):
        exact = (1 + decimal(alpha)).ln() / decimal(epsilon)
        found = (exact * (1 + Decimal("1e-50")) * _FINE).to_integral_value(ROUND_CEILING)
    return Fraction(int(found), _FINE)
