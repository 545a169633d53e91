"""Numbers rounded to multiples of a base: controlled, so that all tables still add up, and plain and random to compare.

Of a true value x, a multiple of the base next to it is one of the two around it, and x itself where x is one. Going up
instead of down adds base − 2·(x mod base) to the distance from the truth, so that the nearest rounding with all sums is
a program in zeros and ones, whose linear relaxation has a solution: the true remainders. In two ways, one of them with
levels, its vertices are whole numbers, and the rounding exists and is the nearest. docs/methods/rounding.md
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers, Words
from sfumato.errors import MethodError
from sfumato.exact.intervals import Intervals, prove_intervals
from sfumato.exact.programs import as_whole, fractional, solve
from sfumato.exact.rounding_search import Choice, Finest, search
from sfumato.exact.system import System

_WHERE = "rounding"
_EXACTLY = 1_500
"""Programs in whole numbers of up to so many cells are solved as they are."""
_RELAXED = 60_000
"""Linear programs of up to so many cells in three ways and more are solved; larger tables are searched at once."""
_NODES = 2_000
_LARGEST = 2**52


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounded:
    """Rounded numbers of every cell of a system, and how they lie to the truth; all but the numbers is confidential."""

    base: int
    value: Integers
    distance: int
    """The sum of absolute differences from the truth."""
    least: float
    """What no rounding next to the truth with all sums can be below; minus infinity where it was not worked out."""
    nearest: bool
    """Whether no other rounding with all sums is nearer."""
    beyond: Integers
    """The cells that are not next to the truth; none, if the rounding is zero-restricted."""
    farthest: int
    """The largest difference from the truth."""

    @property
    def reach(self) -> int:
        """How far from the truth a number may be at most, as readers are told: below the base, or a multiple of it."""
        return (self.farthest // self.base + 1) * self.base - 1

    @property
    def zero_restricted(self) -> bool:
        """Whether every number is one of the two multiples around the truth, and multiples stay."""
        return not len(self.beyond)


def controlled_rounding(
    system: System,
    base: int,
    *,
    rounds: int = 3_000,
    steps: int = 200,
    told: Callable[[float], None] = lambda _: None,
) -> Rounded:
    """Multiples of a base next to the truth, with every sum of the system, as near to the truth as is found.

    The same system always rounds alike. `rounds` and `steps` bound the search where linear programs give fractions,
    `told` hears of the share of all that is done. Where no rounding next to the truth is found, `beyond` has the cells
    that are farther away.
    """
    value = whole_values(system, base)
    rest = value % base
    up = np.zeros(len(value), dtype=np.int64)
    open_to = np.flatnonzero(rest > 0)
    three_ways = int(np.bincount(system.equations.indices[system.equations.data > 0], minlength=1).max()) > 2
    least, nearest = -np.inf, True
    uncertain = np.ones(len(open_to), dtype=bool)
    cost = np.where(system.hidden, 0.0, base - 2.0 * rest)
    if not three_ways or len(open_to) <= _RELAXED:
        matrix, right = _program(system.equations, value // base, open_to)
        solved = solve(
            matrix, right, cost=cost[open_to], upper=np.ones(len(open_to)), interior=three_ways and len(open_to) > 5_000
        )
        assert solved is not None
        up[open_to] = as_whole(solved.value)
        least = float(rest[~system.hidden].sum()) + solved.least
        uncertain = _in_parts_of(matrix, fractional(solved.value))
    parts = _small_parts(system.equations, open_to, uncertain)
    for turn, part in enumerate(parts):
        told(0.5 * turn / len(parts))
        found = _exactly(system, value, base, cost, part)
        if found is not None:
            up[part], best = found
            nearest &= best
            uncertain[np.searchsorted(open_to, part)] = False
    if uncertain.any():
        nearest = False
        up = _searched(
            system,
            value,
            base,
            up,
            open_to[uncertain],
            rounds=rounds,
            steps=steps,
            told=lambda share: told((1 + share) / 2),
        )
    return _rounded(system, value, base, (value // base + up) * base, least=least, nearest=nearest)


def plain_rounding(value: Integers, base: int) -> Integers:
    """Every number to its nearest multiple, halves up; sums need not hold.

    >>> plain_rounding(np.array([0, 1, 2, 5, 7]), 5).tolist()
    [0, 0, 0, 5, 5]
    """
    checked_base(base)
    found: Integers = (2 * value + base) // (2 * base) * base
    return found


def random_rounding(value: Integers, base: int, words: Words) -> Integers:
    """Every number up or down by chance, such that it is right on average; sums need not hold.

    `words` are keyed words of the cells (`sfumato.noise.keyed.CellWords`), so that the same cell rounds alike. A word
    decides by its remainder mod the base, which is even but for less than base/2⁶⁴.
    """
    checked_base(base)
    rest = value % base
    found: Integers = value - rest + base * ((words % np.uint64(base)).astype(np.int64) < rest)
    return found


def known_after_rounding(system: System, published: Integers, *, below: int, above: int) -> System:
    """What readers know once rounded numbers are published: a value is at most so far below and above its number.

    Both are `Rounded.reach` for controlled rounding, base − 1 for random, `plain_reach` for plain rounding.
    """
    seen = ~system.hidden
    return system.with_bounds(
        lower=np.where(seen, published - float(below), -np.inf), upper=np.where(seen, published + float(above), np.inf)
    )


def plain_reach(base: int) -> tuple[int, int]:
    """How far below and above its nearest multiple a whole number can be.

    >>> plain_reach(5), plain_reach(10)
    ((2, 2), (5, 4))
    """
    return base // 2, (base - 1) // 2


def prove_rounding(
    system: System, published: Integers, *, below: int, above: int, cells: Integers, lower: Floats, upper: Floats
) -> Intervals:
    """Whether rounded numbers and all sums leave readers with intervals as wide as rules ask, for some cells.

    Rules ask that the interval of a cell of value x holds everything from x − lower to x + upper, as those of
    suppression do (`sfumato.exact.rules`); nothing below what is possible at all, such as zero, is asked.
    """
    known = known_after_rounding(system, published, below=below, above=above)
    return prove_intervals(known, cells, np.minimum(lower, (system.value - system.lower)[cells]), upper)


def checked_base(base: int) -> None:
    """Refuse a base that rounds nothing."""
    if not 2 <= base <= _LARGEST:
        raise MethodError(_WHERE, expected="base ≥ 2", found=f"base = {base}", do="choose 3, 5, 10 or 100, say")


def whole_values(system: System, base: int) -> Integers:
    """The true values as whole numbers, with a base that can round them."""
    checked_base(base)
    whole = np.rint(system.value)
    if bool(np.any(whole != system.value)) or float(np.abs(whole).max(initial=0)) > _LARGEST:
        raise MethodError(
            _WHERE,
            expected="whole numbers of at most fifteen digits",
            found="others",
            do="give totals in a unit in which they are whole, such as cents",
        )
    return as_whole(whole)


def _program(equations: Any, down: Integers, open_to: Integers) -> tuple[Any, Floats]:
    """The equations of ups of some cells."""
    matrix = equations[:, open_to].tocsr()
    right = -(equations @ down).astype(np.float64)
    kept = np.diff(matrix.indptr) > 0
    return matrix[kept], right[kept]


def _in_parts_of(matrix: Any, flags: Flags) -> Flags:
    """All columns that equations tie to flagged ones."""
    label = _labels(matrix)
    return np.isin(label, np.unique(label[flags]))


def _labels(matrix: Any) -> Integers:
    rows, columns = matrix.shape
    graph = sparse.bmat([[None, matrix], [matrix.T, None]], format="csr") if rows else sparse.csr_matrix((columns,) * 2)
    _, label = sparse.csgraph.connected_components(graph, directed=False)
    found: Integers = label[rows:].astype(np.int64)
    return found


def _small_parts(equations: Any, open_to: Integers, uncertain: Flags) -> list[Integers]:
    """Cells in parts that no equation ties together, of those that are small enough to be solved as they are."""
    cells = open_to[uncertain]
    if not len(cells):
        return []
    label = _labels(equations[:, cells].tocsr())
    order = np.argsort(label, kind="stable")
    parts = np.split(cells[order], np.flatnonzero(np.diff(label[order])) + 1)
    return [part for part in parts if len(part) <= _EXACTLY]


def _exactly(system: System, value: Integers, base: int, cost: Floats, part: Integers) -> tuple[Integers, bool] | None:
    """Ups of a small part, and whether they are the nearest; None where none was found next to the truth."""
    matrix, right = _program(system.equations, value // base, part)
    ones = np.ones(len(part))
    solved = solve(matrix, right, cost=cost[part], upper=ones, whole=ones.astype(bool), nodes=_NODES)
    return None if solved is None else (as_whole(solved.value), solved.best)


def _searched(
    system: System,
    value: Integers,
    base: int,
    up: Integers,
    uncertain: Integers,
    *,
    rounds: int,
    steps: int,
    told: Callable[[float], None],
) -> Integers:
    """Ups where programs found none: by search over the finest cells, or by steps of several multiples."""
    finest = Finest.of(system.equations)
    if finest is None:
        return _farther(system, value, base, up, uncertain)
    choice = Choice.of(finest, value, base)
    searched = np.zeros(len(value), dtype=bool)
    searched[uncertain] = True
    choice = choice.only(searched[finest.cells])
    begin = np.where(searched, (2 * (value % base) > base).astype(np.int64), up) if not up.any() else up
    found = search(choice, begin[finest.cells], rounds=rounds, steps=steps, told=told)
    moved = up.copy()
    moved[finest.cells] = found
    moved[finest.sums] = as_whole(finest.matrix @ found) - choice.low
    return moved


def _farther(system: System, value: Integers, base: int, up: Integers, uncertain: Integers) -> Integers:
    """Ups of tables that share sums without a table of all: whole numbers, beyond the next one as little as can be."""
    label = np.zeros(len(value), dtype=bool)
    label[uncertain] = True
    cells = np.flatnonzero(label | ~system.fixed)  # a multiple may have to move as well
    matrix = system.equations[:, cells].tocsr()
    right = -(system.equations @ (value // base)).astype(np.float64)
    rest = (value % base)[cells]
    price = np.where(system.hidden[cells], 0.0, 1.0)
    room = np.where(system.lower[cells] >= 0, (value // base)[cells], np.inf).astype(np.float64)
    n = len(cells)
    solved = solve(
        sparse.hstack([matrix, matrix, -matrix], format="csr"),
        right,
        cost=np.concatenate([price * (base - 2.0 * rest), np.repeat([1.0], 2 * n) * np.tile(price, 2) * 21.0 * base]),
        upper=np.concatenate([(rest > 0).astype(np.float64), np.full(n, np.inf), room]),
        whole=np.ones(3 * n, dtype=bool),
        nodes=_NODES,
    )
    if solved is None:
        raise MethodError(
            _WHERE,
            expected="tables of which one rounding has all sums",
            found="none within the search",
            do="publish a table by all attributes that these tables share, or choose a smaller base",
        )
    steps = as_whole(solved.value)
    moved = np.zeros_like(up)
    moved[cells] = steps[:n] + steps[n : 2 * n] - steps[2 * n :]
    return moved


def _rounded(system: System, value: Integers, base: int, found: Integers, *, least: float, nearest: bool) -> Rounded:
    """The rounding with its measures, after every sum was checked."""
    if bool(np.any(system.equations @ found)) or bool(np.any(found % base)):
        raise AssertionError("a rounding without all sums")
    seen = ~system.hidden
    apart = np.abs(found - value)
    beyond = np.flatnonzero(seen & ((apart >= base) | ((value % base == 0) & (apart > 0))))
    return Rounded(
        base=base,
        value=found,
        distance=int(apart[seen].sum()),
        least=least,
        nearest=nearest and not len(beyond),
        beyond=beyond,
        farthest=int(apart[seen].max(initial=0)),
    )
