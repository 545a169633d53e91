"""How much one unit of noise is in a column of a cube: an average weight, overall or within the codes of a stratum."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.cube.cube import Cube
from sfumato.cube.margins import Axes, summed

DIGITS = 3
"""Averages are rounded to so many digits: they are told to readers, for error figures."""
FEWEST = 30
"""Strata with fewer records take the average of all: the average of a few would tell their weights."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What one unit of noise is in the parts of a column."""

    overall: int
    axis: int | None = None
    """The dimension that makes the strata."""
    by_code: tuple[int, ...] = ()

    def laid(self, axes: Axes) -> Integers | int:
        """The scale over a table with these axes, ready to be multiplied with its noise."""
        if self.axis is None or self.axis not in axes:
            return self.overall
        return np.array(self.by_code, dtype=np.int64).reshape([-1 if axis == self.axis else 1 for axis in axes])

    def mean_square(self, axes: Axes) -> float:
        """The square of the scale, on average over the cells of a table with these axes."""
        if self.axis is None or self.axis not in axes:
            return float(self.overall) ** 2
        return float(np.mean(np.array(self.by_code, dtype=np.float64) ** 2))

    def products(self, other: "Scale", selected: Sequence[NDArray[np.intp]], *, by: Axes, over: Axes) -> Floats:
        """The mean product with a scale of the same strata, in the sums of a table by some axes.

        They are laid over a table with the axes `over`, which hold those of `by`. A sum that takes several codes of the
        stratum has the mean over the codes selected.
        """
        if self.axis is None or other.axis is None:
            return np.asarray(float(self.overall) * float(other.overall))
        ours, theirs = (np.array(scale.by_code, dtype=np.float64) for scale in (self, other))
        chosen = (ours * theirs)[selected[self.axis]]
        if self.axis not in by:
            return np.asarray(chosen.mean())
        return chosen.reshape([-1 if axis == self.axis else 1 for axis in over])


def average_scale(true: Cube, column: str, stratum: str | None) -> Scale:
    """The average of a column over records, at least one part, in a few digits."""
    counts, sums = true.total("count"), true.total(column)
    overall = in_few_digits(sums / counts) if counts else true.parts[column]
    if stratum is None:
        return Scale(overall=overall)
    axis = true.names.index(stratum)
    n, total = summed(true["count"], (axis,)), summed(true[column], (axis,))
    by_code = tuple(in_few_digits(int(t) / int(k)) if k >= FEWEST else overall for k, t in zip(n, total, strict=True))
    return Scale(overall=overall, axis=axis, by_code=by_code)


def in_few_digits(average: float) -> int:
    """A positive number in three digits, a whole one.

    >>> in_few_digits(2_181_642_107.3), in_few_digits(0.2)
    (2180000000, 1)
    """
    return max(int(float(f"{average:.{DIGITS}g}")), 1)
