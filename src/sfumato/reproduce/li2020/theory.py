"""What is expected of two-sided noise in the tables of one dimension, in each of the ways to average over them.

Calibration to all one-way tables leaves 1 − (1 + Σ(k − 1))/Πk of the variance in a table with cardinalities k. Tables
of one dimension differ in that, so how much it takes away "on average" depends on what is averaged.
"""

from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from sfumato.cube.effects import remaining_share
from sfumato.reproduce.li2020.published import CARDINALITIES


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Expected variances, without and with calibration, and what it takes away."""

    before: float
    after: float
    by_table: float
    """The reduction in a table, the mean over tables; it is that of the sum of squares over all their cells, too."""
    by_cell: float
    """The same where a table counts as often as it has cells."""
    before_within_run: float
    after_within_run: float

    @property
    def reduction(self) -> float:
        """That of the mean variance: tables with few cells, whose sums are the noisiest, count most."""
        return 1 - self.after / self.before

    @property
    def within_run(self) -> float:
        """That of the variance of all cells in a run about their mean, which takes the common error away before."""
        return 1 - self.after_within_run / self.before_within_run


def expected(size: int, *, variance: float) -> Expected:
    """For tables of so many dimensions, when a cell of the cube has this variance."""
    tables = list(combinations(range(len(CARDINALITIES)), size))
    one_way = [(axis,) for axis in range(len(CARDINALITIES))]
    cells = np.array([prod(CARDINALITIES[axis] for axis in table) for table in tables], dtype=np.float64)
    left = np.array([remaining_share(CARDINALITIES, table, one_way) for table in tables])
    total = variance * prod(CARDINALITIES)
    share = len(tables) / cells.sum()
    return Expected(
        before=total * float(np.mean(1 / cells)),
        after=total * float(np.mean(left / cells)),
        by_table=float(np.mean(1 - left)),
        by_cell=float(np.average(1 - left, weights=cells)),
        # All tables have the same total, and with it the same error in the mean; calibration makes that 0.
        before_within_run=total * float(share - share * share),
        after_within_run=total * float(left.sum() / cells.sum()),
    )


def at_mean_cardinality(size: int) -> float:
    """What the formula takes away from a table all of whose dimensions have the mean number of categories."""
    mean = sum(CARDINALITIES) / len(CARDINALITIES)
    return (1 + size * (mean - 1)) / mean**size
