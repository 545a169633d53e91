"""A median by the exponential mechanism on a grid of whole numbers, for many groups at once, drawn exactly."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.noise.end_to_end import turn
from sfumato.noise.randomness import Randomness
from sfumato.noise.weighted_choice import WeightedChoice

Narrow = NDArray[np.signedinteger[Any]]

MOST_POINTS = 2**44
"""Of a grid: with the number of a group in front, a point fits 64 bits."""
_LEVELS = 1 << 21  # at a time: few enough for the memory


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
        many, values = _grouped(groups, values, size)
        begins, longest = np.cumsum(many) - many, int(many.max(initial=0))
        room = self._room(values, longest)
        choice, drawn = WeightedChoice(rate=self.decay), np.empty(size, dtype=np.int64)
        for own in _of_like_size(many):
            ends, points, costs = self._levels(self._ordered(room, longest + begins[own], many[own]))
            level = choice.sample(costs[None], randomness, times=points.T)
            place = level * len(own) + np.arange(len(own))
            # Above the middle, the point that ends a level is in it, and not in the next one.
            first = ends.ravel().take(place).astype(np.int64) + (level > len(costs) // 2)
            drawn[own] = self.low + first + _below(points.ravel().take(place), randomness)
        return drawn

    @property
    def _span(self) -> int:
        return self.high - self.low + 1

    def _room(self, values: Integers, longest: int) -> Narrow:
        """The values as narrow as two grids allow, which sorts in half the time, with room for a group on both sides.

        What does not fit is cut off, which changes no difference of two values on the grid.
        """
        kind: type[np.signedinteger[Any]] = next(
            kind for kind in (np.int16, np.int32, np.int64) if 2 * self._span <= np.iinfo(kind).max
        )
        room: Narrow = np.empty(len(values) + 2 * longest, dtype=kind)
        room[longest : longest + len(values)] = values
        return room

    def _ordered(self, room: Narrow, begins: Integers, many: Integers) -> Narrow:
        """The values of some groups in order, a row each, as the number of points of the grid below them.

        All are odd in number or all even. Whoever has fewer than the longest gets as many more at either end of the
        grid, where they change no t.
        """
        longest = int(many.max())
        if not longest:
            return np.empty((len(many), 0), dtype=room.dtype)
        missing = (longest - many) // 2
        rows: Narrow = sliding_window_view(room, longest)[begins - missing]
        if self.low:
            rows -= np.int64(self.low).astype(room.dtype)
        if most := int(missing.max()):
            outer = np.arange(most) < missing[:, None]
            np.copyto(rows[:, :most], 0, where=outer)
            np.copyto(rows[:, -most:], self._span - 1, where=outer[:, ::-1])
        rows.sort(axis=1)
        return rows

    def _levels(self, ordered: Narrow) -> tuple[Narrow, Narrow, Integers]:
        """The ends of the levels of some groups, the points of each level, and its t: a column for every group.

        Values up to the median, less the width, begin a level; values from it on, and the width, end one. So the median
        of an odd number does both, and the level in the middle has the points at both of its ends.
        """
        m = ordered.shape[1]
        middle, level = (m + 1) // 2, np.arange(m + m % 2 + 1)
        ends = np.empty((len(level) + 1, len(ordered)), dtype=ordered.dtype)
        lower, upper = ends[1 : middle + 1], ends[middle + 1 : -1]
        ends[0], ends[-1] = 0, self._span - 1
        turn(ordered[:, :middle], lower)
        turn(ordered[:, m // 2 :], upper)
        if width := min(self.width, self._span):
            np.clip(np.subtract(lower, width, out=lower), 0, None, out=lower)
            np.clip(np.add(upper, width, out=upper), None, self._span - 1, out=upper)
        points = ends[1:] - ends[:-1]
        points[middle] += 1
        return ends, points, np.maximum(np.maximum(m - 2 * level, 2 * (level - m % 2) - m), 0)


def _grouped(groups: Integers, values: Integers, size: int) -> tuple[Integers, Integers]:
    """How many values each group has, and all values, group by group."""
    differs = np.ones(len(groups), dtype=np.bool_)
    np.not_equal(groups[1:], groups[:-1], out=differs[1:])
    starts = np.flatnonzero(differs)
    owner, length = groups[starts], np.diff(starts, append=len(groups))
    many = np.bincount(owner, weights=length, minlength=size).astype(np.int64)
    if (owner[1:] < owner[:-1]).any():
        # Runs of one group are moved as a whole; numbers of 16 bits are sorted by their digits.
        order = np.argsort(owner.astype(np.uint16) if size <= 1 << 16 else owner, kind="stable")
        starts, length = starts[order], length[order]
        values = values[np.repeat(starts - np.cumsum(length) + length, length) + np.arange(len(values))]
    return many, values


def _of_like_size(many: Integers) -> Iterator[Integers]:
    """Groups with about as many values as each other, all odd or all even, as many at a time as memory is meant for."""
    for odd in (0, 1):
        order, begin = np.flatnonzero(many % 2 == odd), 0
        order = order[np.argsort(many[order], kind="stable")]
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
