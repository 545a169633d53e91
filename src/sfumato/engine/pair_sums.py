"""Sums of labels times factors over the pairs of each cell."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.noise.factors import ONE

_MOST = float(2**63 - 2**10)
"""The greatest deviation that a column can hold, in millionths; larger ones are cut to it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairSums:
    """What the labels of pairs sum to in each cell, with and without the factors of the employers they belong to.

    Sums of different employers can be added to each other; all labels of one employer must come together.
    """

    count: Integers
    whole: Integers
    rest: Integers
    """Millionths, those that would make a whole included: products are split before they are summed."""
    factors: Integers
    squares: NDArray[np.float64]
    """Σ over employers of the square of what their labels sum to."""

    @classmethod
    def of(cls, cell: Integers, employer: Integers, label: Integers, *, factors: Integers, cells: int) -> Self:
        """Sum labels by cell; each row belongs to the employer with a number, at which `factors` has its factor."""
        order = np.lexsort((employer, cell))
        cell, employer, label = cell[order], employer[order], label[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (cell[1:] != cell[:-1]) | (employer[1:] != employer[:-1])
        begins = np.flatnonzero(new)
        if len(begins):
            label = np.add.reduceat(label, begins)
        cell, employer = cell[begins], employer[begins]
        used = label != 0
        cell, employer, label = cell[used], employer[used], label[used]
        # A label is split before it is multiplied: a factor times all of it would leave 64 bits beyond some 10^12.
        millions, units = np.divmod(label, ONE)
        product = units * factors[employer]
        # In the order of cells and employers, so that the rounding is the same on every engine.
        squares = np.bincount(cell, weights=label.astype(np.float64) ** 2, minlength=cells)
        return cls(
            count=_by_cell(cell, label, cells),
            whole=_by_cell(cell, millions * factors[employer] + product // ONE, cells),
            rest=_by_cell(cell, product % ONE, cells),
            factors=_by_cell(cell, np.ones_like(label), cells),
            squares=squares.astype(np.float64),  # whole numbers when there are no rows
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(
            count=self.count + other.count,
            whole=self.whole + other.whole,
            rest=self.rest + other.rest,
            factors=self.factors + other.factors,
            squares=self.squares + other.squares,
        )

    def columns(self, *, deviation: float, edges: Integers, available: Integers) -> dict[str, Integers]:
        """The columns that tabulation supplies; `deviation` is the standard deviation of one factor."""
        return {
            "count": self.count,
            "distorted": self.whole + self.rest // ONE,
            "remainder": self.rest % ONE,
            "factors": self.factors,
            "deviation": np.minimum(np.rint(np.sqrt(self.squares) * (deviation * ONE)), _MOST).astype(np.int64),
            "available": available,
            "edges": edges,
        }


def _by_cell(cell: Integers, values: Integers, cells: int) -> Integers:
    summed = np.zeros(cells, dtype=np.int64)
    np.add.at(summed, cell, values)
    return summed
