"""All 1,023 tables of a cube at once: for every run the noise in every cell of every table, and its moments."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from sfumato.arrays import Floats, Integers


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The cells of all tables of a cube, laid out as the cube with one more code, the total, in every dimension."""

    shape: tuple[int, ...]

    def of(self, noise: Floats) -> Floats:
        """The noise in all cells of all tables, one row for every run, from that in the cells of the cube."""
        table = noise
        for axis in range(1, len(self.shape) + 1):
            table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
        return table.reshape(len(noise), self.cells)

    @property
    def cells(self) -> int:
        """The number of cells of all tables."""
        return int(np.prod([length + 1 for length in self.shape]))

    @cached_property
    def sizes(self) -> Integers:
        """The number of dimensions of the table that each cell belongs to."""
        return self._over_axes([np.append(np.ones(length), 0.0) for length in self.shape], np.add).astype(np.int64)

    @cached_property
    def weights(self) -> Floats:
        """How much a cell counts where every table of a size counts the same: one divided by all its cells."""
        inside = self._over_axes([np.append(np.full(length, 1 / length), 1.0) for length in self.shape], np.multiply)
        tables = np.array([comb(len(self.shape), size) for size in range(len(self.shape) + 1)])
        weights: Floats = inside / tables[self.sizes]
        return weights

    @cached_property
    def pooled(self) -> Floats:
        """One column for every size: how much a cell counts where every cell of a size counts the same."""
        columns = np.zeros((self.cells, len(self.shape) + 1))
        columns[np.arange(self.cells), self.sizes] = 1.0
        shares: Floats = columns / columns.sum(axis=0)
        return shares

    @cached_property
    def table(self) -> Integers:
        """The table that each cell belongs to: a number with one bit for every dimension it has."""
        bits = (np.append(np.full(length, 1 << axis), 0) for axis, length in enumerate(self.shape))
        return self._over_axes([bit.astype(np.float64) for bit in bits], np.add).astype(np.int64)

    @cached_property
    def table_cells(self) -> Floats:
        """How many cells each table has."""
        return np.bincount(self.table).astype(np.float64)

    def by_table(self, cells: Floats) -> Floats:
        """The mean over the cells of each table."""
        return np.bincount(self.table, weights=cells) / self.table_cells

    def by_size(self, cells: Floats) -> Floats:
        """The mean over all cells of a table and all tables of a size, for every size from 0 on."""
        sizes = len(self.shape) + 1
        return np.bincount(self.sizes, weights=cells * self.weights, minlength=sizes).astype(np.float64, copy=False)

    def _over_axes(self, factors: Sequence[Floats], combine: np.ufunc) -> Floats:
        whole = factors[0]
        for factor in factors[1:]:
            whole = combine.outer(whole, factor)
        flat: Floats = whole.ravel()
        return flat


class Moments:
    """Sums over runs from which variances follow; runs may come in any number of parts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._first, self._second = np.zeros(tables.cells), np.zeros(tables.cells)
        self._within = np.zeros(len(tables.shape) + 1)
        self.runs = 0

    def add(self, noise: Floats) -> None:
        """Take in some runs: the noise in all cells of all tables, one row for every run."""
        self.runs += len(noise)
        self._first += noise.sum(axis=0)
        squared = noise * noise
        self._second += squared.sum(axis=0)
        # The variance of all cells of a size in one run about their mean, as the paper seems to have it.
        mean = noise @ self._tables.pooled
        self._within += (squared @ self._tables.pooled - mean * mean).sum(axis=0)

    def variance(self) -> Floats | None:
        """By size: the variance of the noise in a cell over the runs, the mean over cells and then over tables."""
        over_runs = self._over_runs()
        return None if over_runs is None else self._tables.by_size(over_runs)

    def variance_by_table(self) -> Floats | None:
        """By table: the variance of the noise in a cell over the runs, the mean over cells."""
        over_runs = self._over_runs()
        return None if over_runs is None else self._tables.by_table(over_runs)

    def _over_runs(self) -> Floats | None:
        if self.runs < 2:
            return None
        about = (self._second - self._first * self._first / self.runs) / (self.runs - 1)
        return np.maximum(about, 0.0)

    def mean_square(self) -> Floats | None:
        """By size: the mean square of the noise, bias included."""
        return self._tables.by_size(self._second / self.runs) if self.runs else None

    def within_run(self) -> Floats | None:
        """By size: the variance over all cells of that size in one run about their mean, the mean over runs."""
        return self._within / self.runs if self.runs else None
