"""What readers can work out who know bounds of every cell and every sum, and the proof that it is little enough.

Tables that readers cannot tell from the true one are x + d with A·d = 0 and d within what the bounds leave. One such
shift shows for many cells at once that they may be as high, or as low, as a rule asks; only cells that no common shift
serves need a linear program of their own. Programs know nothing of whole numbers: docs/methods/rounding.md says what
that leaves open.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.rounding_programs import NEAR, solve
from sfumato.exact.system import System

_TOGETHER = 24
"""How many shifts for many cells are tried before single cells get programs of their own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """For some cells a low and a high value that tables have which readers cannot tell from the true one."""

    cells: Integers
    low: Floats
    high: Floats
    exact: Flags
    """Whether the two are the ends of the interval, and not only within it."""
    too_narrow: Flags
    """Cells whose interval does not hold what was asked for."""

    @property
    def proved(self) -> bool:
        """Whether every cell has the interval that was asked for."""
        return not bool(self.too_narrow.any())


def reader_intervals(known: System, cells: Integers) -> Intervals:
    """The ends of the interval of each of some cells, by two linear programs for each.

    `known` has the bounds that readers know of every cell, after everything was published.
    """
    low, high = known.value[cells].copy(), known.value[cells].copy()
    down, up = _reach(known)
    solver = _Single(known, down, up)
    for at, cell in enumerate(cells.tolist()):
        low[at] += solver.farthest(cell, -1)
        high[at] += solver.farthest(cell, 1)
    none = np.zeros(len(cells), dtype=bool)
    return Intervals(cells=cells, low=low, high=high, exact=~none, too_narrow=none)


def prove_intervals(known: System, cells: Integers, lower: Floats, upper: Floats) -> Intervals:
    """Whether the interval of every cell holds everything from `lower` below its value to `upper` above it."""
    down, up = _reach(known)
    wants = np.concatenate([np.maximum(lower, 0.0), np.maximum(upper, 0.0)])
    reached = np.zeros(2 * len(cells))
    sign = np.repeat([-1.0, 1.0], len(cells))
    place = np.tile(cells, 2)
    room = np.where(sign > 0, up[place], down[place])
    possible = wants <= room + NEAR
    for shift in _shifts(known, down, up, place=place, sign=sign, wants=np.where(possible, wants, 0.0)):
        reached = np.maximum(reached, sign * shift[place])
    exact = np.zeros(2 * len(cells), dtype=bool)
    left = np.flatnonzero(reached < wants - NEAR)
    if len(left):
        solver = _Single(known, down, up)
        for at in left.tolist():
            reached[at], exact[at] = abs(solver.farthest(int(place[at]), int(sign[at]))), True
    n = len(cells)
    return Intervals(
        cells=cells,
        low=known.value[cells] - reached[:n],
        high=known.value[cells] + reached[n:],
        exact=exact[:n] & exact[n:],
        too_narrow=(reached < wants - NEAR)[:n] | (reached < wants - NEAR)[n:],
    )


def _reach(known: System) -> tuple[Floats, Floats]:
    """How far readers think that every cell may be below and above."""
    down, up = known.freedom
    # Beyond any shift that a rule asks for, bounds need not be infinite.
    most = max(1e9, 4 * float(np.abs(known.value).max(initial=0.0)))
    return np.minimum(down, most), np.minimum(up, most)


def _shifts(
    known: System, down: Floats, up: Floats, *, place: Integers, sign: Floats, wants: Floats
) -> Iterator[Floats]:
    """Shifts that move as many cells as possible by what they want, each cell in one direction at a time."""
    reached, free = np.zeros(len(place)), np.flatnonzero(down + up > 0)
    matrix = known.equations.tocsc()[:, free]
    position = np.full(len(known), -1, dtype=np.int64)
    position[free] = np.arange(len(free))
    idle = 0
    for turn in range(_TOGETHER):
        left = np.flatnonzero((reached < wants - NEAR) & (position[place] >= 0))
        if not len(left) or idle > 3:
            return
        # In each turn a cell goes one way, neighbours the other, so that sums can stay.
        word = (place[left] * np.int64(2 * (turn // 2) + 1)) >> np.int64(turn // 4)
        mine = left[(((word + turn) % 2) * 2 - 1) == sign[left]]
        mine = mine[np.unique(place[mine], return_index=True)[1]]
        if not len(mine):
            idle += 1
            continue
        found = _together(matrix, down[free], up[free], mine=position[place[mine]], sign=sign[mine], wants=wants[mine])
        shift = np.zeros(len(known))
        shift[free] = found
        then = np.maximum(reached, sign * shift[place])
        idle = 0 if bool(np.any((then >= wants - NEAR) & (reached < wants - NEAR))) else idle + 1
        reached = then
        yield shift


def _together(matrix: Any, down: Floats, up: Floats, *, mine: Integers, sign: Floats, wants: Floats) -> Floats:
    """The shift that serves most cells: what a cell wants is a piece of its own, with a reward."""
    low, high = -down, up.copy()
    low[mine] = np.where(sign > 0, 0.0, -down[mine] + wants)
    high[mine] = np.where(sign > 0, up[mine] - wants, 0.0)
    pieces = matrix[:, mine].multiply(sign[None, :])
    columns = sparse.hstack([matrix, pieces], format="csr")
    columns = columns[np.diff(columns.indptr) > 0]
    solved = solve(
        columns,
        np.zeros(columns.shape[0]),
        cost=np.concatenate([np.zeros(len(down)), -1.0 / np.maximum(wants, NEAR)]),
        lower=np.concatenate([low, np.zeros(len(mine))]),
        upper=np.concatenate([high, wants]),
        interior=columns.shape[1] > 5_000,
    )
    assert solved is not None
    found = solved.value[: len(down)].copy()
    found[mine] += sign * solved.value[len(down) :]
    return found


class _Single:
    """One program for all single cells, each solved from where the one before ended."""

    def __init__(self, known: System, down: Floats, up: Floats) -> None:
        self._free = np.flatnonzero(down + up > 0)
        columns = known.equations.tocsc()[:, self._free]
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = columns.shape
        model.col_cost_ = np.zeros(len(self._free))
        model.col_lower_, model.col_upper_ = -down[self._free], up[self._free]
        model.row_lower_ = model.row_upper_ = np.zeros(columns.shape[0])
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = columns.indptr, columns.indices
        model.a_matrix_.value_ = columns.data
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._solver.setOptionValue("output_flag", False)
        self._solver.setOptionValue("threads", 1)
        self._solver.setOptionValue("simplex_strategy", 4)  # primal: the last solution stays feasible
        self._solver.passModel(model)

    def farthest(self, cell: int, sign: int) -> float:
        """How far a cell can move in one direction, with its sign."""
        at = int(np.searchsorted(self._free, cell))
        if at == len(self._free) or self._free[at] != cell:
            return 0.0
        self._solver.changeColCost(at, -float(sign))
        self._solver.run()
        moved = -float(sign) * float(self._solver.getInfo().objective_function_value)
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            moved = 0.0  # nothing is claimed of a program that failed
        self._solver.changeColCost(at, 0.0)
        return moved + 0.0
