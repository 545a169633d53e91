"""Tables of whole numbers, none negative, with given margins; and whether there is one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import (
    Axes,
    Margin,
    nonnegative_change,
    opened,
    residuals,
    smallest_change,
    summed,
    within,
)
from sfumato.arrays import Floats, Integers

# A table of whole numbers, none negative, with given margins, near a table of fractions.
#
# Numbers are rounded; where a margin then has too much, cells that gained most by rounding give it back; what margins
# still lack is made of pieces that carry one code of every margin. This needs margins that can be put in an order in
# which each meets those before it inside one of them, such as any set of one-way tables: `in_a_chain` picks such an
# order. docs/methods/hypercube.md has the proof.

_MOST_ROUNDS = 200
_SPREAD = 0.6180339887498949
"""The golden ratio: multiples of it, without their whole part, are spread evenly and never repeat."""
_MOST_PIECES = 100_000
"""What is missing is put together unit by unit, unless there are more units than this: then in larger pieces."""


def nearest_whole(table: Floats, margins: Sequence[Margin], *, careful: bool = False) -> Integers:
    """Whole numbers near a table without negative cells; they have those margins that `in_a_chain` keeps.

    `careful` puts missing units into the cells that lost most by rounding as long as margins allow it: it matters
    where a unit is a person, not where it is a millionth.
    """
    chain = in_a_chain(margins)
    whole = np.asarray(np.rint(table)).astype(np.int64)
    _give_back(table, whole, chain)
    if careful:
        _make_up(table, whole, chain)
    return np.asarray(whole + _made_up(residuals(whole, chain), table.shape))


def in_a_chain(margins: Sequence[Margin]) -> list[Margin]:
    """As many of the margins as can be met one after the other, in that order; those inside others are left out.

    What a margin shares with all before it must lie in one of them (the running intersection property).
    """
    return [margins[place] for place in _chain([margin.axes for margin in margins])[0]]


def make_a_chain(tables: Sequence[Axes]) -> bool:
    """Whether tables by these axes can all be met that way: then some table without negative cells has them as margins.

    >>> make_a_chain([(0, 1), (1, 2), (3,)]), make_a_chain([(0, 1), (1, 2), (0, 2)])
    (True, False)
    """
    return not _chain(tables)[1]


def _chain(tables: Sequence[Axes]) -> tuple[list[int], list[int]]:
    """The places of the tables that are met, in order, and of those that close a ring."""
    sets = [set(axes) for axes in tables]
    left = [
        place
        for place, axes in enumerate(sets)
        if not any(axes < other or (axes == other and place > before) for before, other in enumerate(sets))
    ]
    chain: list[int] = []
    ring: list[int] = []
    while left:
        # The one that shares most with one before it comes next: if there is an order, this finds one.
        following = max(left, key=lambda place: max((len(sets[place] & sets[other]) for other in chain), default=0))
        left.remove(following)
        met = sets[following] & set().union(*(sets[other] for other in chain))
        fits = not chain or any(met <= sets[other] for other in chain)
        (chain if fits else ring).append(following)
    return chain, ring


def _give_back(table: Floats, whole: Integers, margins: Sequence[Margin]) -> None:
    """Take units from cells until no margin has too much; first from those that gained most by rounding."""
    for margin in margins:
        for turn in range(_MOST_ROUNDS):
            surplus = np.maximum(summed(whole, margin.axes) - margin.values, 0)
            if not surplus.any():
                break
            cells = np.flatnonzero((opened(surplus, margin.axes, whole.ndim) > 0) & (whole > 0))
            groups = _groups(cells, margin.axes, whole.shape)
            order = np.lexsort(((table.ravel()[cells] - whole.ravel()[cells]), groups))
            cells, groups = cells[order], groups[order]
            each = -(-surplus.ravel() // np.maximum(np.bincount(groups, minlength=surplus.size), 1))
            # A little of every cell; in the last round all that it takes, cell by cell.
            taken = whole.ravel()[cells]
            taken = taken if turn == _MOST_ROUNDS - 1 else np.minimum(taken, each[groups])
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


def _made_up(lacking: Sequence[Margin], shape: Sequence[int]) -> Integers:
    """A table of whole numbers with just these margins, made of pieces that get a code of every margin, one by one.

    The pieces of a margin are laid along those so far, within groups of equal codes where both have any, and cut where
    either ends: groups have the same amounts, because margins agree.
    """
    number = int(lacking[0].values.sum()) if lacking else 0
    size = max(-(-number // _MOST_PIECES), 1)
    amounts, codes = _cut(np.array([number]), size)[0], dict[int, Integers]()
    for place, margin in enumerate(lacking):
        ours, cells = _cut(margin.values.ravel(), size)
        if int(ours.sum()) != number:
            raise ValueError("margins must have the same total")
        mine = dict(zip(margin.axes, _codes(cells, margin.values.shape), strict=True))
        shared = tuple(axis for axis in margin.axes if axis in codes)
        lengths = [shape[axis] for axis in shared]
        first = np.lexsort(
            (_spread(len(amounts), place + 1), _position([codes[axis] for axis in shared], lengths, len(amounts)))
        )
        second = np.argsort(_position([mine[axis] for axis in shared], lengths, len(ours)), kind="stable")
        ends, others = np.cumsum(amounts[first]), np.cumsum(ours[second])
        cuts = np.union1d(ends, others)
        first, second = first[np.searchsorted(ends, cuts)], second[np.searchsorted(others, cuts)]
        amounts = np.diff(cuts, prepend=0)
        codes = {axis: code[first] for axis, code in codes.items()} | {
            axis: code[second] for axis, code in mine.items() if axis not in shared
        }
    # A dimension without a margin may have any code: the pieces are spread over all of them.
    for axis, length in enumerate(shape):
        if axis not in codes:
            codes[axis] = np.floor(_spread(len(amounts), len(lacking) + axis + 2) * length).astype(np.int64)
    table = np.zeros(shape, dtype=np.int64)
    np.add.at(table.reshape(-1), _position([codes[axis] for axis in range(len(shape))], shape, len(amounts)), amounts)
    return table


def _cut(amounts: Integers, size: int) -> tuple[Integers, Integers]:
    """Amounts in pieces of at most this size, none empty, and which of them each piece is of."""
    pieces = -(-amounts // size)
    whose = np.repeat(np.arange(len(amounts)), pieces)
    last = np.cumsum(pieces)[pieces > 0] - 1
    cut = np.full(len(whose), size, dtype=np.int64)
    cut[last] = (amounts - (pieces - 1) * size)[pieces > 0]
    return cut, whose


def _codes(cells: Integers, shape: Sequence[int]) -> list[Integers]:
    return [code.astype(np.int64) for code in np.unravel_index(cells, tuple(shape))] if len(shape) else []


def _spread(pieces: int, turn: int) -> Floats:
    """A number from 0 to 1 for each piece, such that neighbours get distant ones."""
    return np.asarray((np.arange(pieces) * (_SPREAD * turn)) % 1.0, dtype=np.float64)


def _position(codes: Sequence[Integers], lengths: Sequence[int], number: int) -> Integers:
    position = np.zeros(number, dtype=np.int64)
    for code, length in zip(codes, lengths, strict=True):
        position = position * length + code
    return position


def _groups(cells: NDArray[np.intp], axes: Axes, shape: Sequence[int]) -> Integers:
    """The cell of the margin that each cell of the table belongs to."""
    codes = _codes(cells, shape)
    return _position([codes[axis] for axis in axes], [shape[axis] for axis in axes], len(cells))


def _running(amounts: Integers, groups: Integers) -> Integers:
    """Running sums of amounts that start anew with every group; groups come in order."""
    sums = np.cumsum(amounts)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    begun = np.repeat(sums[starts] - amounts[starts], np.diff(np.append(starts, len(groups))))
    return sums - begun


# Margins that one table without negative cells has: whether there is one, and those nearest to margins with noise.
#
# Margins may agree two by two without being the margins of any such table, where they close a ring. Only the axes that
# margins have matter: others are summed.

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
    found = nonnegative_change(start, among, enough=max(1.0, 1e-12 * largest))
    return found.gap <= max(_MISSED, 1e-9 * largest)


def joint_margins(shape: Sequence[int], wanted: Sequence[Wanted], exact: Sequence[Margin]) -> list[Margin]:
    """The margins wanted, changed as little as possible, in their typical errors, until one table has them all.

    It has no negative cell, it is of whole numbers, and it has the exact margins, as far as these make a chain.
    """
    every = [*exact, *(part.margin for part in wanted)]
    lengths, among = _among_themselves(shape, every)
    largest = max(part.variance for part in wanted)
    slack = [0.0] * len(exact) + [part.variance / (_LOOSE * largest) for part in wanted]
    start = np.rint(np.maximum(smallest_change(lengths, among).cells, 0)).astype(np.int64)
    found = nonnegative_change(
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


# Give a table of whole numbers exactly the margins it should have; docs/methods/hypercube.md has the proof.


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


# A margin in whole numbers that agrees exactly with margins that are known already.


def whole_margin(axes: Axes, table: Floats, known: Sequence[Margin], *, nonnegative: bool) -> Margin:
    """The margin rounded to whole numbers with exactly the sums that the known ones have where they share dimensions.

    Known margins agree with each other, so what they ask of this one does, too, and can be met.
    """
    targets = required_sums(axes, known)
    whole = nearest_whole(np.maximum(table, 0), targets) if nonnegative else np.asarray(np.rint(table)).astype(np.int64)
    if targets:
        whole = met_in_reference_cells(whole, targets, base=largest_codes(targets, whole.ndim))
    return Margin(axes=axes, values=whole)


def required_sums(axes: Axes, known: Sequence[Margin]) -> list[Margin]:
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
