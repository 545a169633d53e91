"""Smooth methods: noise scaled to the largest establishment of each cell."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar, Protocol

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.method import (
    FOR_THE_LARGEST,
    GRID,
    MARGIN,
    PRECISE,
    PlannedError,
    PublishedFigures,
    check_confidence,
    check_parameters,
    decimal,
    largest_alpha_to,
    log_growth,
    on_grid,
    smallest_from,
)
from sfumato.noise.laplace import RoundedLaplace
from sfumato.noise.pareto import DoublePareto
from sfumato.noise.quartic import Quartic
from sfumato.noise.randomness import Randomness
from sfumato.noise.sums import Law, NoiseParts, symmetric
from sfumato.privacy.account import parallel, sequential
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.bought_scale import BuysScale, ScaleForEach
from sfumato.statistics.jobs.calibration import Calibration, calibrate, exact_delta
from sfumato.statistics.jobs.vector import counts_within, within_reach

# What the smooth methods share: noise scaled to the largest establishment of each cell.

# Published values are cut here. The noise saturates at 2^62, so the cut sees every sum that reaches beyond
# it: the output is a function of the exact sum, which is post-processing, and never of the noise alone.
LIMIT = 2**61


class ScaledNoise(Protocol):
    """Symmetric noise whose scale is a multiple of a unit: `DoublePareto`, `Quartic` and `RoundedLaplace`."""

    def sample(self, multiples: Integers, randomness: Randomness) -> Integers:
        """One rounded draw for every multiple."""
        ...

    def expected_magnitude(self, multiples: Integers) -> Floats:
        """The mean magnitude of the rounded noise."""
        ...

    def survival(self, magnitude: Any, multiples: Any) -> Floats:
        """The probability that the noise, before rounding, is at least half less than a magnitude."""
        ...

    def quantile(self, probability: float) -> float:
        """The number of scales that the noise stays below with this probability."""
        ...


@dataclass(frozen=True, kw_only=True)
class Smooth(BuysScale, ABC):
    """(α, ε) privacy by noise of scale k·S, S = max(αx, B), x being the largest establishment of the cell.

    B is `floor`: what one job adds at most. Of counts it is 1; of totals it is the cap of the measure, and x is what
    the largest establishment adds to the total. docs/methods/formal-totals.md has the proof for these.

    `epsilon` is what the whole table spends. `worker_cells` is the number of worker-attribute cells inside
    each workplace cell, 0 when the table uses workplace attributes only: the guarantee is then strong.
    Otherwise it is weak, and each worker cell gets an equal share of ε.

    The density of the noise falls on both sides of zero; the error figures rely on it.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"count", "largest"})

    alpha: Fraction
    epsilon: Fraction
    worker_cells: int = 0

    def __post_init__(self) -> None:
        check_parameters(self.name, alpha=self.alpha, epsilon=self.epsilon, worker_cells=self.worker_cells)
        _ = self.scale  # refuses parameters at which the mechanism does not exist
        if self.bought is not None and self.worker_cells:
            raise ScaleForEach(
                self.name,
                expected="error_epsilon of a table by workplace attributes, or of vector-pareto: one scale in each "
                "workplace cell",
                found="a scale in each cell of workers, whom `by` or `where` tells apart",
                do="leave out attributes of workers; or use vector-pareto with them in `by`, and none in `where`; or "
                "leave out error_epsilon",
            )

    @property
    @abstractmethod
    def scale(self) -> Fraction:
        """k, the scale of the noise in units of S = max(αx, B): public and exact."""

    @property
    @abstractmethod
    def noise(self) -> ScaledNoise:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""

    @property
    @abstractmethod
    def error_in_scales(self) -> float:
        """E|Z|/S before rounding, which E|J|/S never exceeds because the survival function is convex."""

    @property
    def shares(self) -> int:
        """Into how many equal parts the table's ε is divided."""
        return max(self.worker_cells, 1)

    def cell_guarantee(self) -> EmployerEmployee:
        """What one cell by itself reveals at most."""
        return EmployerEmployee(
            definition="weak" if self.worker_cells else "strong",
            alpha=self.alpha,
            epsilon=self.epsilon / self.shares,
        )

    def guarantee(self) -> EmployerEmployee:
        """Strong on workplace attributes, weak on worker attributes; ε for the whole table either way."""
        # One establishment is in all worker cells of its workplace cell, and in no other workplace cell.
        found = parallel([sequential([self.cell_guarantee()] * self.shares)])
        return replace(found, epsilon=found.epsilon + self.error_epsilon)

    def planned_error(self) -> PlannedError:
        """The error where αx ≤ B, and above that its share of the largest establishment's workers."""
        smallest = np.array([self.alpha.denominator * self.floor])
        return PlannedError(
            floor=float(self.noise.expected_magnitude(smallest)[0]),
            floor_size=int(self.floor / self.alpha),
            share=float(self.alpha) * self.error_in_scales,
        )

    def expected_error(self, cells: Cells) -> Floats:
        """The mean absolute error of every cell from its true largest establishment: confidential."""
        return self.noise.expected_magnitude(self._multiples(cells))

    def protect(self, cells: Cells, randomness: Randomness) -> Cells:
        """Every count plus noise: whole numbers, possibly negative; zeros get noise like any other count."""
        multiples = self._multiples(cells)
        noisy = cells["count"] + self.noise.sample(multiples, randomness)
        value = np.clip(noisy, -LIMIT, LIMIT)
        answer = Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"value": value})
        return self.with_scale(answer, multiples, randomness)

    def published_error(self, values: Integers) -> Floats:
        """The error as if the whole published count were one establishment.

        Its mean is never below the true mean error: the published count is unbiased, the largest
        establishment is at most the count, and the figure is a convex function of the published count
        (Jensen's inequality).
        """
        as_one_establishment = np.maximum(float(self.alpha) * np.maximum(values, 0), float(self.floor))
        error: Floats = self.error_in_scales * as_one_establishment
        return error

    def published_interval(self, values: Integers, confidence: float) -> tuple[Floats, Floats]:
        """All counts that a test at this confidence does not reject, whatever their largest establishment.

        It keeps every n ≥ 0 with |value − n| ≤ w·max(αn, B) + ½, where w is k times the quantile of the
        noise, and below zero those that it keeps at 0. Where αw ≥ 1 the noise of a large establishment may hide any
        count, and the upper end is NaN.
        """
        check_confidence(confidence)
        width = float(self.scale) * self.noise.quantile(confidence)
        return counts_within(values, width=width * self.floor, slope=float(self.alpha) * width)

    def most_jobs(self, answer: Cells, miss: float) -> Floats:
        """The most jobs that each workplace cell can have, worker cells each at their share of `miss`."""
        rows = answer["value"][answer.blocks()]
        # The noise is symmetric: an interval that misses twice as often misses so often above.
        _, high = self.published_interval(rows.ravel(), 1 - 2 * miss / self.shares)
        total: Floats = np.where(np.isnan(high), np.inf, high).reshape(rows.shape).sum(axis=1)
        return total

    def figures_within(self, answer: Cells, confidence: float, largest: Floats) -> PublishedFigures:
        """The figures where no establishment of a cell has more workers than `largest`."""
        values, alpha, floor = answer["value"], float(self.alpha), float(self.floor)
        confidence += FOR_THE_LARGEST
        low, high = self.published_interval(values, confidence)
        reach = float(self.scale) * self.noise.quantile(confidence) * np.maximum(alpha * largest, floor)
        low, high = within_reach(values, low, high, reach)
        at_most = np.minimum(np.maximum(values, 0), self.likely_largest(answer, largest))
        return PublishedFigures(error=self.error_in_scales * np.maximum(alpha * at_most, floor), low=low, high=high)

    def noise_parts(self, answer: Cells, sums: Integers, error: Floats) -> NoiseParts:  # noqa: ARG002
        """Every cell has noise of its own, on the scale that its published error supposes."""
        return NoiseParts.of_cells(self.law, sums, error / self.error_in_scales)

    @cached_property
    def law(self) -> Law:
        """The noise of a cell in units of S."""
        one = np.array([self.alpha.denominator])  # multiples of 1/q
        return symmetric(lambda x: self.noise.survival(x + 0.5, one), self.error_in_scales, slope=float(self.alpha))

    def _multiples(self, cells: Cells) -> Integers:
        """The scale S = max(αx, B) of every cell in units of 1/q, where α = p/q: max(p·x, q·B), exactly."""
        count, largest = cells["count"], cells["largest"]
        p, q = self.alpha.numerator, self.alpha.denominator
        # The error names no number: these are confidential.
        if len(cells) and not (
            bool(np.all((largest >= 0) & (largest <= count)))
            and int(count.max()) < LIMIT
            and int(largest.max()) <= (2**63 - 1) // p
        ):
            raise MethodError(
                self.name,
                expected=f"0 ≤ largest ≤ count < 2^61 and largest·{p} < 2^63 in every cell",
                found="a cell outside these limits",
                do="check the counts, or choose an alpha with fewer decimals",
            )
        multiples: Integers = np.maximum(largest * p, q * self.floor)
        return multiples


