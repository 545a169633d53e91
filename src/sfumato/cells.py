"""Cells: what tabulation hands to a method, and the only thing a method ever sees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers

_MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """One classifying attribute of a table with its public codes, in order."""

    name: str
    codes: tuple[str, ...]
    public: bool = True
    """Whether it describes workplaces, as everyone knows, and not workers."""

    def __post_init__(self) -> None:
        if len(set(self.codes)) != len(self.codes):
            raise ValueError(f"dimension {self.name!r} repeats a code")

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of every code."""
        return {code: place for place, code in enumerate(self.codes)}


def joined(parts: "Sequence[Cells]") -> "Cells":
    """Cells of one table that were apart, in their order.

    >>> sex = Dimension(name="sex", codes=("F", "M"))
    >>> cells = Cells(dimensions=(sex,), positions=np.array([0, 1]), columns={"count": np.array([3, 4])})
    >>> joined([cells.only("sex", "M"), cells.only("sex", "F")]).equals(cells)
    True
    """
    positions = np.concatenate([part.positions for part in parts])
    order = np.argsort(positions, kind="stable")
    columns = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0].columns}
    return Cells(dimensions=parts[0].dimensions, positions=positions[order], columns=columns)


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Cells of one table: positions in the product of its dimensions, and integer columns beside them.

    `positions` counts through the product of the dimensions with the last one fastest, in ascending order; a
    combination that is not listed has no establishment. `columns` holds what the method needs, such as `count`
    and `largest`.

    >>> sex = Dimension(name="sex", codes=("F", "M"))
    >>> cells = Cells(dimensions=(sex,), positions=np.array([0, 1]), columns={"count": np.array([3, 4])})
    >>> cells.codes("sex")
    array([0, 1])
    """

    dimensions: tuple[Dimension, ...]
    positions: Integers
    columns: Mapping[str, Integers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            if column.shape != self.positions.shape or column.dtype != np.int64:
                raise ValueError(f"column {name!r} must be one 64-bit integer a cell")
        if len(self.positions) and not (
            self.positions[0] >= 0
            and self.positions[-1] < self.domain
            and bool(np.all(self.positions[1:] > self.positions[:-1]))
        ):
            raise ValueError("positions must ascend within the product of the dimensions")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, column: str) -> Integers:
        return self.columns[column]

    def with_column(self, name: str, column: Integers) -> "Cells":
        """The same cells with one column more, or another in its place."""
        return Cells(dimensions=self.dimensions, positions=self.positions, columns={**self.columns, name: column})

    def with_sums(self, millionths: Integers) -> "Cells":
        """The same cells with distorted sums, in the columns `distorted` (whole units) and `remainder` (millionths)."""
        return self.with_column("distorted", millionths // _MILLION).with_column("remainder", millionths % _MILLION)

    @property
    def domain(self) -> int:
        """The number of combinations of all codes, listed here or not."""
        return prod(map(len, self.dimensions))

    def codes(self, dimension: str) -> NDArray[np.intp]:
        """Each cell's place in the codelist of one dimension."""
        at = [d.name for d in self.dimensions].index(dimension)
        return _remainder(self.positions // prod(map(len, self.dimensions[at + 1 :])), len(self.dimensions[at]))

    def everywhere(self) -> "Cells":
        """The same cells with all other combinations of codes beside them, where every column is 0.

        >>> sex = Dimension(name="sex", codes=("F", "M"))
        >>> Cells(dimensions=(sex,), positions=np.array([1]), columns={"value": np.array([4])}).everywhere()["value"]
        array([0, 4])
        """
        whole = {name: np.zeros(self.domain, dtype=np.int64) for name in self.columns}
        for name, column in self.columns.items():
            whole[name][self.positions] = column
        return replace(self, positions=np.arange(self.domain, dtype=np.int64), columns=whole)

    def only(self, dimension: str, code: str) -> "Cells":
        """The cells with one code of a dimension; dimensions stay as they are."""
        places = next(d for d in self.dimensions if d.name == dimension).places
        own = self.codes(dimension) == places[code]
        return replace(
            self,
            positions=self.positions[own],
            columns={name: column[own] for name, column in self.columns.items()},
        )

    @property
    def worker_cells(self) -> int:
        """The number of worker-attribute cells inside each workplace cell: 1 when workers are not told apart."""
        return prod(len(dimension) for dimension in self.dimensions if not dimension.public)

    def blocks(self) -> NDArray[np.intp]:
        """The cells of each workplace cell side by side: one row a workplace cell, one column a worker cell.

        >>> place = Dimension(name="place", codes=("A", "B"))
        >>> sex = Dimension(name="sex", codes=("F", "M"), public=False)
        >>> Cells(dimensions=(sex, place), positions=np.arange(4)).blocks()
        array([[0, 2],
               [1, 3]])
        """
        if self._workers_are_last() and self._are_whole_blocks():
            return np.arange(len(self), dtype=np.intp).reshape(-1, self.worker_cells)
        workplace, worker = np.zeros_like(self.positions), np.zeros_like(self.positions)
        for dimension in self.dimensions:
            part = workplace if dimension.public else worker
            part *= len(dimension)
            part += self.codes(dimension.name)
        order = np.lexsort((worker, workplace)).reshape(-1, self.worker_cells)
        if len(order) and not (
            bool(np.all(workplace[order] == workplace[order[:, :1]]))
            and bool(np.all(worker[order] == np.arange(self.worker_cells)))
        ):
            raise ValueError("every workplace cell must list all its worker cells")
        return order

    def _workers_are_last(self) -> bool:
        """Whether the cells of a workplace cell follow one another: no public dimension stands after another one."""
        public = [dimension.public for dimension in self.dimensions]
        return public == sorted(public, reverse=True)

    def _are_whole_blocks(self) -> bool:
        """Whether every run of as many cells as there are worker cells begins a workplace cell and has all of it."""
        first, last = self.positions[:: self.worker_cells], self.positions[self.worker_cells - 1 :: self.worker_cells]
        return (
            len(self) % self.worker_cells == 0
            and bool(np.all(last - first == self.worker_cells - 1))
            and bool(np.all(_remainder(first, self.worker_cells) == 0))
        )

    def laid_out(self, by: Sequence[Dimension]) -> "Cells":
        """The same cells with dimensions and codes in another order, which both have.

        >>> place = Dimension(name="place", codes=("A", "B"))
        >>> sex = Dimension(name="sex", codes=("F", "M"))
        >>> cells = Cells(dimensions=(place, sex), positions=np.array([0, 1]), columns={"count": np.array([3, 4])})
        >>> cells.laid_out([sex, place]).positions
        array([0, 2])
        """
        own = {dimension.name: dimension for dimension in self.dimensions}
        if [(d.name, d.codes) for d in self.dimensions] == [(d.name, d.codes) for d in by]:
            return self
        positions = np.zeros_like(self.positions)
        for dimension in by:
            moved = np.array([dimension.places[code] for code in own[dimension.name].codes], dtype=np.int64)
            positions = positions * len(dimension) + moved[self.codes(dimension.name)]
        order = np.argsort(positions, kind="stable")
        return Cells(
            dimensions=tuple(replace(dimension, public=own[dimension.name].public) for dimension in by),
            positions=positions[order],
            columns={name: column[order] for name, column in self.columns.items()},
        )

    def equals(self, other: Any) -> bool:
        """Whether both hold the same cells with the same numbers."""
        return (
            isinstance(other, Cells)
            and self.dimensions == other.dimensions
            and np.array_equal(self.positions, other.positions)
            and self.columns.keys() == other.columns.keys()
            and all(np.array_equal(self[name], other[name]) for name in self.columns)
        )


def places(positions: Integers, dimensions: Sequence[Dimension]) -> tuple[Integers, ...]:
    """The place of some positions in the codelist of each dimension."""
    found = []
    for dimension in reversed(dimensions):
        left = positions // len(dimension)
        found.append(positions - left * len(dimension))
        positions = left
    return tuple(reversed(found))


def _remainder(numbers: Integers, divisor: int) -> Integers:
    """What a division leaves: numpy divides by one number several times as quickly as it finds remainders."""
    return numbers - numbers // divisor * divisor
