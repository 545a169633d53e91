"""The cube: numbers for every combination of codes, from which every table is summed, exactly."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import Axes, summed, within
from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.errors import DataError, SfumatoError

MILLION = 1_000_000
"""Weights are kept in whole millionths."""
_MOST = 2.0**62


@dataclass(frozen=True, kw_only=True)
class Cube:
    """The full product of some dimensions, empty cells included, with whole numbers in every cell.

    A table of a cube is a cube again: `project` sums over dimensions, `where` keeps some codes. Sums of whole numbers
    do not depend on the order in which they are taken, so a question has one answer, and parts add up to the whole.

    >>> sex, size = Dimension(name="sex", codes=("F", "M")), Dimension(name="size", codes=("s", "m", "l"))
    >>> cube = Cube(dimensions=(sex, size), columns={"count": np.array([[1, 2, 3], [4, 5, 6]])})
    >>> cube.project("size")["count"].tolist(), cube.where({"size": ["l"]}).total("count")
    ([5, 7, 9], 9)
    """

    dimensions: tuple[Dimension, ...]
    columns: Mapping[str, Integers]
    """Arrays with one axis for every dimension, such as `count` and `weighted`."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """Into how many parts one is divided in a column: a million for weights in millionths; 1 where it is not said."""

    def __post_init__(self) -> None:
        if len({dimension.name for dimension in self.dimensions}) != len(self.dimensions):
            raise ValueError("a cube has every dimension once")
        if not self.columns.keys() >= self.parts.keys() or any(parts < 1 for parts in self.parts.values()):
            raise ValueError("parts must be positive, for columns of the cube")
        columns = {}
        for name, column in self.columns.items():
            if column.shape != self.shape or column.dtype != np.int64:
                raise ValueError(f"column {name!r} must be one 64-bit integer for each cell of the product")
            # Then no sum of cells, whichever and in whatever order, can leave 64 bits.
            if not _sums_fit(column):
                raise DataError(
                    f"column {name!r} of a cube",
                    expected="numbers whose sum stays below 2^62",
                    found="larger ones, whose sums would no longer be exact",
                    do="count in larger units",
                )
            columns[name] = column.view()
            columns[name].flags.writeable = False
        object.__setattr__(self, "columns", MappingProxyType(columns))
        object.__setattr__(self, "parts", MappingProxyType({name: self.parts.get(name, 1) for name in columns}))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of codes of every dimension."""
        return tuple(map(len, self.dimensions))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(dimension.name for dimension in self.dimensions)

    @cached_property
    def places(self) -> tuple[NDArray[np.intp], ...]:
        """The places of all codes of every dimension."""
        return tuple(np.arange(length, dtype=np.intp) for length in self.shape)

    def __len__(self) -> int:
        return prod(self.shape)

    def __getitem__(self, column: str) -> Integers:
        return self.columns[column]

    def axes(self, names: Iterable[str]) -> Axes:
        """The places of some dimensions, in ascending order."""
        return tuple(sorted({self._axis(name) for name in names}))

    def project(self, *names: str) -> "Cube":
        """The table by these dimensions, in the order in which they are named; without any, the grand total."""
        return self.table(*names)

    def where(self, kept: Mapping[str, Iterable[str]]) -> "Cube":
        """The part of the cube with these codes only, in the order of the codelist; other dimensions stay whole."""
        return self.table(*self.names, where=kept)

    def table(
        self, *names: str, where: Mapping[str, Iterable[str]] | None = None, columns: Sequence[str] | None = None
    ) -> "Cube":
        """The table by these dimensions of the part that has these codes, with some of the columns or all."""
        by = tuple(self._axis(name) for name in names)
        if len(set(by)) != len(by):
            raise refusal("dimensions", "each dimension once", ", ".join(names), "name every dimension once")
        for name in columns or ():
            self._column(name)
        return self.sums(
            by, {self._axis(name): self._places(name, codes) for name, codes in (where or {}).items()}, columns
        )

    def sums(self, by: Axes, kept: Mapping[int, Sequence[int]], columns: Sequence[str] | None = None) -> "Cube":
        """The same, by the places of dimensions and, ascending, of the codes that are kept of some of them."""
        names = self.columns if columns is None else columns
        dimensions = tuple(
            _only(self.dimensions[axis], kept[axis]) if axis in kept else self.dimensions[axis] for axis in by
        )
        return self._made_of(dimensions, _sums({name: self.columns[name] for name in names}, self.shape, by, kept))

    def _places(self, name: str, codes: Iterable[str]) -> list[int]:
        """The places of codes, ascending."""
        dimension, asked = self.dimensions[self._axis(name)], set(codes)
        if not asked <= dimension.places.keys():
            raise refusal(
                f"dimension {name!r}",
                f"codes of its codelist, such as {dimension.codes[0]!r}",
                ", ".join(sorted(map(repr, asked - dimension.places.keys()))),
                "correct the codes",
            )
        return sorted(dimension.places[code] for code in asked)

    def only(self, *columns: str) -> "Cube":
        """The same cube with fewer columns."""
        for name in columns:
            self._column(name)
        return self._made_of(self.dimensions, {name: self.columns[name] for name in columns})

    def with_column(self, name: str, column: Integers, *, parts: int = 1) -> "Cube":
        """The same cells with one column more, or another in its place."""
        return Cube(
            dimensions=self.dimensions, columns={**self.columns, name: column}, parts={**self.parts, name: parts}
        )

    def total(self, column: str) -> int:
        """The sum over all cells, in parts of one."""
        return int(self._column(column).sum())

    def values(self, column: str) -> Floats:
        """The numbers of a column as decimals: whole parts divided once, at the end."""
        return self._column(column) / self.parts[column]

    def proportions(self, column: str, *, within: Sequence[str] = ()) -> Floats:
        """The share of every cell in the total of the cells with the same codes in `within`; NaN where that is 0."""
        axes = self.axes(within)
        whole = summed(self._column(column), axes)
        spread = whole.reshape([n if axis in axes else 1 for axis, n in enumerate(self.shape)])
        return ratio(self._column(column), np.broadcast_to(spread, self.shape))

    def mean(self, column: str, scores: Mapping[str, int], *, of: str) -> Floats:
        """The mean score over a dimension, by all others: each code has a whole score; NaN where the total is 0."""
        axis = self._axis(of)
        codes = self.dimensions[axis].codes
        if set(scores) != set(codes):
            raise refusal(f"dimension {of!r}", "one score for every code", f"{len(scores)} scores", "score every code")
        others = self.axes(name for name in self.names if name != of)
        weights = np.array([scores[code] for code in codes], dtype=np.int64)
        values = self._column(column)
        largest = float(np.abs(weights).max(initial=0)) * float(np.abs(values.astype(np.float64)).sum())
        if largest >= _MOST:
            raise refusal(f"dimension {of!r}", "scores whose sums stay exact", "larger ones", "use smaller scores")
        scored = values * weights.reshape([-1 if place == axis else 1 for place in range(values.ndim)])
        return ratio(summed(scored, others), summed(values, others))

    def equals(self, other: Any) -> bool:
        """Whether both hold the same cells with the same numbers."""
        return (
            isinstance(other, Cube)
            and self.dimensions == other.dimensions
            and dict(self.parts) == dict(other.parts)
            and all(np.array_equal(self[name], other[name]) for name in self.columns)
        )

    def _made_of(self, dimensions: tuple[Dimension, ...], columns: Mapping[str, Integers]) -> "Cube":
        """A cube of sums and parts of this one, whose sums therefore fit: looking at every number again takes long."""
        made = object.__new__(Cube)
        for column in columns.values():
            column.flags.writeable = False
        object.__setattr__(made, "dimensions", dimensions)
        object.__setattr__(made, "columns", MappingProxyType(dict(columns)))
        object.__setattr__(made, "parts", MappingProxyType({name: self.parts[name] for name in columns}))
        return made

    def _axis(self, name: str) -> int:
        if name not in self.names:
            raise refusal(
                "cube", f"one of its dimensions: {', '.join(self.names) or 'none'}", repr(name), "correct the name"
            )
        return self.names.index(name)

    def _column(self, name: str) -> Integers:
        if name not in self.columns:
            raise refusal("cube", f"one of its columns: {', '.join(self.columns)}", repr(name), "correct the name")
        return self.columns[name]


