"""Job histories of one establishment as patterns of periods, and what indicators with a guarantee measure of them."""

from collections.abc import Sequence

import numpy as np

from sfumato.arrays import Integers
from sfumato.statistics.panel.formal_period import CHANGE, KEPT_PAY, MEASURED, OTHER_PAY

Job = tuple[str, int, int]
"""The periods of a job, 1 where it had earnings; what it earned in each; and the worker cell."""


def measured(jobs: Sequence[Job], period: int, worker_cells: int = 1, cap: int = 10**9) -> Integers:
    """What is tabulated of one establishment in a period, by worker cell: written out, and not asked of the engine."""
    found = np.zeros((worker_cells, MEASURED), dtype=np.int64)
    for pattern, pay, cell in jobs:
        if pattern[period] == "0":
            continue
        before, after = (0 <= place < len(pattern) and pattern[place] == "1" for place in (period - 1, period + 1))
        year = "1" in pattern[max(period - 4, 0) : period]
        kind = (0 if before else 2 if year else 4) + (not after)
        found[cell, kind] += 1
        found[cell, KEPT_PAY if kind == 0 else OTHER_PAY] += min(pay, cap)
    found[:, CHANGE] = np.abs(found[:, 2] + found[:, 4] - found[:, 1])
    return found


def size(jobs: Sequence[Job], period: int, cap: int = 10**9) -> tuple[int, int]:
    """The jobs and the payroll of an establishment in a period."""
    paid = [min(pay, cap) for pattern, pay, _ in jobs if pattern[period] == "1"]
    return len(paid), sum(paid)
