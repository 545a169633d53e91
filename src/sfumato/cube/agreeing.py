"""A margin in whole numbers that agrees exactly with margins that are known already."""

from collections.abc import Sequence

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cube.exact_margins import largest_codes, met_in_reference_cells
from sfumato.cube.margins import Axes, Margin, summed, within
from sfumato.cube.whole_numbers import nearest_whole


def whole_margin(axes: Axes, table: Floats, known: Sequence[Margin], *, nonnegative: bool) -> Margin:
    """The margin rounded to whole numbers with exactly the sums that the known ones have where they share dimensions.

    Known margins agree with each other, so what they ask of this one does, too, and can be met.
    """
    targets = asked_of(axes, known)
    whole = nearest_whole(np.maximum(table, 0), targets) if nonnegative else np.asarray(np.rint(table)).astype(np.int64)
    if targets:
        whole = met_in_reference_cells(whole, targets, base=largest_codes(targets, whole.ndim))
    return Margin(axes=axes, values=whole)


def asked_of(axes: Axes, known: Sequence[Margin]) -> list[Margin]:
    """What known margins ask of a table by some axes, as margins of that table."""
    shared: dict[Axes, Margin] = {}
    for margin in known:
        common = tuple(axis for axis in axes if axis in margin.axes)
        sums = summed(margin.values, within(common, margin.axes))
        shared[common] = Margin(axes=within(common, axes), values=np.asarray(sums))
    return list(shared.values())


def shared_by(first: Margin, second: Margin) -> tuple[Axes, Integers, Integers]:
    """The axes two margins share, and the sums each of them has there."""
    axes = tuple(axis for axis in first.axes if axis in second.axes)
    return axes, summed(first.values, within(axes, first.axes)), summed(second.values, within(axes, second.axes))
