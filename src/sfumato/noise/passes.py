"""Exact sampling in passes: floating point where its bound is certain, more digits where it is not."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats, Integers, Words
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import WORD, Twofold, VectorBounds, refine_block

# The first pass of exact sampling: floating point, with a bound that says where it can be trusted.

# The error of |Z|, as a share of (|Z| + 1)(1 + y) where y = −ln(U)/a. Write u = 2^−52. If the library's `log`
# and `expm1` are within 20u (NumPy accepts no more than 4u), then y is within 21u of itself and expm1(y) within
# 21(1 + y)u + 20u, its condition number being at most 1 + y. The scale, the products and the sums before
# rounding add less than 4u: under 45(1 + y)u in all, of which nearly half is the library's. 64u is taken.
_ERROR = 2.0**-46
# The interval's width is itself computed in floating point, to far better than one part in 2^30.
_WIDENED = 1 + 2.0**-30


def first_pass(
    *, tail: Fraction, unit: Fraction, multiples: NDArray[np.int64], heads: NDArray[np.int64], bits: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rounded magnitudes |Z|, and which of them no further bit of U could change.

    `heads` holds the first bits of each U as whole numbers h, so that U is in [h, h+1]/2^bits. |Z| falls with
    U and is convex in it: it is at most its value at h/2^bits, and below that by at most the length of the
    interval times the slope there, which is (|Z| + s)/(a·U). Magnitudes that are not certain are given as 0.
    """
    # U = 0, or a tail so heavy that |Z| overflows, makes infinities and NaN, which are equal to nothing.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        uniform = heads * 2.0**-bits
        scale = multiples * float(unit)
        y = np.log(uniform) * -float(1 / tail)
        magnitude = np.expm1(y) * scale
        error = (magnitude + 1) * (y + 1) * _ERROR
        width = (magnitude + scale) / uniform * (_WIDENED * 2.0**-bits / float(tail))
        high = np.floor(magnitude + error + 0.5)
        low = np.floor(magnitude - error - width + 0.5)
        certain = low == high
    # Certain magnitudes are below 2^46, where the error alone reaches 1, and convert exactly.
    return np.where(certain, high, 0).astype(np.int64), certain


# The second pass of exact sampling: a further word for every draw in doubt, computed with to about 31 digits.
#
# What one float leaves in doubt is rare for counts of people and the rule for sums of cents. The second pass settles
# all but a few in a trillion of these, a whole array at a time; only what it leaves goes to the refining loop, one by
# one.

_FURTHER = 53  # bits of the further word: as many as the second float of two holds
_PIECE = 1 << 12  # numbers at a time: two dozen arrays of these stay in the processor's cache
# Widths are themselves computed in floating point, to far better than one part in 2^30.


@dataclass(frozen=True, kw_only=True)
class Uniforms:
    """Uniform numbers known to so many bits: the lower ends of the intervals that hold them, exactly."""

    lower: Twofold
    bits: int

    @classmethod
    def of(cls, heads: Integers, words: Words, *, first_bits: int) -> "Uniforms":
        """The first bits as whole numbers, continued by the first 53 bits of a further word."""
        bits = first_bits + _FURTHER
        further = (words >> np.uint64(WORD - _FURTHER)).astype(np.float64)
        return cls(lower=Twofold.total(heads.astype(np.float64) * 2.0**-first_bits, further * 2.0**-bits), bits=bits)

    @property
    def step(self) -> float:
        """The length of every interval."""
        return _WIDENED * 2.0**-self.bits

    @property
    def unknown(self) -> Floats:
        """The most by which the bits not known yet can move −ln U; without bound where U may be zero."""
        share: Floats = self.step / self.lower.high
        return share


SecondPass = Callable[[Integers, Uniforms], tuple[Integers, Flags]]
"""The draws at some places, or rows of draws, given their uniforms; and which of the numbers are certain."""


def settled(
    heads: Integers,
    randomness: Randomness,
    *,
    first_bits: int,
    second_pass: SecondPass,
    refine: Callable[[int, int, int], int],
) -> Integers:
    """Draws, given the first bits of the U of each as whole numbers.

    `refine` gives what is still in doubt, from its place, the bits of its U that are known, and how many these are.
    """
    drawn = np.empty(len(heads), dtype=np.int64)
    for piece in _pieces(len(heads), 1):
        words = randomness.words(piece.stop - piece.start)
        places = np.arange(piece.start, piece.stop)
        with np.errstate(all="ignore"):  # U = 0 makes infinities and NaN, which are never certain
            found, certain = second_pass(places, Uniforms.of(heads[piece], words, first_bits=first_bits))
        for i in np.flatnonzero(~certain):
            known = int(heads[piece][i]) << WORD | int(words[i])
            found[i] = refine(piece.start + int(i), known, first_bits + WORD)
        drawn[piece] = found
    return drawn


def settled_rows(
    heads: Integers,
    randomness: Randomness,
    *,
    first_bits: int,
    second_pass: SecondPass,
    bounds: Callable[[int], Callable[[Sequence[int], int], VectorBounds]],
) -> Integers:
    """Rows of draws, given the first bits of all uniforms of each row.

    `bounds` gives, for a row, what the refining loop needs for what is still in doubt.
    """
    drawn = []
    for piece in _pieces(*heads.shape):
        known = heads[piece]
        words = randomness.words(known.size).reshape(known.shape)
        with np.errstate(all="ignore"):
            found, certain = second_pass(
                np.arange(piece.start, piece.stop), Uniforms.of(known, words, first_bits=first_bits)
            )
        for i in np.flatnonzero(~certain.all(axis=1)):
            longer = [head << WORD | word for head, word in zip(known[i].tolist(), words[i].tolist(), strict=True)]
            found[i] = refine_block(
                bounds(piece.start + int(i)), heads=longer, bits=first_bits + WORD, randomness=randomness
            )
        drawn.append(found)
    return np.concatenate(drawn)


