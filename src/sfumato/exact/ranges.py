"""Ranges instead of numbers: a class for each cell, such that sums do not give the value away.

Classes are declared, and joined two by two, four by four and so on where wider ones are needed. So any two ranges of a
value are the same, apart, or one inside the other, in every table, period and revision: the narrower one is all that
both together tell. docs/methods/coarsening.md
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.errors import MethodError
from sfumato.exact.intervals import Intervals, prove_intervals
from sfumato.exact.system import System

_WHERE = "ranges"
_MOST_ROUNDS = 40


@dataclass(frozen=True)
class Classes:
    """Declared classes of whole numbers: zero, then from each bound to below the next, the last one without end.

    >>> Classes((1, 5, 10)).ranges(np.array([0, 3, 9, 70]), np.zeros(4, dtype=np.int64))[0].tolist()
    [0.0, 1.0, 5.0, 10.0]
    """

    bounds: tuple[int, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.bounds, self.bounds[1:], strict=False))
        if len(self.bounds) < 2 or self.bounds[0] != 1 or not rising:
            raise MethodError(
                _WHERE,
                expected="at least two rising bounds, the first of them 1",
                found=f"{list(self.bounds)}",
                do="give [1, 5, 10, 20, 50], say",
            )

    @classmethod
    def relative(cls, width: float, *, most: int) -> "Classes":
        """Classes whose upper end is about so many times the lower one, up to a public largest value.

        >>> Classes.relative(2, most=20)
        Classes(bounds=(1, 2, 4, 8, 16, 32))
        """
        if not width > 1:
            raise MethodError(_WHERE, expected="a width above 1", found=f"{width}", do="choose 1.5 or 2, say")
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
        zero = value == 0
        low = np.where(zero, 0.0, ends[np.maximum(first, 0)])
        high = np.where(zero, 0.0, ends[np.maximum(last, 0)] - 1)
        everything = joined > self.widest
        return np.where(everything, 0.0, low), np.where(everything, np.inf, high)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranged:
    """Which cells are shown as ranges, their ends, and the proof."""

    shown: Flags
    """Cells that are shown as numbers."""
    low: Floats
    high: Floats
    joined: Integers
    proof: Intervals

    @property
    def proved(self) -> bool:
        """Whether no sensitive cell can be worked out more closely than asked."""
        return self.proof.proved


def publish_ranges(
    system: System, classes: Classes, sensitive: Integers, lower: Floats, upper: Floats, *, everywhere: bool = False
) -> Ranged:
    """Ranges for sensitive cells, and for as few others as keep sums from narrowing them beyond what rules ask.

    What readers can work out of a cell of value x must hold everything from x − lower to x + upper. `everywhere` shows
    no number at all, so that tables look alike. Where a cell is left open, its range and those of its sums are joined
    to wider ones, until all pass or nothing is left to widen; `Ranged.proved` tells.
    """
    value = np.rint(system.value).astype(np.int64)
    if bool(np.any(value != system.value)) or bool(np.any(value < 0)):
        raise MethodError(
            _WHERE,
            expected="whole numbers of at least zero",
            found="others",
            do="give totals in a unit in which they are whole; classes have no negative values",
        )
    shown = np.full(len(value), not everywhere)
    shown[sensitive] = False
    joined = np.zeros(len(value), dtype=np.int64)
    low, high = lower.copy(), np.asarray(upper)
    for _ in range(_MOST_ROUNDS):
        ends = classes.ranges(value, joined)
        fixed = shown & ~system.hidden
        begin = np.where(fixed, value, np.where(system.hidden, system.lower, ends[0]))
        end = np.where(fixed, value, np.where(system.hidden, system.upper, ends[1]))
        known = system.with_bounds(lower=begin.astype(np.float64), upper=end.astype(np.float64))
        proof = prove_intervals(known, sensitive, np.minimum(low, (value - system.lower)[sensitive]), high)
        if proof.proved:
            break
        open_to = sensitive[proof.too_narrow]
        if not _widen(system, value, open_to, shown=shown, joined=joined, most=classes.widest + 1):
            break
    return Ranged(shown=shown, low=begin, high=end, joined=joined, proof=proof)


def _widen(system: System, value: Integers, cells: Integers, *, shown: Flags, joined: Integers, most: int) -> bool:
    """Hide a number in every sum that would tell a range near open cells; where there is none, join classes."""
    equations = system.equations
    number = shown & ~system.fixed & ~system.hidden
    ranged = ~shown & ~system.fixed & ~system.hidden
    ranges = np.asarray(abs(equations) @ ranged.astype(np.float64)).ravel()
    near = cells
    while True:
        rows = np.unique(system.by_cell[:, near].indices)
        # A sum with a single range tells it.
        if _hide(equations, rows[ranges[rows] == 1], number, value, shown):
            return True
        inside = np.unique(equations[rows].indices)
        then = np.union1d(near, inside[ranged[inside]])
        if len(then) == len(near):
            break
        near = then
    wider = near[joined[near] < most]
    joined[wider] += 1
    return len(wider) > 0 or _hide(equations, rows, number, value, shown)


def _hide(equations: Any, rows: Integers, number: Flags, value: Integers, shown: Flags) -> bool:
    """Turn the smallest number of each of some sums into a range."""
    before = int(shown.sum())
    for row in rows.tolist():
        inside = equations.indices[equations.indptr[row] : equations.indptr[row + 1]]
        numbers = inside[number[inside]]
        if len(numbers):
            shown[numbers[np.argmin(value[numbers])]] = False
    return int(shown.sum()) < before
