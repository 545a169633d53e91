"""On which of several parts, laid end to end, a uniform number falls: for many lines of parts at once.

Arrays have a row for every part and a column for every line, so that every step is one for all lines. Parts are taken
in blocks: sums run within all blocks at once and then from block to block; a search finds the block and then the part.
"""

from dataclasses import dataclass
from math import isqrt

import numpy as np

from sfumato.arrays import Flags, Floats, Integers

_STRIP = 256  # lines turned at a time: what the fastest cache holds of each while one part after the other is read


def turn(rows: Integers, columns: Integers) -> None:
    """Write rows as columns."""
    for start in range(0, len(rows), _STRIP):
        strip = slice(start, start + _STRIP)
        columns[:, strip] = rows[strip].T


def block_size(parts: int) -> int:
    """How many parts make a block: about as many as there are blocks then."""
    return isqrt(max(parts - 1, 0)) + 1


def rounded_up(parts: int) -> int:
    """So many parts that all blocks are full."""
    return -(-parts // block_size(parts)) * block_size(parts)


@dataclass(frozen=True, kw_only=True)
class EndToEnd:
    """Where parts end, counted from where their block begins, and where blocks begin; last, the end of the line."""

    ends: Floats
    begins: Floats

    @classmethod
    def of(cls, lengths: Floats, *, parts: int) -> "EndToEnd":
        """So many parts, given their lengths in an array rounded up to full blocks; it becomes that of their ends."""
        size, lines = block_size(parts), lengths.shape[1]
        lengths[parts:] = 0
        ends = lengths.reshape(-1, size, lines)
        for place in range(1, size):
            ends[:, place] += ends[:, place - 1]
        begins = np.zeros((len(ends) + 1, lines))
        for block, length in enumerate(ends[:, -1]):
            np.add(begins[block], length, out=begins[block + 1])
        return cls(ends=ends, begins=begins)

    @property
    def whole(self) -> Floats:
        """How long every line is."""
        whole: Floats = self.begins[-1]
        return whole

    def fallen_on(self, heads: Integers, *, bits: int, error: float) -> tuple[Integers, Flags]:
        """The part that U falls on, given its first bits as a whole number, and where no further bit could change it.

        Every end, and U times the whole, may be off by such a share of the whole. Whatever part the search has found,
        it is the one when all that U may still be lies between its ends, by twice as much.
        """
        blocks, size, lines = self.ends.shape
        line, ends = np.arange(lines), self.ends.ravel()
        low = heads * 2.0**-bits * self.whole
        high = (heads + 1) * 2.0**-bits * self.whole
        block = _reached(self.begins[1:].ravel(), low, line, many=blocks, step=lines)
        begin = self.begins.ravel().take(block)
        first = (block - line) * size + line
        part = _reached(ends, low - begin, first, many=size, step=lines)
        before = begin + np.where(part > first, ends.take(part - lines, mode="wrap"), 0)
        after = begin + ends.take(part)
        margin = 2 * error * self.whole
        return part // lines, (before + margin <= low) & (high + margin <= after)


def _reached(ends: Floats, targets: Floats, first: Integers, *, many: int, step: int) -> Integers:
    """The first of so many ends, a step apart, that is beyond the target, or else the last one."""
    place, left = first, many
    while left > 1:
        half = left // 2
        place = place + (ends.take(place + (half - 1) * step) <= targets) * (half * step)
        left -= half
    return place