# Smooth Gamma: noise of density proportional to 1/(1 + z⁴), scaled to the largest establishment.


@dataclass(frozen=True, kw_only=True)
class SmoothGamma(Smooth):
    """Pure (α, ε) privacy as published: scale 16·S/ε, which needs 1 + α ≤ e^(ε/4).

    With `tight` the scale is the least one that keeps the loss within ε, which needs 1 + α < e^(ε/3) only.
    docs/methods/smooth-gamma.md has the proofs.

    >>> published = SmoothGamma(alpha=Fraction("0.1"), epsilon=Fraction(1))
    >>> tight = SmoothGamma(alpha=Fraction("0.1"), epsilon=Fraction(1), tight=True)
    >>> round(published.error_in_scales, 2), round(tight.error_in_scales, 2)
    (11.31, 1.91)
    """

    name: ClassVar[str] = "smooth-gamma"
    description: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Smooth Gamma) was added to every count and "
        "rounded to whole jobs"
    )

    tight: bool = False

    @cached_property
    def scale(self) -> Fraction:
        """k, in units of S = max(αx, B)."""
        share = self.epsilon / self.shares
        if not _admissible(self.alpha, share, self.tight):
            raise self._inadmissible()
        return least_scale(alpha=self.alpha, epsilon=share) if self.tight else 16 / share

    @cached_property
    def noise(self) -> Quartic:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""
        return Quartic(unit=self.scale / self.alpha.denominator)

    @property
    def error_in_scales(self) -> float:
        """E|Z|/S before rounding: k/√2."""
        return float(self.scale) / sqrt(2)

    @cached_property
    def law(self) -> Law:
        """The noise of a cell in units of S."""
        k = float(self.scale)
        return symmetric(lambda x: Quartic.exceeded(x / k), self.error_in_scales, slope=float(self.alpha))

    def _inadmissible(self) -> MethodError:
        steps, sign = (3, ">") if self.tight else (4, "≥")
        times = f"{steps * self.shares} · "
        with localcontext(PRECISE):
            bound = steps * self.shares * log_growth(self.alpha)
            widest = (decimal(self.epsilon) / (steps * self.shares)).exp() - 1
            fewer = int(decimal(self.epsilon) / (steps * log_growth(self.alpha)))
        least = smallest_from(bound, lambda epsilon: _admissible(self.alpha, epsilon / self.shares, self.tight))
        remedies = [f"epsilon = {least} or more"]
        finest = largest_alpha_to(widest, lambda alpha: _admissible(alpha, self.epsilon / self.shares, self.tight))
        if finest is not None:
            remedies.append(f"alpha = {finest} or less")
        if self.shares > 1 and fewer >= 1 and _admissible(self.alpha, self.epsilon / fewer, self.tight):
            remedies.append(f"at most {fewer} worker cells")
        if not self.tight and _admissible(self.alpha, self.epsilon / self.shares, True):
            remedies.append("tight = true")
        return MethodError(
            self.name,
            expected=f"epsilon {sign} {times}ln(1 + alpha) = {times}ln({float(1 + self.alpha):g}) = {bound:.4g}",
            found=f"epsilon = {float(self.epsilon):g}",
            do="choose " + ", or ".join(remedies),
        )


