"""Two-sided geometric noise cut at a cap, drawn exactly; docs/methods/hypercube.md has the proofs."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.errors import MethodError
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import digits_for, precise, until_certain
from sfumato.noise.second_pass import left_in_doubt
from sfumato.noise.symmetric import FIRST_BITS, draw

LARGEST_CAP = 100_000
_MOST = 10**6
_DIGITS = 60


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
        return float(self.probabilities @ (j * j))

    @property
    def probability_of_none(self) -> float:
        """P(J = 0), the chance that a cell stays as it is."""
        return float(self.probabilities[self.cap])

    @cached_property
    def expected_magnitude(self) -> float:
        """E|J|, the mean absolute error of one perturbed cell."""
        return float(self.probabilities @ np.abs(np.arange(-self.cap, self.cap + 1, dtype=np.float64)))

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
        with localcontext(precise(_DIGITS)):
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
