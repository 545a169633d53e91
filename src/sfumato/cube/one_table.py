"""Margins that one table without negative cells has: whether there is one, and those nearest to margins with noise.

Margins may agree two by two without being the margins of any such table, where they close a ring. Only the axes that
margins have matter: others are summed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.cube.bounded import bounded_change
from sfumato.cube.margins import Margin, residuals, summed, within
from sfumato.cube.nearest import nearest_change
from sfumato.cube.whole_numbers import make_a_chain, nearest_whole

_MISSED = 1_000
"""Units by which a margin is missed that no table has: a thousandth of a record, where a unit is a millionth."""
_LOOSE = 100.0
"""How much larger the variances of cells are than those of margins: margins are what is to be kept."""
_CLOSE = 1e-4
"""Share of a typical error to which the nearest table is worked out."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A margin that need not be met, and the variance of its noise."""

    margin: Margin
    variance: float


def can_be_met(shape: Sequence[int], margins: Sequence[Margin]) -> bool:
    """Whether some table without negative cells has these margins, none of them negative, which agree two by two.

    A chain always can. Otherwise such a table is looked for, in floating point.
    """
    if make_a_chain([margin.axes for margin in margins]):
        return True
    lengths, among = _among_themselves(shape, margins)
    start = np.zeros(lengths, dtype=np.int64)
    largest = max(float(margin.values.max(initial=0)) for margin in margins)
    found = bounded_change(start, among, enough=max(1.0, 1e-12 * largest))
    return found.gap <= max(_MISSED, 1e-9 * largest)


def margins_of_one_table(shape: Sequence[int], wanted: Sequence[Wanted], exact: Sequence[Margin]) -> list[Margin]:
    """The margins wanted, changed as little as possible, in their typical errors, until one table has them all.

    It has no negative cell, it is of whole numbers, and it has the exact margins, as far as these make a chain.
    """
    every = [*exact, *(part.margin for part in wanted)]
    lengths, among = _among_themselves(shape, every)
    largest = max(part.variance for part in wanted)
    slack = [0.0] * len(exact) + [part.variance / (_LOOSE * largest) for part in wanted]
    start = np.rint(np.maximum(nearest_change(lengths, among).cells, 0)).astype(np.int64)
    found = bounded_change(
        start,
        residuals(start, among),
        slack=slack,
        enough=max(0.25, _CLOSE * min(part.variance for part in wanted) ** 0.5),
    )
    table = nearest_whole(np.maximum(start + found.cells, 0), among[: len(exact)])
    return [
        Margin(axes=part.margin.axes, values=np.asarray(summed(table, own.axes)))
        for part, own in zip(wanted, among[len(exact) :], strict=True)
    ]


def _among_themselves(shape: Sequence[int], margins: Sequence[Margin]) -> tuple[tuple[int, ...], list[Margin]]:
    """The margins as those of a table with no other axes than theirs, and its shape."""
    axes = tuple(sorted({axis for margin in margins for axis in margin.axes}))
    moved = [Margin(axes=within(margin.axes, axes), values=margin.values) for margin in margins]
    return tuple(shape[axis] for axis in axes), moved