def least_scale(*, alpha: Fraction, epsilon: Fraction) -> Fraction:
    """The least k, rounded up to whole billionths, at which one neighbour step loses at most ε.

    A scale ratio of r allows a shift of at most [(r − e^−ε)(e^(ε/3) − r)³]^¼ scales, and the ratios 1 and 1 + α are
    the worst. The rounded k is checked to keep both to sixty digits.
    """
    with localcontext(PRECISE):
        room = _room(alpha, epsilon)
        scale = on_grid(1 / room.sqrt().sqrt(), ROUND_CEILING)
        while decimal(scale) ** 4 * room < 1 + MARGIN:
            scale += Fraction(1, GRID)
    return scale


def _room(alpha: Fraction, epsilon: Fraction) -> Decimal:
    """The fourth power of the shift, in scales, that the worst ratio of scales leaves room for."""
    limit = decimal(epsilon)
    cube_root = (limit / 3).exp()
    return min((r - (-limit).exp()) * (cube_root - r) ** 3 for r in (Decimal(1), 1 + decimal(alpha)))


def _admissible(alpha: Fraction, epsilon: Fraction, tight: bool) -> bool:
    with localcontext(PRECISE):
        if tight:
            # Asked of the room itself, so that a scale exists that 64 bits can hold.
            return log_growth(alpha) * 3 + MARGIN < decimal(epsilon) and _room(alpha, epsilon) > Decimal("1e-40")
        # An ε equal to 4·ln(1+α) does not exist: the one is rational and the other is not.
        return 4 * log_growth(alpha) + MARGIN < decimal(epsilon)


