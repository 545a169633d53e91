"""Figures of a published table, and of any table of a cube, summed exactly and remembered."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from threading import Lock
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import Axes, within
from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.core.model import HIDING, Column, Figures, Grouping, Marks, Places, Selection, ServedDimension
from sfumato.serve.core.status import NUMBERS
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.cube_query import STATUSES as OF_CUBES
from sfumato.statistics.cube.cube_query import CubePlaces, CubeQuery, kept_places
from sfumato.statistics.cube.published_cube import PublishedCube

# Finished answers kept in memory, within a bound; the ones asked for least recently go first.

T = TypeVar("T")
_SHARE = 8


class BoundedCache(Generic[T]):
    """A cache that never holds more than a number of bytes, as its user counts them.

    >>> cache = BoundedCache[str](100)
    >>> cache.put("a", "x", size=10)
    >>> cache.get("a"), cache.get("b")
    ('x', None)
    """

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = Lock()

    @property
    def held(self) -> int:
        """Bytes of all that is kept."""
        return self._held

    def get(self, key: Hashable) -> T | None:
        """What is kept under a key."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, thing: T, *, size: int) -> None:
        """Keep a thing of a size; one that would fill a large share of the cache is not kept."""
        if size > self._most // _SHARE:
            return
        with self._lock:
            before = self._kept.pop(key, None)
            self._held += size - (before[1] if before else 0)
            self._kept[key] = (thing, size)
            while self._held > self._most:
                _, (_, freed) = self._kept.popitem(last=False)
                self._held -= freed


# A cube that keeps the tables it was asked for: sums are exact, so a sum of a kept table is the same.

