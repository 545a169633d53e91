"""One of several candidates by the exponential mechanism, drawn exactly: any, or a median on a grid."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats, Integers
from sfumato.noise.passes import FIRST_BITS, check_first_bits
from sfumato.noise.randomness import Randomness
from sfumato.noise.refinement import digits_for, precise, until_certain

# On which of several parts, laid end to end, a uniform number falls: for many lines of parts at once.
#
# Arrays have a row for every part and a column for every line, so that every step is one for all lines. Parts are taken
# in blocks: sums run within all blocks at once and then from block to block; a search finds the block and then the
# part.

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


# One of several candidates, with probabilities that fall exponentially with whole-number costs, drawn exactly.

Times = NDArray[np.signedinteger[Any]]

MOST_TIMES = 2**44
"""How many candidates of the same cost one may stand for."""
_UNIT = 2.0**-52
_NEVER = 2**62
_REACH = 80
"""The largest exponent that matters: beyond it, even 2^44 candidates weigh less than 2^−71 of one that costs 0."""
_LONGEST = 1 << 16  # weights of a table: few enough to stay in the processor's cache
_CHUNK = 1 << 17  # candidates at a time, for the same reason
_MOST = 1 << 21  # candidates at a time that memory is set aside for, however long their rows are
_ROWS = (1 << 11) + 1  # rows at a time, unless that is too much: NumPy would take fewer through a buffer of its own


@dataclass(frozen=True, kw_only=True)
class WeightedChoice:
    """Candidate k with probability proportional to exp(−rate·cost_k): the exponential mechanism's choice.

    A candidate may stand for several that cost the same, `times` of them, or for none. A uniform U falls on one of the
    candidates, laid end to end with their weights as lengths; as many bits of U are drawn as it takes to tell on which.

    >>> WeightedChoice(rate=Fraction(1, 2)).probabilities(np.array([[0, 2]])).round(3).tolist()
    [[0.731, 0.269]]
    """

    rate: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.rate, Fraction | int) or self.rate <= 0:
            raise ValueError("the rate is an exact fraction above 0")

    def sample(
        self,
        costs: Integers,
        randomness: Randomness,
        *,
        times: Times | None = None,
        first_bits: int = FIRST_BITS,
    ) -> Integers:
        """One candidate for every row of costs, or for every row of times when one row of costs goes for all of these.

        `first_bits` is for tests, and changes no probability.
        """
        check_first_bits(first_bits)
        rows, candidates = costs.shape if times is None else times.shape
        if rows and not candidates:
            raise _no_choice()
        if rows and times is not None and not 0 <= int(times.min()) <= int(times.max()) <= MOST_TIMES:
            raise _no_choice()
        shared = len(costs) < rows
        step = _rows_at_a_time(candidates, shared=shared)
        weights, chosen = _Weights.of(self.rate, costs, rows=min(rows, step)), np.empty(rows, dtype=np.int64)
        for start in range(0, rows, step):
            part = slice(start, min(start + step, rows))
            words = randomness.words(part.stop - part.start)
            heads = (words >> np.uint64(64 - first_bits)).view(np.int64)
            own_costs, own_times = costs if shared else costs[part], None if times is None else times[part]
            line = weights.laid(own_costs, own_times)
            chosen[part], certain = line.fallen_on(heads, bits=first_bits, error=_error(candidates))
            for i in np.flatnonzero(~certain):
                cost = own_costs[i % len(own_costs)]
                several = np.ones_like(cost) if own_times is None else own_times[i]
                chosen[part.start + i] = until_certain(
                    partial(self._bounds, cost, several),
                    numerator=int(heads[i]),
                    bits=first_bits,
                    randomness=randomness,
                )
        return chosen

    def probabilities(self, costs: Integers) -> Floats:
        """The probability of every candidate of every row."""
        weights = np.exp(-float(self.rate) * (costs - costs.min(axis=1, keepdims=True)))
        chances: Floats = weights / weights.sum(axis=1, keepdims=True)
        return chances

    def _bounds(self, costs: Integers, times: Times, numerator: int, bits: int) -> tuple[int, int]:
        """The first and the last candidate that U may fall on when it is known to its first `bits` bits.

        Every end errs by less than 100·K units of 10^(1−digits) of the whole.
        """
        digits = digits_for(bits)
        with localcontext(precise(digits)):
            rate = Decimal(self.rate.numerator) / Decimal(self.rate.denominator)
            least, ends = int(costs[times > 0].min()), [Decimal(0)]
            for cost, several in zip(costs.tolist(), times.tolist(), strict=True):
                ends.append(ends[-1] + (several * (-rate * (cost - least)).exp() if several else 0))
            margin = len(costs) * ends[-1] * Decimal(10) ** (4 - digits)
            low, high = (ends[-1] * n / Decimal(2) ** bits for n in (numerator, numerator + 1))
            first = sum(end <= low - margin for end in ends[1:])
            return first, sum(end < high + margin for end in ends[1:-1])


@dataclass(frozen=True, kw_only=True)
class _Weights:
    """Weights of some rows at a time, in the same room again and again, from a table where that pays."""

    rate: float
    reach: int
    """The largest difference of costs that matters."""
    table: Floats | None
    """Weights of all these differences and the next one, if they are fewer than the candidates to be weighed."""
    above: Integers
    weights: Floats

    @classmethod
    def of(cls, rate: Fraction, costs: Integers, *, rows: int) -> "_Weights":
        """For so many rows at a time, with as many rows of costs or with one for all."""
        candidates = costs.shape[1]
        reach = min(int(_REACH // rate), _NEVER)
        short = reach < min(costs.size, _LONGEST)
        return cls(
            rate=float(rate),
            reach=reach,
            table=np.exp(np.arange(reach + 2) * -float(rate)) if short else None,
            above=np.empty(candidates * rows, dtype=np.int64),
            weights=np.empty(rounded_up(candidates) * rows),
        )

    def laid(self, costs: Integers, times: Times | None) -> EndToEnd:
        """The candidates of some rows.

        Costs are counted from the least of all. Only if that makes a row weigh so little that what is out of reach
        could matter, they are counted from the least of each row.
        """
        least, most = int(costs.min()), int(costs.max())
        line = self._laid(least, costs, times)
        if most - least > self.reach and float(line.whole.min()) < 0.5:
            rows = costs if times is None else np.broadcast_to(costs, times.shape)
            there = rows if times is None else np.where(times > 0, rows, _NEVER)
            line = self._laid(there.min(axis=1), rows, times)
        if not line.whole.all():
            raise _no_choice()
        return line

    def _laid(self, least: int | Integers, costs: Integers, times: Times | None) -> EndToEnd:
        lines, candidates = costs.shape if times is None else times.shape
        lengths = self.weights[: rounded_up(candidates) * lines].reshape(-1, lines)
        there = lengths[:candidates]
        if len(costs) == lines:
            self._weigh(least, costs, out=there)
            if times is not None:
                there *= times.T
        elif times is not None:
            there[:] = times.T
            there *= self._weigh(least, costs, out=np.empty((candidates, len(costs))))
        return EndToEnd.of(lengths, parts=candidates)

    def _weigh(self, least: int | Integers, costs: Integers, *, out: Floats) -> Floats:
        """The weights of single candidates, a column for every row of costs."""
        above = self.above[: costs.size].reshape(out.shape)
        turn(costs, above)
        if np.any(least):
            above -= least
        # What is not there may cost less than the least: clipped, its weight is 1 and not infinite, times 0.
        if self.table is not None:
            self.table.take(above, out=out, mode="clip")
        else:
            np.multiply(np.clip(above, 0, self.reach + 1, out=above), -self.rate, out=out)
            np.exp(out, out=out)
        return out


def _error(candidates: int) -> float:
    """By how large a share of the whole the ends of so many candidates may be off in the first pass, at most.

    A weight w·e^−x errs by at most (4x + 21)·w·e^−x units of 2^−52: by 341 of itself up to x = 80. Beyond, less than
    2^−71 is put for less than 2^−71, but only where the whole is 1/2 or more: that is 2^−18 of a unit of it. K of them
    added up err by 342 + K of the whole, in any order. U times the whole errs by as much and 2. 32K + 512 are taken.
    """
    return (32 * candidates + 512) * _UNIT


def _rows_at_a_time(candidates: int, *, shared: bool) -> int:
    # Where all rows share a weight, it takes twice as many to go without the buffer.
    rows = max(_CHUNK // max(candidates, 1), 2 * _ROWS if shared else _ROWS)
    return max(min(rows, _MOST // max(candidates, 1)), 1)


def _no_choice() -> ValueError:
    return ValueError("every row needs a candidate, and none stands for more than 2^44")


# A median by the exponential mechanism on a grid of whole numbers, for many groups at once, drawn exactly.

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
