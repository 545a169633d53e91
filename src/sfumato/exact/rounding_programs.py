"""Programs in whole numbers for rounding, in HiGHS: one thread, no clock, so that the same table rounds alike."""

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.errors import MethodError

NEAR = 1e-6
"""Differences in programs that are taken for zero."""


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
    nodes: int = 0,
    interior: bool = False,
) -> Solved | None:
    """The cheapest z with right ≤ matrix·z ≤ right + slack within bounds, or None where none was found.

    `whole` are columns of whole numbers, looked for in at most so many nodes of a search; `interior` solves large
    programs of more than two ways, where going from vertex to vertex takes long.
    """
    if not len(cost):
        return Solved(value=np.zeros(0), best=True, least=0.0)
    rows = matrix.tocsr()
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows.shape
    model.col_cost_, model.col_upper_ = cost, upper
    model.col_lower_ = np.zeros(len(cost)) if lower is None else lower
    model.row_lower_ = right
    model.row_upper_ = right if slack is None else right + slack
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = rows.indptr, rows.indices, rows.data
    if whole is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[one] for one in whole.tolist()]
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, setting in {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "solver": "ipm" if interior else "simplex",
        **({"mip_max_nodes": nodes, "mip_rel_gap": 0.0} if whole is not None else {}),
    }.items():
        solver.setOptionValue(option, setting)
    solver.passModel(model)
    solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    optimal = status == highspy.HighsModelStatus.kOptimal
    if whole is None and not optimal:
        raise MethodError(
            "rounding",
            expected="a linear program that has a solution: the true table is one",
            found="none",
            do="report this table's shape; suppression or coarsening may serve meanwhile",
        )
    if not optimal and info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    least = info.objective_function_value if whole is None or optimal else info.mip_dual_bound
    return Solved(value=np.array(solver.getSolution().col_value), best=optimal, least=float(least))


def fractional(value: Floats) -> Flags:
    """Which values are not whole."""
    apart: Flags = np.abs(value - np.rint(value)) > NEAR
    return apart


def as_whole(value: Floats) -> Integers:
    """The whole numbers that a program found, without its rounding errors."""
    found: Integers = np.rint(value).astype(np.int64)
    return found
