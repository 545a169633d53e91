"""Random words laid out in blocks: the first bits of uniforms, signs, and exact choices."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.noise.randomness import Randomness
from sfumato.noise.symmetric import check_first_bits

MOST_CELLS = 128
"""The most draws a block may have: the series of their tails are summed in floating point for so many."""

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


def chunks(rows: int, width: int) -> Iterator[slice]:
    """The rows in pieces of a size that the processor's cache holds."""
    step = max(_DRAWS // width, 1)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
