"""Least squares from sums, exactly: predictions of many groups at once, as whole numbers of a published grid."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.cells import Cells

Exact = NDArray[Any]
"""Python's own integers, one a group: ten million ranks of up to 10,000 have sums of squares beyond 64 bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LineSums:
    """Sums of (x, y) by group, and centred sums times n², which are whole numbers and lose no digit.

    >>> two = Cells(dimensions=(), positions=np.array([0]), columns={
    ...     "count": np.array([2]), "sum_x": np.array([4]), "sum_y": np.array([6]),
    ...     "sum_xx": np.array([10]), "sum_xy": np.array([14])})
    >>> line = LineSums.of(two)                         # the points (1, 2) and (3, 4)
    >>> line.rounded_prediction(Fraction(2), grid=10).tolist()
    [30]
    """

    n: Exact
    x: Exact
    y: Exact
    spread: Exact
    """n·Σxx − (Σx)²."""
    joint: Exact
    """n·Σxy − Σx·Σy."""

    @classmethod
    def of(cls, cells: Cells) -> "LineSums":
        """The exact sums of tabulated ones."""
        names = ("count", "sum_x", "sum_y", "sum_xx", "sum_xy")
        n, x, y, xx, xy = (cells[name].astype(object) for name in names)
        return cls(n=n, x=x, y=y, spread=n * xx - x * x, joint=n * xy - x * y)

    def is_defined(self) -> NDArray[np.bool_]:
        """Whether x takes two different values or more, so that there is one line."""
        return (self.spread > 0).astype(np.bool_)

    def rounded_prediction(self, rank: Fraction, *, grid: int) -> Exact:
        """α + β·rank in whole units of 1/grid, rounded exactly; 0 for groups without a line."""
        p, q = rank.numerator, rank.denominator
        spread = np.where(self.is_defined(), self.spread, 1)
        bottom = np.where(self.n > 0, self.n, 1) * spread * q
        top = (self.y * spread * q + self.joint * (self.n * p - self.x * q)) * grid
        return np.where(self.is_defined(), (2 * top + bottom) // (2 * bottom), 0)

    def prediction(self, rank: Fraction) -> Floats:
        """α + β·rank, NaN for groups without a line."""
        defined = self.is_defined()
        n, x, y = _floats(np.where(self.n > 0, self.n, 1)), _floats(self.x), _floats(self.y)
        slope = _floats(self.joint) / np.where(defined, _floats(self.spread), np.nan)
        predicted: Floats = y / n + slope * (float(rank) - x / n)
        return predicted


def rounded_mean(cells: Cells, *, grid: int) -> Exact:
    """Σy/n in whole units of 1/grid, rounded exactly; 0 for empty groups."""
    n, y = cells["count"].astype(object), cells["sum_y"].astype(object)
    bottom = np.where(n > 0, n, 1)
    mean: Exact = (2 * y * grid + bottom) // (2 * bottom)
    return mean


def _floats(numbers: Exact) -> Floats:
    return numbers.astype(np.float64)
