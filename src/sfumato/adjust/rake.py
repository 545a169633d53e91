"""Calibrate a cube by raking: multiply every cell until margins fit, one control after the other, again and again.

It is what Li and Krenzke (2020) did. On cells that may be negative it often does not converge, and it can raise the
variance of tables that are not controlled; `least_squares` does neither.
"""

from collections.abc import Sequence

import numpy as np

from sfumato.adjust.calibrated import Calibrated
from sfumato.adjust.controls import Control, agreed_margins
from sfumato.cells import Dimension
from sfumato.cube.margins import Floats, Integers, Margin, largest_gap, opened, summed

MOST_CYCLES = 10
"""As in the paper."""
_FARTHEST = 2.0**40
"""In units; where raking runs away a cell ends here, and sums stay exact."""


def rake(
    dimensions: tuple[Dimension, ...],
    values: Integers,
    controls: Sequence[Control],
    *,
    tolerance: float = 1.0,
    most_cycles: int = MOST_CYCLES,
) -> Calibrated:
    """Raked numbers, rounded to whole units; `converged` says whether every sum came within the tolerance, in units."""
    if values.shape != tuple(map(len, dimensions)) or values.dtype != np.int64:
        raise ValueError("one 64-bit integer for each cell of the product")
    if not (tolerance >= 0 and most_cycles >= 1):
        raise ValueError("a tolerance from 0 on, and one cycle or more")
    margins = agreed_margins(dimensions, controls)
    raked, cycles, gap = values.astype(np.float64), 0, np.inf
    while gap > tolerance and cycles < most_cycles:
        # A factor grows without limit where a sum is nearly zero.
        with np.errstate(over="ignore", invalid="ignore"):
            raked = one_cycle(raked, margins)
            off = [float(part.max(initial=0.0)) for part in gaps(raked, margins)]
        gap, cycles = max((o if np.isfinite(o) else np.inf for o in off), default=0.0), cycles + 1
    raked = np.clip(np.nan_to_num(raked), -_FARTHEST, _FARTHEST)
    found = np.rint(raked).astype(np.int64)
    change = raked - values
    return Calibrated(
        values=found,
        calibration="raking",
        converged=gap <= tolerance,
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
