"""What a published cube gives away: its digits, and its tables beside rules of suppression."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import Axes, Numbers
from sfumato.arrays import Flags, Floats, Integers
from sfumato.measures.attacks import AttackResult
from sfumato.measures.formulas import mean
from sfumato.measures.risk import (
    SizeOdds,
    Suppression,
    Uniques,
    ZeroChanges,
    below_threshold,
    fails_p_percent,
    is_dominated,
    size_odds,
    uniques,
    zero_changes,
)
from sfumato.privacy.guarantee import Guarantee
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.figures import Figures, Scale
from sfumato.statistics.cube.section import COUNT, WEIGHTED, CubeSection

# An attack on a published cube: read off the digits of a column which cells hold records.
#
# Noise is in whole units: averages, or those of weights. If numbers were not rounded to them first, an empty cell would
# be a whole number of units, and a cell with a record hardly ever. Calibration by least squares adds to a cell what
# depends on its codes in the controls, which differences between cells take away again: with a code exchanged, once in
# each of some dimensions that no control has all of, the alternating sum of cells is a whole number of units if they
# are all empty. After raking it is ratios instead of differences. docs/methods/hypercube.md explains it. The attack
# uses what is published; true counts only judge it.

MOST_COMPARED = 24
"""So many comparisons with other cells are made for each cell."""
_ROUNDING = 8
"""Times the root of the number of cells: the units that rounding can move a cell by, after calibration."""
_LARGEST_ROUNDING = 0.01
"""As a share of one unit of noise; beyond this too much would seem to be a whole number by chance."""
_UNITS = 60
_SAME_RATIO = 1e-7
"""Ratios of numbers of units up to 60 are known to the reader, and found again to this precision."""
_NEAR_ONE = 0.75
"""What raking may have multiplied by, at least, where a number of units is told from the size of a cell."""


@dataclass(frozen=True, kw_only=True)
class CellsFound:
    """What one column tells about which cells hold records."""

    attack: str
    """By digits, by ratios after raking, or by the difference of two columns."""
    column: str
    told: int
    """Cells that the attack says hold records."""
    found: int
    """Those of them that do."""
    holding: int
    """All cells that hold records."""
    by_chance: float
    """How many of as many cells, picked blindly among those published above 0, would hold records."""


def attack_cube(published: Cube, figures: Figures, true: Cube, section: CubeSection) -> tuple[CellsFound, ...]:
    """Attack every column beside the counts, which are whole numbers as their noise is; then two columns together."""
    controls = [published.axes(control.by) for control in section.controls]
    raked = section.calibration == "raking" and bool(controls)
    found = []
    for column in (name for name in published.columns if name != COUNT):
        values, scale = published[column], figures.noise[column].scale
        if raked:
            found.append(judged("ratios", column, cells_by_ratios(values, controls, scale), values, true))
        else:
            told = cells_by_digits(values, controls, scale, nonnegative=section.nonnegative)
            found.append(judged("digits", column, told, values, true))
    if WEIGHTED in published.columns:
        left = without_shared_noise(published, figures)
        found.append(judged("difference", WEIGHTED, left.holding, published[WEIGHTED], true))
    return tuple(found)


# Another attack on a published cube: take the noise of the counts away from the weighted counts.
#
# Where both have the same draws, as Li and Krenzke (2020) have it, count + j and weighted + j·w̄, the average weight w̄
# times the first less the second has no j. It is 0 in an empty cell and hardly ever in another, and of one record it
# tells the weight. Calibration by least squares changes both columns alike and leaves it as it is. Where columns have
# draws of their own, two draws are in it instead of none.

_ALONE = 0.5
"""Records: a cell published within this of one record seems to have one."""


@dataclass(frozen=True, kw_only=True)
class NoiseTakenAway:
    """Weighted counts less the average weight times the counts, cell by cell, in parts of a weighted count."""

    difference: Floats
    unit: Floats
    """The average weight."""
    rounding: Floats
    """By how much rounding to whole parts may have changed a difference."""

    @property
    def holding(self) -> Flags:
        """The cells that hold records, if both columns share their draws.

        The cells in which calibration meets its controls to the last part take up the rounding of many others.
        """
        return np.asarray(np.abs(self.difference) > self.rounding * self.difference.size**0.5)

    @property
    def weights(self) -> Floats:
        """The weights of records that are alone in their cells, if both columns share their draws."""
        return self.difference + self.unit


def without_shared_noise(published: Cube, figures: Figures) -> NoiseTakenAway:
    """Take the noise of the counts away from the weighted counts, as if it were the same."""
    axes = tuple(range(len(published.dimensions)))
    unit = np.broadcast_to(np.asarray(figures.noise[WEIGHTED].scale.laid(axes)), published.shape)
    one = published.parts[COUNT]
    counts, left = np.divmod(published[COUNT], one)
    # After calibration a count is a whole number of millionths, each of them this much of a weighted count.
    rounding = np.zeros(published.shape) if figures.calibration is None else _ROUNDING * (1 + unit / one)
    return NoiseTakenAway(
        difference=(published[WEIGHTED] - unit * counts) - unit * (left / one),
        unit=unit.astype(np.float64),
        rounding=rounding,
    )


def weights_attack(published: Cube, figures: Figures, true: Cube) -> tuple[AttackResult, ...]:
    """Read the weight of records that are alone in their cell: those who seem to be, and those known to be.

    It succeeds where the weight is told as exactly as rounding allows. The guess: the average weight.
    """
    left, alone = without_shared_noise(published, figures), true[COUNT] == 1
    seems = np.abs(published.values(COUNT) - 1) < _ALONE
    near = left.rounding + 1  # of weights in whole parts
    told = np.abs(left.weights - true[WEIGHTED]) <= near
    guessed = np.abs(left.unit - true[WEIGHTED]) <= near
    return tuple(
        AttackResult(
            attack=attack,
            targets=int(alone.sum()),
            successes=int((told & alone & chosen).sum()),
            guessed=int((guessed & alone).sum()),
        )
        for attack, chosen in (("weight, published as alone", seems), ("weight, known to be alone", alone))
    )


def judged(attack: str, column: str, told: Flags, values: Integers, true: Cube) -> CellsFound:
    """How many of the cells that the attack tells do hold records."""
    holding, above = true[COUNT] > 0, values > 0
    number, most = int(told.sum()), int(holding.sum())
    return CellsFound(
        attack=attack,
        column=column,
        told=number,
        found=int((told & holding).sum()),
        holding=most,
        by_chance=min(number * (float(holding[above].mean()) if above.any() else 0.0), float(most)),
    )


def cells_by_digits(values: Integers, controls: Collection[Axes], scale: Scale, *, nonnegative: bool) -> Flags:
    """The cells of which no comparison with others comes out as a number of units.

    With `nonnegative` cells at 0 were moved there, so they tell nothing and are compared with nothing.
    """
    view = _View.of(values.shape, controls, scale)
    table, unit = view.taken(values), view.taken(view.unit)
    usable = table > 0 if nonnegative else np.ones(table.shape, dtype=np.bool_)

    def whole(difference: Integers, moves: int) -> Flags:
        left = difference % unit
        return np.asarray(np.minimum(left, unit - left) <= view.rounding(moves, unit))

    return view.unmatched(table, lambda _: usable, whole)


def cells_by_ratios(values: Integers, controls: Collection[Axes], scale: Scale) -> Flags:
    """Digits after raking: empty cells without noise stay 0, and others are to each other like numbers of units."""
    view = _View.of(values.shape, controls, scale)
    table, unit = view.taken(values), view.taken(view.unit)
    some = table != 0
    logarithms: Floats = np.log(np.abs(np.where(some, table, 1)).astype(np.float64))
    units = np.log(np.arange(1, _UNITS + 1))
    ratios = np.unique((units[:, None] - units[None, :]).ravel())

    def small(moves: int) -> Flags:
        # Of larger numbers the products on either side of a ratio would be beyond those that are known.
        return np.asarray(some & (np.abs(table) <= _NEAR_ONE * _UNITS ** (2.0 ** (1 - max(moves, 1))) * unit))

    def known(difference: Floats, _: int) -> Flags:
        near = np.clip(np.searchsorted(ratios, difference), 1, len(ratios) - 1)
        off = np.minimum(np.abs(difference - ratios[near]), np.abs(difference - ratios[near - 1]))
        return np.asarray(off <= _SAME_RATIO)

    return view.unmatched(logarithms, small, known)


@dataclass(frozen=True, kw_only=True)
class _View:
    """The cube with dimensions that are in the same controls taken as one."""

    unit: Integers
    """One unit of noise in every cell."""
    before: tuple[int, ...]
    order: list[int]
    shape: tuple[int, ...]
    fixed: list[Axes]
    """The controls, by the new dimensions."""

    @classmethod
    def of(cls, shape: tuple[int, ...], controls: Collection[Axes], scale: Scale) -> "_View":
        """A unit of noise depends on the stratum, so no two strata are compared: it counts as part of every control."""
        apart = set[int]() if scale.axis is None else {scale.axis}
        known = [set(axes) | apart for axes in controls]
        alike: dict[tuple[bool, ...], list[int]] = {}
        for axis in range(len(shape)):
            alike.setdefault((axis in apart, *(axis in axes for axes in known)), []).append(axis)
        groups = list(alike.values())
        return cls(
            unit=np.broadcast_to(np.asarray(scale.laid(tuple(range(len(shape))))), shape),
            before=shape,
            order=[axis for group in groups for axis in group],
            shape=tuple(prod(shape[axis] for axis in group) for group in groups),
            fixed=[tuple(place for place, group in enumerate(groups) if group[0] in axes) for axes in known],
        )

    def taken(self, table: NDArray[Any]) -> NDArray[Any]:
        """A table by the new dimensions."""
        return np.transpose(table, self.order).reshape(self.shape)

    def rounding(self, moves: int, unit: Integers) -> Floats | float:
        """By how much rounding may have changed a comparison; nothing was rounded where no cell was calibrated."""
        if not moves:
            return 0.0
        most = max(2.0**moves, _ROUNDING * prod(self.shape) ** 0.5)
        return np.asarray(np.minimum(most, _LARGEST_ROUNDING * unit))

    def unmatched(
        self, table: Numbers, usable: Callable[[int], Flags], empty: Callable[[Numbers, int], Flags]
    ) -> Flags:
        """The cells that can be compared, and of which no comparison looks like one of empty cells."""
        compared, matched = np.zeros(self.shape, dtype=np.bool_), np.zeros(self.shape, dtype=np.bool_)
        for shifts in self.comparisons():
            difference, fit = table, usable(len(shifts))
            for axis, shift in shifts:
                difference = difference - np.roll(difference, shift, axis=axis)
                fit = fit & np.roll(fit, shift, axis=axis)
            matched |= fit & empty(difference, len(shifts))
            compared |= fit
        told = (compared & ~matched).reshape([self.before[axis] for axis in self.order])
        return np.asarray(np.transpose(told, np.argsort(self.order)))

    def comparisons(self) -> Iterator[tuple[tuple[int, int], ...]]:
        """Sets of axes and by how far to move along each: all least sets that no control has all of."""
        sets = self._least_sets()
        for axes in sets[:MOST_COMPARED]:
            others = [self.shape[axis] - 1 for axis in axes]
            ways, wanted = prod(others), -(-MOST_COMPARED // len(sets))
            for way in np.unique(np.linspace(0, ways - 1, min(ways, wanted)).astype(np.int64)):
                moves = np.unravel_index(int(way), others) if axes else ()
                yield tuple((axis, int(move) + 1) for axis, move in zip(axes, moves, strict=True))

    def _least_sets(self) -> list[Axes]:
        """The smallest come first; where there is no control, a cell need not be compared with any other."""
        movable = [axis for axis, length in enumerate(self.shape) if length > 1]
        found: list[Axes] = []
        for size in range(len(movable) + 1):
            for axes in combinations(movable, size):
                inside = any(set(axes) <= set(control) for control in self.fixed)
                if not inside and not any(set(smaller) <= set(axes) for smaller in found):
                    found.append(axes)
        return found


# What the tables of a published cube reveal about numbers of records, beside what rules of suppression would hide.

NEAR_ZERO = 0.5
"""Records; a cell with at most so many is near zero."""
SAME = 0.001
"""Records; a count that is published within this is the true one."""
MORE_RECORDS = (1, 2, 3, 5, 10)
"""By how many records two possible contents of the data differ, whose odds are bounded."""
SEEN = (0, 1, 2, 3)
"""Published numbers of records, rounded, of which it is told what they mean."""


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a cell published as so many records truly is: the belief of a reader who knows how common cells are."""

    published: int
    cells: int
    holding: float
    """The share of them that hold a record at all."""
    right: float
    """The share of them that hold just so many."""


