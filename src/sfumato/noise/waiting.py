"""How long one waits for a rare event, and how far noise goes beyond a bound: one-sided geometric draws, exact."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.noise.geometric import Geometric
from sfumato.noise.passes import FIRST_BITS, Uniforms, draw, left_in_doubt
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import SATURATION, digits_for, precise, saturated, until_certain

# The error of −ln U/λ as a share of itself: 20 units of 2^−52 for `log` (NumPy accepts no more than 4), less than 4
# for λ and the quotient. 64 units are taken.
_ERROR = 2.0**-46
# The interval's width is itself computed in floating point, to far better than one part in 2^30.
_WIDENED = 1 + 2.0**-30
_SPARE = 30
"""Digits beyond those asked for."""
LEAST_CHANCE = Decimal("1e-200")
"""Rarer events are not waited for."""


@dataclass(frozen=True, kw_only=True)
class _Waiting(ABC):
    """Whole numbers G ≥ 0 with P(G ≥ k) = e^(−λk): the whole part of −ln U/λ for a uniform U.

    As many bits of U are drawn as it takes to be certain of it.
    """

    noise: Geometric

    @abstractmethod
    def rate(self, digits: int) -> Decimal:
        """λ to at least so many digits."""

    def sample(self, n: int, randomness: Randomness, *, first_bits: int = FIRST_BITS) -> Integers:
        """Draw G n times; beyond 2^62 it is given as 2^62. `first_bits` is for tests, and changes no probability."""
        rate = self._float_rate

        def first(_: slice, heads: Integers) -> tuple[Integers, Flags]:
            with np.errstate(divide="ignore", invalid="ignore"):  # U = 0 is infinitely far out, hence never certain
                uniform = heads * 2.0**-first_bits
                waited = -np.log(uniform) / rate
                error = waited * _ERROR
                width = _WIDENED * 2.0**-first_bits / (rate * uniform)
                high = np.floor(waited + error)
                certain = np.floor(waited - error - width) == high
            return np.where(certain, high, 0).astype(np.int64), certain

        def refined(_: int, known: int, bits: int) -> int:
            return until_certain(self.bounds, numerator=known, bits=bits, randomness=randomness)

        def second(places: Integers, uniforms: Uniforms) -> tuple[Integers, Flags]:
            return left_in_doubt(places, uniforms)

        # The sign of what is drawn is independent of how large it is, and is not used.
        return np.abs(draw(n, randomness, first_bits=first_bits, first_pass=first, second_pass=second, refine=refined))

    def bounds(self, numerator: int, bits: int) -> tuple[int, int]:
        """The least and the greatest G when U is known to its first `bits` bits."""
        digits = digits_for(bits)
        with localcontext(precise(digits)):
            rate = self.rate(digits)

            def within(numerator: int, side: int) -> int:
                waited = -(Decimal(numerator) / Decimal(2**bits)).ln() / rate
                # ln U errs by η absolute and η relative, λ and the quotient by 3η relative, where η = 10^(1−digits).
                return max(saturated(waited + side * (waited + 1 / rate) * Decimal(10) ** (2 - digits)), 0)

            return within(numerator + 1, -1), within(numerator, 1) if numerator else SATURATION

    @cached_property
    def _float_rate(self) -> float:
        return float(self.rate(_SPARE))


@dataclass(frozen=True, kw_only=True)
class Excess(_Waiting):
    """How far noise that reached a bound goes beyond it: P(J ≥ b + k | J ≥ b) = r^k for every bound b ≥ 0."""

    def rate(self, digits: int) -> Decimal:
        """ε."""
        return _epsilon(self.noise, digits)


@dataclass(frozen=True, kw_only=True)
class Gaps(_Waiting):
    """How many draws of noise stay below a bound before the next one that reaches it: P(G ≥ k) = (1 − p)^k.

    p = P(J ≥ bound) = r^bound/(1 + r). So the places of those that reach it, among ever so many draws, are found
    without making the others.

    >>> from fractions import Fraction
    >>> f"{Gaps(noise=Geometric(epsilon=Fraction(1)), bound=7).chance(30):.6f}"
    '0.000667'
    """

    bound: int

    def __post_init__(self) -> None:
        if self.bound < 1 or self.chance(_SPARE) < LEAST_CHANCE:
            raise ValueError(f"the bound must be reached with a chance from {LEAST_CHANCE} on: {self}")

    def chance(self, digits: int) -> Decimal:
        """P(J ≥ bound)."""
        with localcontext(precise(digits + _SPARE)):
            epsilon = _epsilon(self.noise, digits + _SPARE)
            return (-epsilon * self.bound).exp() / (1 + (-epsilon).exp())

    def rate(self, digits: int) -> Decimal:
        """−ln(1 − p)."""
        # 1 − p loses as many digits as p has zeros after the point.
        digits += _SPARE - self.chance(_SPARE).adjusted()
        chance = self.chance(digits)
        with localcontext(precise(digits)):
            return -(1 - chance).ln()

    def places(self, total: int, randomness: Randomness) -> Integers:
        """Which of so many draws reach the bound, ascending."""
        found = [np.zeros(0, dtype=np.int64)]
        begin, chance = 0, float(self.chance(_SPARE))
        while begin < total:
            expected = (total - begin) * chance
            gaps = self.sample(int(expected + 4 * expected**0.5) + 8, randomness)
            # A gap that leads beyond the end may as well lead just there; sums then stay within 64 bits.
            reached = begin - 1 + np.cumsum(np.minimum(gaps, total) + 1)
            found.append(reached[reached < total])
            begin = int(reached[-1]) + 1
        return np.concatenate(found)


def _epsilon(noise: Geometric, digits: int) -> Decimal:
    with localcontext(precise(digits)):
        return Decimal(noise.epsilon.numerator) / Decimal(noise.epsilon.denominator)
