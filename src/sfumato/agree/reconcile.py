"""Reconcile protected tables that share margins, so that published ones agree; docs/adjust.md says when it helps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import conjugate_gradients
from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells

# Publish no negative counts, at the price of a bias.


def nonnegative(protected: Cells) -> Cells:
    """Raise negative values to zero. Sums of many small cells then come out too high; the statement says so."""
    columns = dict(protected.columns) | {"value": np.maximum(protected["value"], 0)}
    return Cells(dimensions=protected.dimensions, positions=protected.positions, columns=columns)


# Only published numbers go in, so nothing is spent: it is post-processing. The reconciled values x minimise Σ ((x −
# y)/e)² over all cells of all tables, y being the protected values and e their typical errors, among those whose shared
# margins agree, M·x = 0. Then x = y − E·Mᵀλ with (M·E·Mᵀ)·λ = M·y and E = diag(e²). The system is solved by conjugate
# gradients; M is never written down, it is a difference of sums over cells.

_MOST_ROUNDS = 50
_MOST_STEPS = 1_000
_PRECISION = 1e-9


@dataclass(frozen=True, kw_only=True)
class Protected:
    """A protected table with the typical error of every cell, all of them published numbers."""

    cells: Cells
    errors: Floats
    """NaN where a method tells none: such cells stay as they are."""
    population: Any = None
    """Only tables about the same population are reconciled: what `where` keeps, for instance."""
    nonnegative: bool = False


@dataclass(frozen=True, kw_only=True)
class SharedSums:
    """The sums that two tables share: for every cell of either, which sum it belongs to."""

    first: str
    second: str
    dimensions: tuple[str, ...]
    first_sums: NDArray[np.intp]
    second_sums: NDArray[np.intp]
    sums: int


def shared_margins(tables: Mapping[str, Protected]) -> list[SharedSums]:
    """The margins that pairs of tables share, down to the grand total."""
    return [
        _margin(one, other, tables[one].cells, tables[other].cells)
        for one, other in combinations(tables, 2)
        if tables[one].population == tables[other].population
    ]


def reconcile(tables: Mapping[str, Protected]) -> dict[str, Floats]:
    """The reconciled values of every table, not rounded; a table that shares nothing keeps its values.

    Where a table is to have no negative values, cells that came out negative are set to 0 and the others are reconciled
    again, until there are none left.
    """
    margins = shared_margins(tables)
    values = {name: table.cells["value"].astype(np.float64) for name, table in tables.items()}
    variances = {name: np.square(np.nan_to_num(table.errors)) for name, table in tables.items()}
    for _ in range(_MOST_ROUNDS):
        found = _projected(values, variances, margins)
        negative = {name: (found[name] < 0) & tables[name].nonnegative for name in tables}
        if not any(part.any() for part in negative.values()):
            return found
        for name, part in negative.items():
            values[name] = np.where(part, 0.0, values[name])
            variances[name] = np.where(part, 0.0, variances[name])  # it stays where it is
    return {name: np.maximum(found[name], 0) if tables[name].nonnegative else found[name] for name in tables}


def rounded(tables: Mapping[str, Protected], values: Mapping[str, Floats]) -> dict[str, Integers]:
    """Reconciled values as whole numbers; a table inside a finer one is summed from it, so that both agree exactly.

    Tables that merely cross, such as place × industry and place × sex, agree up to this rounding.
    """
    found: dict[str, Integers] = {}
    for name in sorted(tables, key=lambda name: -len(tables[name].cells.dimensions)):
        finer = next((other for other in found if is_finer(tables[other], tables[name])), None)
        if finer is None:
            whole = np.rint(values[name]).astype(np.int64)
        else:
            margin = _margin(finer, name, tables[finer].cells, tables[name].cells)
            whole = np.zeros(margin.sums, dtype=np.int64)
            np.add.at(whole, margin.first_sums, found[finer])
            whole = whole[margin.second_sums]
        found[name] = np.maximum(whole, 0) if tables[name].nonnegative else whole
    return {name: found[name] for name in tables}


def largest_detail(tables: Mapping[str, Protected], name: str) -> Integers:
    """The most that one establishment can have in every cell of a table, going by the published values of all tables.

    An establishment lies in one cell of every finer table by workplace attributes, so it is no larger than the largest
    of these cells, which may be far below the count. Noise makes this an estimate; as a weight it need not be more.
    """
    table = tables[name]
    bound = np.maximum(table.cells["value"], 0)
    for other, finer in tables.items():
        if other == name or not is_finer(finer, table) or not _by_workplace(finer, table):
            continue
        margin = _margin(other, name, finer.cells, table.cells)
        largest = np.zeros(margin.sums, dtype=np.int64)
        np.maximum.at(largest, margin.first_sums, finer.cells["value"])
        bound = np.minimum(bound, largest[margin.second_sums])
    return bound


def is_finer(finer: Protected, table: Protected) -> bool:
    """Whether a table has all dimensions of another one, and more, about the same population."""
    ours, theirs = ({d.name for d in t.cells.dimensions} for t in (finer, table))
    return ours > theirs and finer.population == table.population


def _by_workplace(finer: Protected, table: Protected) -> bool:
    names = {dimension.name for dimension in table.cells.dimensions}
    return all(dimension.public for dimension in finer.cells.dimensions if dimension.name not in names)


def _projected(
    values: Mapping[str, Floats], variances: Mapping[str, Floats], margins: Sequence[SharedSums]
) -> dict[str, Floats]:
    """The nearest values whose margins agree."""
    system = _System(variances=variances, margins=margins)
    target = [_difference(values, margin) for margin in margins]
    multipliers, _ = conjugate_gradients(system, target, precision=_PRECISION, most=_MOST_STEPS)
    steps = system.transposed(multipliers)
    return {name: value - variances[name] * steps[name] for name, value in values.items()}


@dataclass(frozen=True, kw_only=True)
class _System:
    """M·E·Mᵀ as an operation on one vector of sums for every margin."""

    variances: Mapping[str, Floats]
    margins: Sequence[SharedSums]

    def transposed(self, multipliers: Sequence[Floats]) -> dict[str, Floats]:
        steps = {name: np.zeros(len(variance)) for name, variance in self.variances.items()}
        for margin, multiplier in zip(self.margins, multipliers, strict=True):
            steps[margin.first] += multiplier[margin.first_sums]
            steps[margin.second] -= multiplier[margin.second_sums]
        return steps

    def times(self, multipliers: Sequence[Floats]) -> list[Floats]:
        steps = self.transposed(multipliers)
        moved = {name: self.variances[name] * step for name, step in steps.items()}
        return [_difference(moved, margin) for margin in self.margins]

    def diagonal(self) -> list[Floats]:
        found = []
        for margin in self.margins:
            both = _sums(self.variances[margin.first], margin.first_sums, margin.sums)
            both = both + _sums(self.variances[margin.second], margin.second_sums, margin.sums)
            found.append(np.where(both > 0, both, 1.0))
        return found


def _difference(columns: Mapping[str, Floats], margin: SharedSums) -> Floats:
    first = _sums(columns[margin.first], margin.first_sums, margin.sums)
    return first - _sums(columns[margin.second], margin.second_sums, margin.sums)


def _sums(column: Floats, where: NDArray[np.intp], number: int) -> Floats:
    return np.bincount(where, weights=column, minlength=number).astype(np.float64, copy=False)


def _margin(one: str, other: str, first: Cells, second: Cells) -> SharedSums:
    names = {dimension.name for dimension in second.dimensions}
    shared = [dimension for dimension in first.dimensions if dimension.name in names]
    _, where = np.unique(np.concatenate([_position(first, shared), _position(second, shared)]), return_inverse=True)
    return SharedSums(
        first=one,
        second=other,
        dimensions=tuple(dimension.name for dimension in shared),
        first_sums=where[: len(first)],
        second_sums=where[len(first) :],
        sums=int(where.max(initial=-1)) + 1,
    )


def _position(cells: Cells, shared: Sequence[Any]) -> Integers:
    position = np.zeros(len(cells), dtype=np.int64)
    for dimension in shared:
        position = position * len(dimension) + cells.codes(dimension.name)
    return position