# Smooth Laplace: Laplace noise scaled to the largest establishment; needs a δ.

LARGEST_DELTA = Fraction(1, 10)
LEAST_DELTA = Fraction(1, 10**30)


@dataclass(frozen=True, kw_only=True)
class SmoothLaplace(Smooth):
    """(α, ε, δ) privacy by Laplace noise of scale 2·S/ε, which needs ε ≥ 2·ln(1/δ)·ln(1+α).

    `delta` is the probability with which the bound may fail, for the whole table; worker cells share it as they share
    ε. The error does not depend on it. docs/methods/smooth-laplace.md has the proofs.

    >>> SmoothLaplace(alpha=Fraction("0.1"), epsilon=Fraction(4)).error_in_scales
    0.5
    """

    name: ClassVar[str] = "smooth-laplace"
    description: ClassVar[str] = (
        "random noise from the Laplace distribution (Smooth Laplace) was added to every count and rounded to whole jobs"
    )

    delta: Fraction = Fraction(1, 10**6)

    def __post_init__(self) -> None:
        if not isinstance(self.delta, Fraction) or not LEAST_DELTA <= self.delta <= LARGEST_DELTA:
            raise MethodError(
                self.name,
                expected=f"a fraction delta with {float(LEAST_DELTA):g} ≤ delta ≤ {float(LARGEST_DELTA):g}",
                found=f"delta = {self.delta}",
                do="choose a delta far below one over the number of jobs, such as 0.0000001, or a method without delta",
            )
        super().__post_init__()

    @cached_property
    def scale(self) -> Fraction:
        """k, in units of S = max(αx, B)."""
        if not self._admissible(self.alpha, self.epsilon, self.shares):
            raise self._inadmissible()
        return 2 * self.shares / self.epsilon

    @cached_property
    def noise(self) -> RoundedLaplace:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""
        return RoundedLaplace(unit=self.scale / self.alpha.denominator)

    @property
    def error_in_scales(self) -> float:
        """E|Z|/S before rounding: k."""
        return float(self.scale)

    def cell_guarantee(self) -> EmployerEmployee:
        """What one cell by itself reveals at most; it has its share of δ too."""
        return replace(super().cell_guarantee(), delta=self.delta / self.shares)

    def _admissible(self, alpha: Fraction, epsilon: Fraction, shares: int) -> bool:
        return _admissible_smooth_laplace(alpha=alpha, epsilon=epsilon / shares, delta=self.delta / shares)

    def _most_shares(self) -> int:
        """The most worker cells that could share this ε and δ; the more there are, the less each can have."""
        return bisect_left(range(1, self.shares), True, key=lambda d: not self._admissible(self.alpha, self.epsilon, d))

    def _inadmissible(self) -> MethodError:
        d = self.shares
        with localcontext(PRECISE):
            tail = (1 / decimal(self.delta / d)).ln()
            bound = d * smallest_epsilon(alpha=self.alpha, delta=self.delta / d)
            widest = (decimal(self.epsilon) / (2 * d * tail)).exp() - 1
        published = bound > decimal(self.epsilon)
        times, among = (f"{d} · ", f"{d}/delta") if d > 1 else ("", "1/delta")
        least = smallest_from(bound, lambda epsilon: self._admissible(self.alpha, epsilon, d))
        remedies = [f"epsilon = {least} or more"]
        finest = largest_alpha_to(widest, lambda alpha: self._admissible(alpha, self.epsilon, d))
        if finest is not None:
            remedies.append(f"alpha = {finest} or less")
        if (fewer := self._most_shares()) > 0 and d > 1:
            remedies.append(f"at most {fewer} worker cells")
        likelier = _smallest_delta(self)
        if likelier is not None:
            remedies.append(f"delta = {likelier:f} or more")
        inequality = f"epsilon ≥ 2 · {times}ln({among}) · ln(1 + alpha) = {bound:.4g}"
        loss = exact_delta(alpha=self.alpha, epsilon=self.epsilon / d)
        return MethodError(
            self.name,
            expected=inequality if published else f"a delta of the noise of at most {float(self.delta / d):.3g} a cell",
            found=f"epsilon = {float(self.epsilon):g}" + ("" if published else f", at which it is {float(loss):.3g}"),
            do="choose " + ", or ".join(remedies),
        )