MOST_CELLS = 4_000_000
"""How many cells all kept tables have together, at the most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RememberingCube(Cube):
    """The same cube; the first question by some dimensions takes the time of all its cells, later ones do not."""

    _kept: dict[Axes, Cube] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @classmethod
    def of(cls, cube: Cube) -> "RememberingCube":
        """A cube that remembers, over the same arrays."""
        return cls(dimensions=cube.dimensions, columns=cube.columns, parts=cube.parts)

    def sums(self, by: Axes, kept: Mapping[int, Sequence[int]], columns: Sequence[str] | None = None) -> Cube:
        """The table by some dimensions of the part that has some codes, all told by their places."""
        asked = tuple(sorted({*by, *kept}))
        if len(asked) == len(self.dimensions):
            return super().sums(by, kept, columns)
        places = {asked.index(axis): places for axis, places in kept.items()}
        return self._margin(asked).sums(within(by, asked), places, columns)

    def _margin(self, asked: Axes) -> Cube:
        kept = self._kept.get(asked)
        if kept is None:
            kept = super().sums(asked, {})
            with self._lock:
                if sum(map(len, self._kept.values())) + len(kept) <= MOST_CELLS:
                    self._kept[asked] = kept
        return kept


# Figures of a published table: rows of the bundle, found by their place in the product of the dimensions.

_NO_SUMS = "its figures do not add up, so look for a table by the other dimensions"
Found = NDArray[np.bool_] | None
"""Which combinations of codes have a row; None where all do."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredFigures:
    """The rows of a table, in memory."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    totals: tuple[int | None, ...]
    """Of every axis the place of its protected total, if it has one."""
    positions: Places | None
    """Where the rows lie in the product, ascending; None if every combination has a row, in order."""
    columns: tuple[Column, ...] = field(repr=False)
    """For every metric the figures of all rows."""
    status: Marks | None = field(repr=False)
    """The status of every row, the same for all its figures; None if the table has none."""
    mirrored: tuple[int, ...] | None = None
    """For pairs without direction, which are listed once: the axis whose code each axis takes from the other end."""
    unlisted: "StoredFigures | None" = field(default=None, repr=False)
    """In a sparse table what a combination without a row has, by some of the axes: those that are in its names."""
    additive: bool = True
    """Whether sums of figures are such figures again."""

    def figures(self, selection: Selection) -> Figures:
        """The rows of a selection; a combination without a row is 0, exactly or below a threshold."""
        chosen = [(total,) if p is None else p for p, total in zip(selection.places, self.totals, strict=True)]
        lacking = [axis for axis, places in enumerate(chosen) if places == (None,)]
        if lacking:
            names = ", ".join(f"'{self.names[axis]}'" for axis in lacking)
            raise RefusedError(
                "selection",
                expected="codes for every dimension without a protected total",
                found=f"none for {names}",
                do="choose codes, or * for all; "
                + ("sums of protected cells are left to you, with their errors" if self.additive else _NO_SUMS),
            )
        shape = tuple(len(places) for places in selection.places if places is not None)
        grids = [np.asarray(places, dtype=np.int64) for places in chosen]
        rows, found = self._rows(grids)
        status = self._status(rows, found, shape)
        columns = [self._column(self.columns[metric], rows, found, status, shape) for metric in selection.metrics]
        if self.unlisted is not None and found is not None:
            columns = self._with_unlisted(self.unlisted, selection, columns, found.reshape(shape))
        return Figures(columns=tuple(columns))

    def is_quick(self, _selection: Selection) -> bool:
        """Rows in memory are always found at once."""
        return True

    def _rows(self, grids: list[Places]) -> tuple[Places, Found]:
        """The row of every combination of some places, and which of them have one; None where all do."""
        flat = self._flat(grids)
        if self.positions is None:
            return flat, None
        rows, found = self._looked_up(flat)
        if self.mirrored is not None and not found.all():
            # The order of axes stays that of the question; only the codes change ends.
            spread = np.meshgrid(*grids, indexing="ij")
            other = self._flat_of([spread[axis].ravel() for axis in self.mirrored])
            theirs, there = self._looked_up(other)
            rows, found = np.where(found, rows, theirs), found | there
        return rows, None if found.all() else found

    def _looked_up(self, flat: Places) -> tuple[Places, NDArray[np.bool_]]:
        positions = self.positions if self.positions is not None else flat
        if not len(positions):
            return np.zeros_like(flat), np.zeros(flat.shape, dtype=np.bool_)
        rows = np.minimum(np.searchsorted(positions, flat), len(positions) - 1)
        return rows, positions[rows] == flat

    def _flat(self, grids: list[Places]) -> Places:
        """The place in the product of every combination, in order."""
        flat = np.zeros(1, dtype=np.int64)
        for grid, length in zip(grids, self.shape, strict=True):
            flat = (flat[:, None] * length + grid[None, :]).ravel()
        return flat

    def _flat_of(self, places: list[Places]) -> Places:
        flat = np.zeros(len(places[0]), dtype=np.int64)
        for place, length in zip(places, self.shape, strict=True):
            flat = flat * length + place
        return flat

    def _status(self, rows: Places, found: Found, shape: tuple[int, ...]) -> Marks | None:
        if self.status is None or not len(self.status):
            return None
        status = self.status[rows]
        if found is not None:
            status = np.where(found, status, np.int8(0))
        return status.reshape(shape) if status.any() else None

    def _with_unlisted(
        self, unlisted: "StoredFigures", selection: Selection, columns: list[Column], found: NDArray[np.bool_]
    ) -> list[Column]:
        """The columns with the figures of combinations that have no row; all 0 where these have none either."""
        axes = [self.names.index(name) for name in unlisted.names]
        others = tuple(axis for axis in range(len(self.names)) if axis not in axes)
        # Both have their axes in the same order.
        asked = replace(selection, places=tuple(selection.places[axis] for axis in axes))
        instead = [np.expand_dims(column.values, others) for column in unlisted.figures(asked).columns]
        return [
            replace(column, values=np.where(found, column.values, values))
            for column, values in zip(columns, instead, strict=True)
        ]

    @staticmethod
    def _column(column: Column, rows: Places, found: Found, status: Marks | None, shape: tuple[int, ...]) -> Column:
        if not len(column.values):
            return Column(values=np.zeros(shape, dtype=column.values.dtype))
        values = column.values[rows]
        missing = None if column.missing is None else column.missing[rows]
        if found is not None:
            values = np.where(found, values, values.dtype.type(0))
            missing = None if missing is None else missing & found
        if missing is not None:
            missing = missing.reshape(shape) if missing.any() else None
        return Column(values=values.reshape(shape), missing=missing, status=status)


# Figures of a cube: any table of it, summed exactly, with the expected error of every figure.

MOST_GROUPS = 400
"""How many combinations of groups one question may ask for: each is a question of its own to the cube."""
WHOLE_CELLS = 100_000
"""Tables of up to so many cells are worked out as a whole, and then only picked from."""
QUICK_CELLS = 10_000
"""A table of up to so many cells is worked out in a few milliseconds."""
LARGE = 1_000_000
"""Cells of a cube that are summed in about a millisecond."""
KEPT_BYTES = 64 << 20
"""How much memory such tables of one cube take at the most."""
TotalOrMean = Literal["total", "mean"]
GroupingsOf = Callable[[ServedDimension], tuple[Grouping, ...]]
"""Which groups of its codes a dimension may be asked by."""
_NUMBERS = np.array([NUMBERS[text] for text in OF_CUBES], dtype=np.int8)


@dataclass(frozen=True, kw_only=True)
class CubeMetric:
    """A figure of a cube: totals of a column or means of a measure, or the error of one of them."""

    statistic: TotalOrMean
    column: str
    error: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class CubeFigures:
    """A cube of a bundle, and which of its figures are the metrics."""

    cube: PublishedCube = field(repr=False)
    metrics: tuple[CubeMetric, ...]
    groupings: Mapping[str, Grouping] = field(default_factory=dict, repr=False)
    """By their identifiers."""
    _kept: BoundedCache["_Computed"] = field(default_factory=lambda: BoundedCache(KEPT_BYTES), repr=False)

    def with_grouping(self, grouping: Grouping) -> "CubeFigures":
        """The same figures, of these groups too."""
        return replace(self, groupings={**self.groupings, grouping.id: grouping})

    def figures(self, selection: Selection) -> Figures:
        """The table by the dimensions that are asked for, under the codes that are asked for."""
        if selection.groupings:
            return self._grouped(selection)
        axes = _axes(selection)
        kept = self._filtered(selection, axes)
        if self._cells(axes) > WHOLE_CELLS:
            return self._answer(selection, axes, kept)
        # A figure by some dimensions does not depend on which codes of them are asked for beside its own.
        picks = [(np.array(places, dtype=np.intp), axes.index(axis)) for axis, places in kept.items()]
        return self._columns(selection, lambda statistic, column: self._whole(statistic, column, axes).only(picks))

    def is_quick(self, selection: Selection) -> bool:
        """Whether the figures are only picked or summed from few cells; the first of a large table have to wait."""
        if selection.groupings or len(self.cube.cube) > LARGE:
            return False
        axes = _axes(selection)
        cells = self._cells(axes)
        if cells <= QUICK_CELLS:
            return True
        if cells > WHOLE_CELLS:  # by all dimensions nothing is summed
            return len(axes) == len(selection.places)
        asked = {(self.metrics[place].statistic, self.metrics[place].column) for place in selection.metrics}
        return all(self._kept.get((*one, axes)) is not None for one in asked)

    def _cells(self, axes: Axes) -> int:
        """How many cells the table by some dimensions has."""
        return prod(self.cube.cube.shape[axis] for axis in axes)

    def _filtered(self, selection: Selection, axes: Axes) -> dict[int, CubePlaces]:
        """The places that are kept of dimensions some of whose codes are not."""
        lengths, chosen = self.cube.cube.shape, selection.places
        return {axis: found for axis in axes if (found := chosen[axis]) is not None and len(found) < lengths[axis]}

    def _answer(self, selection: Selection, axes: Axes, kept: Mapping[int, CubePlaces]) -> Figures:
        """The figures of one question, worked out for its own cells."""
        question = CubeQuery.at(self.cube.cube, axes, kept)
        return self._columns(selection, lambda statistic, column: self._compute(statistic, column, question))

    def _columns(self, selection: Selection, worked: Callable[[TotalOrMean, str], "_Computed"]) -> Figures:
        """A column for every metric; a figure and its error are worked out together."""
        known: dict[tuple[TotalOrMean, str], _Computed] = {}
        columns = []
        for metric in (self.metrics[place] for place in selection.metrics):
            asked = (metric.statistic, metric.column)
            if asked not in known:
                known[asked] = worked(*asked)
            found = known[asked]
            columns.append(_column(found.errors if metric.error else found.values, found.status))
        return Figures(columns=tuple(columns))

    def _whole(self, statistic: TotalOrMean, column: str, axes: Axes) -> "_Computed":
        """The figures of all cells by some dimensions, kept from the first question on."""
        key = (statistic, column, axes)
        found = self._kept.get(key)
        if found is None:
            found = self._compute(statistic, column, CubeQuery.at(self.cube.cube, axes, {}))
            self._kept.put(key, found, size=found.values.nbytes + found.errors.nbytes + found.status.nbytes)
        return found

    def _compute(self, statistic: TotalOrMean, column: str, question: CubeQuery) -> "_Computed":
        asked = self.cube.totals_of if statistic == "total" else self.cube.means_of
        answer = asked(question, column)
        return _Computed(values=answer.values, errors=answer.errors, status=np.asarray(_NUMBERS[answer.status]))

    def _grouped(self, selection: Selection) -> Figures:
        """One question for every combination of groups: the error of a sum is not the sum of errors."""
        dimensions, by_axis = self.cube.cube.dimensions, dict(selection.groupings)
        members = {}
        for axis, name in by_axis.items():
            groups = tuple(codes for _, codes in self.groupings[name].groups.values())
            members[axis] = [kept_places(dimensions[axis], groups[place]) for place in selection.places[axis] or ()]
        combinations = list(product(*members.values()))
        if len(combinations) > MOST_GROUPS:
            raise RefusedError(
                "selection",
                expected=f"at most {MOST_GROUPS} combinations of groups",
                found=f"{len(combinations):,}",
                said=said(
                    "These are {found} combinations of groups, and at most {most} are added up at once. Choose fewer.",
                    found=len(combinations),
                    most=MOST_GROUPS,
                ),
                do="choose fewer groups",
                status=403,
            )
        axes = tuple(axis for axis, places in enumerate(selection.places) if places is not None and axis not in by_axis)
        kept = self._filtered(selection, axes)
        parts = [
            self._answer(selection, axes, kept | dict(zip(members, chosen, strict=True))) for chosen in combinations
        ]
        leading = tuple(len(groups) for groups in members.values())
        order = np.argsort([*members, *axes], kind="stable").tolist()

        def together(arrays: list[NDArray[Any]]) -> NDArray[Any]:
            return np.stack(arrays).reshape(leading + arrays[0].shape).transpose(order)

        columns = []
        for at in range(len(selection.metrics)):
            values = together([part.columns[at].values for part in parts])
            status = together([_status(part.columns[at]) for part in parts]).astype(np.int8)
            columns.append(_column(values, status))
        return Figures(columns=tuple(columns))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Computed:
    """Figures with their errors and status, in arrays over some dimensions."""

    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    status: NDArray[np.int8]

    def only(self, picks: Sequence[tuple[NDArray[np.intp], int]]) -> "_Computed":
        """Those at some places of some axes."""
        values, errors, status = self.values, self.errors, self.status
        for places, axis in picks:
            values, errors = values.take(places, axis=axis), errors.take(places, axis=axis)
            status = status.take(places, axis=axis)
        return _Computed(values=values, errors=errors, status=status)


def _axes(selection: Selection) -> Axes:
    """The dimensions that are asked for."""
    return tuple(axis for axis, places in enumerate(selection.places) if places is not None)


def _column(values: NDArray[Any], status: NDArray[np.int8]) -> Column:
    """A column of decimals; what is not finite is missing, and so is what has a status that says so."""
    missing, said = ~np.isfinite(values), bool(np.count_nonzero(status))
    if said:
        missing |= HIDING[status]
    return Column(
        values=values,
        missing=missing if np.count_nonzero(missing) else None,
        status=status if said else None,
    )


def _status(column: Column) -> NDArray[np.int8]:
    return np.zeros(column.values.shape, dtype=np.int8) if column.status is None else column.status
