"""Drawing |Z| of density proportional to 1/(1 + z⁴) by comparing random bits with polynomials.

Fold the half-line onto t in (0, 1] by |Z| = t or |Z| = 1/t. Then t has density proportional to 1/(1 + t⁴) from the
inner part and t²/(1 + t⁴) from the outer one. A point (t, v), uniform on the unit interval times [0, 5/4], is

    inner, |Z| = t,         when v·(1 + t⁴) < 1,
    outer, |Z| = 1/t,       when 1 ≤ v·(1 + t⁴) < 1 + t²,
    tried again otherwise;  (1 + t²)/(1 + t⁴) never exceeds (1 + √2)/2 < 5/4.

About 89 of 100 points are kept. No decision needs more than whole numbers.
"""

from fractions import Fraction

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import SATURATION, WORD
from sfumato.noise.second_pass import Uniforms
from sfumato.noise.twofold import ERROR, Twofold

# Eight operations on numbers of at most 4, each within 2^−53 of its result, err by less than 2^−48 in all; a
# magnitude, made by three, by less than 2^−48 of itself.
_ERROR = 2.0**-48
# v(1 + t⁴) and 1 + t² move by less than 8 and 2 times the length of the interval of t and v.
_REACH = 16.0
REJECTED = -1
"""Stands for a magnitude where the point is to be tried again."""


def first_pass(*, scale: Floats, across: Integers, up: Integers, bits: int) -> tuple[Integers, Flags, Flags]:
    """Rounded magnitudes s·|Z|, which points were kept, and which of these answers no further bit could change.

    `across` and `up` hold the first bits of t and of v/(5/4) as whole numbers. s·t grows with t evenly; s/t falls, is
    convex, and falls most steeply at the lower end of the interval. What is not certain is given as 0 and not kept.
    """
    step = 2.0**-bits
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # t = 0 is infinitely far out, if outer
        t = across * step
        square = t * t
        level = up * (1.25 * step) * (square * square + 1)
        margin = _ERROR + _REACH * step
        inner = level < 1
        accepted = level < square + 1
        clear = (np.abs(level - 1) > margin) & (np.abs(level - 1 - square) > margin)
        magnitude = np.where(inner, scale * t, scale / t)
        error = (magnitude + 1) * _ERROR
        # 1.01 covers the rounding of the widths themselves.
        rise = np.where(inner, scale * (1.01 * step), 0.0)
        fall = np.where(inner, 0.0, magnitude / t * (1.01 * step))
        high = np.floor(magnitude + error + rise + 0.5)
        certain = clear & (~accepted | (np.floor(magnitude - error - fall + 0.5) == high))
    kept = accepted & certain
    return np.where(kept, high, 0).astype(np.int64), kept, certain


def second_pass(*, scale: Twofold, across: Uniforms, up: Uniforms) -> tuple[Integers, Flags]:
    """Rounded magnitudes, REJECTED where the point is to be tried again, and which of these answers are certain.

    The same with two floats for a number: eight operations on numbers of at most 4 err by less than 64·ERROR, a
    magnitude, made by four, by less than 8·ERROR of itself.
    """
    t = across.lower
    square = t * t
    level = up.lower * Twofold.of(Fraction(5, 4)) * (square * square + 1.0)
    from_inner, from_outer = (level - 1.0).high, (level - 1.0 - square).high
    margin = 64 * ERROR + _REACH * across.step
    clear = (np.abs(from_inner) > margin) & (np.abs(from_outer) > margin)
    inner, rejected = from_inner < 0, from_outer >= 0
    magnitude = (scale * t).where(inner, scale / t)
    error = (magnitude.high + 1) * (64 * ERROR)
    rise, fall = scale.high * across.step, magnitude.high * across.unknown
    found, certain = (magnitude + 0.5).whole_parts(
        below=error + np.where(inner, 0.0, fall), above=error + np.where(inner, rise, 0.0)
    )
    return np.where(rejected, REJECTED, found), clear & (rejected | certain)


def resolved(
    *, unit: Fraction, multiples: Integers, across: Integers, up: Integers, bits: int, randomness: Randomness
) -> Integers:
    """Rounded magnitudes of points that the first pass left in doubt; REJECTED where a point is to be tried again."""
    words = randomness.words(2 * len(across)).reshape(2, -1)
    with np.errstate(all="ignore"):  # t = 0 makes infinities and NaN, which are never certain
        found, certain = second_pass(
            scale=Twofold.of_integers(multiples) * Twofold.of(unit),
            across=Uniforms.of(across, words[0], first_bits=bits),
            up=Uniforms.of(up, words[1], first_bits=bits),
        )
    for i in np.flatnonzero(~certain):
        one = resolve(
            scale=unit * int(multiples[i]),
            across=int(across[i]) << WORD | int(words[0, i]),
            up=int(up[i]) << WORD | int(words[1, i]),
            bits=bits + WORD,
            randomness=randomness,
        )
        found[i] = REJECTED if one is None else one
    return found


def resolve(*, scale: Fraction, across: int, up: int, bits: int, randomness: Randomness) -> int | None:
    """One rounded magnitude, or None when the point is to be tried again, drawing words until it is certain."""
    while True:
        kind = point(across=across, up=up, bits=bits)
        if kind == "rejected":
            return None
        if kind is not None:
            low, high = magnitude_bounds(scale=scale, across=across, bits=bits, inner=kind == "inner")
            if low == high:
                return low
        further = randomness.words(2)
        across, up = (head << WORD | int(word) for head, word in zip((across, up), further, strict=True))
        bits += WORD


def point(*, across: int, up: int, bits: int) -> str | None:
    """Where the point lies, "inner", "outer" or "rejected", as far as its first bits tell; None when they do not."""
    one = 2**bits
    # v(1 + t⁴) and 1 + t², both in units of 1/(4·one⁵), at the lower and the upper ends of the intervals.
    least = 5 * up * (one**4 + across**4)
    most = 5 * (up + 1) * (one**4 + (across + 1) ** 4)
    if most <= 4 * one**5:
        return "inner"
    if least >= 4 * one**3 * (one**2 + (across + 1) ** 2):
        return "rejected"
    if least >= 4 * one**5 and most <= 4 * one**3 * (one**2 + across**2):
        return "outer"
    return None


def magnitude_bounds(*, scale: Fraction, across: int, bits: int, inner: bool) -> tuple[int, int]:
    """The least and the greatest integer that s·t, or s/t outside, may round to; exact."""
    if inner:
        low, high = (_rounded(scale * Fraction(end, 2**bits)) for end in (across, across + 1))
        return low, high
    low = _rounded(scale * Fraction(2**bits, across + 1))
    return low, SATURATION if across == 0 else _rounded(scale * Fraction(2**bits, across))


def _rounded(value: Fraction) -> int:
    return min((2 * value.numerator + value.denominator) // (2 * value.denominator), SATURATION)
