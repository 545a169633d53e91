"""The second pass of exact sampling: a further word for every draw in doubt, computed with to about 31 digits.

What one float leaves in doubt is rare for counts of people and the rule for sums of cents. The second pass settles all
but a few in a trillion of these, a whole array at a time; only what it leaves goes to the refining loop, one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Flags, Floats, Integers, Words
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import WORD
from sfumato.noise.twofold import Twofold
from sfumato.noise.vector_refinement import Bounds, refine_block

_FURTHER = 53  # bits of the further word: as many as the second float of two holds
_PIECE = 1 << 12  # numbers at a time: two dozen arrays of these stay in the processor's cache
# Widths are themselves computed in floating point, to far better than one part in 2^30.
_WIDENED = 1 + 2.0**-30


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
    bounds: Callable[[int], Callable[[Sequence[int], int], Bounds]],
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
