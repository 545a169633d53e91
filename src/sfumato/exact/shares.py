"""What readers contribute to cells, and so know of sums before anything is published: no rule can ask for less."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import NEAR, Extremes, Window
from sfumato.exact.rules import Protection
from sfumato.exact.system import System, single_sums

_LEVELS = 8
"""Sums of sums that readers are taken to see through."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """What readers contribute to cells beside others, one in a row: they know that such a cell is not below it."""

    cell: Integers
    reader: Integers
    amount: Floats

    def __len__(self) -> int:
        return len(self.cell)

    def with_sums(self, system: System, of: Protection) -> "Shares":
        """With what readers know of sensitive sums beforehand: their own parts, and the least of all others.

        What was published does not count: bounds are those that everybody knows of any table.
        """
        least = np.where(system.fixed, 0.0, system.lower)
        if not bool(np.isfinite(least).all()):
            return self
        alone = np.flatnonzero((of.owner >= 0) & ~system.fixed)
        cells = np.concatenate([alone, self.cell])
        names, reader = np.unique(np.concatenate([of.owner[alone], self.reader]), return_inverse=True)
        more = np.concatenate([system.value[alone], self.amount]) - least[cells]
        shape = (len(system), max(len(names), 1))
        known = _largest(cells, reader, more, shape)
        parts, sums = _sums_within(system, of.sensitive)
        base = parts @ least - least[sums]
        for _ in range(_LEVELS):
            rows = (parts @ known).tocoo()
            found = base[rows.row] + rows.data
            new = known.maximum(_largest(sums[rows.row], rows.col, found, shape))
            if (new != known).nnz == 0:
                break
            known = new
        told = known.tocoo()
        kept = of.sensitive[told.row] & (of.owner[told.row] != names[told.col] if len(names) else False)
        return Shares(
            cell=told.row[kept].astype(np.int64),
            reader=names[told.col[kept]],
            amount=least[told.row[kept]] + told.data[kept],
        )

    def with_programs(
        self, system: System, of: Protection, pairs: Integers, *, stop: Callable[[], bool] = lambda: False
    ) -> "Shares":
        """With what the readers of some pairs know of their cell beforehand, worked out from all sums together.

        Sums that cross tell more than one after the other: a program for each pair, in which nothing is published. Each
        pair is there at most once, as after `with_sums`.
        """
        amounts = dict(zip(zip(self.cell.tolist(), self.reader.tolist(), strict=True), self.amount, strict=True))
        found = [np.zeros((0, 3))]
        for reader in np.unique(pairs[pairs[:, 1] >= 0, 1]).tolist():
            free, programs = _beforehand(system, of, reader)
            for cell in np.intersect1d(pairs[pairs[:, 1] == reader, 0], free):
                if stop():
                    break
                place = int(np.searchsorted(free, cell))
                least = system.value[cell] + programs.furthest(place, -1)[place]
                if least > amounts.get((int(cell), reader), 0.0) + NEAR:
                    found.append(np.array([[cell, reader, least]]))
        more = np.concatenate(found)
        return Shares(
            cell=np.concatenate([self.cell, more[:, 0].astype(np.int64)]),
            reader=np.concatenate([self.reader, more[:, 1].astype(np.int64)]),
            amount=np.concatenate([self.amount, more[:, 2]]),
        )


def known_zeros(system: System, of: Protection, pairs: Integers) -> Flags:
    """Which pairs are of a zero and a reader who knows it before anything is published: all of a sum is the reader's.

    Where zeros are protected, who has the only business of a town knows that no other branch has any there.
    """
    found = np.zeros(len(pairs), dtype=bool)
    zeros = (pairs[:, 1] >= 0) & (system.value[pairs[:, 0]] == 0)
    for reader in np.unique(pairs[zeros, 1]).tolist():
        free, programs = _beforehand(system, of, reader, most=1.0)  # a cell that can rise can rise a little
        for row in np.flatnonzero(zeros & (pairs[:, 1] == reader)):
            place = int(np.searchsorted(free, pairs[row, 0]))
            found[row] = programs.furthest(place, 1)[place] <= NEAR
    return found


def _beforehand(system: System, of: Protection, reader: int, *, most: float = np.inf) -> tuple[Integers, Extremes]:
    """The cells that a reader does not know before anything is published, and programs of how far they can move.

    None goes up by more than `most`.
    """
    none = system.fixed & (system.value == 0)
    down = system.value - np.where(system.fixed, 0.0, system.lower)
    up = np.minimum(np.where(system.fixed, np.inf, system.upper) - system.value, most)
    free = np.flatnonzero((of.owner != reader) & ~none)
    return free, Extremes(Window.of(system.by_cell, free, down, up))


def _largest(cells: Integers, readers: Integers, amounts: Floats, shape: tuple[int, int]) -> Any:
    """The largest amount of every reader in every cell as a matrix: one cell of two tables counts once."""
    order = np.lexsort((-amounts, readers, cells))
    _, first = np.unique(cells[order] * np.int64(shape[1]) + readers[order], return_index=True)
    chosen = order[first]
    return sparse.csr_matrix((np.maximum(amounts[chosen], 0.0), (cells[chosen], readers[chosen])), shape=shape)


def _sums_within(system: System, cells: Flags) -> tuple[Any, Integers]:
    """The sums that some cells are, and those that their parts are, and so on: the parts of each, and its cell."""
    sides = [single_sums(system.equations * sign) for sign in (1.0, -1.0)]
    matrix = sparse.vstack([parts for parts, _ in sides], format="csr")
    whole = np.concatenate([sums for _, sums in sides])
    inside = cells.copy()
    while True:
        rows = inside[whole]
        then = inside.copy()
        then[matrix[np.flatnonzero(rows)].indices] = True
        if np.array_equal(then, inside):
            break
        inside = then
    chosen = np.flatnonzero(rows)
    return matrix[chosen], whole[chosen]


NO_SHARES = Shares(cell=np.zeros(0, dtype=np.int64), reader=np.zeros(0, dtype=np.int64), amount=np.zeros(0))
