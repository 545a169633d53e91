"""Interval refining: more random bits and more digits until the rounded noise is certain.

A uniform U known to its first b bits lies in [n/2^b, (n+1)/2^b], so the magnitude |Z| = s·(U^(−1/a) − 1) of
double Pareto noise lies in an interval too. When both ends round to the same integer, every further bit of U
would give that integer: it is drawn with exactly the distribution an infinitely precise U would have given.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from math import floor

from sfumato.noise.randomness import Randomness

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
