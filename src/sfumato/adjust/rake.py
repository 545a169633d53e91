"""Calibrate a cube by raking: multiply every cell until margins fit, one control after the other, again and again.

It is what Li and Krenzke (2020) did. On cells that may be negative it often does not converge, and it can raise the
variance of tables that are not controlled; `least_squares` does neither.
"""

from collections.abc import Sequence

import numpy as np

from sfumato.adjust.calibrated import Calibrated
from sfumato.adjust.controls import Control, agreed_margins
from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.cube.margins import Margin, largest_gap, opened, summed

MOST_CYCLES = 10
"""As in the paper."""
_FARTHEST = 1_000.0
"""How many times the magnitudes of the cube and its controls raked ones may add up to: beyond, it ran away."""
_EXACT = 2.0**61
"""In units: magnitudes that add up to less are summed exactly, whichever of them are."""
_PRECISION = 2.0**-46
"""What sums in floating point are off by, as a share of the largest."""


def rake(
    dimensions: tuple[Dimension, ...],
    values: Integers,
    controls: Sequence[Control],
    *,
    tolerance: float = 1.0,
    most_cycles: int = MOST_CYCLES,
) -> Calibrated:
    """Raked numbers, rounded to whole units; `converged` says whether every sum came within the tolerance, in units.

    Where it does not converge the cycle that came nearest to the controls is handed back, and where every one is
    farther from them than the cube was, the cube as it was: numbers that ran away are never published.
    """
    if values.shape != tuple(map(len, dimensions)) or values.dtype != np.int64:
        raise ValueError("one 64-bit integer for each cell of the product")
    if not (tolerance >= 0 and most_cycles >= 1):
        raise ValueError("a tolerance from 0 on, and one cycle or more")
    margins = agreed_margins(dimensions, controls)
    raked = nearest = values.astype(np.float64)
    sizes = [float(np.abs(margin.values.astype(np.float64)).sum()) for margin in margins]
    largest = max([float(np.abs(raked).sum()), *sizes])
    farthest, enough = min(_FARTHEST * largest, _EXACT), max(tolerance, _PRECISION * largest)
    cycles, gap = 0, _largest(gaps(raked, margins))
    while gap > enough and cycles < most_cycles:
        # A factor grows without limit where a sum is nearly zero.
        with np.errstate(over="ignore", invalid="ignore"):
            raked = one_cycle(raked, margins)
            off = _largest(gaps(raked, margins)) if float(np.abs(raked).sum()) <= farthest else np.inf
        cycles += 1
        if off < gap:
            nearest, gap = raked, off
    found = np.rint(nearest).astype(np.int64)
    change = nearest - values
    return Calibrated(
        values=found,
        calibration="raking",
        converged=gap <= enough,
        cycles=cycles,
        largest_gap=largest_gap(found, margins),
        change=float(np.vdot(change, change)),
    )


def one_cycle(table: Floats, margins: Sequence[Margin]) -> Floats:
    """Multiply a table so that it fits one margin after the other; a sum of 0 cannot be multiplied and is left."""
    table = table.copy()
    for margin in margins:
        sums = summed(table, margin.axes)
        factors = np.divide(margin.values, sums, out=np.ones_like(sums), where=sums != 0)
        table *= opened(factors, margin.axes, table.ndim)
    return table


def gaps(table: Floats, margins: Sequence[Margin]) -> list[Floats]:
    """How far each sum is from what it should be."""
    return [np.abs(summed(table, margin.axes) - margin.values) for margin in margins]


def _largest(parts: Sequence[Floats]) -> float:
    return max((float(part.max(initial=0.0)) for part in parts), default=0.0)
