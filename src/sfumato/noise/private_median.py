"""A median by the exponential mechanism on a grid of whole numbers, for many groups at once, drawn exactly."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.noise.randomness import Randomness
from sfumato.noise.weighted_choice import WeightedChoice

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_POINTS = 2**44
"""Of a grid: with the number of a group in front, a point fits 64 bits."""
_LEVELS = 1 << 17


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

        A level, that is all points between two neighbouring values, is chosen with its number of points times its
        weight; then one of its points, all alike. A group of m values has m + 2 levels at most.
        """
        many = np.bincount(groups, minlength=size)
        begins = np.cumsum(many) - many
        ordered = self._ordered(groups, values, size)
        choice, drawn = WeightedChoice(rate=self.decay), np.empty(size, dtype=np.int64)
        for own in _of_like_size(many):
            before, costs = self._levels(ordered, begins[own], many[own])
            points = np.diff(before, axis=1)
            level = choice.sample(costs, randomness, times=points)[:, None]
            first, length = (np.take_along_axis(of, level, axis=1)[:, 0] for of in (before, points))
            drawn[own] = first + 1 + _below(length, randomness)
        return drawn

    def _ordered(self, groups: Integers, values: Integers, size: int) -> Integers:
        """All values, group by group and in their order; one more where there are none."""
        span = self.high - self.low + 1
        keys = groups * span + (values - self.low)
        # Half the width sorts in half the time, and most of the time is sorting.
        ordered = np.sort(keys.astype(np.int32) if size * span < 2**31 else keys).astype(np.int64)
        return ordered % span + self.low if len(ordered) else np.full(1, self.low)

    def _levels(self, ordered: Integers, begins: Integers, many: Integers) -> tuple[Integers, Integers]:
        """The levels of some groups, a row each: the point before every level and the last of all, and t of each.

        Values up to the median end a level below them, values from it on one above; so the median of an odd number
        ends two. Rows are as long as the longest needs: what is left over has no points.
        """
        place, m = np.arange(int(many.max()) + int(many.max()) % 2), many[:, None]
        lower = place < (m + 1) // 2
        value = ordered[np.minimum(begins[:, None] + place - np.where(lower, 0, m % 2), len(ordered) - 1)]
        ends = np.clip(value + np.where(lower, -self.width - 1, self.width), self.low - 1, self.high)
        ends = np.where(place < m + m % 2, ends, self.high)
        before = np.full((len(many), len(place) + 2), self.low - 1)
        before[:, 1:-1], before[:, -1] = ends, self.high
        level = np.arange(len(place) + 1)
        return before, np.maximum(np.maximum(m - 2 * level, 2 * (level - m % 2) - m), 0)


def _of_like_size(many: Integers) -> Iterator[Integers]:
    """Groups with about as many values as each other, so many at a time that their levels stay in the cache."""
    order, begin = np.argsort(many, kind="stable"), 0
    ordered = many[order] + 2
    while begin < len(order):
        end = begin + max(_LEVELS // int(ordered[begin]), 1)
        # A longer one makes all rows longer, by no more than a half.
        end = min(end, int(np.searchsorted(ordered, ordered[begin] + ordered[begin] // 2, side="right")))
        yield order[begin:end]
        begin = end


def _below(bounds: Integers, randomness: Randomness) -> Integers:
    """A number from 0 to below each bound, all alike."""
    limit, drawn = bounds.astype(np.uint64), np.empty(len(bounds), dtype=np.int64)
    # The last words, too few to go round once more, would favour small numbers: these are drawn again.
    most = np.uint64(2**64 - 1) - (np.uint64(2**64 - 1) % limit + np.uint64(1)) % limit
    left = np.arange(len(bounds))
    while len(left):
        words = randomness.words(len(left))
        drawn[left] = (words % limit[left]).astype(np.int64)
        left = left[words > most[left]]
    return drawn
