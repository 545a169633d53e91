"""Rounding where linear programs give fractions: a search over the finest cells, then programs for parts of the table.

Only the finest cells are decided, each down or up; every sum follows, so that all of them hold. A sum that is not next
to the truth is a fault. Many cells are moved at a time, those first that mend most; what faults are left then are
mended, and the table brought nearer to the truth, by programs in whole numbers for some hundred cells each. None of
these ever leads to more faults.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import as_whole, solve

_WIDE = 400
"""Sums of more cells than this may take as many up as down in one round."""
_SHARE = 0.005
"""What distance from the truth counts beside a fault, in multiples of the base, while faults are mended."""
_FAULT = 20.0
"""What a fault costs in the programs, in multiples of the base: more than moving any few cells."""
_NODES = 20
_PART = 300
"""How many finest cells a program in whole numbers decides."""
_TRIES = 25
"""After how many programs about the same sum nothing more is expected."""
_PATIENCE = 4
"""How many times as many programs are tried while there are faults."""
_REST = 6
"""For how many rounds a cell that moved stays, so that cells do not go to and fro."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Finest:
    """A system seen from its finest cells: every other cell is a sum of some of them."""

    cells: Integers
    sums: Integers
    matrix: Any
    """One row for each sum, one column for each finest cell."""

    @classmethod
    def of(cls, equations: Any) -> "Finest | None":
        """The finest cells of a system, or None where its equations also tie finest cells to each other."""
        rows, n = equations.shape[0], equations.shape[1]
        listed = equations.tocoo()
        parent = np.full(rows, -1, dtype=np.int64)
        parent[listed.row[listed.data < 0]] = listed.col[listed.data < 0]
        first = np.full(n, -1, dtype=np.int64)
        first[parent[::-1]] = np.arange(rows)[::-1]
        sums, cells = np.flatnonzero(first >= 0), np.flatnonzero(first < 0)
        parts = equations[first[sums]].multiply(equations[first[sums]] > 0).tocsr()
        step = sparse.csr_matrix((np.ones(len(sums)), (sums, np.arange(len(sums)))), shape=(n, len(sums))) @ parts
        layer = sparse.csr_matrix((np.ones(len(cells)), (cells, np.arange(len(cells)))), shape=(n, len(cells)))
        whole = layer
        while (layer := step @ layer).nnz:
            whole = whole + layer
        # Every equation must follow from those that define the sums: spread numbers would show one that does not.
        spread = _spread(len(cells), 1)
        if rows and float(np.abs(equations @ (whole @ spread)).max()) > 1e-6:
            return None
        return cls(cells=cells, sums=sums, matrix=whole[sums].tocsr())


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """Which finest cells may go up, what sums are next to the truth, and what a step costs in multiples of the base."""

    finest: Finest
    free: Flags
    low: Integers
    high: Integers
    cell_cost: Floats
    sum_cost: Floats

    @classmethod
    def of(cls, finest: Finest, value: Integers, base: int) -> "Choice":
        """The choices of rounding to a base; the cost of going up is what it adds to the distance from the truth."""
        down, rest = value // base, value % base
        low = down[finest.sums] - as_whole(finest.matrix @ down[finest.cells])
        cost = (base - 2.0 * rest) / base
        return cls(
            finest=finest,
            free=rest[finest.cells] > 0,
            low=low,
            high=low + (rest[finest.sums] > 0),
            cell_cost=cost[finest.cells],
            sum_cost=cost[finest.sums],
        )

    def only(self, some: Flags) -> "Choice":
        """The same while other cells stay."""
        return replace(self, free=self.free & some)

    def faults(self, sums: Integers) -> Integers:
        """How far every sum is from being next to the truth."""
        apart: Integers = np.maximum(self.low - sums, 0) + np.maximum(sums - self.high, 0)
        return apart

    def cost_of_sums(self, sums: Integers, which: Integers) -> Floats:
        """Faults and distance of some sums together: what no program may raise."""
        low, high = self.low[which], self.high[which]
        apart = np.maximum(low - sums, 0) + np.maximum(sums - high, 0)
        cost: Floats = apart * (1 + _FAULT) + self.sum_cost[which] * (np.clip(sums, low, high) - low)
        return cost


