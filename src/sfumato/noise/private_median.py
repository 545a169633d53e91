"""A median by the exponential mechanism on a grid of whole numbers, for many groups at once, drawn exactly."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Randomness

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_POINTS = 2**44
"""Of a grid: with the number of a group in front, a point fits 64 bits."""
_PROPOSALS = 1 << 13


@dataclass(frozen=True, kw_only=True)
class PrivateMedian:
    """A whole number c from low to high with probability proportional to exp(−decay·t(c)).

    t(c) is how many more of the m values than half lie on one side of c, twice: max(2L − m, 2R − m, 0), with L of them
    below c − width and R above c + width. A `width` makes up for values that coincide.

    >>> median = PrivateMedian(decay=Fraction(2), low=0, high=4)
    >>> median.costs(np.array([1, 1, 3])).tolist()
    [3, 0, 1, 1, 3]
    """

    decay: Fraction
    low: int
    high: int
    width: int = 0

    def __post_init__(self) -> None:
        if not (self.low <= self.high < self.low + MOST_POINTS and self.width >= 0):
            raise ValueError("the grid must be in order, with fewer than 2^44 points")

    def costs(self, values: Integers) -> Integers:
        """t of every point of the grid, for one group: for small grids and tests."""
        ordered, points = np.sort(values), np.arange(self.low, self.high + 1)
        below = np.searchsorted(ordered, points - self.width, side="left")
        above = len(ordered) - np.searchsorted(ordered, points + self.width, side="right")
        costs: Integers = np.maximum(2 * np.maximum(below, above) - len(ordered), 0)
        return costs

    def probabilities(self, values: Integers) -> Floats:
        """The probability of every point of the grid, for one group: for small grids and tests."""
        costs = self.costs(values)
        weights = np.exp(-float(self.decay) * (costs - costs.min()))
        chances: Floats = weights / weights.sum()
        return chances

    def sample(self, groups: Integers, values: Integers, size: int, randomness: Randomness) -> Integers:
        """One draw for each of so many groups, given its values; a group without any gets a uniform one.

        A level J is proposed with geometric probabilities, |J| being t and its sign the side, and a place among as many
        as the longest level has. Where the level has such a place, that is the draw: all decisions are between whole
        numbers, and every point of the grid is drawn with exactly its probability.
        """
        levels = _Levels(self, groups, values, size)
        noise, drawn = Geometric(epsilon=self.decay), np.empty(size, dtype=np.int64)
        left = np.arange(size)
        while len(left):
            # The last few groups make many proposals at a time, of which the first that fits is taken.
            tries = max(_PROPOSALS // len(left), 1)
            group = np.repeat(left, tries)
            first, last = levels.interval(group, noise.sample(len(group), randomness))
            place, fair = _below(levels.longest[group], randomness)
            fits = (fair & (place <= last - first)).reshape(-1, tries)
            found, taken = fits.any(axis=1), fits.argmax(axis=1)
            drawn[left[found]] = (first + place).reshape(-1, tries)[found, taken[found]]
            left = left[~found]
        return drawn


class _Levels:
    """The points of the grid at each distance from the median, as intervals between ordered values."""

    def __init__(self, median: PrivateMedian, groups: Integers, values: Integers, size: int) -> None:
        span = median.high - median.low + 1
        keys = groups * span + (values - median.low)
        # Half the width sorts in half the time, and most of the time is sorting.
        ordered = np.sort(keys.astype(np.int32) if size * span < 2**31 else keys).astype(np.int64)
        self._median = median
        self._values = ordered % span + median.low if len(ordered) else np.full(1, median.low)
        self._sizes = np.bincount(groups, minlength=size)
        self._begins = np.cumsum(self._sizes) - self._sizes
        self.longest = self._longest(size)

    def interval(self, group: Integers, level: Integers) -> tuple[Integers, Integers]:
        """The first and the last point of a level: of the middle at 0, above it for a positive one, below otherwise.

        Levels that no number of values makes have no point: the last is before the first.
        """
        median, m = self._median, self._sizes[group]
        distance = np.abs(level)
        many = (m + distance) // 2  # how many values lie on the other side
        exists = (level == 0) | (((m + distance) % 2 == 0) & (distance <= m))
        many = np.where(exists, many, 0)
        # Above, c − width is beyond `many` values and no more; below, the same is so from the other end; the middle has
        # at most half of the values on either side.
        up, down, wide = level > 0, level < 0, median.width
        first = self._at(group, np.where(up, many - 1, m - many - 1)) + np.where(up, wide + 1, -wide)
        last = self._at(group, np.where(down, m - many, many)) + np.where(down, -wide - 1, wide)
        first, last = np.maximum(first, median.low), np.minimum(last, median.high)
        return first, np.where(exists, last, first - 1)

    def _at(self, group: Integers, rank: Integers) -> Integers:
        """The value of a rank within its group; far outside the grid where there is none."""
        median = self._median
        outside = 2 * (median.high - median.low + median.width + 1)
        inside = np.clip(self._begins[group] + rank, 0, len(self._values) - 1)
        found = np.where(rank < 0, median.low - outside, self._values[inside])
        return np.where(rank >= self._sizes[group], median.high + outside, found)

    def _longest(self, size: int) -> Integers:
        """At least as many points as any level of the group has."""
        median, every = self._median, np.arange(size)
        first, last = self.interval(every, np.zeros(size, dtype=np.int64))
        longest = last - first + 1
        filled = self._sizes > 0
        if bool(filled.any()):
            ends = (self._begins + self._sizes)[filled] - 1
            gaps = np.diff(self._values, prepend=median.low)
            gaps[self._begins[filled]] = self._values[self._begins[filled]] - median.low
            widest = np.maximum(np.maximum.reduceat(gaps, self._begins[filled]), median.high - self._values[ends])
            longest[filled] = np.maximum(longest[filled], widest)
        return longest


def _below(bounds: Integers, randomness: Randomness) -> tuple[Integers, NDArray[np.bool_]]:
    """A number from 0 to below each bound, and whether it is one of a draw in which all are alike."""
    words = randomness.words(len(bounds))
    limit = bounds.astype(np.uint64)
    # The last words, too few to go round once more, would favour small numbers.
    rest = (np.uint64(2**64 - 1) % limit + np.uint64(1)) % limit
    return (words % limit).astype(np.int64), words <= np.uint64(2**64 - 1) - rest
