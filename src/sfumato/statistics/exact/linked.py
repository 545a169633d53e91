"""All tables of true numbers as one system of cells: what lies in what, filters, and tables by nested attributes.

Attributes of which one lies in the other are levels of one tree. A filter is an axis with one code. A table by two
levels of one tree has cells that are the same as those of one level; it goes into the system in pieces, each with one
axis in every tree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells
from sfumato.errors import ReleaseError
from sfumato.exact.system import System, Table, build_system
from sfumato.exact.trees import ROOT, Tree
from sfumato.statistics.exact.contributions import Nested
from sfumato.statistics.exact.question import ExactQuestion


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedTable:
    """A table as the system has it."""

    name: str
    cells: Cells
    where: Mapping[str, tuple[str, ...]]
    about: str
    codes: Mapping[str, tuple[str, ...]]
    """All codes of the attributes of filters, and of dimensions without those of totals."""

    @classmethod
    def of(cls, name: str, question: ExactQuestion, cells: Cells) -> "LinkedTable":
        """A table by what it asks; its cells may be left out where only its axes matter."""
        about = "number" if question.measure is None else f"total of {question.measure}"
        return cls(name=name, cells=cells, where=question.where, about=about, codes=question.codes)

    @cached_property
    def axes(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Its dimensions, and a level with one code for every filter that keeps some codes of another attribute."""
        by = [(one.name, one.codes) for one in self.cells.dimensions]
        kept = [_kept(name, codes) for name, codes in self.filters.items()]
        return (*by, *kept)

    @property
    def filters(self) -> dict[str, tuple[str, ...]]:
        """The filters by attributes that are no dimensions; one that keeps all codes is none."""
        own = {one.name for one in self.cells.dimensions}
        return {n: c for n, c in self.where.items() if n not in own and set(c) < set(self.codes[n])}