def _only(dimension: Dimension, places: Sequence[int]) -> Dimension:
    codes = tuple(dimension.codes[place] for place in places)
    return Dimension(name=dimension.name, codes=codes, public=dimension.public)


def _sums(
    columns: Mapping[str, Integers], shape: Axes, by: Axes, kept: Mapping[int, Sequence[int]]
) -> dict[str, Integers]:
    """The sums of columns of this shape by some axes, over the places that are kept of some axes.

    Codes side by side are a view, which costs nothing. Others are picked, that is copied, after what is neither asked
    for nor picked has been summed: sums of whole numbers do not mind the order.
    """
    runs = {axis: run for axis, places in kept.items() if (run := _run(places))}
    part = tuple(runs.get(axis, slice(None)) for axis in range(len(shape))) if runs else ()
    # The shortest selection first, so that the next ones copy less.
    picked = sorted((axis for axis in kept if axis not in runs), key=lambda axis: len(kept[axis]) / shape[axis])
    first, ascending = tuple(sorted({*by, *picked})), tuple(sorted(by))
    picks = [(np.array(kept[axis], dtype=np.intp), first.index(axis)) for axis in picked]
    last, order = within(ascending, first), [ascending.index(axis) for axis in by]
    found = {}
    for name, column in columns.items():
        table = summed(column[part] if runs else column, first)
        for places, axis in picks:
            table = table.take(places, axis=axis)
        found[name] = np.asarray(summed(table, last).transpose(order), order="C")
    return found


def _run(chosen: Sequence[int]) -> slice | None:
    """Ascending places that follow each other, as a slice."""
    return slice(chosen[0], chosen[-1] + 1) if chosen and chosen[-1] - chosen[0] + 1 == len(chosen) else None


def _sums_fit(column: Integers) -> bool:
    """Whether magnitudes add up to less than 2^62; the sum is taken only where the largest one leaves it open."""
    if not column.size:
        return True
    largest = max(abs(int(column.min())), abs(int(column.max())))
    return largest * column.size < _MOST or float(np.abs(column.astype(np.float64)).sum()) < _MOST


def ratio(above: Integers | Floats, below: Integers | Floats) -> Floats:
    """One number over another; NaN where that is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(below == 0, np.nan, above / below)
    return found


def ratio_to_positive(above: Floats, below: Floats) -> Floats:
    """One number over another; NaN where that is not above 0, as noise may make it."""
    found: Floats = np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0)
    return found


def refusal(where: str, expected: str, found: str, do: str) -> SfumatoError:
    """A question that cannot be answered."""
    return SfumatoError(where, expected=expected, found=found, do=do)
