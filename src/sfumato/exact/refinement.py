"""What readers of several coarsened tables and releases can work out of cells that none of them shows.

Where groups differ, their common refinement has cells that no table shows, and so have tables about some of the
records, beside others: those of the records that only one is about. All of these, and all sums that are shown, are one
system. Readers are taken to know which cells are empty, that no value is negative, and the least that others have.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers
from sfumato.errors import MethodError
from sfumato.exact.coarsening import Cuts, Programme, cells_at
from sfumato.exact.intervals import Intervals, asked_for, prove_intervals
from sfumato.exact.rules import Contributions, Protection
from sfumato.exact.system import System
from sfumato.exact.trees import ROOT


class Protects(Protocol):
    """Rules, or several of them."""

    def protection(self, of: Contributions) -> Protection:
        """Which cells are sensitive, and how far each bound has to be from the value."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """Cells of a table that are shown and have no record in common."""

    table: str
    records: Flags
    """Which records lie in any of them."""
    cell: Integers
    """Of these records the number of the cell, from 0 on without gaps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Refinement:
    """All cells that groups and filters tell apart, and all that is shown of them."""

    system: System
    """With everything that is shown."""
    layer: Integers
    """For every cell of the system the number of the layer that shows it, or −1."""
    cells: Integers
    """Those that are sensitive."""
    table: Integers
    """The number of the first table that each of these is of."""
    reasons: Integers
    down: Floats
    up: Floats
    fine: Mapping[tuple[str, ...], tuple[int, Integers]]
    """By the trees that tables tell apart, where their cells begin in the system, and the cell of every record."""

    def told(self, by: Collection[int] | None = None) -> Intervals:
        """What readers can work out of sensitive cells, of all layers or of some."""
        return prove_intervals(self.seen(by), self.cells, self.down, self.up)

    def seen(self, by: Collection[int] | None = None) -> System:
        """The system as readers of all layers see it, or of some."""
        if by is None:
            return self.system
        unseen = (self.layer >= 0) & ~np.isin(self.layer, list(by))
        return replace(
            self.system,
            lower=np.where(unseen, 0.0, self.system.lower),
            upper=np.where(unseen, np.inf, self.system.upper),
            hidden=self.system.hidden | unseen,
        )

    @property
    def protection(self) -> Protection:
        """What is asked for, over all cells of the system."""
        return asked_for(len(self.system), self.cells, self.down, self.up)


def told_together(programme: Programme, releases: Sequence[Cuts], rules: Protects) -> tuple[Intervals, Integers]:
    """What readers of several releases of the same records with other cuts can work out of cells that none shows.

    Of those that are sensitive, the interval from everything together must be as wide as the rules ask. With the
    intervals come the numbers of the first tables that the cells are of.
    """
    every, layers = np.ones(len(programme.value), dtype=bool), []
    for name, by in programme.tables.items():
        for one in releases:
            cell, _ = cells_at(programme.of_table[name], one.nodes, by)
            layers.append(Layer(table=name, records=programme.only.get(name, every), cell=cell))
    nodes = [np.concatenate([one.nodes[at] for one in releases]) for at in range(len(programme.trees))]
    found = refinement(programme, nodes, layers, rules)
    return found.told(), found.table


def refinement(programme: Programme, nodes: Sequence[Integers], layers: Sequence[Layer], rules: Protects) -> Refinement:
    """Everything that is told apart by nodes of every tree, and by filters, beside what layers show of it."""
    told_apart = [np.union1d(one, [ROOT]) for one in nodes]  # records by the nearest node that is shown
    base, number = _beside(cells_at(programme, told_apart, [tree.name for tree in programme.trees])[0], programme)
    values = [programme.contributors(base, number).value]
    blocks: list[tuple[Integers, Integers, Floats]] = []
    least = np.minimum(programme.least, values[0])  # of the cells that all others are made of
    first = np.unique(base, return_index=True)[1]
    shown_in, offset = [np.full(number, -1)], number
    covered = np.zeros(len(programme.value), dtype=bool)
    for one in layers:
        covered |= one.records
    fine: dict[tuple[str, ...], tuple[int, Integers]] = {}
    cells, table_of, needs = [], [], []
    for which, by in enumerate(programme.tables.values()):
        if by in fine:
            continue
        cell, count = _beside(cells_at(programme, told_apart, by)[0], programme)
        known = programme.contributors(cell, count)
        needed = rules.protection(known)
        some = np.flatnonzero(needed.sensitive & (np.bincount(cell[covered], minlength=count) > 0))
        fine[by] = offset, cell
        cells.append(offset + some)
        table_of.append(np.full(len(some), which))
        above = known.value - np.bincount(cell[first], weights=least, minlength=count)
        needs.append((needed.reasons[some], np.minimum(needed.down, above)[some], needed.up[some]))
        offset = _add_sums(blocks, base, cell, begin=0, offset=offset)
        values.append(known.value)
        shown_in.append(np.full(count, -1))
    for place, one in enumerate(layers):
        begin, cell = fine[programme.tables[one.table]]
        offset = _add_sums(blocks, cell[one.records], one.cell, begin=begin, offset=offset)
        values.append(np.bincount(one.cell, weights=programme.value[one.records]).astype(np.float64))
        shown_in.append(np.full(len(values[-1]), place))
    value, layer = np.concatenate(values), np.concatenate(shown_in)
    if bool(np.any(value < 0)):
        raise MethodError(
            "coarsening",
            expected="values of at least zero",
            found="a negative one",
            do="compare releases of counts instead",
        )
    rows, columns, signs = (np.concatenate([block[part] for block in blocks]) for part in range(3))
    lower = np.concatenate([least, np.zeros(len(value) - number)])
    system = System(
        value=value,
        equations=sparse.csr_matrix((signs, (rows - number, columns)), shape=(offset - number, offset)),
        lower=np.where(layer >= 0, value, lower),
        upper=np.where(layer >= 0, value, np.inf),
        places={},
        hidden=layer < 0,
    )
    reasons, down, up = (np.concatenate([need[part] for need in needs]) for part in range(3))
    return Refinement(
        system=system,
        layer=layer,
        cells=np.concatenate(cells),
        table=np.concatenate(table_of),
        reasons=reasons,
        down=down,
        up=up,
        fine=fine,
    )


def _beside(cell: Integers, programme: Programme) -> tuple[Integers, int]:
    """Cells of records told apart by filters as well, and how many there are."""
    pattern = programme.pattern
    both = np.unique(cell * (int(pattern.max(initial=0)) + 1) + pattern, return_inverse=True)[1]
    return both, int(both.max(initial=-1)) + 1


def _add_sums(
    blocks: list[tuple[Integers, Integers, Floats]], fine: Integers, coarse: Integers, *, begin: int, offset: int
) -> int:
    """Equations of coarser cells as sums of finer ones, by the cells of all records; the next free place."""
    pairs = np.unique(np.stack([coarse, fine]), axis=1)
    sums = np.arange(int(coarse.max(initial=-1)) + 1)
    blocks.append(
        (
            offset + np.concatenate([pairs[0], sums]),
            np.concatenate([begin + pairs[1], offset + sums]),
            np.concatenate([np.ones(pairs.shape[1]), -np.ones(len(sums))]),
        )
    )
    return offset + len(sums)