def _kept(name: str, codes: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """A filter as a level: the attribute itself where one code is kept, and else a level of these and the rest."""
    return (name, tuple(codes)) if len(codes) == 1 else (f"{name} in {'/'.join(sorted(codes))}", ("kept",))


@dataclass(frozen=True, kw_only=True, eq=False)
class Linked:
    """A system, and where the cells of every table are in it."""

    system: System
    places: Mapping[str, Integers]
    """For every cell of a table its variable, or −1: a zero that everybody knows."""

    def of(self, name: str, flags: Flags) -> Flags:
        """Flags of variables as flags of the cells of a table; known zeros have none."""
        at = self.places[name]
        found: Flags = (at >= 0) & flags[np.maximum(at, 0)] if len(flags) else np.zeros(len(at), dtype=bool)
        return found


def trees_of(tables: Sequence[LinkedTable], nested: Nested) -> dict[str, Tree]:
    """The tree of every attribute or filter, by its name."""
    codes: dict[str, tuple[str, ...]] = {}
    for table in tables:
        for name in (*(one.name for one in table.cells.dimensions), *table.filters):
            codes[name] = table.codes[name]
    steps = [(fine, coarse, above) for (fine, coarse), above in nested.items() if fine in codes and coarse in codes]
    for table in tables:
        for name, kept in table.filters.items():
            level, _ = _kept(name, kept)
            if level != name and level not in codes:
                codes[level] = ("kept", "rest")
                steps.append((name, level, {code: "kept" if code in kept else "rest" for code in codes[name]}))
    steps = _nearest(steps)
    found: dict[str, Tree] = {}
    for names in _groups(codes, steps):
        levels = {name: codes[name] for name in names}
        own = [step for step in steps if step[0] in levels]
        tree = Tree.of(" ".join(names), levels, own)
        found |= dict.fromkeys(names, tree)
    return found


def _nearest(steps: Sequence[tuple[str, str, Mapping[str, str]]]) -> list[tuple[str, str, Mapping[str, str]]]:
    """Steps from a level to the next one only; of two levels that are the same, the first lies in the second."""
    pairs = {(fine, coarse) for fine, coarse, _ in steps}
    pairs -= {(fine, coarse) for fine, coarse in pairs if (coarse, fine) in pairs and fine > coarse}
    names = {name for pair in pairs for name in pair}
    direct = {
        (fine, coarse)
        for fine, coarse in pairs
        if not any((fine, between) in pairs and (between, coarse) in pairs for between in names)
    }
    return [step for step in steps if step[:2] in direct]


def _groups(names: Iterable[str], steps: Sequence[tuple[str, str, Mapping[str, str]]]) -> list[list[str]]:
    """Levels that belong to one tree."""
    of = {name: {name} for name in names}
    for fine, coarse, _ in steps:
        both = of[fine] | of[coarse]
        for name in both:
            of[name] = both
    distinct = {id(group): group for group in of.values()}
    return [[name for name in of if name in group] for group in distinct.values()]


def linked(tables: Sequence[LinkedTable], nested: Nested, *, zeros_known: bool, least: float = 0.0) -> Linked:
    """One system of all cells of all tables; everybody knows that a number which is no zero is `least` or more."""
    trees = trees_of(tables, nested)
    pieces: dict[str, Table] = {}
    members: dict[str, list[tuple[str, Integers]]] = {table.name: [] for table in tables}
    for table in tables:
        for number, (piece, chosen) in enumerate(_pieces(table, trees, zeros_known=zeros_known)):
            pieces[name := f"{table.name}#{number}"] = piece
            members[table.name].append((name, chosen))
    system = build_system(pieces, zeros_known=zeros_known, least=least)
    places = {}
    for table in tables:
        places[table.name] = at = np.full(len(table.cells), -1, dtype=np.int64)
        for name, chosen in members[table.name]:
            at[chosen] = system.places[name]
    return Linked(system=system, places=places)


def _pieces(table: LinkedTable, trees: Mapping[str, Tree], *, zeros_known: bool) -> Iterable[tuple[Table, Integers]]:
    """A table in pieces that have one axis in every tree, each with the cells of the table that it has."""
    cells = table.cells
    codes = [cells.codes(one.name).astype(np.int64) for one in cells.dimensions]
    codes += [np.zeros(len(cells), dtype=np.int64)] * (len(table.axes) - len(codes))
    nodes = [trees[name].nodes(name, listed) for name, listed in table.axes]
    listed = cells["exact"] != 0 if zeros_known else np.ones(len(cells), dtype=bool)
    of_tree: dict[str, list[int]] = {}
    for place, (name, _) in enumerate(table.axes):
        of_tree.setdefault(trees[name].name, []).append(place)
    total = [nodes[place][codes[place]] == ROOT for place in range(len(table.axes))]
    shared = [place for places in of_tree.values() if len(places) > 1 for place in places]
    pattern = np.zeros(len(cells), dtype=np.int64)
    for place in shared:
        pattern = pattern * 2 + total[place]
    for chosen in np.unique(pattern[listed]):
        mine = np.flatnonzero(listed & (pattern == chosen))
        at, axes = np.zeros(len(mine), dtype=np.int64), []
        right = np.ones(len(mine), dtype=bool)
        for places in of_tree.values():
            tree = trees[table.axes[places[0]][0]]
            place = places[0] if len(places) == 1 else _finest(table, tree, places, total, mine)
            own = nodes[place][codes[place][mine]]
            for other in places:
                right &= total[other][mine] | _lies_in(tree, own, nodes[other][codes[other][mine]])
            at = at * len(nodes[place]) + codes[place][mine]
            axes.append((tree, nodes[place]))
        mine, at = mine[right], at[right]
        order = np.argsort(at, kind="stable")
        mine, at = mine[order], at[order]
        if len(mine):
            piece = Table(axes=tuple(axes), positions=at, value=cells["exact"][mine], about=table.about)
            yield piece, mine


def _finest(table: LinkedTable, tree: Tree, places: Sequence[int], total: Sequence[Flags], mine: Integers) -> int:
    """Of several levels of one tree that a table is by, the one that lies in all others which are not totals."""
    told = [place for place in places if len(mine) and not total[place][mine[0]]] or list(places[:1])
    for place in told:
        if all(_is_below(tree, table.axes[place][0], table.axes[other][0]) for other in told if other != place):
            return place
    raise not_nested(table, [table.axes[place][0] for place in told])


def refuse_crossed(tables: Sequence[LinkedTable], nested: Nested) -> None:
    """Refuse a table by two levels of one tree of which neither lies in the other: their cells are in no tree."""
    trees = trees_of(tables, nested)
    for table in tables:
        names = [name for name, _ in table.axes]
        for place, one in enumerate(names):
            for other in names[place + 1 :]:
                tree = trees[one]
                if tree is trees[other] and not (_is_below(tree, one, other) or _is_below(tree, other, one)):
                    raise not_nested(table, [one, other])


def not_nested(table: LinkedTable, names: Sequence[str]) -> ReleaseError:
    """That a table is by two attributes whose cells cannot be linked to those of others."""
    return ReleaseError(
        f"table '{table.name}'",
        expected="attributes of which one lies in the other, or that have no finer attribute in common in the release",
        found=f"{' and '.join(names)}, which cross",
        do="publish the table by the finer attribute, or in a release of its own data",
    )


def _is_below(tree: Tree, fine: str, coarse: str) -> bool:
    """Whether one level of a tree lies in another."""
    of = np.array([level for level, _ in tree.codes])
    for parents in tree.parents:
        at = np.flatnonzero(of == fine)[:1]
        while len(at) and at[0] > ROOT:
            at = parents[at]
            if at[0] > ROOT and of[at[0]] == coarse:
                return True
    return False


def _lies_in(tree: Tree, nodes: Integers, others: Integers) -> Flags:
    """Whether every node is another one, or lies in it."""
    met: Flags = nodes == others
    for parents in tree.parents:
        at = nodes.copy()
        while bool(np.any(at > ROOT)):
            at = np.where(at > ROOT, parents[at], at)
            met = met | (at == others)
    return met
