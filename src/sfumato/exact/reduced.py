"""The same system with fewer cells: known ones left out, and cells that always equal each other taken as one.

A sum with one part that is not known equals that part: a place that is alone in its district, a subsector that is alone
in its sector. In deep hierarchies every second cell is of this kind.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.programs import NEAR
from sfumato.exact.rules import Protection
from sfumato.exact.search import Piece
from sfumato.exact.shares import Shares
from sfumato.exact.system import System

ANYBODY = -1
"""The reader of a pair where nobody was looked at one by one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesser:
    """Lower bounds of cells that single readers may come nearer to than others: how far away they have to be."""

    cell: Integers
    reader: Integers
    need: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduced:
    """A smaller system, and the cell of it that every cell belongs to."""

    system: System
    belongs: Integers
    """For every cell its group in the smaller system, or −1 if it is known."""
    members: Integers
    starts: Integers
    """Cells in the order of their groups, and where each group begins."""

    @classmethod
    def of(cls, whole: System) -> "Reduced":
        """Take cells together as long as equations say that two are equal."""
        moving = np.flatnonzero(~whole.fixed)
        belongs = np.full(len(whole), -1, dtype=np.int64)
        belongs[moving] = np.arange(len(moving))
        matrix, number = whole.equations[:, moving].tocsr(), len(moving)
        while True:
            matrix.eliminate_zeros()
            matrix = matrix[np.flatnonzero(np.diff(matrix.indptr) > 0)]
            two = matrix[np.flatnonzero(np.diff(matrix.indptr) == 2)]
            opposite = two.data.reshape(-1, 2).sum(axis=1) == 0
            pairs = two.indices.reshape(-1, 2)[opposite]
            if not len(pairs):
                break
            graph = sparse.csr_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(number, number))
            number, label = sparse.csgraph.connected_components(graph, directed=False)
            merge = sparse.csr_matrix((np.ones(len(label)), (np.arange(len(label)), label)), shape=(len(label), number))
            matrix = (matrix @ merge).tocsr()
            belongs[belongs >= 0] = label[belongs[belongs >= 0]]
        first = np.full(number, len(whole), dtype=np.int64)
        np.minimum.at(first, belongs[moving], moving)
        rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")  # groups in the order of their first cells
        belongs[moving] = rank[belongs[moving]]
        order = moving[np.argsort(belongs[moving], kind="stable")]
        starts = np.searchsorted(belongs[order], np.arange(number))
        below, above = whole.freedom
        value = whole.value[order[starts]] if number else np.zeros(0)
        system = System(
            value=value,
            equations=matrix[:, np.argsort(rank)].tocsr(),
            lower=value - _least(below[order], starts),
            upper=value + _least(above[order], starts),
            places={},
            hidden=np.logical_and.reduceat(whole.hidden[order], starts) if number else np.zeros(0, dtype=bool),
        )
        return cls(system=system, belongs=belongs, members=order, starts=starts)

    def protection(self, of: Protection) -> Protection:
        """What the cells together need; a known cell that is sensitive is nobody's to protect."""
        order, starts = self.members, self.starts
        if not len(starts):
            none = np.zeros(0)
            return Protection(sensitive=none > 0, reasons=starts, down=none, up=none, owner=starts)
        return Protection(
            sensitive=np.logical_or.reduceat(of.sensitive[order], starts),
            reasons=np.bitwise_or.reduceat(of.reasons[order], starts),
            down=np.maximum.reduceat(np.where(of.sensitive, of.down, 0.0)[order], starts),
            up=np.maximum.reduceat(np.where(of.sensitive, of.up, 0.0)[order], starts),
            owner=np.maximum.reduceat(of.owner[order], starts),
            either=of.either,
        )

    def knowers(self, owner: Integers) -> tuple[Integers, Integers]:
        """Which cells of the smaller system are known to which owners: one in a row, every pair once."""
        cells = np.flatnonzero((owner >= 0) & (self.belongs >= 0))
        pairs = np.unique(np.stack([self.belongs[cells], owner[cells]], axis=1), axis=0).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def pairs(self, small: Integers, of: Protection) -> Integers:
        """Pairs of a cell and a reader for the whole system, with those where one cell that is known tells another.

        A group has every sensitive cell in it, but for those that the reader contributes alone to.
        """
        known = np.stack(self.knowers(of.owner), axis=1)
        small = np.concatenate([small, known])
        first, last = self.starts[small[:, 0]], np.append(self.starts, len(self.members))[small[:, 0] + 1]
        times = last - first
        which = np.repeat(np.arange(len(small)), times)
        cell = self.members[np.arange(len(which)) - np.repeat(np.cumsum(times) - times - first, times)]
        reader = small[which, 1]
        wanted = (
            of.sensitive[cell]
            & ((of.owner[cell] != reader) | (reader == ANYBODY))
            & (np.maximum(of.up, of.down)[cell] > NEAR)
        )
        return np.unique(np.stack([cell[wanted], reader[wanted]], axis=1), axis=0).reshape(-1, 2)

    def lesser(self, shares: Shares, of: Protection, value: Floats) -> "Lesser":
        """Where a share in every sensitive cell of a group makes its lower bound count for less to a reader.

        Who contributes y to a cell of x knows that it is at least y: from this reader only x − y can be protected.
        """
        fine = of.sensitive[shares.cell] & (of.down[shares.cell] > NEAR) & (self.belongs[shares.cell] >= 0)
        cell, reader = shares.cell[fine], shares.reader[fine]
        rest = np.clip(value[cell] - shares.amount[fine], 0.0, of.down[cell])
        order = np.lexsort((rest, cell, reader))  # several numbers of one reader in a cell: the largest share counts
        _, first = np.unique(np.stack([reader[order], cell[order]], axis=1), axis=0, return_index=True)
        chosen = order[first]
        cell, reader, rest = cell[chosen], reader[chosen], rest[chosen]
        pairs, which = np.unique(np.stack([self.belongs[cell], reader], axis=1), axis=0, return_inverse=True)
        need, members = np.zeros(len(pairs)), np.bincount(which, minlength=len(pairs))
        np.maximum.at(need, which, rest)
        group = pairs[:, 0]
        wanted = self.sums((of.sensitive & (of.down > NEAR)).astype(np.float64))[group] == members
        wanted &= need < self.protection(of).down[group] - NEAR
        return Lesser(cell=group[wanted], reader=pairs[wanted, 1], need=need[wanted])

    def sums(self, column: Floats) -> Floats:
        """The sum of a column over the cells that are one."""
        found: Floats = np.add.reduceat(column[self.members], self.starts) if len(self.starts) else np.zeros(0)
        return found

    def any(self, flags: Flags) -> Flags:
        """Whether a flag holds for some of the cells that are one."""
        met: Flags = np.logical_or.reduceat(flags[self.members], self.starts) if len(self.starts) else flags[:0]
        return met

    def whole(self, flags: Flags) -> Flags:
        """Flags of the smaller system for every cell; known cells have none."""
        return (
            np.where(self.belongs >= 0, flags[self.belongs], False) if len(flags) else np.zeros_like(self.belongs > 0)
        )

    def piece(self, of: Piece) -> Piece:
        """The same shift of all cells."""
        ends = np.append(self.starts, len(self.members))
        times = ends[of.cells + 1] - ends[of.cells]
        at = np.repeat(ends[of.cells] - np.cumsum(times) + times, times) + np.arange(times.sum())
        cells = self.members[at]
        order = np.argsort(cells, kind="stable")
        return Piece(cells=cells[order], by=np.repeat(of.by, times)[order], both=of.both)

    def shrunk(self, of: Piece) -> Piece:
        """A shift of all cells, in the smaller system."""
        cells, first = np.unique(self.belongs[of.cells], return_index=True)
        return Piece(cells=cells, by=of.by[first], both=of.both)


def _least(column: Floats, starts: Integers) -> Floats:
    found: Floats = np.minimum.reduceat(column, starts) if len(starts) else column
    return found