def left_in_doubt(places: Integers, _: Uniforms) -> tuple[Integers, Flags]:
    """The second pass of noise whose doubtful draws are too few to need one."""
    return np.zeros(len(places), dtype=np.int64), np.zeros(len(places), dtype=np.bool_)


def _pieces(n: int, width: int) -> Iterator[slice]:
    step = max(_PIECE // width, 1)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


# Draw symmetric noise in passes: floating point for most draws, more digits and more bits for the doubtful ones.

FirstPass = Callable[[slice, Integers], tuple[Integers, NDArray[np.bool_]]]
"""The draws of a part, given the first bits of U of each as whole numbers, and which of them are certain."""
Refine = Callable[[int, int, int], int]
"""One draw, given its place among all, the bits of its U that are known, and how many these are."""

FIRST_BITS = 53  # of each word, as many as a float64 holds exactly; the word's last bit is the sign
_CHUNK = 1 << 14  # draws at a time: the working arrays stay in the processor's cache


def draw(
    n: int,
    randomness: Randomness,
    *,
    first_bits: int,
    first_pass: FirstPass,
    second_pass: SecondPass,
    refine: Refine,
) -> Integers:
    """One magnitude for each of n draws with a sign of its own, positive as often as negative."""
    check_first_bits(first_bits)
    drawn = np.empty(n, dtype=np.int64)
    for part in chunks(n):
        words = randomness.words(part.stop - part.start)
        heads = (words >> np.uint64(64 - first_bits)).view(np.int64)
        magnitudes, certain = first_pass(part, heads)
        if len(doubtful := np.flatnonzero(~certain)):
            places = part.start + doubtful
            magnitudes[doubtful] = settled(
                heads[doubtful],
                randomness,
                first_bits=first_bits,
                second_pass=partial(_second_pass_at, places, second_pass),
                refine=partial(_refine_at, places, refine),
            )
        np.multiply(magnitudes, signs(words), out=drawn[part])
    return drawn


def _second_pass_at(
    places: Integers, second_pass: SecondPass, some: Integers, uniforms: Uniforms
) -> tuple[Integers, Flags]:
    """The second pass of some of the draws at these places."""
    return second_pass(places[some], uniforms)


def _refine_at(places: Integers, refine: Refine, i: int, known: int, bits: int) -> int:
    """What is known of one of the draws at these places."""
    return refine(int(places[i]), known, bits)


def signs(words: NDArray[np.uint64]) -> Integers:
    """+1 or −1 by the last bit of every word, which no magnitude uses."""
    return 1 - ((words & np.uint64(1)).view(np.int64) << 1)


def chunks(n: int) -> Iterator[slice]:
    """Parts of n draws that are worked on at a time."""
    for start in range(0, n, _CHUNK):
        yield slice(start, min(start + _CHUNK, n))


def check_first_bits(first_bits: int) -> None:
    """Refuse more bits than a float64 holds beside the sign."""
    if not 1 <= first_bits <= FIRST_BITS:
        raise ValueError(f"first_bits must be between 1 and {FIRST_BITS}, not {first_bits}")


def check_multiples(multiples: Integers) -> None:
    """Refuse a scale that is not a positive multiple of its unit."""
    if len(multiples) and int(multiples.min()) < 1:
        raise ValueError("every multiple must be a positive whole number")


# Random words laid out in blocks: the first bits of uniforms, signs, and exact choices.

MOST_CELLS = 128
"""The most draws a block of box noise may have: the series of their tails are summed in floating point for so many."""
MOST_SIMPLEX_CELLS = 4_096
"""The most of simplex noise: the bounds of all its arithmetic are checked against many digits up to here."""

_DRAWS = 1 << 14  # at a time: the working arrays stay in the processor's cache


def word_blocks(rows: int, width: int, randomness: Randomness) -> NDArray[np.uint64]:
    """Words in rows of equal width."""
    return randomness.words(rows * width).reshape(rows, width)


def heads_of(words: NDArray[np.uint64], first_bits: int) -> NDArray[np.int64]:
    """The first bits of every word as a whole number h: the uniform is in [h, h+1]/2^first_bits."""
    check_first_bits(first_bits)
    return (words >> np.uint64(64 - first_bits)).view(np.int64)


def choices(rows: int, options: int, randomness: Randomness) -> NDArray[np.int64]:
    """A whole number below `options` for every row, each exactly as likely as the others."""
    words = randomness.words(rows)
    excess = 2**64 % options
    if excess:
        # Words at the top, which would favour the first options, are drawn again.
        words = words.copy()
        while (again := np.flatnonzero(words >= np.uint64(2**64 - excess))).size:
            words[again] = randomness.words(again.size)
    return (words % np.uint64(options)).astype(np.int64)


def block_chunks(rows: int, width: int) -> Iterator[slice]:
    """The rows in pieces of a size that the processor's cache holds."""
    step = max(_DRAWS // width, 1)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
