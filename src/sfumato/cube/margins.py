"""Margins of dense tables: sums over axes, and how a margin is laid back over the table it belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np

from sfumato.arrays import Floats, Integers

Numbers = TypeVar("Numbers", Integers, Floats)

Axes = tuple[int, ...]
"""Ascending axes of a table; its margin over them has a cell for each combination of their codes."""
_LONG = 16


@dataclass(frozen=True, kw_only=True)
class Margin:
    """Whole numbers over some axes of a table: sums it has, or should have."""

    axes: Axes
    values: Integers


def summed(table: Numbers, axes: Axes) -> Numbers:
    """The margin over some axes: the sum over all others.

    Memory decides how long it takes, so it is read in long runs: first the last axes, if they are all summed, as one;
    then one axis after the other from the outermost, each of which leaves at most half for the next.

    >>> summed(np.arange(6).reshape(2, 3), (1,))
    array([3, 5, 7])
    """
    if len(axes) == table.ndim > 0:
        return table
    kept = [axis in axes for axis in range(table.ndim)]
    first = max((axis + 1 for axis in axes), default=0)
    last = prod(table.shape[first:])
    if last >= _LONG or first == 0:
        table = table.reshape(*table.shape[:first], last).sum(axis=-1)
        del kept[first:]
    while not all(kept):
        axis = kept.index(False)
        shape = table.shape
        table = table.reshape(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])).sum(axis=1)
        table = table.reshape(shape[:axis] + shape[axis + 1 :])
        del kept[axis]
    return table


def opened(margin: Numbers, axes: Axes, rank: int) -> Numbers:
    """The margin with an axis of length one for each axis that was summed, ready to be combined with its table."""
    lengths = iter(margin.shape)
    return margin.reshape([next(lengths) if axis in axes else 1 for axis in range(rank)])


def fibre(axes: Axes, shape: Sequence[int]) -> int:
    """How many cells of the table each cell of the margin is the sum of."""
    return prod(length for axis, length in enumerate(shape) if axis not in axes)


def within(axes: Axes, larger: Axes) -> Axes:
    """Where axes of a table are among the axes of a margin that has them all.

    >>> within((2, 5), (0, 2, 5))
    (1, 2)
    """
    return tuple(larger.index(axis) for axis in axes)


def residuals(table: Integers, margins: Sequence[Margin]) -> list[Margin]:
    """What is missing in the sums of a table, exactly."""
    return [Margin(axes=margin.axes, values=margin.values - summed(table, margin.axes)) for margin in margins]


def largest_gap(table: Integers, margins: Sequence[Margin]) -> int:
    """The largest difference between a sum of the table and what it should be."""
    return max((int(np.abs(gap.values).max(initial=0)) for gap in residuals(table, margins)), default=0)
