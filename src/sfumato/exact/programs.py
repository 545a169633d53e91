"""Linear programs over a system, in HiGHS: shifts of cells that keep every equation.

A shift d with A·d = 0 leads from the true table x to x + d, and to x − d where both stay within the bounds: tables that
agree with everything that is published where d is zero. One shift shows for many sensitive cells at once that readers
cannot tell: docs/methods/suppression.md.
"""

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers
from sfumato.errors import MethodError

NEAR = 1e-6
"""Differences in linear programs that are taken for zero."""
_EASY = 1e8
"""Bounds of this size leave a solver as many digits as it needs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """Some cells of a system, and every equation that one of them is in; all other cells stay as they are."""

    cells: Integers
    matrix: Any
    """Equations by columns, one column for each of the cells."""
    down: Floats
    up: Floats
    """How far each of the cells may go."""

    @classmethod
    def of(cls, by_cell: Any, cells: Integers, down: Floats, up: Floats) -> "Window":
        """The window of some cells, of which `down` and `up` hold for the whole system."""
        matrix = by_cell[:, cells]
        rows, renumbered = np.unique(matrix.indices, return_inverse=True)
        shape = (len(rows), len(cells))
        small = sparse.csc_matrix((matrix.data, renumbered.astype(np.int32), matrix.indptr), shape=shape)
        return cls(cells=cells, matrix=small, down=down[cells], up=up[cells])

    def shift(self, *, wanted: Integers, needs: Floats, cost: Floats, reward: float) -> Floats:
        """The cheapest shift in which as many wanted cells as possible move by what they need.

        `wanted` are places in the window; a negative need is one downwards. `cost` is for a unit up or down.
        """
        sign, size = np.sign(needs), np.abs(needs)
        up, down = self.up.copy(), self.down.copy()
        up[wanted] = np.where(sign > 0, np.maximum(up[wanted] - size, 0.0), 0.0)
        down[wanted] = np.where(sign < 0, np.maximum(down[wanted] - size, 0.0), 0.0)
        pieces = self.matrix[:, wanted].multiply(sign[None, :]) if len(wanted) else self.matrix[:, wanted]
        columns = sparse.hstack([self.matrix, -self.matrix, pieces], format="csc")
        solved = minimise(
            columns,
            cost=np.concatenate([cost, cost, np.full(len(wanted), -reward)]),
            lower=np.zeros(columns.shape[1]),
            upper=np.concatenate([up, down, size]),
        )
        n = len(self.cells)
        found = solved[:n] - solved[n : 2 * n]
        found[wanted] += sign * solved[2 * n :]
        found[np.abs(found) < NEAR] = 0.0
        return found


def minimise(columns: Any, *, cost: Floats, lower: Floats, upper: Floats) -> Floats:
    """The cheapest z with columns·z = 0 within bounds; zero must lie within them."""
    return _run(load(columns, cost=cost, lower=lower, upper=upper))


def load(
    columns: Any,
    *,
    cost: Floats,
    lower: Floats,
    upper: Floats,
    most: Floats | None = None,
    whole: Flags | None = None,
) -> Any:
    """A solver with a program in it: 0 ≤ columns·z ≤ `most`, or = 0, and whole numbers where they are asked for."""
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = columns.shape[1], columns.shape[0]
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, lower, upper
    model.row_lower_ = np.zeros(columns.shape[0])
    model.row_upper_ = np.zeros(columns.shape[0]) if most is None else most
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = columns.indptr, columns.indices
    model.a_matrix_.value_ = columns.data
    if whole is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[int(one)] for one in whole]
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, setting in (("output_flag", False), ("threads", 1), ("random_seed", 0), ("parallel", "off")):
        solver.setOptionValue(option, setting)
    solver.passModel(model)
    return solver


def _run(solver: Any) -> Floats:
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kUnknown:
        _run_scaled(solver)
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise MethodError(
            "a linear program over the tables",
            expected="an optimum, which there is: the true table is a solution",
            found=f"HiGHS says {solver.modelStatusToString(solver.getModelStatus())}",
            do="report it with the versions of sfumato and highspy",
        )
    return np.asarray(solver.getSolution().col_value, dtype=np.float64)


def _run_scaled(solver: Any) -> None:
    """Solve a program again whose bounds are too large for the solver's tolerances, in units in which they are not.

    Weighted amounts have up to fifteen digits, as many as floating point: what is lost is in the last of them.
    """
    program = solver.getLp()
    bounds = np.abs(np.concatenate([program.col_lower_, program.col_upper_]))
    largest = float(bounds[np.isfinite(bounds)].max(initial=1.0))
    solver.clearSolver()
    solver.setOptionValue("user_bound_scale", min(-int(np.log2(largest / _EASY)), 0))
    solver.run()
    solver.setOptionValue("user_bound_scale", 0)


class Extremes:
    """How far single cells can move, one after the other, each program begun where the last one ended."""

    def __init__(self, window: Window) -> None:
        n = len(window.cells)
        self._solver = load(window.matrix, cost=np.zeros(n), lower=-window.down, upper=window.up)
        self._solver.setOptionValue("presolve", "off")
        self._window, self._last = window, 0

    def furthest(self, place: int, sign: int) -> Floats:
        """The shift that moves one cell of the window furthest up (1) or down (−1)."""
        self._solver.changeColCost(self._last, 0.0)
        self._solver.changeColCost(place, float(-sign))
        self._last = place
        return _run(self._solver)


def pieces_of(by_cell: Any, shift: Floats) -> tuple[Integers, Integers]:
    """The cells that a shift moves, and which of its pieces each belongs to.

    Cells belong together where they are in the same equation; every piece by itself keeps all equations.
    """
    moved = np.flatnonzero(shift)
    matrix = by_cell[:, moved]
    both = sparse.bmat([[None, abs(matrix)], [abs(matrix).T, None]], format="csr")
    _, label = sparse.csgraph.connected_components(both, directed=False)
    return moved, label[matrix.shape[0] :].astype(np.int64)


def unmet(shift: Floats, needs: Floats) -> Flags:
    """Which needs a shift of the same cells does not meet."""
    short: Flags = shift * np.sign(needs) < np.abs(needs) - NEAR
    return short
