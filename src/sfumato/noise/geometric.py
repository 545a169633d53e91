"""Two-sided geometric noise without a cap, drawn exactly: pure ε for whole numbers."""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import SATURATION, digits_for, precise, saturated, until_certain
from sfumato.noise.second_pass import Uniforms
from sfumato.noise.symmetric import FIRST_BITS, draw
from sfumato.noise.twofold import ERROR, Twofold

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
