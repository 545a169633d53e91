"""Interval refining for several draws that share their uniforms: more bits and more digits until all are certain."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import SATURATION, WORD

_HALF = Decimal("0.5")

Bounds = list[tuple[int, int]]
"""The least and the greatest whole number that each draw of a block may turn out to be."""


def refine_block(
    bounds: Callable[[Sequence[int], int], Bounds], *, heads: Sequence[int], bits: int, randomness: Randomness
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
