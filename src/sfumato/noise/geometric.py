"""Two-sided geometric noise in whole numbers, with and without a cap, drawn exactly."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.noise.passes import FIRST_BITS, Uniforms, draw, left_in_doubt
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import ERROR, SATURATION, Twofold, digits_for, precise, saturated, until_certain

# Two-sided geometric noise without a cap, drawn exactly: pure ε for whole numbers.

# The error of (c − ln U)/ε as a share of itself: 20 units of 2^−52 for `log` (NumPy accepts no more than 4), less than
# 24 for c (by `expm1` and `log1p`), 4 for the sum and the quotient; neither c nor −ln U is negative: nothing cancels.
# 64 units are taken.
_ERROR = 2.0**-46
# The interval's width is itself computed in floating point, to far better than one part in 2^30.
_WIDENED = 1 + 2.0**-30
_DIGITS = 100


@dataclass(frozen=True, kw_only=True)
class Geometric:
    """Whole-number noise J with P(J = j) = (1 − r)/(1 + r)·r^|j|, r = e^−ε: the least noise that hides one person.

    It is also called discrete Laplace noise. A person who changes counts by Δ in all is hidden by the noise of ε/Δ.

    P(|J| ≥ k) = 2·r^k/(1 + r), so |J| is the whole part of (ln(2/(1 + r)) − ln U)/ε for a uniform U, of which as many
    bits are drawn as it takes to be certain. docs/methods/earnings-percentiles.md has the guarantee.

    >>> noise = Geometric(epsilon=Fraction(3, 2))
    >>> round(noise.variance, 3), round(noise.expected_magnitude, 3)
    (0.739, 0.47)
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.epsilon, Fraction | int):
            raise TypeError("epsilon is exact: pass Fraction('0.1'), not 0.1")
        # Within these bounds the error analysis of the first pass holds: nothing underflows.
        if not 2**-64 <= self.epsilon <= 2**64:
            raise ValueError(f"epsilon must be in [2^-64, 2^64]: {self}")

    def sample(self, n: int, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """Draw J n times; a magnitude beyond 2^62 is given as 2^62.

        `first_bits` is for tests: fewer bits of U in the first pass change no probability.
        """

        def first(_: slice, heads: Integers) -> tuple[Integers, NDArray[np.bool_]]:
            return self.first_pass(heads, first_bits)

        def second(_: Integers, uniforms: Uniforms) -> tuple[Integers, NDArray[np.bool_]]:
            return self.second_pass(uniforms)

        def refined(_: int, known: int, bits: int) -> int:
            return until_certain(self.magnitude_bounds, numerator=known, bits=bits, randomness=randomness)

        return draw(n, randomness, first_bits=first_bits, first_pass=first, second_pass=second, refine=refined)

    def first_pass(self, heads: Integers, bits: int) -> tuple[Integers, NDArray[np.bool_]]:
        """The magnitudes |J| for U in [h, h + 1]/2^bits, and which of them no further bit of U could change.

        (c − ln U)/ε falls with U and is convex in it: over the interval it is at most its value at h, and below that
        by at most the length of the interval times the slope 1/(ε·U) there.
        """
        with np.errstate(divide="ignore", invalid="ignore"):  # U = 0 is infinitely far out, hence never certain
            uniform = heads * 2.0**-bits
            step = float(self.epsilon)
            # ln(2/(1 + r)), spelled so that a small ε loses no digits.
            offset = -np.log1p(np.expm1(-step) / 2)
            magnitude = (offset - np.log(uniform)) / step
            error = magnitude * _ERROR
            width = _WIDENED * 2.0**-bits / (step * uniform)
            high = np.floor(magnitude + error)
            certain = np.floor(magnitude - error - width) == high
        return np.where(certain, high, 0).astype(np.int64), certain

    def second_pass(self, uniforms: Uniforms) -> tuple[Integers, NDArray[np.bool_]]:
        """The same with two floats for a number: c − ln U errs by less than 4(1 + c − ln U)·ERROR."""
        magnitude = (self._offset - uniforms.lower.log()) * Twofold.of(1 / Fraction(self.epsilon))
        error = (magnitude.high + float(1 / self.epsilon) + 1) * (16 * ERROR)
        return magnitude.whole_parts(below=error + uniforms.unknown * float(1 / self.epsilon), above=error)

    def magnitude_bounds(self, numerator: int, bits: int) -> tuple[int, int]:
        """The least and the greatest |J| when U is known to its first `bits` bits.

        One operation errs by at most η = 10^(1−digits) of its result, so ln U by η absolute and η relative, c by 3η,
        and the quotient by less than 10η·(itself + 1/ε), by which the ends are moved outward.
        """
        digits = digits_for(bits)
        with localcontext(precise(digits)):
            epsilon = Decimal(self.epsilon.numerator) / Decimal(self.epsilon.denominator)
            offset = (2 / (1 + (-epsilon).exp())).ln()

            def within(uniform: Fraction, side: int) -> int:
                value = (offset - (Decimal(uniform.numerator) / Decimal(uniform.denominator)).ln()) / epsilon
                return max(saturated(value + side * (value + 1 / epsilon) * Decimal(10) ** (2 - digits)), 0)

            least = within(Fraction(numerator + 1, 2**bits), -1)
            # At U = 0, |J| may be as large as it likes.
            return least, within(Fraction(numerator, 2**bits), 1) if numerator else SATURATION

    @cached_property
    def _offset(self) -> Twofold:
        """c = ln(2/(1 + r)), to so many digits that a small ε loses none."""
        with localcontext(precise(_DIGITS)):
            epsilon = Decimal(self.epsilon.numerator) / Decimal(self.epsilon.denominator)
            return Twofold.of((2 / (1 + (-epsilon).exp())).ln())

    def log_mass(self, j: Integers) -> Floats:
        """The logarithm of P(J = j)."""
        step = float(self.epsilon)
        mass: Floats = np.log(np.tanh(step / 2)) - step * np.abs(j)
        return mass

    def survival(self, magnitude: Integers) -> Floats:
        """P(|J| ≥ magnitude)."""
        step = float(self.epsilon)
        probability: Floats = np.where(magnitude > 0, 2 * np.exp(-step * magnitude) / (1 + np.exp(-step)), 1.0)
        return probability

    @property
    def variance(self) -> float:
        """2r/(1 − r)²."""
        # Divided twice: the square of the sine would overflow where the variance is only tiny.
        sine = np.sinh(float(self.epsilon) / 2) if self.epsilon < 1400 else np.inf
        return float(0.5 / sine / sine)

    @property
    def expected_magnitude(self) -> float:
        """E|J| = 2r/(1 − r²)."""
        return float(1 / np.sinh(float(self.epsilon))) if self.epsilon < 700 else 0.0

    def expected_distance(self, away: Integers) -> Floats:
        """E|J + a| = |a| + r^|a|·E|J|, the mean absolute error of numbers that are off by whole numbers a besides."""
        m = np.abs(away)
        distance: Floats = m + np.exp(-float(self.epsilon) * m) * self.expected_magnitude
        return distance

    def quantile(self, probability: float | Fraction) -> int:
        """The least q with P(|J| ≤ q) at least this probability.

        P(|J| > q) = e^(c − ε·(q + 1)), with c as above. For a rational probability it never is 1 − probability, as e^ε
        is transcendental, so that the digits here decide which side of it every q is on.
        """
        if not 0 <= probability < 1:
            raise ValueError(f"probability must be in [0, 1), not {probability}")
        beyond = 1 - Fraction(probability)
        with localcontext(precise(_DIGITS)):
            epsilon, chance = (Decimal(f.numerator) / Decimal(f.denominator) for f in (self.epsilon, beyond))
            return max(ceil(((2 / (1 + (-epsilon).exp())).ln() - chance.ln()) / epsilon) - 1, 0)


# Two-sided geometric noise cut at a cap, drawn exactly; docs/methods/hypercube.md has the proofs.

LARGEST_CAP = 100_000
_MOST = 10**6
_DIGITS_TRUNCATED_GEOMETRIC = 60


@dataclass(frozen=True, kw_only=True)
class TruncatedGeometric:
    """Whole-number noise J with P(J = j) proportional to exp(−ε|j|/Δ) for |j| ≤ cap, and 0 beyond.

    `sample` draws J with exactly these probabilities: U is as many random bits as it takes to tell on which side of
    every P(|J| ≥ k) it lies.

    >>> noise = TruncatedGeometric(epsilon=Fraction(2), cap=7)
    >>> [round(float(p), 5) for p in noise.probabilities[7:10]]
    [0.76159, 0.10307, 0.01395]
    >>> f"{noise.delta():.7f}"
    '0.0000006'
    """

    epsilon: Fraction
    cap: int
    sensitivity: int = 1
    """Δ: by how much one record can change a cell, in the units in which the noise is added."""

    def __post_init__(self) -> None:
        _check(self.epsilon, self.cap, self.sensitivity)

    def sample(self, n: int, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """Draw J n times. `first_bits` is for tests: fewer bits of U in the first pass change no probability."""
        floors = self._floors(first_bits)

        def first(_: slice, heads: Integers) -> tuple[Integers, NDArray[np.bool_]]:
            # |J| ≥ k where U < P(|J| ≥ k). Only a U that begins like one of these bounds is not decided yet.
            upto = np.searchsorted(floors, heads, side="right")
            certain = (upto == 0) | (floors[upto - 1] != heads)
            return self.cap - upto, certain

        def refined(_: int, known: int, bits: int) -> int:
            return until_certain(self._magnitude_bounds, numerator=known, bits=bits, randomness=randomness)

        return draw(n, randomness, first_bits=first_bits, first_pass=first, second_pass=left_in_doubt, refine=refined)

    @cached_property
    def probabilities(self) -> Floats:
        """P(J = j) for j = −cap, …, cap."""
        weights = np.exp(-float(self.epsilon / self.sensitivity) * np.abs(np.arange(-self.cap, self.cap + 1)))
        chances: Floats = weights / weights.sum()
        return chances

    def probability(self, j: Integers) -> Floats:
        """P(J = j), 0 beyond the cap."""
        within = np.abs(j) <= self.cap
        chances: Floats = np.where(within, self.probabilities[np.where(within, j, 0) + self.cap], 0.0)
        return chances

    @cached_property
    def variance(self) -> float:
        """The variance of J; its mean is 0."""
        j = np.arange(-self.cap, self.cap + 1, dtype=np.float64)
        return float(np.sum(self.probabilities * (j * j)))  # not by @, whose last digit depends on the processor

    @property
    def probability_of_none(self) -> float:
        """P(J = 0), the chance that a cell stays as it is."""
        return float(self.probabilities[self.cap])

    @cached_property
    def expected_magnitude(self) -> float:
        """E|J|, the mean absolute error of one perturbed cell."""
        return float(np.sum(self.probabilities * np.abs(np.arange(-self.cap, self.cap + 1, dtype=np.float64))))

    def quantile(self, probability: float) -> int:
        """The least q with P(J ≤ q) at least this probability."""
        if not 0 < probability <= 1:
            raise ValueError(f"probability must be in (0, 1], not {probability}")
        place = int(np.searchsorted(np.cumsum(self.probabilities), probability * (1 - 2.0**-50)))
        return min(place, 2 * self.cap) - self.cap

    def delta(self, shift: int | None = None) -> float:
        """δ beside ε for a record that moves one cell by `shift` ≤ Δ; by default by Δ.

        It is P(J > cap − shift), the chance of an answer that is impossible without the record (or with it), and not
        less than that for any ε. With Δ = 1 it is P(J = cap).
        """
        moved = self.sensitivity if shift is None else shift
        if not 0 <= moved <= self.sensitivity:
            raise ValueError(f"shift must be from 0 to {self.sensitivity}, not {moved}")
        beyond = self.probabilities[len(self.probabilities) - min(moved, len(self.probabilities)) :]
        return min(float(beyond.sum()), 1.0)

    def delta_bound(self) -> Fraction:
        """δ as an exact fraction that is not too small, for a guarantee."""
        with localcontext(precise(_DIGITS_TRUNCATED_GEOMETRIC)):
            ratio = _ratio(self.epsilon, self.sensitivity)
            whole = (1 + ratio - 2 * ratio ** (self.cap + 1)) / (1 - ratio)
            least = max(self.cap - self.sensitivity + 1, -self.cap)
            beyond = sum((ratio ** abs(k) for k in range(least, self.cap + 1)), Decimal(0)) / whole
            exponent = max(-beyond.adjusted(), 0) + 11  # twelve significant digits, rounded up
            return min(Fraction(ceil(Fraction(beyond) * 10**exponent), 10**exponent), Fraction(1))

    def _floors(self, bits: int) -> Integers:
        """P(|J| ≥ k)·2^bits for k = cap, …, 1, each rounded down."""
        return np.array(_floors(self, bits)[::-1], dtype=np.int64)

    def _magnitude_bounds(self, numerator: int, bits: int) -> tuple[int, int]:
        """The least and the greatest |J| when U is known to its first `bits` bits."""
        floors = _floors(self, bits)
        return sum(numerator < floor for floor in floors), sum(numerator <= floor for floor in floors)


@lru_cache(maxsize=64)
def _floors(noise: TruncatedGeometric, bits: int) -> list[int]:
    """P(|J| ≥ k)·2^bits for k = 1, …, cap, each rounded down.

    No power of e^(−ε/Δ) is a fraction, so none of the bounds is a whole number; they are worked out to more and more
    digits until the error of none of them could take it across one.
    """
    digits = digits_for(bits)
    while True:
        found = _floors_to(noise, bits, digits)
        if found is not None:
            return found
        digits *= 2


def _floors_to(noise: TruncatedGeometric, bits: int, digits: int) -> list[int] | None:
    """The same to so many digits; none where that leaves a bound undecided.

    Every product errs by 10^(1−digits) of its value at most, and 1 − e^(−ε/Δ) loses as many digits as ε/Δ has zeros
    after the point. As many more are taken; ten digits of those asked for are left for the rest.
    """
    lost = len(str(ceil(noise.sensitivity / noise.epsilon))) + len(str(noise.cap))
    with localcontext(precise(digits + lost)):
        ratio = _ratio(noise.epsilon, noise.sensitivity)
        last = ratio ** (noise.cap + 1)
        scale = 2 * Decimal(2) ** bits / (1 + ratio - 2 * last)
        error = Decimal(10) ** (10 - digits)
        power, floors = Decimal(1), []
        for _ in range(noise.cap):
            power *= ratio
            bound = (power - last) * scale
            floors.append(int(bound))
            if not error * bound < bound - floors[-1] < 1 - error * bound:
                return None
        return floors


def _ratio(epsilon: Fraction, sensitivity: int) -> Decimal:
    return (-Decimal(epsilon.numerator) / (Decimal(epsilon.denominator) * sensitivity)).exp()


def smallest_cap(*, epsilon: Fraction, delta: float, sensitivity: int = 1) -> int:
    """The least cap whose δ is at most the one wanted.

    >>> smallest_cap(epsilon=Fraction(2), delta=1e-6)
    7
    """
    if not 0 < delta < 1:
        raise MethodError(
            "truncated-laplace",
            expected="0 < delta < 1: noise with a cap always leaves a δ",
            found=f"delta = {delta}",
            do="choose a delta such as 1e-6",
        )
    # Without a cap P(J > m − Δ) would be e^(−ε(m−Δ+1)/Δ)·(1 − e^−ε)/(1 + e^(−ε/Δ)), a little less than with one.
    step = float(epsilon / sensitivity)
    beyond = np.log(-np.expm1(-float(epsilon)) / (1 + np.exp(-step)) / delta) / step
    high = int(min(max(np.floor(beyond) + sensitivity - 2, 1), LARGEST_CAP))
    while high < LARGEST_CAP and TruncatedGeometric(epsilon=epsilon, cap=high, sensitivity=sensitivity).delta() > delta:
        high += 1
    if TruncatedGeometric(epsilon=epsilon, cap=high, sensitivity=sensitivity).delta() > delta:
        raise MethodError(
            "truncated-laplace",
            expected=f"a delta that a cap of {LARGEST_CAP:,} reaches",
            found=f"delta = {delta} at epsilon = {float(epsilon):g} and sensitivity = {sensitivity}",
            do="raise epsilon, allow a larger δ (a smaller cap of counts), or count in larger units",
        )
    return high


def least_noise(epsilon: Fraction, delta: float, sensitivity: int = 1) -> TruncatedGeometric:
    """The noise with the least cap whose δ is at most the one wanted."""
    cap = smallest_cap(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    return TruncatedGeometric(epsilon=epsilon, cap=cap, sensitivity=sensitivity)


def _check(epsilon: Fraction, cap: int, sensitivity: int) -> None:
    if not isinstance(epsilon, Fraction | int):
        raise TypeError("epsilon is exact: pass Fraction('0.1'), not 0.1")
    if not Fraction(1, _MOST) <= epsilon <= _MOST:
        raise MethodError(
            "truncated-laplace",
            expected="epsilon above 0, from a millionth to a million",
            found=f"epsilon = {float(epsilon):g}",
            do="choose an epsilon such as 2; a smaller one protects more",
        )
    if not 1 <= cap <= LARGEST_CAP:
        raise MethodError(
            "truncated-laplace",
            expected=f"a cap from 1 to {LARGEST_CAP:,}: the most by which a cell may be changed",
            found=f"cap = {cap}",
            do="choose a cap such as 7; with a cap of 0 nothing would be protected",
        )
    if not 1 <= sensitivity <= _MOST:
        raise MethodError(
            "truncated-laplace",
            expected=f"a sensitivity from 1 to {_MOST:,}: the most by which one record changes a cell",
            found=f"sensitivity = {sensitivity}",
            do="take 1 for counts, or the largest weight in whole units",
        )
