"""Programs over a system, in HiGHS: shifts of cells that keep every equation, and whole numbers for rounding.

A shift d with A·d = 0 leads from the true table x to x + d, and to x − d where both stay within the bounds: tables that
agree with everything that is published where d is zero. One shift shows for many sensitive cells at once that readers
cannot tell: docs/methods/suppression.md. One thread and no clock, so that the same table always gives the same answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
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


class Shifts:
    """Shifts of a window in which wanted cells move by what they need, for one cost after the other.

    Cells are places in the window; a negative need is one downwards. Each program begins where the last one ended.
    """

    def __init__(self, window: Window, wanted: Integers, needs: Floats) -> None:
        up, down = window.up.copy(), window.down.copy()
        room = np.where(needs > 0, up[wanted], down[wanted])
        self._wanted, self._sign = wanted, np.sign(needs)
        size = np.minimum(np.abs(needs), room)  # a cell may need more than bounds leave it
        up[wanted] = np.where(self._sign > 0, np.maximum(up[wanted] - size, 0.0), 0.0)
        down[wanted] = np.where(self._sign < 0, np.maximum(down[wanted] - size, 0.0), 0.0)
        pieces = window.matrix[:, wanted].multiply(self._sign[None, :]) if len(wanted) else window.matrix[:, wanted]
        self._columns = sparse.hstack([window.matrix, -window.matrix, pieces], format="csc")
        self._upper, self._cells = np.concatenate([up, down, size]), len(window.cells)
        self._solver: Any = None

    def cheapest(self, cost: Floats, *, reward: float, fall: Floats | None = None) -> Floats:
        """The cheapest shift that meets as many needs as possible.

        `cost` is for a unit up or down, or up alone, where `fall` is for one down; `reward` is for a unit of need.
        """
        every = np.concatenate([cost, cost if fall is None else fall, np.full(len(self._wanted), -reward)])
        if self._solver is None:
            self._solver = _loaded(self._columns, cost=every, lower=np.zeros(len(every)), upper=self._upper)
        else:
            self._solver.changeColsCost(len(every), np.arange(len(every), dtype=np.int32), every)
        solved, n = _run(self._solver), self._cells
        found: Floats = solved[:n] - solved[n : 2 * n]
        found[self._wanted] += self._sign * solved[2 * n :]
        found[np.abs(found) < NEAR] = 0.0
        return found


def minimise(columns: Any, *, cost: Floats, lower: Floats, upper: Floats) -> Floats:
    """The cheapest z with columns·z = 0 within bounds; zero must lie within them."""
    return _run(_loaded(columns, cost=cost, lower=lower, upper=upper))


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """A solution, whether none is better, and what no solution can be below."""

    value: Floats
    best: bool
    least: float


def solve(
    matrix: Any,
    right: Floats,
    *,
    cost: Floats,
    upper: Floats,
    lower: Floats | None = None,
    whole: Flags | None = None,
    slack: Floats | None = None,
    nodes: int | None = None,
    seconds: float | None = None,
    interior: bool = False,
) -> Solved | None:
    """The cheapest z with right ≤ matrix·z ≤ right + slack within bounds, or None where none was found.

    `whole` are columns of whole numbers, looked for in at most so many nodes of a search or so many seconds; `interior`
    solves large programs of more than two ways, where going from vertex to vertex takes long.
    """
    if not len(cost):
        return Solved(value=np.zeros(0), best=True, least=0.0)
    options: dict[str, Any] = {"solver": "ipm" if interior else "simplex"}
    if whole is not None:
        options |= {"mip_rel_gap": 0.0}
        options |= {"mip_max_nodes": nodes} if nodes is not None else {}
        options |= {"time_limit": seconds} if seconds is not None else {}
    low = np.zeros(len(cost)) if lower is None else lower
    solver = _loaded(matrix, cost=cost, lower=low, upper=upper, right=right, slack=slack, whole=whole, options=options)
    if whole is None:
        value = _run(solver)
        return Solved(value=value, best=True, least=float(solver.getInfo().objective_function_value))
    solver.run()
    best, info = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal, solver.getInfo()
    if not best and info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    least = info.objective_function_value if best else info.mip_dual_bound
    return Solved(value=np.array(solver.getSolution().col_value), best=best, least=float(least))


def fractional(value: Floats) -> Flags:
    """Which values are not whole."""
    apart: Flags = np.abs(value - np.rint(value)) > NEAR
    return apart


def as_whole(value: Floats) -> Integers:
    """The whole numbers that a program found, without its rounding errors."""
    found: Integers = np.rint(value).astype(np.int64)
    return found


def _loaded(
    matrix: Any,
    *,
    cost: Floats,
    lower: Floats,
    upper: Floats,
    right: Floats | None = None,
    slack: Floats | None = None,
    whole: Flags | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """A solver with a program in it; without `right` all equations are zero."""
    columns = matrix.tocsc()
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = columns.shape
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, lower, upper
    model.row_lower_ = np.zeros(columns.shape[0]) if right is None else right
    model.row_upper_ = model.row_lower_ if slack is None else np.asarray(model.row_lower_) + slack
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = columns.indptr, columns.indices
    model.a_matrix_.value_ = columns.data
    if whole is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[one] for one in whole.tolist()]
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    always = {"output_flag": False, "threads": 1, "random_seed": 0, "parallel": "off"}
    for option, setting in {**always, **options}.items():
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
        options = {"presolve": "off", "simplex_strategy": 4}  # primal: the last solution stays feasible
        self._solver = _loaded(window.matrix, cost=np.zeros(n), lower=-window.down, upper=window.up, options=options)
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
