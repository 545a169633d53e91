"""Reconcile protected tables that share margins, so that published ones agree; docs/adjust.md says when it helps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import conjugate_gradients
from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension

# Publish no negative counts, at the price of a bias.


def nonnegative(protected: Cells) -> Cells:
    """Raise negative values to zero. Sums of many small cells then come out too high, unless tables are made to agree
    afterwards; the statement says so."""
    columns = dict(protected.columns) | {"value": np.maximum(protected["value"], 0)}
    return Cells(dimensions=protected.dimensions, positions=protected.positions, columns=columns)


# Only published numbers go in, so nothing is spent: it is post-processing. The reconciled values x minimise Σ ((x −
# y)/e)² over all cells of all tables, y being the protected values and e their typical errors, among those whose shared
# margins agree, M·x = 0. Then x = y − E·Mᵀλ with (M·E·Mᵀ)·λ = M·y and E = diag(e²). The system is solved by conjugate
# gradients; M is never written down, it is a difference of sums over cells. As e does not depend on y, x is a fixed
# linear function of y, and right on average wherever y is.

_MOST_ROUNDS, _LEAST_ROUNDS, _MOST_CHANGES = 5_000, 200, 20_000_000
"""Rounds of alternating projections: as many as change so many cells in all, between these two."""
_CLOSE = 1e-8
"""Of a job: sums that agree so far are not made to agree further, which would only be rounding."""
_SETTLED = 1e-6
"""Of a job: how far values without negatives may be from values that agree before they are rounded."""
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
    fixed: bool = False
    """Whether it was published before, and stays as it is."""


Above = Callable[[Dimension, Dimension], Mapping[str, str] | None]
"""The code of the second dimension that each code of the first lies in; None where none follows."""


def unrelated(fine: Dimension, coarse: Dimension) -> Mapping[str, str] | None:  # noqa: ARG001 (an `Above`)
    """No dimension lies in another."""
    return None


@dataclass(frozen=True, kw_only=True)
class SharedSums:
    """The sums that two tables share: for every cell of either, which sum it belongs to."""

    first: str
    second: str
    dimensions: tuple[str, ...]
    first_sums: NDArray[np.intp]
    second_sums: NDArray[np.intp]
    sums: int


def shared_margins(tables: Mapping[str, Protected], above: Above = unrelated) -> list[SharedSums]:
    """The margins that pairs of tables share, down to the grand total; all others follow from these.

    A table inside finer ones agrees with all tables as soon as it agrees with one of them.
    """
    nearest = _nearest(tables, above)
    crossing = (
        (one, other)
        for one, other in combinations((name for name in tables if name not in nearest), 2)
        if tables[one].population == tables[other].population
    )
    pairs = [*crossing, *((finer, name) for name, finer in nearest.items())]
    return [_margin(one, other, tables[one].cells, tables[other].cells, above) for one, other in pairs]


def reconcile(tables: Mapping[str, Protected], above: Above = unrelated) -> dict[str, Floats]:
    """The reconciled values of every table, not rounded; a table that shares nothing keeps its values.

    `above` tells which dimensions are sums of others, beside those of the same name.

    Where tables are to have no negative values, these are the nearest ones that agree and have none, by Dykstra's
    alternating projections: they always come nearer, as there are such values (all zeros are).
    """
    margins = shared_margins(tables, above)
    values = {name: table.cells["value"].astype(np.float64) for name, table in tables.items()}
    variances = {name: np.square(np.nan_to_num(table.errors)) for name, table in tables.items()}
    found = projected(values, variances, margins)
    raised = [name for name, table in tables.items() if table.nonnegative]
    taken = {name: np.zeros_like(values[name]) for name in raised}
    cells = sum(map(len, values.values()))
    for _ in range(min(max(_MOST_CHANGES // max(cells, 1), _LEAST_ROUNDS), _MOST_ROUNDS)):
        if all(found[name].min(initial=0.0) >= -_SETTLED for name in raised):
            break
        for name in raised:
            wished = found[name] + taken[name]
            values[name] = np.maximum(wished, 0.0)
            taken[name] = wished - values[name]
        others = {name: values[name] if name in taken else found[name] for name in tables}
        found = projected(others, variances, margins)
    return {name: np.maximum(found[name], 0.0) if name in taken else found[name] for name in tables}


def rounded(
    tables: Mapping[str, Protected], values: Mapping[str, Floats], above: Above = unrelated
) -> dict[str, Integers]:
    """Reconciled values as whole numbers, whose sums agree too.

    A table inside a finer one is summed from it, so that both agree exactly. Tables that merely cross, such as place ×
    industry and place × sex, come one after the other, each by the sums that it shares with one before it: they agree
    exactly unless they form a ring (place × industry, industry × sex, sex × place), and else up to this rounding.

    Cells are rounded so that sums stay near those of the coarser tables. Each cell to the nearest number would not do:
    agreement moves many small cells by less than a half each, and all of them would be moved back.
    """
    nearest = _nearest(tables, above)
    # Those with few cells first: where there are many, a unit more or less here and there makes up for roundings.
    found: dict[str, Integers] = {name: table.cells["value"] for name, table in tables.items() if table.fixed}
    left = [name for name in tables if name not in nearest and name not in found]
    left.sort(key=lambda name: len(values[name]))
    while left:
        shared = {
            name: [
                _margin(other, name, tables[other].cells, tables[name].cells, above)
                for other in found
                if tables[other].population == tables[name].population
            ]
            for name in left
        }
        most = {name: max(some, key=lambda margin: margin.sums) for name, some in shared.items() if some}
        name = max(most, key=lambda name: most[name].sums, default=left[0])
        inside = [other for other in nearest if other not in found and _finest(other, nearest) == name]
        wanted = [
            (margin, _whole_sums(np.rint(values[other]).astype(np.int64), margin))
            for other in sorted(inside, key=lambda other: -len(values[other]))
            for margin in [_margin(other, name, tables[other].cells, tables[name].cells, above)]
        ]
        if name in most:  # last, so that it is met in any case
            wanted.append((most[name], _whole_sums(found[most[name].first], most[name])))
        found[name] = _rounded(values[name], wanted, nonnegative=tables[name].nonnegative)
        left.remove(name)
    for name, finer in nearest.items():
        if name not in found:
            margin = _margin(finer, name, tables[finer].cells, tables[name].cells, above)
            whole = _whole_sums(found[finer], margin)[margin.second_sums]
            found[name] = np.maximum(whole, 0) if tables[name].nonnegative else whole
    return {name: found[name] for name in tables}


_TURNS = 8
"""So often sums are met one after the other; each time there is less to move."""


def _rounded(values: Floats, wanted: Sequence[tuple[SharedSums, Integers]], *, nonnegative: bool) -> Integers:
    """Values as whole numbers near them, with these sums or nearly so: those that come last are met exactly."""
    whole: Integers = np.rint(values).astype(np.int64)
    for _ in range(_TURNS if len(whole) else 0):
        moved = [_move(whole, values, margin, sums, nonnegative=nonnegative) for margin, sums in wanted]
        if not any(moved[:-1]):  # those before the last were met already, and it is met now
            break
    return np.maximum(whole, 0) if nonnegative else whole


def _move(whole: Integers, values: Floats, margin: SharedSums, wanted: Integers, *, nonnegative: bool) -> int:
    """Add units to cells, or take them away, until sums are as wanted: first where rounding lost most, or gained."""
    sums = margin.second_sums
    lacking = wanted - np.bincount(sums, whole, margin.sums).astype(np.int64)
    cells = np.flatnonzero(lacking[sums])
    if not len(cells):
        return 0
    sums = sums[cells]
    number = np.bincount(sums, minlength=margin.sums)
    each, more = np.divmod(lacking, np.maximum(number, 1))
    # Nothing is taken where nothing is.
    lost = np.where((whole[cells] <= 0) & nonnegative, np.inf, values[cells] - whole[cells])
    order = np.lexsort((-lost, sums))
    rank = np.empty(len(cells), dtype=np.int64)
    rank[order] = np.arange(len(cells)) - np.repeat(np.cumsum(number) - number, number)
    whole[cells] += each[sums] + (rank < more[sums])
    return len(cells)


def _finest(name: str, nearest: Mapping[str, str]) -> str:
    """The table that a table is summed from in the end."""
    while name in nearest:
        name = nearest[name]
    return name


def _whole_sums(values: Integers, margin: SharedSums) -> Integers:
    found = np.zeros(margin.sums, dtype=np.int64)
    np.add.at(found, margin.first_sums, values)
    return found


def _nearest(tables: Mapping[str, Protected], above: Above) -> dict[str, str]:
    """Of each table inside finer ones, the one with the fewest cells, in an order in which that comes before it."""
    order = sorted(tables, key=lambda name: -len(tables[name].cells))  # a finer table has no fewer cells
    found = {}
    for place, name in enumerate(order):
        for finer in reversed(order[:place]):
            one, other = tables[name], tables[finer]
            if one.population == other.population and lies_in(one.cells, other.cells, above):
                found[name] = finer
                break
    return found


def lies_in(coarser: Cells, finer: Cells, above: Above) -> bool:
    """Whether each cell of a table follows from the cell of a finer one."""
    return all(follows(dimension, finer, above) for dimension in coarser.dimensions)


def follows(dimension: Dimension, cells: Cells, above: Above) -> bool:
    """Whether the code of a dimension follows from the cell of a table."""
    return any(own.name == dimension.name or above(own, dimension) is not None for own in cells.dimensions)


def projected(
    values: Mapping[str, Floats],
    variances: Mapping[str, Floats],
    margins: Sequence[SharedSums],
    precision: float = _PRECISION,
) -> dict[str, Floats]:
    """The nearest values whose margins agree."""
    system = _System(variances=variances, margins=margins)
    target = [_difference(values, margin) for margin in margins]
    # Differences of large sums are known to their rounding only; the system is singular, and beyond it solutions grow.
    largest = max((float(np.abs(value).sum()) for value in values.values()), default=0.0)
    close = max(_CLOSE, 1e-13 * largest)
    multipliers, _ = conjugate_gradients(system, target, enough=close, precision=precision, most=_MOST_STEPS)
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


def _margin(one: str, other: str, first: Cells, second: Cells, above: Above) -> SharedSums:
    names = {dimension.name for dimension in first.dimensions}
    shared = [dimension for dimension in first.dimensions if follows(dimension, second, above)]
    shared += [
        dimension for dimension in second.dimensions if dimension.name not in names and follows(dimension, first, above)
    ]
    both = [_position(cells, shared, above) for cells in (first, second)]
    _, where = np.unique(np.concatenate(both), return_inverse=True)
    return SharedSums(
        first=one,
        second=other,
        dimensions=tuple(dimension.name for dimension in shared),
        first_sums=where[: len(first)],
        second_sums=where[len(first) :],
        sums=int(where.max(initial=-1)) + 1,
    )


def _position(cells: Cells, shared: Sequence[Dimension], above: Above) -> Integers:
    """The place of every cell in the product of some dimensions, which are its own or follow from them."""
    position = np.zeros(len(cells), dtype=np.int64)
    for dimension in shared:
        # Cells with codes that are in none, as `where` leaves them out, hold nothing: like others that one table lacks.
        position = position * (len(dimension) + 1) + _places(cells, dimension, above) + 1
    return position


def _places(cells: Cells, dimension: Dimension, above: Above) -> Integers:
    """The place of every cell among the codes of a dimension; −1 where it is in none."""
    if dimension.name in (own.name for own in cells.dimensions):
        return cells.codes(dimension.name)
    own, lies = next((own, found) for own in cells.dimensions if (found := above(own, dimension)) is not None)
    places = np.array([dimension.places.get(lies.get(code, ""), -1) for code in own.codes], dtype=np.int64)
    return places[cells.codes(own.name)]
