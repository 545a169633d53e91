"""A table of whole numbers, none negative, with given margins, near a table of fractions.

Numbers are rounded; where a margin then has too much, cells that gained most by rounding give it back; what margins
still lack is made of units that carry one code of every margin. This needs margins that can be put in an order in which
each meets those before it inside one of them, such as any set of one-way tables: `in_a_chain` picks such an order.
docs/methods/hypercube.md has the proof.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.cube.margins import Axes, Floats, Integers, Margin, opened, residuals, summed

_MOST_ROUNDS = 200
_SPREAD = 0.6180339887498949
"""The golden ratio: multiples of it, without their whole part, are spread evenly and never repeat."""


def nearest_whole(table: Floats, margins: Sequence[Margin], *, careful: bool = False) -> Integers:
    """Whole numbers near a table without negative cells; they have those margins that `in_a_chain` keeps.

    `careful` puts missing units into the cells that lost most by rounding as long as margins allow it: it matters
    where a unit is a person, not where it is a millionth.
    """
    chain = in_a_chain(margins)
    whole = np.rint(table).astype(np.int64)
    _give_back(table, whole, chain)
    if careful:
        _make_up(table, whole, chain)
    return whole + _units(residuals(whole, chain), table.shape)


def in_a_chain(margins: Sequence[Margin]) -> list[Margin]:
    """As many of the margins as can be met one after the other, in that order; those inside others are left out.

    What a margin shares with all before it must lie in one of them (the running intersection property).
    """
    sets = [set(margin.axes) for margin in margins]
    left = [
        place
        for place, axes in enumerate(sets)
        if not any(axes < other or (axes == other and place > before) for before, other in enumerate(sets))
    ]
    chain: list[int] = []
    while left:
        # The one that shares most with one before it comes next: if there is an order, this finds one.
        following = max(left, key=lambda place: max((len(sets[place] & sets[other]) for other in chain), default=0))
        left.remove(following)
        met = sets[following] & set().union(*(sets[other] for other in chain))
        if not chain or any(met <= sets[other] for other in chain):
            chain.append(following)
    return [margins[place] for place in chain]


def _give_back(table: Floats, whole: Integers, margins: Sequence[Margin]) -> None:
    """Take units from cells until no margin has too much; first from those that gained most by rounding."""
    for margin in margins:
        for _ in range(_MOST_ROUNDS):
            surplus = np.maximum(summed(whole, margin.axes) - margin.values, 0)
            if not surplus.any():
                break
            cells = np.flatnonzero((opened(surplus, margin.axes, whole.ndim) > 0) & (whole > 0))
            groups = _groups(cells, margin.axes, whole.shape)
            order = np.lexsort(((table.ravel()[cells] - whole.ravel()[cells]), groups))
            cells, groups = cells[order], groups[order]
            each = -(-surplus.ravel() // np.maximum(np.bincount(groups, minlength=surplus.size), 1))
            taken = np.minimum(whole.ravel()[cells], each[groups])
            before = _running(taken, groups) - taken
            whole.reshape(-1)[cells] -= np.clip(surplus.ravel()[groups] - before, 0, taken)


def _make_up(table: Floats, whole: Integers, margins: Sequence[Margin]) -> None:
    """Add a unit to cells that lost most by rounding, as long as every margin of theirs still lacks one."""
    for _ in range(_MOST_ROUNDS):
        lacking = residuals(whole, margins)
        fits = table > whole
        for margin in lacking:
            fits &= opened(margin.values, margin.axes, whole.ndim) > 0
        cells = np.flatnonzero(fits)
        if not len(cells):
            return
        cells = cells[np.argsort(whole.ravel()[cells] - table.ravel()[cells], kind="stable")]
        chosen = np.ones(len(cells), dtype=np.bool_)
        for margin in lacking:
            groups = _groups(cells, margin.axes, whole.shape)
            order = np.argsort(groups, kind="stable")
            ranks = np.empty(len(cells), dtype=np.int64)
            ranks[order] = _running(np.ones(len(cells), dtype=np.int64), groups[order])
            chosen &= ranks <= margin.values.ravel()[groups]
        whole.reshape(-1)[cells[chosen]] += 1


def _units(lacking: Sequence[Margin], shape: Sequence[int]) -> Integers:
    """A table of whole numbers with just these margins: one unit after the other gets a code of every margin.

    The units of a margin are matched with those so far that have the same codes where both have any.
    """
    number = int(lacking[0].values.sum()) if lacking else 0
    codes: dict[int, Integers] = {}
    for place, margin in enumerate(lacking):
        mine = _codes_of_units(margin, number)
        shared = tuple(axis for axis in margin.axes if axis in codes)
        lengths = [shape[axis] for axis in shared]
        spread = (np.arange(number) * (_SPREAD * (place + 1))) % 1.0
        theirs = np.lexsort((spread, _position([codes[axis] for axis in shared], lengths, number)))
        ours = np.argsort(_position([mine[axis] for axis in shared], lengths, number), kind="stable")
        for axis in margin.axes:
            if axis not in codes:
                codes[axis] = np.empty(number, dtype=np.int64)
                codes[axis][theirs] = mine[axis][ours]
    # A dimension without a margin may have any code: the units are spread over all of them.
    for axis, length in enumerate(shape):
        if axis not in codes:
            codes[axis] = np.floor((np.arange(number) * (_SPREAD * (len(lacking) + axis + 2)) % 1.0) * length).astype(
                np.int64
            )
    cells = _position([codes[axis] for axis in range(len(shape))], list(shape), number)
    table: Integers = np.bincount(cells, minlength=int(np.prod(shape))).reshape(tuple(shape)).astype(np.int64)
    return table


def _codes_of_units(margin: Margin, number: int) -> dict[int, Integers]:
    cells = np.repeat(np.arange(margin.values.size), margin.values.ravel())
    if len(cells) != number:
        raise ValueError("margins must have the same total")
    codes = np.unravel_index(cells, margin.values.shape) if margin.axes else ()
    return {axis: code.astype(np.int64) for axis, code in zip(margin.axes, codes, strict=True)}


def _position(codes: Sequence[Integers], lengths: Sequence[int], number: int) -> Integers:
    position = np.zeros(number, dtype=np.int64)
    for code, length in zip(codes, lengths, strict=True):
        position = position * length + code
    return position


def _groups(cells: NDArray[np.intp], axes: Axes, shape: Sequence[int]) -> Integers:
    """The cell of the margin that each cell of the table belongs to."""
    codes = np.unravel_index(cells, tuple(shape))
    return _position([codes[axis].astype(np.int64) for axis in axes], [shape[axis] for axis in axes], len(cells))


def _running(amounts: Integers, groups: Integers) -> Integers:
    """Running sums of amounts that start anew with every group; groups come in order."""
    sums = np.cumsum(amounts)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    begun = np.repeat(sums[starts] - amounts[starts], np.diff(np.append(starts, len(groups))))
    return sums - begun