def search(choice: Choice, up: Integers, *, rounds: int, steps: int, told: Callable[[float], None]) -> Integers:
    """Ups of the finest cells with as few faults as are found, and then near the truth.

    `rounds` moves many cells at a time, `steps` are programs; `told` hears of the share that is done.
    """
    up = _mend(choice, up.copy(), rounds=rounds, told=lambda share: told(share / 2))
    return _improve(choice, up, steps=steps, told=lambda share: told((1 + share) / 2))


def _mend(choice: Choice, up: Integers, *, rounds: int, told: Callable[[float], None]) -> Integers:
    matrix, transposed = choice.finest.matrix, choice.finest.matrix.T.tocsr()
    wide = np.diff(matrix.indptr) > _WIDE
    sums, weight = as_whole(matrix @ up), np.ones(matrix.shape[0])
    best, fewest = up, np.inf
    moved = np.full(len(up), -_REST)
    for turn in range(rounds):
        faults = choice.faults(sums)
        if (number := int(faults.sum())) < fewest:
            best, fewest = up.copy(), number
        if not number:
            break
        told(turn / rounds)
        gain = _gains(choice, transposed, up, sums, weight)
        movable = np.flatnonzero(choice.free & (gain < -_SHARE / 2) & (turn - moved >= _REST))
        if not len(movable):
            weight[faults > 0] += 1  # a way out of a place where no single move helps
            continue
        order = np.argsort(gain[movable] * (0.5 + _spread(len(up), turn + 2)[movable]), kind="stable")
        chosen = _together(choice, transposed, movable[order], up=up, sums=sums, wide=wide)
        moved[chosen] = turn
        change = 1 - 2 * up[chosen]
        up[chosen] += change
        sums += as_whole(transposed[chosen].T @ change)
    return best


def _gains(choice: Choice, transposed: Any, up: Integers, sums: Integers, weight: Floats) -> Floats:
    """What moving each cell the other way would add: weighted faults, and a little for distance."""
    more = np.where(sums < choice.low, -weight, np.where(sums >= choice.high, weight, 0.0))
    less = np.where(sums > choice.high, -weight, np.where(sums <= choice.low, weight, 0.0))
    open_to = choice.high > choice.low
    more += _SHARE * np.where(open_to & (sums == choice.low), choice.sum_cost, 0.0)
    less -= _SHARE * np.where(open_to & (sums == choice.high), choice.sum_cost, 0.0)
    cost = _SHARE * choice.cell_cost
    found: Floats = np.where(up == 0, transposed @ more + cost, transposed @ less - cost)
    return found


def _together(
    choice: Choice, transposed: Any, cells: Integers, *, up: Integers, sums: Integers, wide: Flags
) -> Integers:
    """Of cells in order those that can move at once: in each sum as many as it lacks, and at least one."""
    rows = transposed[cells]
    which, of, rising = np.repeat(np.arange(len(cells)), np.diff(rows.indptr)), rows.indices, up[cells] == 0
    n = len(sums)
    rise = np.bincount(of, weights=rising[which], minlength=n)
    fall = np.bincount(of, minlength=n) - rise
    even = np.where(wide, np.minimum(rise, fall), 0)
    most_up = np.maximum(even + np.maximum(choice.low - sums, 0), 1)
    most_down = np.maximum(even + np.maximum(sums - choice.high, 0), 1)
    group = of.astype(np.int64) * 2 + rising[which]
    order = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    most = np.where(rising[which], most_up[of], most_down[of])[order]
    kept = np.ones(len(cells), dtype=bool)
    kept[which[order][rank >= most]] = False
    kept[0] |= not kept.any()
    return cells[kept]