def smallest_epsilon(*, alpha: Fraction, delta: Fraction) -> Decimal:
    """The least ε the paper allows for one cell, 2·ln(1/δ)·ln(1+α)."""
    with localcontext(PRECISE):
        return 2 * (1 / decimal(delta)).ln() * log_growth(alpha)


def _admissible_smooth_laplace(*, alpha: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    with localcontext(PRECISE):
        enough = smallest_epsilon(alpha=alpha, delta=delta) + MARGIN < decimal(epsilon)
    return enough and exact_delta(alpha=alpha, epsilon=epsilon) < delta


def _smallest_delta(method: SmoothLaplace) -> Decimal | None:
    """The least δ of two digits at which the method exists; None where it would be no protection."""
    d, epsilon = method.shares, method.epsilon / method.shares
    with localcontext(PRECISE):
        published = (-decimal(epsilon) / (2 * log_growth(method.alpha))).exp()
        bound = d * max(published, decimal(exact_delta(alpha=method.alpha, epsilon=epsilon)))
    if bound > decimal(LARGEST_DELTA) * Decimal("0.9") or bound < decimal(LEAST_DELTA):
        return None
    return smallest_from(
        bound, lambda delta: _admissible_smooth_laplace(alpha=method.alpha, epsilon=epsilon, delta=delta / d)
    )


# Smooth Pareto: heavy-tailed noise scaled to the largest establishment of each cell.


@dataclass(frozen=True, kw_only=True)
class SmoothPareto(Smooth):
    """Pure (α, ε) privacy by double Pareto noise; docs/methods/smooth-pareto.md has the proofs.

    >>> SmoothPareto(alpha=Fraction("0.1"), epsilon=Fraction(2)).planned_error().floor_size
    10
    """

    name: ClassVar[str] = "smooth-pareto"
    done: ClassVar[str] = (
        "random noise from a symmetric distribution with heavy tails (Smooth Pareto) was added to every {number} and "
        "rounded to whole {unit}"
    )
    """What is done, to numbers of which kind and in which unit."""
    description: ClassVar[str] = done.format(number="count", unit="jobs")

    @cached_property
    def calibration(self) -> Calibration:
        """The tail and the scale of the noise, public and exact."""
        return calibrate(alpha=self.alpha, epsilon=self.epsilon, shares=self.shares)

    @property
    def scale(self) -> Fraction:
        """k, in units of S = max(αx, B)."""
        return self.calibration.scale

    @property
    def variance(self) -> float | None:
        """Of the noise in units of S²; None where worker cells have scales of their own, or tails are too heavy."""
        return None if self.worker_cells else self.calibration.variance

    @cached_property
    def noise(self) -> DoublePareto:
        """The noise whose scale is a whole multiple of k/q, where α = p/q."""
        return DoublePareto(unit=self.scale / self.alpha.denominator, tail=self.calibration.tail)

    @property
    def error_in_scales(self) -> float:
        """E|Z|/S before rounding."""
        return float(self.scale / (self.calibration.tail - 1))
