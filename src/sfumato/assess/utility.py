"""Utility: how far protected values are from true ones, overall and by size of the cell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.adjust.nonnegative import nonnegative
from sfumato.cells import Cells, Integers
from sfumato.plan import PlannedTable
from sfumato.publish.table import CONFIDENCE

SIZE_CLASSES = ((0, 0), (1, 9), (10, 99), (100, 999), (1_000, 9_999), (10_000, None))
"""Classes of true cell counts, both ends included."""


@dataclass(frozen=True, kw_only=True)
class ClassUtility:
    """The error of the cells of one size class."""

    label: str
    cells: int
    mean_error: float
    expected_error: float
    relative_error: float | None
    covered: float


@dataclass(frozen=True, kw_only=True)
class Utility:
    """The error of one table; every figure is computed from true values and confidential."""

    name: str
    title: str
    true: Integers
    protected: Integers
    cells: int
    mean_error: float
    expected_error: float
    total_true: int
    total_protected: int
    by_size: tuple[ClassUtility, ...]


def measure_utility(planned: PlannedTable, counted: Cells, answer: Cells) -> Utility:
    """Compare the protected values of a table with the true ones."""
    if not np.array_equal(counted.positions, answer.positions):
        raise ValueError("the answer is about other cells than the data")
    true, values = counted["count"], answer["value"]
    protected = nonnegative(answer)["value"] if planned.table.nonnegative else values
    error = np.abs(protected - true)
    expected = planned.method.expected_error(counted)
    low, high = planned.method.published_interval(values, CONFIDENCE)
    covered = (low <= true) & ~(high < true)
    return Utility(
        name=planned.table.name,
        title=planned.table.title or planned.table.name,
        true=true,
        protected=protected,
        cells=len(true),
        mean_error=_mean(error),
        expected_error=_mean(expected),
        total_true=int(true.sum()),
        total_protected=int(protected.sum()),
        by_size=tuple(
            ClassUtility(
                label=_label(low, high),
                cells=int(inside.sum()),
                mean_error=_mean(error[inside]),
                expected_error=_mean(expected[inside]),
                relative_error=_mean(error[inside] / true[inside]) if low > 0 else None,
                covered=_mean(covered[inside]),
            )
            for low, high in SIZE_CLASSES
            if (inside := (true >= low) & (true <= (np.inf if high is None else high))).any()
        ),
    )


def _label(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _mean(values: NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(np.mean(values)) if len(values) else 0.0
