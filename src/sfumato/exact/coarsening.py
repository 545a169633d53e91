"""Coarsening: the finest codes of every attribute at which no cell of any table is sensitive.

A cut through a tree takes every finest code to one node at or above it; the same cut serves all tables. With the cuts
of the other trees given, whether a node may be part of a cut does not depend on the rest of that cut, and neither does
what it tells readers: so the best cut of one tree is found exactly, from the finest codes upwards, and so are those of
several where all but one have few cuts. Others are found in turn, from several beginnings, and by merging here to split
there; each ends where no tree alone can do better. docs/methods/coarsening.md
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.errors import MethodError
from sfumato.exact.rules import Contributions
from sfumato.exact.trees import ROOT, Tree

_WHERE = "coarsening"
_MOST_BEGINNINGS = 64
"""From as many whole levels cuts are looked for, and as many cuts of all trees but one are tried."""


Passes = Callable[[Contributions], Flags]
"""Which cells are not sensitive."""
Tells = Callable[[Contributions], Floats]
"""What each cell tells readers, to be as much as possible in all."""


def each_cell(cells: Contributions) -> Floats:
    """Every cell that is published counts the same."""
    return np.ones(len(cells.value))


def by_value(cells: Contributions) -> Floats:
    """Cells tell where value lies: −v·log v, which in all grows with every split, and most with even ones."""
    size = np.abs(cells.value)
    told: Floats = -size * np.log(np.maximum(size, 1e-300))
    return told


@dataclass(frozen=True, kw_only=True, eq=False)
class Programme:
    """Records of units in finest cells, and the tables that are made of them."""

    trees: tuple[Tree, ...]
    nodes: tuple[Integers, ...]
    """In each tree the node of every record."""
    unit: Integers
    value: Floats
    contribution: Floats | None = None
    """What a record contributes, where published values are weighted sums; the value where nothing is said."""
    tables: Mapping[str, tuple[str, ...]]
    """The trees that each table tells apart."""
    only: Mapping[str, Flags] = field(default_factory=dict)
    """Of tables that are about some of the records, which these are."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """How much each table is used; 1 where nothing is said, 0 for what is checked and not published."""
    least: float = 0.0
    """What readers know every cell with a value above zero to have at least: 1 of whole numbers."""
    top: int = 0
    """How many of the largest contributions `passes` looks at together, beyond two."""
    passes: Passes
    tells: Tells = each_cell

    def __post_init__(self) -> None:
        names = {tree.name for tree in self.trees}
        if any(len(tree.parents) != 1 for tree in self.trees):
            raise MethodError(
                _WHERE,
                expected="one hierarchy for each attribute",
                found="codes that lie in two levels side by side",
                do="name one of the levels to merge to",
            )
        if not all(set(by) <= names for by in self.tables.values()):
            raise ValueError("tables are by trees of the programme")
        if any(len(nodes) != len(self.value) for nodes in (*self.nodes, self.unit)):
            raise ValueError("one node in each tree, one unit and one value a record")
        for tree, nodes in zip(self.trees, self.nodes, strict=True):
            present = np.unique(nodes)
            if len(tree.finest(present)) < len(present):
                raise ValueError("records have finest codes")

    @cached_property
    def above(self) -> tuple[Integers, ...]:
        """For every tree a row for each depth, finest first: the node at that depth over every record, or −1."""
        found = []
        for tree, nodes in zip(self.trees, self.nodes, strict=True):
            parents, at = tree.parents[0], nodes
            depths = _depths(parents)
            rows = []
            for deep in range(int(depths[nodes].max(initial=0)), -1, -1):
                rows.append(np.where(depths[at] == deep, at, -1))
                at = np.where((depths[at] == deep) & (at != ROOT), parents[at], at)
            found.append(np.stack(rows))
        return tuple(found)

    @cached_property
    def of_table(self) -> "Mapping[str, Programme]":
        """For every table the same with the records that it is about."""
        return {name: _of_records(self, self.only[name]) if name in self.only else self for name in self.tables}

    @cached_property
    def pattern(self) -> Integers:
        """For every record a number that says which tables are about it."""
        if not self.only:
            return np.zeros(len(self.value), dtype=np.int64)
        found: Integers = np.unique(np.stack(list(self.only.values())), axis=1, return_inverse=True)[1].reshape(-1)
        return found

    def contributors(self, cell: Integers, number: int) -> Contributions:
        """The units of records that lie in cells, records of one unit in one cell taken together."""
        order = np.lexsort((self.unit, cell))
        size = self.value if self.contribution is None else self.contribution
        return _summed(cell[order], self.unit[order], self.value[order], size[order], number, top=self.top)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cuts:
    """A cut through every tree, and how much all tables then tell."""

    nodes: tuple[Integers, ...]
    told: float


def coarsen(programme: Programme, *, tries: int = 50, told: Callable[[float], None] = lambda _: None) -> Cuts | None:
    """The cuts at which every cell of every table passes and which tell most of those found; None if there are none.

    Exact for one tree, and where the others have few cuts. `tries` bounds the merges that are tried after whole levels,
    `told` hears of the share that is done.
    """
    best: Cuts | None = None
    beginnings = _beginnings(programme)
    for turn, start in enumerate(beginnings):
        told(0.5 * turn / len(beginnings))
        best = _better(best, _in_turn(programme, start))
    if best is None or len(programme.trees) == 1:
        return best
    if (every := _each_but_one(programme)) is not None:
        for cuts, at in every:
            best = _better(best, _completed(programme, cuts, at))
        return best
    done = 0
    while done < tries:
        before = best
        for start in _merged(programme, best):
            if done >= tries:
                break
            told(0.5 + 0.5 * done / tries)
            done += 1
            found = _better(best, _in_turn(programme, start))
            if found is not best and found is not None:
                best = found
                break
        if best is before:
            break
    return best


def best_cut(programme: Programme, cuts: Sequence[Integers], at: int) -> tuple[Integers, float] | None:
    """The cut of one tree that tells most while the others are given, or None where not even the total passes."""
    passes, tells = _by_node(programme, cuts, at)
    parents = programme.trees[at].parents[0]
    present = np.zeros(len(parents), dtype=bool)
    present[programme.above[at][programme.above[at] >= 0]] = True
    split = np.zeros(len(parents))  # what the best cut below a node tells, minus infinity where there is none
    inner = np.zeros(len(parents), dtype=bool)
    inner[parents[present & (parents >= 0)]] = True
    value, keep = np.full(len(parents), -np.inf), np.zeros(len(parents), dtype=bool)
    depth = _depths(parents)
    for deep in range(int(depth.max(initial=0)), -1, -1):
        nodes = np.flatnonzero(present & (depth == deep))
        own = np.where(passes[nodes], tells[nodes], -np.inf)
        below = np.where(inner[nodes], split[nodes], -np.inf)
        keep[nodes] = own > below
        value[nodes] = np.maximum(own, below)
        if deep:
            np.add.at(split, parents[nodes], value[nodes])
    if not np.isfinite(value[ROOT]):
        return None
    chosen, open_nodes = [], np.array([ROOT])
    while len(open_nodes):
        chosen.append(open_nodes[keep[open_nodes]])
        open_nodes = np.flatnonzero(present & np.isin(parents, open_nodes[~keep[open_nodes]]))
    return np.sort(np.concatenate(chosen)), float(value[ROOT])


def failing(programme: Programme, cuts: Sequence[Integers]) -> Mapping[str, int]:
    """How many cells of each table do not pass at given cuts."""
    found = {}
    for name, by in programme.tables.items():
        own = programme.of_table[name]
        found[name] = int((~programme.passes(own.contributors(*cells_at(own, cuts, by)))).sum())
    return found


def _better(one: Cuts | None, other: Cuts | None) -> Cuts | None:
    if one is None or other is None:
        return other if one is None else one
    return other if other.told > one.told + 1e-9 * max(abs(one.told), 1.0) else one


def _in_turn(programme: Programme, start: Sequence[Integers]) -> Cuts | None:
    """Cuts from a beginning, each tree in turn given the others, until none tells more."""
    cuts, told, since = list(start), -np.inf, 0
    at = 0
    while since < len(cuts):
        found = best_cut(programme, cuts, at)
        if found is not None:
            cut, then = found
            then += _without(programme, cuts, at)
            # A cut that tells the same is taken only if nothing is known to pass yet.
            if then > told + 1e-9 * max(abs(told) if np.isfinite(told) else 0.0, 1.0):
                cuts[at], told, since = cut, then, 0
        since += 1
        at = (at + 1) % len(cuts)
    if not np.isfinite(told) or any(failing(programme, cuts).values()):
        return None
    return Cuts(nodes=tuple(cuts), told=told)


def _completed(programme: Programme, cuts: Sequence[Integers], at: int) -> Cuts | None:
    """Given cuts with the best one of a tree."""
    found, rest = best_cut(programme, cuts, at), _without(programme, cuts, at)
    if found is None or not np.isfinite(rest):
        return None
    return Cuts(nodes=(*cuts[:at], found[0], *cuts[at + 1 :]), told=found[1] + rest)


def _each_but_one(programme: Programme) -> list[tuple[tuple[Integers, ...], int]] | None:
    """All combinations of cuts of the trees but one, and which one; None where there are too many."""
    present = [np.unique(rows[rows >= 0]) for rows in programme.above]
    numbers = [_number_of_cuts(tree, nodes) for tree, nodes in zip(programme.trees, present, strict=True)]
    last = int(np.argmax(numbers))
    if prod(number for at, number in enumerate(numbers) if at != last) > _MOST_BEGINNINGS:
        return None
    every = [
        [nodes[:0]] if at == last else _all_cuts(tree, nodes)
        for at, (tree, nodes) in enumerate(zip(programme.trees, present, strict=True))
    ]
    return [(cuts, last) for cuts in product(*every)]


def _number_of_cuts(tree: Tree, present: Integers) -> float:
    """How many cuts a tree has, of nodes with records."""
    parents, below = tree.parents[0], np.ones(len(tree))
    own, depth = np.ones(len(tree)), _depths(parents)
    for deep in range(int(depth[present].max(initial=0)), -1, -1):
        nodes = present[depth[present] == deep]
        inner = np.isin(nodes, parents[present])
        own[nodes] = np.minimum(1 + np.where(inner, below[nodes], 0), 1e9)  # more are too many anyway
        if deep:
            np.multiply.at(below, parents[nodes], own[nodes])
            below = np.minimum(below, 1e9)
    return float(own[ROOT])


def _all_cuts(tree: Tree, present: Integers) -> list[Integers]:
    """Every cut of a tree, of nodes with records."""
    parents = tree.parents[0]

    def under(node: int) -> list[Integers]:
        parts = [under(child) for child in present[parents[present] == node].tolist()]
        return [np.array([node]), *([np.sort(np.concatenate(some)) for some in product(*parts)] if parts else [])]

    return under(ROOT)


def _beginnings(programme: Programme) -> list[tuple[Integers, ...]]:
    """Cuts at whole levels of all trees, from the finest to totals; some of them where there are many."""
    levels = [
        [np.unique(np.where(row >= 0, row, nodes)) for row in rows]
        for rows, nodes in zip(programme.above, programme.nodes, strict=True)
    ]
    levels = [[level for at, level in enumerate(some) if at == 0 or len(level) < len(some[at - 1])] for some in levels]
    every = list(product(*levels))
    if len(every) > _MOST_BEGINNINGS:
        every = [every[at] for at in np.unique(np.linspace(0, len(every) - 1, _MOST_BEGINNINGS).astype(int))]
    return every


def _merged(programme: Programme, best: Cuts) -> list[tuple[Integers, ...]]:
    """The same cuts with the children of one node merged: those first whose node has least below it."""
    found = []
    for at, (tree, cut) in enumerate(zip(programme.trees, best.nodes, strict=True)):
        parents = tree.parents[0]
        for node in np.unique(parents[cut[cut != ROOT]]).tolist():
            under = tree.nearest(np.array([node]))[cut] == node
            lost = int(under.sum())
            cuts = (*best.nodes[:at], np.sort(np.append(cut[~under], node)), *best.nodes[at + 1 :])
            found.append((lost, at, node, cuts))
    return [cuts for *_, cuts in sorted(found, key=lambda one: one[:3])]


def _by_node(programme: Programme, cuts: Sequence[Integers], at: int) -> tuple[Flags, Floats]:
    """For every node of one tree whether all cells that it would have pass, and what they tell."""
    name, size = programme.trees[at].name, len(programme.trees[at])
    passes, tells = np.ones(size, dtype=bool), np.zeros(size)
    for table, by in programme.tables.items():
        if name not in by:
            continue
        own = programme.of_table[table]
        others, number = cells_at(own, cuts, tuple(one for one in by if one != name))
        for row in own.above[at]:
            mine = row >= 0
            some = _of_records(own, mine)
            cells, first = np.unique(row[mine] * number + others[mine], return_inverse=True)
            known = some.contributors(first, len(cells))
            node = cells // number
            passes &= np.bincount(node, weights=~programme.passes(known), minlength=size) == 0
            tells += programme.weights.get(table, 1.0) * np.bincount(
                node, weights=programme.tells(known), minlength=size
            )
    return passes, tells


def _of_records(programme: Programme, mine: Flags) -> Programme:
    """The same programme with some of its records."""
    if mine.all():
        return programme
    nodes = tuple(one[mine] for one in programme.nodes)
    contribution = None if programme.contribution is None else programme.contribution[mine]
    return replace(
        programme,
        nodes=nodes,
        unit=programme.unit[mine],
        value=programme.value[mine],
        contribution=contribution,
        only={},
    )


def _without(programme: Programme, cuts: Sequence[Integers], at: int) -> float:
    """What tables tell that are not by one tree; minus infinity if a cell of theirs does not pass."""
    total = 0.0
    for table, by in programme.tables.items():
        if programme.trees[at].name in by:
            continue
        own = programme.of_table[table]
        known = own.contributors(*cells_at(own, cuts, by))
        if not programme.passes(known).all():
            return -np.inf
        total += programme.weights.get(table, 1.0) * float(programme.tells(known).sum())
    return total


def cells_at(programme: Programme, cuts: Sequence[Integers], by: Sequence[str]) -> tuple[Integers, int]:
    """The cell of every record in a table at given cuts, and how many cells there are."""
    cell = np.zeros(len(programme.value), dtype=np.int64)
    for tree, nodes, cut in zip(programme.trees, programme.nodes, cuts, strict=True):
        if tree.name in by:
            cell = np.unique(cell * len(tree) + tree.nearest(cut)[nodes], return_inverse=True)[1]
    return cell, int(cell.max(initial=-1)) + 1


def _depths(parents: Integers) -> Integers:
    depth, at = np.zeros(len(parents), dtype=np.int64), parents
    while bool(np.any(at >= 0)):
        depth += at >= 0
        at = np.where(at >= 0, parents[at], -1)
    return depth


def _summed(cell: Integers, unit: Integers, value: Floats, size: Floats, number: int, *, top: int) -> Contributions:
    """Contributions of cells from records in the order of cells and units."""
    if not len(cell):
        none = np.zeros(number)
        return Contributions(
            value=none, units=none.astype(np.int64), largest=none, second=none, top=none if top else None
        )
    begins = np.flatnonzero((np.diff(cell, prepend=-1) != 0) | (np.diff(unit, prepend=unit[0]) != 0))
    each, whose = np.add.reduceat(value, begins), cell[begins]
    size = np.abs(np.add.reduceat(size, begins))
    order = np.lexsort((-size, whose))
    first = np.flatnonzero(np.diff(whose[order], prepend=-1))
    rank = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    largest, second = np.zeros(number), np.zeros(number)
    largest[whose[order][rank == 0]] = size[order][rank == 0]
    second[whose[order][rank == 1]] = size[order][rank == 1]
    most = np.bincount(whose[order], weights=np.where(rank < top, size[order], 0.0), minlength=number)
    return Contributions(
        value=np.bincount(whose, weights=each, minlength=number).astype(np.float64),
        units=np.bincount(whose, minlength=number),
        largest=largest,
        second=second,
        top=most.astype(np.float64) if top else None,
    )
