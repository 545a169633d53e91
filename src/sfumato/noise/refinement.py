"""Interval refining: more random bits and more digits until rounded noise is certain; twofold numbers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import floor
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.noise.randomness import Randomness

# A uniform U known to its first b bits lies in [n/2^b, (n+1)/2^b], so the magnitude |Z| = s·(U^(−1/a) − 1) of
# double Pareto noise lies in an interval too. When both ends round to the same integer, every further bit of U
# would give that integer: it is drawn with exactly the distribution an infinitely precise U would have given.

# Magnitudes from here on are all reported as this one; far outside any count, and safe to add in 64 bits.
SATURATION = 2**62

Bounds = Callable[[int, int], tuple[int, int]]
"""The least and the greatest integer a draw may be, given the first bits of U as a whole number, and how many."""

WORD = 64
"""Bits of a random word."""
_HALF = Decimal("0.5")


def refine(*, tail: Fraction, scale: Fraction, numerator: int, bits: int, randomness: Randomness) -> int:
    """The rounded magnitude, given the first `bits` bits of U, drawing further words until it is certain."""

    def bounds(numerator: int, bits: int) -> tuple[int, int]:
        return magnitude_bounds(tail=tail, scale=scale, numerator=numerator, bits=bits)

    return until_certain(bounds, numerator=numerator, bits=bits, randomness=randomness)


def until_certain(bounds: Bounds, *, numerator: int, bits: int, randomness: Randomness) -> int:
    """The integer that all continuations of the first bits of U share, drawing further words until there is one."""
    while True:
        low, high = bounds(numerator, bits)
        if low == high:
            return low
        numerator = numerator << WORD | int(randomness.words(1)[0])
        bits += WORD


def magnitude_bounds(*, tail: Fraction, scale: Fraction, numerator: int, bits: int) -> tuple[int, int]:
    """The least and the greatest integer that |Z| may round to when U is known to its first `bits` bits."""
    # Every further bit halves the interval; the digits grow with it, so arithmetic never is what stays
    # undecided.
    digits = digits_for(bits)
    with localcontext(precise(digits)):
        magnitude, margin = _magnitude(tail, scale, Fraction(numerator + 1, 2**bits), digits)
        low = max(saturated(magnitude - margin + _HALF), 0)
        if numerator == 0:  # U may be as small as it likes, and |Z| as large
            return low, SATURATION
        magnitude, margin = _magnitude(tail, scale, Fraction(numerator, 2**bits), digits)
        return low, saturated(magnitude + margin + _HALF)


def _magnitude(tail: Fraction, scale: Fraction, uniform: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """|Z| at one U to many digits, with a bound of its error.

    One operation errs by at most η = 10^(1−digits) of its result (`ln` and `exp` are correctly rounded). U
    errs by η relative, ln U by η more absolute, so y = −ln(U)/a by η(1/a + 3y), e^y − 1 by e^y·η(1/a + 3y +
    2), and the product with s by (|Z| + s)·η(1/a + 3y + 4) in all: below the 10η(|Z| + s)(1 + y + 1/a)
    returned.
    """
    s, a, u = (Decimal(f.numerator) / Decimal(f.denominator) for f in (scale, tail, uniform))
    y = -u.ln() / a
    magnitude = s * (y.exp() - 1)
    return magnitude, (magnitude + s) * (1 + y + 1 / a) * Decimal(10) ** (2 - digits)


def digits_for(bits: int) -> int:
    """How many digits leave an interval of U of so many bits the only thing that is undecided."""
    return 40 + bits // 3


def precise(digits: int) -> Context:
    """Decimal arithmetic to so many digits, without limits to the exponent."""
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)


def saturated(value: Decimal) -> int:
    """The whole number below a value, and SATURATION from there on."""
    return SATURATION if value >= SATURATION else floor(value)


# Interval refining for several draws that share their uniforms: more bits and more digits until all are certain.

VectorBounds = list[tuple[int, int]]
"""The least and the greatest whole number that each draw of a block may turn out to be."""


def refine_block(
    bounds: Callable[[Sequence[int], int], VectorBounds], *, heads: Sequence[int], bits: int, randomness: Randomness
) -> list[int]:
    """The whole numbers of one block, given the first `bits` bits of its uniforms.

    All uniforms get further words together until `bounds` leaves no choice. A draw that was certain before stays
    what it was: its bounds held for every continuation of the bits.
    """
    while True:
        found = bounds(heads, bits)
        if all(low == high for low, high in found):
            return [low for low, _ in found]
        words = randomness.words(len(heads))
        heads = [head << WORD | int(word) for head, word in zip(heads, words, strict=True)]
        bits += WORD


@contextmanager
def many_digits(bits: int) -> Iterator[Decimal]:
    """Decimal arithmetic fit for uniforms of so many bits; gives the share by which results must be widened.

    Every further bit halves an interval and the digits grow faster, so arithmetic never is what stays undecided.
    One operation errs by at most η = 10^(1−digits) of its result (`ln` and `exp` are correctly rounded). The share
    given is 10^9·η: a result of fewer than a million operations, each magnifying earlier errors by no more than the
    factor its caller multiplies the share with, is well within.
    """
    digits = 50 + bits // 3
    with localcontext(Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX)):
        yield Decimal(10) ** (10 - digits)


def minus_log(head: int, bits: int) -> tuple[Decimal, Decimal]:
    """The least and the greatest −ln U when U is in [head, head+1]/2^bits; infinite when U may be zero."""
    whole = Decimal(1 << bits)
    low = -(Decimal(head + 1) / whole).ln()
    return low, -(Decimal(head) / whole).ln() if head else Decimal("Infinity")


def nearest(value: Decimal) -> int:
    """The nearest whole number, saturating where no count can reach."""
    if abs(value) >= SATURATION:
        return SATURATION if value > 0 else -SATURATION
    return int((value + _HALF).to_integral_value(rounding=ROUND_FLOOR))


def exactly(value: Fraction) -> Decimal:
    """A fraction to all digits of the arithmetic in force."""
    return Decimal(value.numerator) / Decimal(value.denominator)


# Numbers as sums of two floats, about 31 digits, a whole array at a time: for draws that one float leaves in doubt.

ERROR = 2.0**-100
"""What one operation errs by, as a share of its result; `log` by (1 + |ln x|), `exp` by (1 + |y|) as much."""

_SPLIT = 2.0**27 + 1
_LOW_HALF = np.int64(2**32 - 1)
_DIGITS = 120
_PARTS = 2048  # of a power of two: what is left to the series of `exp` is below 2^−12.5
_FARTHEST = 600.0  # e to this is far from overflow, and farther from any count
_HALF_TWOFOLD, _ROUGH = 0.5, 2.0**-50


@dataclass(frozen=True, slots=True, eq=False)
class Twofold:
    """The sum of a float and of a much smaller one, which is what rounding the sum to the first would lose.

    The algorithms are Dekker's (1971) and Knuth's. Joldes, Muller and Popescu (2017) prove that with u = 2^−53 a sum
    errs by at most 3u² + 13u³ of itself, a product by 7u² and a quotient by 16u²: none by more than 2^−101.

    >>> third = Twofold.of(Fraction(1, 3))
    >>> bool(abs(Fraction(float(third.high)) + Fraction(float(third.low)) - Fraction(1, 3)) < Fraction(1, 2**106))
    True
    """

    high: Floats
    low: Floats

    @classmethod
    def of(cls, value: Fraction | Decimal) -> "Twofold":
        """An exact number, to within 2^−106 of itself."""
        exact = Fraction(value)
        high = float(exact)
        return cls(np.asarray(high), np.asarray(float(exact - Fraction(high))))

    @classmethod
    def row(cls, values: Iterable[Fraction]) -> "Twofold":
        """Several exact numbers, to within 2^−106 of themselves."""
        found = [cls.of(value) for value in values]
        return cls(np.array([value.high for value in found]), np.array([value.low for value in found]))

    @classmethod
    def of_integers(cls, values: Integers) -> "Twofold":
        """Whole numbers, exactly."""
        return cls.total((values >> np.int64(32)).astype(np.float64) * 2.0**32, (values & _LOW_HALF).astype(np.float64))

    @classmethod
    def total(cls, one: Floats, other: Floats) -> "Twofold":
        """The sum of two floats, exactly."""
        high = one + other
        moved = high - one
        return cls(high, (one - (high - moved)) + (other - moved))

    @classmethod
    def product(cls, one: Floats, other: Floats) -> "Twofold":
        """The product of two floats, exactly."""
        high = one * other
        (a, b), (c, d) = _halves(one), _halves(other)
        return cls(high, ((a * c - high) + a * d + b * c) + b * d)

    def __add__(self, other: "Twofold | Floats | float") -> "Twofold":
        if not isinstance(other, Twofold):
            found = self.total(self.high, np.asarray(other, dtype=np.float64))
            return _normal(found.high, found.low + self.low)
        high, low = self.total(self.high, other.high), self.total(self.low, other.low)
        first = _normal(high.high, high.low + low.high)
        return _normal(first.high, first.low + low.low)

    def __sub__(self, other: "Twofold | Floats | float") -> "Twofold":
        return self + -other

    def __neg__(self) -> "Twofold":
        return Twofold(-self.high, -self.low)

    def __mul__(self, other: "Twofold") -> "Twofold":
        found = self.product(self.high, other.high)
        return _normal(found.high, found.low + (self.high * other.low + self.low * other.high))

    def __truediv__(self, other: "Twofold") -> "Twofold":
        about = self.high / other.high
        rest = self - other * Twofold(about, np.zeros_like(about))
        return _normal(about, rest.high / other.high)

    def __getitem__(self, where: Any) -> "Twofold":
        return Twofold(self.high[where], self.low[where])

    def where(self, chosen: Flags, otherwise: "Twofold") -> "Twofold":
        """These where chosen, the others elsewhere."""
        return Twofold(np.where(chosen, self.high, otherwise.high), np.where(chosen, self.low, otherwise.low))

    def beside(self, right: "Twofold") -> "Twofold":
        """These columns, and those of another to their right."""
        return Twofold(*(np.concatenate(both, axis=1) for both in ((self.high, right.high), (self.low, right.low))))

    def running_sums(self) -> "Twofold":
        """The sums of the first one, two, … columns; of d terms of one sign they err by d operations at most."""
        sums, step = self, 1
        while step < self.high.shape[1]:
            sums = sums[:, :step].beside(sums[:, step:] + sums[:, :-step])
            step *= 2
        return sums

    def sums(self) -> "Twofold":
        """The sum of all columns, as one column."""
        left = self
        while (width := left.high.shape[1]) > 1:
            half = width // 2
            left = (left[:, :half] + left[:, half : 2 * half]).beside(left[:, 2 * half :])
        return left

    def exp(self) -> "Twofold":
        """e to these, moved to ±600 where they are farther out.

        y = k·ln(2)/2048 + r with |r| < 2^−12.5. Multiples of ln 2 are taken off in three parts, the first two exactly,
        and r errs by 2^−113 + |y|·2^−105. From the fourth power on the series is computed in floats, which errs by ten
        units of 2^−53 of a term below 2^−54.7. With the table and one sum that is below 2^−102 + |y|·2^−105.
        """
        bounded = np.clip(self.high, -_FARTHEST, _FARTHEST)
        low = np.where(bounded == self.high, self.low, 0.0)
        (first, second, third), table = _LOG_PARTS, _powers()
        k = np.rint(bounded * (1 / first))
        r = self.total(bounded, k * -first) + _normal(k * -second, low - k * third)
        x = r.high
        tail = x * x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040))))
        series = r + r * r * (r * _SIXTH + _normal(np.full_like(x, _HALF_TWOFOLD), tail))
        place = k.astype(np.int64)
        power = table[place & np.int64(_PARTS - 1)]
        grown = power + power * series
        scale = ((place // _PARTS + np.int64(1023)) << np.int64(52)).view(np.float64)
        return Twofold(grown.high * scale, grown.low * scale)

    def log(self) -> "Twofold":
        """Natural logarithms of numbers above 2^−200 and not far above 1, by one step of Newton's from the library's.

        With y the library's, x·e^−y = 1 + r and ln x = y + ln(1 + r). |r| is below 2^−40 if y is within 20 units of
        2^−52 of itself (NumPy accepts no more than 4), so r − r²/2 errs by 2^−121, and all of it by what `exp` and one
        product err by: below 2^−101 + |ln x|·2^−104.
        """
        y = np.log(self.high)
        start = Twofold(y, np.zeros_like(y))
        r = self * (-start).exp() - 1.0
        return start + (r - _HALF_TWOFOLD * r.high * r.high)

    def whole_parts(self, *, below: Floats, above: Floats) -> tuple[Integers, Flags]:
        """The greatest whole numbers not above these, and where all from `below` less to `above` more share them.

        Magnitudes from SATURATION on are all given as this one; what is not certain is given as 0.
        """
        whole = np.floor(self.high)
        rest = (self.high - whole) + self.low
        more = np.floor(rest)
        share = rest - more
        outside = np.abs(self.high) * (1 - _ROUGH) - np.maximum(below, above) >= SATURATION
        inside = np.abs(self.high) < SATURATION * (1 - _ROUGH)
        # A share errs by no more than 2^−53.
        certain = inside & (share - below > _ROUGH) & (share + above < 1 - _ROUGH)
        found = np.where(certain, whole, 0.0).astype(np.int64) + np.where(certain, more, 0.0).astype(np.int64)
        limit = np.where(self.high > 0, np.int64(SATURATION), np.int64(-SATURATION))
        return np.where(outside, limit, found), certain | outside


def _normal(high: Floats, low: Floats) -> Twofold:
    """The sum of two floats of which the first is the larger, exactly."""
    total = high + low
    return Twofold(total, low - (total - high))


def _halves(value: Floats) -> tuple[Floats, Floats]:
    """A float as the sum of two of half the digits, whose products are exact (Veltkamp)."""
    grown = value * _SPLIT
    high = grown - (grown - value)
    return high, value - high


def _log_parts() -> tuple[float, float, float]:
    """ln(2)/2048 as a sum of three floats, the first two of 31 bits, so that their products with k are exact."""
    with localcontext(precise(_DIGITS)):
        whole = Fraction(Decimal(2).ln()) / _PARTS
    first = Fraction(int(whole * 2**42), 2**42)
    second = Fraction(int((whole - first) * 2**73), 2**73)
    return float(first), float(second), float(whole - first - second)


@cache
def _powers() -> Twofold:
    """2^(j/2048) for j = 0, …, 2047, from whole numbers of 2^−200."""
    with localcontext(precise(_DIGITS)):
        step = int((Decimal(2).ln() / _PARTS).exp() * 2**200)
    powers = [2**200]
    while len(powers) < _PARTS:
        powers.append(powers[-1] * step >> 200)
    highs = [power / 2**200 for power in powers]
    lows = [(power - int(high * 2**52) * 2**148) / 2**200 for power, high in zip(powers, highs, strict=True)]
    return Twofold(np.array(highs), np.array(lows))


_LOG_PARTS = _log_parts()
_SIXTH = Twofold.of(Fraction(1, 6))