@dataclass(frozen=True, kw_only=True)
class CellRisk:
    """What the published counts of some cells reveal."""

    cells: int
    empty: int
    zero_changes: ZeroChanges
    """Cells that went from near zero to non-zero, and back."""
    exact: float
    """The share of cells published with their true count."""
    exact_with_records: float
    uniques: Uniques
    """Cells with a single record: how many truly have one, seem to after rounding, and both."""
    suppression: Suppression
    """What rules would hide where every record counts as one contributor of 1; weights are not looked at."""
    meanings: tuple[Meaning, ...]


def cell_risk(true: Integers, published: Floats) -> CellRisk:
    """Compare true and published numbers of records."""
    same, some = np.abs(published - true) < SAME, true > 0
    rounded = np.rint(published)
    return CellRisk(
        cells=true.size,
        empty=int((~some).sum()),
        zero_changes=zero_changes(true=true, protected=published, near=NEAR_ZERO),
        exact=mean(same),
        exact_with_records=mean(same[some]),
        uniques=uniques(true=true, protected=rounded),
        suppression=_suppressed(true),
        meanings=tuple(_meaning(true, rounded == seen, seen) for seen in SEEN),
    )


def odds_of_records(guarantee: Guarantee) -> tuple[SizeOdds, ...]:
    """How far the whole cube can move the odds between data that differ by some records."""
    return tuple(size_odds(guarantee, smaller=0, larger=more) for more in MORE_RECORDS)


def table_risk(tables: Sequence[tuple[Integers, Floats]]) -> CellRisk:
    """The same for the cells of several tables together."""
    true, published = (np.concatenate([np.ravel(pair[at]) for pair in tables]) for at in (0, 1))
    return cell_risk(true.astype(np.int64), published.astype(np.float64))


def _meaning(true: Integers, cells: NDArray[np.bool_], seen: int) -> Meaning:
    inside = true[cells]
    return Meaning(published=seen, cells=len(inside), holding=mean(inside > 0), right=mean(inside == seen))


def _suppressed(true: Integers) -> Suppression:
    """Every record adds 1, so the largest contributor of a cell has 1, and the second as well if there is one."""
    largest, second = np.minimum(true, 1), np.clip(true - 1, 0, 1)
    few = below_threshold(contributors=true)
    near = fails_p_percent(total=true, largest=largest, second=second)
    dominated = is_dominated(total=true, largest=largest)
    return Suppression(
        cells=int((true > 0).sum()),
        threshold=int(few.sum()),
        p_percent=int(near.sum()),
        dominance=int(dominated.sum()),
        any_rule=int((few | near | dominated).sum()),
    )
