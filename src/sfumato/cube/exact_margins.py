"""Give a table of whole numbers exactly the margins it should have; docs/methods/hypercube.md has the proof."""

from collections.abc import Sequence

import numpy as np

from sfumato.arrays import Integers
from sfumato.cube.margins import Margin, summed


def met_in_reference_cells(table: Integers, margins: Sequence[Margin], *, base: Sequence[int]) -> Integers:
    """Add what every margin lacks to the cells that have the base code in all other dimensions, margin by margin.

    It ends with all margins met, whatever they are, as long as any two of them agree in what they share. The steps
    commute, so a later one never spoils what an earlier one has mended.

    >>> margins = [Margin(axes=(0,), values=np.array([5, 5])), Margin(axes=(1,), values=np.array([4, 6]))]
    >>> met_in_reference_cells(np.array([[2, 2], [2, 3]]), margins, base=(0, 0))
    array([[2, 3],
           [2, 3]])
    """
    met = table.copy()
    for margin in margins:
        place = tuple(slice(None) if axis in margin.axes else base[axis] for axis in range(table.ndim))
        met[place] += margin.values - summed(met, margin.axes)
    return met


def largest_codes(margins: Sequence[Margin], rank: int) -> tuple[int, ...]:
    """For every axis the code with the largest sum in the first margin that has it; 0 where none has."""
    base = [0] * rank
    for margin in reversed(margins):
        for place, axis in enumerate(margin.axes):
            base[axis] = int(np.argmax(summed(margin.values, (place,))))
    return tuple(base)