def _improve(choice: Choice, up: Integers, *, steps: int, told: Callable[[float], None]) -> Integers:
    """Programs for parts of the table: those with faults first, then those farthest from the truth."""
    matrix, transposed = choice.finest.matrix, choice.finest.matrix.T.tocsr()
    narrow = np.flatnonzero(np.diff(matrix.indptr) <= _WIDE)
    up, sums, tried = up.copy(), as_whole(matrix @ up), np.zeros(matrix.shape[0])
    for turn in range(_PATIENCE * steps):
        faults = choice.faults(sums)
        if turn >= steps and not faults.any():
            break
        told(turn / (_PATIENCE * steps))
        regret = np.where(up == 1, choice.cell_cost, -choice.cell_cost).clip(0) * choice.free
        score = (matrix @ regret + _FAULT * faults) / (1 + tried)
        if not len(narrow) or not float(score.max()) > 0:
            break
        # A wide sum is mended in its narrow parts: the one that is farthest from the truth.
        at = int(np.argmax(score)) if faults.any() else int(narrow[np.argmax(score[narrow])])
        tried[at] += 1
        some = np.flatnonzero(choice.free)
        whole = len(some) <= _PART
        if not whole:
            some = _around(choice, matrix, transposed, at, turn, size=_PART)
        found = _part(choice, transposed, some, up, sums)
        if found is None:
            found = up[some]
        some, change = some[found != up[some]], (found - up[some])[found != up[some]]
        touched = np.unique(transposed[some].indices)
        move = as_whole(transposed[some][:, touched].T @ change)
        before = choice.cost_of_sums(sums[touched], touched)
        after = choice.cost_of_sums(sums[touched] + move, touched)
        if float(after.sum() - before.sum() + choice.cell_cost[some] @ change) < -1e-9:
            up[some] += change
            sums[touched] += move
            tried[touched] *= 0.5
        if whole or tried[at] > _TRIES:
            break
    return up


def _around(choice: Choice, matrix: Any, transposed: Any, at: int, turn: int, *, size: int) -> Integers:
    """Some hundred cells about a sum, those first that share most sums with cells that are there already."""
    spread = _spread(matrix.shape[1], turn + 5)
    near = matrix[at].indices
    near = near[:: max(len(near) // 4096, 1)]
    near = near[choice.free[near]]
    near = near[np.argsort(spread[near], kind="stable")][: size // 8]
    length = np.diff(matrix.indptr)
    for share in (0.5, 1.0):
        touched, times = np.unique(transposed[near].indices, return_counts=True)
        small = length[touched] <= _WIDE
        touched, times = touched[small], times[small]
        order = np.lexsort((spread[touched % len(spread)], -times))[: size // 4]
        listed = matrix[touched[order]]
        cells, shared = np.unique(listed.indices, return_counts=True)
        mine = choice.free[cells]
        cells, shared = cells[mine], shared[mine]
        first = np.lexsort((spread[cells], -shared))[: int(size * share)]
        near = np.unique(np.concatenate([near, cells[first]]))
    found: Integers = near.astype(np.int64)
    return found


def _part(choice: Choice, transposed: Any, some: Integers, up: Integers, sums: Integers) -> Integers | None:
    """The best ups of some cells while all others stay."""
    if not len(some):
        return None
    columns = transposed[some]
    touched = np.unique(columns.indices)
    block = columns[:, touched].T.tocsr()
    rest = sums[touched] - as_whole(block @ up[some])
    n, m = len(some), len(touched)
    unit = sparse.identity(m, format="csr")
    within = (choice.high - choice.low)[touched]
    solved = solve(
        sparse.hstack([block, -unit, -unit, unit], format="csr"),
        (choice.low[touched] - rest).astype(np.float64),
        cost=np.concatenate([choice.cell_cost[some], choice.sum_cost[touched], np.full(2 * m, 1 + _FAULT)]),
        upper=np.concatenate([np.ones(n), within.astype(np.float64), np.full(2 * m, np.inf)]),
        whole=np.concatenate([np.ones(n, dtype=bool), np.zeros(3 * m, dtype=bool)]),
        nodes=_NODES,
    )
    return None if solved is None else as_whole(solved.value[:n])


def _spread(number: int, turn: int) -> Floats:
    """A number from 0 to 1 for each place, another one in every turn, alike on every machine."""
    words = np.arange(number, dtype=np.uint64) + np.uint64(turn * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    found: Floats = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found
