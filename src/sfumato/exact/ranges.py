"""Ranges instead of numbers: a class for each cell, such that sums do not give the value away.

Classes are declared, and joined two by two, four by four and so on where wider ones are needed. So any two ranges of a
value are the same, apart, or one inside the other, in every table, period and revision: the narrower one is all that
both together tell. docs/methods/ranges.md
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers
from sfumato.errors import MethodError
from sfumato.exact.intervals import Intervals, prove_intervals
from sfumato.exact.programs import NEAR, minimise
from sfumato.exact.proof import prove
from sfumato.exact.rules import Protection
from sfumato.exact.shares import NO_SHARES, Shares
from sfumato.exact.system import System

_WHERE = "ranges"
_NO_PAIRS: Integers = np.zeros((0, 2), dtype=np.int64)
_MOST_ROUNDS = 40
_LARGEST = 10**15
_HOPS = 3
"""How many sums away from an open cell others are shown as ranges, if that is enough."""
_REWARD = 1e5
"""What it is worth that an open cell moves: more than any range."""


@dataclass(frozen=True)
class Classes:
    """Declared classes of whole numbers: from each bound to below the next, the last one without end.

    Zero is a class of its own where the first bound is 1, and in the first class where it is 0.

    >>> Classes((1, 5, 10)).ranges(np.array([0, 3, 9, 70]), np.zeros(4, dtype=np.int64))[0].tolist()
    [0.0, 1.0, 5.0, 10.0]
    """

    bounds: tuple[int, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.bounds, self.bounds[1:], strict=False))
        if len(self.bounds) < 2 or self.bounds[0] not in (0, 1) or not rising:
            raise MethodError(
                _WHERE,
                expected="at least two rising bounds, the first of them 1, or 0 for a class with zero",
                found=f"{list(self.bounds)}",
                do="give [1, 5, 10, 20, 50], say",
            )

    @classmethod
    def relative(cls, width: float | Fraction, *, most: int = _LARGEST) -> "Classes":
        """Classes whose upper end is about so many times the lower one, up to a public largest value.

        >>> Classes.relative(2, most=20)
        Classes(bounds=(1, 2, 4, 8, 16, 32))
        """
        if not width >= Fraction(101, 100):
            raise MethodError(_WHERE, expected="a width from 1.01 on", found=f"{width}", do="choose 1.5 or 2, say")
        bounds = [1]
        while bounds[-1] <= most:
            bounds.append(max(bounds[-1] + 1, ceil(bounds[-1] * width)))
        return cls(tuple(bounds))

    @property
    def widest(self) -> int:
        """How many times classes can be joined until all of them are one."""
        return (len(self.bounds) - 1).bit_length()

    def ranges(self, value: Integers, joined: Integers) -> tuple[Floats, Floats]:
        """The ends of the range of every value, whose classes were joined so many times; zero stays zero.

        Joined once more than `widest`, zero is part of the range as well.
        """
        ends = np.append(np.array(self.bounds, dtype=np.float64), np.inf)
        place = np.searchsorted(ends[:-1], value, side="right") - 1
        power = np.minimum(joined, self.widest)
        first = (place >> power) << power
        last = np.minimum(first + (np.int64(1) << power), len(self.bounds))
        zero = value < self.bounds[0]
        low = np.where(zero, 0.0, ends[np.maximum(first, 0)])
        high = np.where(zero, 0.0, ends[np.maximum(last, 0)] - 1)
        everything = joined > self.widest
        return np.where(everything, 0.0, low), np.where(everything, np.inf, high)

    def joined(self, value: Integers, low: Floats, high: Floats) -> Integers:
        """How many times classes were joined for ranges that were published of some values; −1 where none fits.

        >>> classes = Classes((1, 5, 10, 20))
        >>> classes.joined(np.array([3, 3]), np.array([1.0, 2.0]), np.array([9.0, 9.0])).tolist()
        [1, -1]
        """
        found = np.full(len(value), -1, dtype=np.int64)
        for times in range(self.widest + 1, -1, -1):
            ends = self.ranges(value, np.full(len(value), times))
            found[(ends[0] == low) & (ends[1] == high)] = times
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranged:
    """Which cells are shown as ranges, their ends, and the proof."""

    shown: Flags
    """Cells that are shown as numbers."""
    low: Floats
    high: Floats
    joined: Integers
    proof: Intervals
    pairs: Integers
    """Sensitive cells with owners of others who know them better than they should; one in a row."""

    @property
    def proved(self) -> bool:
        """Whether no sensitive cell can be worked out more closely than asked, by readers or lone contributors."""
        return self.proof.proved and not len(self.pairs)

    @property
    def open(self) -> Integers:
        """The sensitive cells that somebody can work out more closely than asked."""
        return np.union1d(self.proof.cells[self.proof.too_narrow], self.pairs[:, 0])


def publish_ranges(
    system: System,
    classes: Classes,
    sensitive: Integers,
    lower: Floats,
    upper: Floats,
    *,
    everywhere: bool = False,
    parts: int = 1,
    seen: System | None = None,
    joined: Integers | None = None,
    owner: Integers | None = None,
    shares: Shares = NO_SHARES,
    told: Callable[[float], None] = lambda _: None,
) -> Ranged:
    """Ranges for sensitive cells, and for as few others as keep sums from narrowing them beyond what rules ask.

    What readers can work out of a cell of value x must hold everything from x − lower to x + upper. `everywhere` shows
    no number at all but zeros that everybody knows, so that tables look alike. Where a cell is left open, its range and
    those of its sums are joined to wider ones, until all pass or nothing is left to widen; `Ranged.proved` tells.

    `parts` make one of what is published, which is rounded to whole ones. `seen` has the bounds that readers of earlier
    releases know, and `joined` how often classes were joined in those, −1 for cells that they do not have; a range is
    never narrower than it was. `owner` says of every cell who contributes alone to it and so knows it, −1 being nobody:
    to them, too, every sensitive cell of others is left what is asked, but for what their own `shares` of it tell them.
    `told` hears of the share of all rounds that are done.
    """
    value = np.rint(system.value).astype(np.int64)
    if bool(np.any(value != system.value)) or bool(np.any(value < 0)):
        raise MethodError(
            _WHERE,
            expected="whole numbers of at least zero",
            found="others",
            do="give totals in a unit in which they are whole; classes have no negative values",
        )
    seen, whole = system if seen is None else seen, (value + parts // 2) // parts
    before = np.full(len(value), -1, dtype=np.int64) if joined is None else joined
    shown = (before < 0) & (not everywhere)
    shown[sensitive] = False
    shown |= seen.fixed
    joined = np.maximum(before, 0)
    down, up = np.minimum(lower, (value - system.lower)[sensitive]), np.asarray(upper)
    contributors = _Alone(
        before=system,
        owner=np.full(len(value), -1) if owner is None else owner,
        shares=shares,
        cells=sensitive,
        down=down,
        up=up,
    )
    for turn in range(_MOST_ROUNDS):
        told(turn / _MOST_ROUNDS)
        low, high = classes.ranges(whole, joined)
        known = bounded(seen, shown | (low == high), low, high, parts)
        proof = prove_intervals(known, sensitive, down, up)
        pairs = contributors.open(known) if proof.proved else _NO_PAIRS
        if proof.proved and not len(pairs):
            break
        wider = _Wider(seen=seen, classes=classes, whole=whole, parts=parts, shown=shown, joined=joined)
        narrow = proof.too_narrow
        changed = bool(narrow.any()) and wider.open(sensitive[narrow], down[narrow], up[narrow])
        for cell, reader in pairs.tolist():
            place = np.flatnonzero(sensitive == cell)
            knowing = replace(wider, seen=contributors.known_to(reader, seen))
            changed |= knowing.open(sensitive[place], down[place], up[place])
        if not changed:
            break
    number = shown | (low == high)  # a range of one number is a number
    return Ranged(
        shown=number,
        low=np.where(number, whole, low),
        high=np.where(number, whole, high),
        joined=joined,
        proof=proof,
        pairs=pairs,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Alone:
    """Who contributes alone to which cell, and what the sensitive ones of others have to be left."""

    before: System
    owner: Integers
    shares: Shares
    cells: Integers
    down: Floats
    up: Floats

    def open(self, known: System) -> Integers:
        """Sensitive cells with readers who know too much of them, given what everybody knows."""
        if not bool(np.any((self.owner >= 0) & ~known.fixed)):
            return _NO_PAIRS
        down, up = np.zeros(len(known)), np.zeros(len(known))
        down[self.cells], up[self.cells] = np.maximum(self.down, 0.0), np.maximum(self.up, 0.0)
        none = np.zeros(len(known), dtype=np.int64)
        needs = Protection(sensitive=down + up > 0, reasons=none, down=down, up=up, owner=self.owner)
        return prove(known, ~known.fixed, needs, shares=self.shares, before=self.before).pairs

    def known_to(self, reader: int, seen: System) -> System:
        """What such a reader knows besides: the cells that are the reader's alone."""
        own = self.owner == reader
        return seen.with_bounds(lower=np.where(own, seen.value, -np.inf), upper=np.where(own, seen.value, np.inf))


def bounded(system: System, shown: Flags, low: Floats, high: Floats, parts: Integers | int = 1) -> System:
    """What readers know once numbers and ranges of whole units are published of cells that are counted in parts.

    Of a number they are taken to know all parts.
    """
    told, half = shown & ~system.hidden, np.asarray(parts) // 2
    begin, end = low * parts - half, high * parts + (np.asarray(parts) - 1 - half)
    return system.with_bounds(
        lower=np.where(told, system.value, np.where(system.hidden, -np.inf, begin)),
        upper=np.where(told, system.value, np.where(system.hidden, np.inf, end)),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Wider:
    """What each cell is shown as, and how far it could move if it were shown less closely."""

    seen: System
    classes: Classes
    whole: Integers
    parts: int
    shown: Flags
    joined: Integers

    def open(self, cells: Integers, down: Floats, up: Floats) -> bool:
        """Show some cells as ranges, or wider ones, so that open cells can move as far as asked; whether any was.

        The cheapest shift of all cells tells which: to move within what is shown costs nothing, beyond it the more the
        wider the range has to become, and the larger the number is that it takes the place of.
        """
        changed = self._own(cells, down, up)
        for hops in (_HOPS, len(self.whole)):
            near = self._near(cells, hops)
            for sign, wants in ((1, up), (-1, down)):
                changed |= self._shift(near, cells, sign, wants)
            if changed:
                return True
        return False

    def _own(self, cells: Integers, down: Floats, up: Floats) -> bool:
        """Join the classes of open cells until they hold by themselves what is asked."""
        before = self.joined[cells]
        for times in range(self.classes.widest + 1):
            below, above = self._room(cells, np.maximum(times, self.joined[cells]))
            tight = (below < down - NEAR) | (above < up - NEAR)
            self.joined[cells[tight]] = np.maximum(self.joined[cells[tight]], times + 1)
        return bool(np.any(self.joined[cells] > before))

    def _room(self, cells: Integers, joined: Integers) -> tuple[Floats, Floats]:
        """How far cells can move down and up within ranges, and what readers know already."""
        low, high = self.classes.ranges(self.whole[cells], joined)
        half = self.parts // 2
        value = self.seen.value[cells]
        below = value - np.maximum(low * self.parts - half, self.seen.lower[cells])
        above = np.minimum(high * self.parts + (self.parts - 1 - half), self.seen.upper[cells]) - value
        most = 4 * float(np.abs(self.seen.value).max(initial=1.0)) + 4 * self.parts * self.classes.bounds[1]
        return np.minimum(below, most), np.minimum(above, most)

    def _near(self, cells: Integers, hops: int) -> Integers:
        """The cells that share sums with some, or sums with those, and so on."""
        near = cells
        for _ in range(hops):
            rows = np.unique(self.seen.by_cell[:, near].indices)
            further = np.unique(self.seen.equations[rows].indices)
            further = further[~self.seen.fixed[further]]
            if len(further) == len(near):
                break
            near = np.union1d(further, cells)
        return near

    def _shift(self, near: Integers, cells: Integers, sign: int, wants: Floats) -> bool:
        """Widen what the cheapest shift goes beyond that moves open cells as far as asked in one direction."""
        scale = max(float(wants.max(initial=0.0)), 1.0)
        place, aims = np.searchsorted(near, cells), wants > 0
        seen, hidden = self.shown[near], self.seen.hidden[near]
        low = np.where(hidden, np.minimum(self.seen.freedom[0][near], 1e15), 0.0)
        high = np.where(hidden, np.minimum(self.seen.freedom[1][near], 1e15), 0.0)
        below, above = self._room(near, self.joined[near])
        low, high = np.where(seen | hidden, low, below), np.where(seen | hidden, high, above)
        low[place], high[place] = 0.0, 0.0
        size = np.abs(self.seen.value[near])
        usual = float(np.median(size[size > 0])) if bool(np.any(size > 0)) else 1.0
        dear = 1.0 + 0.5 * np.log2(1.0 + size / usual)  # totals stay numbers rather than small cells
        steps, last = [], (low, high)
        for times in range(self.classes.widest + 2):
            joined = np.minimum(self.joined[near] + times, self.classes.widest + 1)
            room = self._room(near, joined)
            for side, sense in ((0, -1.0), (1, 1.0)):
                extra = np.where(hidden, 0.0, np.maximum(room[side] - last[side], 0.0))
                extra[place] = 0.0
                steps.append((times, sense, extra, (2.0**times) * dear / scale))
            last = (np.maximum(room[0], last[0]), np.maximum(room[1], last[1]))
        columns = self.seen.by_cell[:, near]
        target = columns[:, place[aims]]
        kept = [np.flatnonzero(extra > NEAR) for _, _, extra, _ in steps]
        found = minimise(
            sparse.hstack(
                [
                    columns,
                    sign * target,
                    *(sense * columns[:, at] for at, (_, sense, _, _) in zip(kept, steps, strict=True)),
                ],
                format="csc",
            ),
            cost=np.concatenate(
                [
                    np.zeros(len(near)),
                    -_REWARD / wants[aims],
                    *(cost[at] for at, (*_, cost) in zip(kept, steps, strict=True)),
                ]
            ),
            lower=np.concatenate([-low, np.zeros(int(aims.sum()) + sum(map(len, kept)))]),
            upper=np.concatenate(
                [high, wants[aims], *(extra[at] for at, (_, _, extra, _) in zip(kept, steps, strict=True))]
            ),
        )
        begin, changed = len(near) + int(aims.sum()), False
        level = np.full(len(near), -1, dtype=np.int64)
        for at, (times, *_) in zip(kept, steps, strict=True):
            used = found[begin : begin + len(at)] > NEAR * scale
            level[at[used]] = np.maximum(level[at[used]], times)
            begin += len(at)
        wider = near[level >= 0]
        if len(wider):
            self.shown[wider] = False
            self.joined[wider] = np.minimum(self.joined[wider] + level[level >= 0], self.classes.widest + 1)
            changed = True
        return changed
