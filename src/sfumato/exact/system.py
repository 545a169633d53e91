"""All cells of all tables of a release as one vector, and every sum that readers know as one sparse system.

A table is described by an axis in each of some trees: which codes it tells apart. Levels of an attribute are nodes of
one tree, "total" is its root, and a table without an attribute is at the root of its tree. So the same cell in two
tables is one variable, and a sum is an equation wherever all its parts are cells of some table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats, Integers
from sfumato.cells import Cells
from sfumato.errors import MethodError
from sfumato.exact.trees import Tree

_LARGEST_KEY = 2**62
_WHERE = "the system of all tables"


@dataclass(frozen=True, kw_only=True)
class Table:
    """The cells of one table: an axis in each of its trees, positions in their product, and a value for each.

    Positions count with the last axis fastest, as those of `sfumato.cells.Cells` do.
    """

    axes: tuple[tuple[Tree, Integers], ...]
    """Trees, each with the node of every code of the dimension, in the order of its codes."""
    positions: Integers
    value: Integers
    about: str = ""
    """The measure and the population: only tables about the same are linked."""
    complete: bool = True
    """Whether a combination of codes that is not listed is zero, as everybody knows."""

    def __post_init__(self) -> None:
        if len({tree.name for tree, _ in self.axes}) < len(self.axes):
            raise ValueError("a table has one axis in each tree")
        if self.value.shape != self.positions.shape:
            raise ValueError("one value a cell")

    @classmethod
    def of(
        cls, cells: Cells, column: str, trees: Mapping[str, Tree], *, about: str = "", complete: bool = True
    ) -> "Table":
        """Counted cells as a table; `trees` has the tree of every dimension, several levels in the same one."""
        axes = tuple((trees[one.name], trees[one.name].nodes(one.name, one.codes)) for one in cells.dimensions)
        return cls(axes=axes, positions=cells.positions, value=cells[column], about=about, complete=complete)

    @property
    def nodes(self) -> tuple[Integers, ...]:
        """The node of every cell in each axis."""
        found, left = [], self.positions
        for _, axis in reversed(self.axes):
            found.append(axis[left % len(axis)])
            left = left // len(axis)
        return tuple(reversed(found))


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    """Cells y with equations·y = 0 and lower ≤ y ≤ upper: all that readers know before any number is published."""

    value: Floats
    """The true values, one a cell."""
    equations: Any
    """A sparse matrix by rows with entries 1 (parts) and −1 (their sum)."""
    lower: Floats
    upper: Floats
    places: Mapping[str, Integers]
    """For every table the variable of each of its cells, in the order of its positions."""
    hidden: Flags
    """Sums that tables share and none publishes: readers know that they exist, and never see them."""

    def __post_init__(self) -> None:
        for column in (self.lower, self.upper, self.hidden):
            if column.shape != self.value.shape:
                raise ValueError("one value, bound and flag a cell")
        if bool(np.any((self.value < self.lower) | (self.value > self.upper))):
            raise MethodError(
                _WHERE,
                expected="values within the bounds that readers know",
                found="a cell beyond them",
                do="say that values may be negative, or give wider bounds",
            )
        object.__setattr__(self, "places", MappingProxyType(dict(self.places)))

    def __len__(self) -> int:
        return len(self.value)

    @cached_property
    def by_cell(self) -> Any:
        """The equations by columns."""
        return self.equations.tocsc()

    @cached_property
    def fixed(self) -> Flags:
        """Cells that readers know already, such as zeros."""
        known: Flags = self.lower == self.upper
        return known

    @property
    def freedom(self) -> tuple[Floats, Floats]:
        """How far every cell can go down and up within its bounds."""
        return self.value - self.lower, self.upper - self.value

    def of_table(self, name: str, flags: Flags) -> Flags:
        """Flags of variables as flags of the cells of one table."""
        return flags[self.places[name]]

    def with_bounds(self, *, lower: Floats | None = None, upper: Floats | None = None) -> "System":
        """The same cells for readers who know more."""
        return replace(
            self,
            lower=self.lower if lower is None else np.maximum(self.lower, lower),
            upper=self.upper if upper is None else np.minimum(self.upper, upper),
        )

    def with_implied_bounds(self) -> "System":
        """The same where every sum is at least what its parts are at least: no rule can ask for less."""
        lower = self.lower.copy()
        sides = [single_sums(self.equations * sign) for sign in (1.0, -1.0)]
        while True:
            before = lower.copy()
            for parts, sums in sides:
                np.maximum.at(lower, sums, parts @ lower)
            if np.array_equal(lower, before):
                return replace(self, lower=lower)


def build_system(
    tables: Mapping[str, Table], *, zeros_known: bool = True, least: float = 0.0, most: float = np.inf
) -> System:
    """One system of all tables: every distinct cell once, and every sum among cells.

    `zeros_known` fixes cells of value zero, and readers know of all others that they are not; `least` and `most` are
    what readers know of every value.
    """
    if not tables:  # nothing but zeros
        none = np.zeros(0)
        return System(
            value=none, equations=sparse.csr_matrix((0, 0)), lower=none, upper=none, places={}, hidden=none > 0
        )
    grid = _Grid.of(tables)
    parts = [grid.part(table) for table in tables.values()]
    hidden, links = grid.shared_margins(parts)
    keys, values = grid.distinct([*parts, *hidden])
    seen = np.isin(keys, np.concatenate([part.keys for part in parts])) if hidden else np.ones(len(keys), dtype=bool)
    equations = _without_repetition(
        sparse.vstack(
            [grid.equations(keys, [*parts, *hidden]), *(grid.sums(keys, *link) for link in links)], format="csr"
        )
    )
    if bool(np.any(np.abs(equations @ values) > 1e-6)):
        raise _do_not_add_up()
    lower = np.full(len(keys), float(least))
    upper = np.full(len(keys), float(most))
    if zeros_known:
        zero = values == 0
        lower[zero] = upper[zero] = 0.0
        if least >= 0:
            lower[~zero] = max(least, 1.0)  # values are whole numbers
    placed = {name: np.searchsorted(keys, part.keys) for name, part in zip(tables, parts, strict=True)}
    found = System(value=values, equations=equations, lower=lower, upper=upper, places=placed, hidden=~seen)
    return found.with_implied_bounds()


def joint(first: System, second: System, same: tuple[Integers, Integers], *, most_change: Floats | float) -> System:
    """Two systems as one, for a reader who knows that some cells changed by no more than so much between them.

    `same` pairs cells of the first with cells of the second. The cells of the second come after those of the first.
    """
    one, other = same
    n, m, k = len(first), len(second), len(one)
    rows = np.arange(k)
    change = sparse.csr_matrix(
        (
            np.concatenate([np.ones(k), -np.ones(k), np.ones(k)]),
            (np.tile(rows, 3), np.concatenate([one, n + other, n + m + rows])),
        ),
        shape=(k, n + m + k),
    )
    blocks = sparse.block_diag([first.equations, second.equations, sparse.csr_matrix((0, k))], format="csr")
    limit = np.broadcast_to(np.asarray(most_change, dtype=np.float64), (k,))
    return System(
        value=np.concatenate([first.value, second.value, second.value[other] - first.value[one]]),
        equations=sparse.vstack([blocks, change], format="csr"),
        lower=np.concatenate([first.lower, second.lower, -limit]),
        upper=np.concatenate([first.upper, second.upper, limit]),
        places={
            **{f"first {name}": at for name, at in first.places.items()},
            **{f"second {name}": n + at for name, at in second.places.items()},
        },
        hidden=np.concatenate([first.hidden, second.hidden, np.ones(k, dtype=bool)]),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """A table, or several that lie beside each other: an axis in every tree, and the keys of its cells."""

    about: int
    axes: tuple[Integers, ...]
    keys: Integers
    value: Floats
    complete: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class _Grid:
    """The product of all trees: every possible cell has a key in it."""

    trees: tuple[Tree, ...]
    about: tuple[str, ...]

    @classmethod
    def of(cls, tables: Mapping[str, Table]) -> "_Grid":
        trees: dict[str, Tree] = {}
        for table in tables.values():
            for tree, _ in table.axes:
                if trees.setdefault(tree.name, tree) is not tree:
                    raise ValueError(f"two trees are named {tree.name!r}")
        about = tuple(dict.fromkeys(table.about for table in tables.values()))
        if prod(map(len, trees.values())) * len(about) >= _LARGEST_KEY:
            raise MethodError(
                _WHERE,
                expected="fewer than 2^62 combinations of all codes of all attributes",
                found="more",
                do="put tables that share no attribute into releases of their own",
            )
        return cls(trees=tuple(trees.values()), about=about)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        sizes = [len(tree) for tree in self.trees]
        return tuple(prod(sizes[at + 1 :]) for at in range(len(sizes)))

    def part(self, table: Table) -> _Part:
        about = self.about.index(table.about)
        own = {tree.name: (axis, nodes) for (tree, axis), nodes in zip(table.axes, table.nodes, strict=True)}
        keys = np.full(len(table.positions), about * prod(map(len, self.trees)), dtype=np.int64)
        axes = []
        for tree, stride in zip(self.trees, self.strides, strict=True):
            axis, nodes = own.get(tree.name, (np.zeros(1, dtype=np.int64), 0))
            keys += nodes * stride
            axes.append(np.unique(axis))
        if len(np.unique(keys)) < len(keys):
            raise ValueError("a table has every cell once")
        value = table.value.astype(np.float64)
        return _Part(about=about, axes=tuple(axes), keys=keys, value=value, complete=table.complete)

    def distinct(self, parts: Sequence[_Part]) -> tuple[Integers, Floats]:
        """The distinct keys of some parts with their values."""
        everything = np.concatenate([part.keys for part in parts])
        values = np.concatenate([part.value for part in parts])
        keys, first, place = np.unique(everything, return_index=True, return_inverse=True)
        found = values[first]
        if bool(np.any(np.abs(found[place] - values) > 1e-9)):
            raise MethodError(
                _WHERE,
                expected="the same value for the same cell of two tables",
                found="two values",
                do="count all tables from the same records; tables of other records are `about` something else",
            )
        return keys, found

    def nodes(self, keys: Integers, at: int) -> Integers:
        """The node of every key in one tree."""
        return keys // self.strides[at] % len(self.trees[at])

    def abouts(self, keys: Integers) -> Integers:
        """What every key is about."""
        return keys // prod(map(len, self.trees))

    def equations(self, keys: Integers, parts: Sequence[_Part]) -> Any:
        """Every sum along one tree whose parts are all cells of tables that lie beside each other in it."""
        nodes = [self.nodes(keys, at) for at in range(len(self.trees))]
        about = self.abouts(keys)
        rows, columns, signs, number = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], [np.zeros(0)], 0
        for at, part in self._beside(parts):
            inside = about == part.about
            for other, axis in enumerate(part.axes):
                if other != at:
                    inside &= _listed(axis, len(self.trees[other]))[nodes[other]]
            for above, below in self.trees[at].sums(part.axes[at]):
                mine = np.flatnonzero(inside & _listed(above, len(self.trees[at]))[nodes[at]])
                child, parent = self._parents(part.keys, at, above, below)
                place = np.searchsorted(keys[mine], parent)
                place[place == len(mine)] = 0
                met = keys[mine][place] == parent if len(mine) else np.zeros(len(parent), dtype=bool)
                place, child = place[met], child[met]
                if not part.complete:
                    wanted = np.bincount(above, minlength=len(self.trees[at]))[nodes[at][mine]]
                    whole = np.bincount(place, minlength=len(mine)) == wanted
                    renumber = np.cumsum(whole) - 1
                    place, child, mine = renumber[place[whole[place]]], child[whole[place]], mine[whole]
                rows += [place + number, np.arange(len(mine)) + number]
                columns += [np.searchsorted(keys, part.keys[child]), mine]
                signs += [np.ones(len(child)), -np.ones(len(mine))]
                number += len(mine)
        shape = (number, len(keys))
        return sparse.csr_matrix((np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns))), shape=shape)

    def sums(self, keys: Integers, part: _Part, axes: tuple[Integers, ...]) -> Any:
        """The sums of a table over several trees at once, where no table lies between."""
        child, parent = self._over(part, axes)
        distinct, row = np.unique(parent, return_inverse=True)
        distinct_at = np.searchsorted(keys, distinct)
        if bool(np.any(keys[np.minimum(distinct_at, len(keys) - 1)] != distinct)):
            raise _do_not_add_up()
        signs = np.concatenate([np.ones(len(child)), -np.ones(len(distinct))])
        rows = np.concatenate([row, np.arange(len(distinct))])
        columns = np.concatenate([np.searchsorted(keys, part.keys[child]), distinct_at])
        return sparse.csr_matrix((signs, (rows, columns)), shape=(len(distinct), len(keys)))

    def _parents(self, keys: Integers, at: int, above: Integers, below: Integers) -> tuple[Integers, Integers]:
        """The parts of sums, by their place among the keys, each with the key of its sum."""
        order = np.argsort(below, kind="stable")
        above, below = above[order], below[order]
        nodes = self.nodes(keys, at)
        first, last = np.searchsorted(below, nodes), np.searchsorted(below, nodes, side="right")
        times = last - first
        child = np.repeat(np.arange(len(keys)), times)
        which = np.arange(len(child)) - np.repeat(np.cumsum(times) - times, times) + np.repeat(first, times)
        return child, keys[child] + (above[which] - nodes[child]) * self.strides[at]

    def _beside(self, parts: Sequence[_Part]) -> Iterator[tuple[int, _Part]]:
        """For every tree, tables that differ in nothing but their codes in it, as one.

        Where a table tells more codes of other trees, such as totals, its cells among those that all tell are beside
        the others.
        """
        for at in range(len(self.trees)):
            groups: dict[Any, list[_Part]] = {}
            for part in parts:
                others = tuple(axis.tobytes() for other, axis in enumerate(part.axes) if other != at)
                groups.setdefault((part.about, part.complete, others), []).append(part)
            for group in groups.values():
                first = group[0]
                axis = np.unique(np.concatenate([part.axes[at] for part in group]))
                keys = [part.keys for part in group]
                for part in parts:
                    mine = (*first.axes[:at], part.axes[at], *first.axes[at + 1 :])
                    alike = (part.about, part.complete) == (first.about, first.complete)
                    if alike and _within(mine, part.axes) and not _within([part.axes[at]], [axis]):
                        keys.append(self._inside(part.keys, mine))
                        axis = np.union1d(axis, part.axes[at])
                everything = np.unique(np.concatenate(keys))
                axes = (*first.axes[:at], axis, *first.axes[at + 1 :])
                yield at, replace(first, axes=axes, keys=everything, value=np.zeros(len(everything)))

    def _inside(self, keys: Integers, axes: Sequence[Integers]) -> Integers:
        """The keys of which every node is one of some."""
        kept = np.ones(len(keys), dtype=bool)
        for at, axis in enumerate(axes):
            kept &= _listed(axis, len(self.trees[at]))[self.nodes(keys, at)]
        return keys[kept]

    def shared_margins(self, parts: Sequence[_Part]) -> tuple[list[_Part], list[tuple[_Part, tuple[Integers, ...]]]]:
        """The sums that two tables share and no table has, and tables with sums that lie in no table between."""
        hidden: list[_Part] = []
        links: list[tuple[_Part, tuple[Integers, ...]]] = []
        for one, other in combinations(parts, 2):
            if one.about != other.about or not (one.complete and other.complete):
                continue
            shared = [tree.common(a, b) for tree, a, b in zip(self.trees, one.axes, other.axes, strict=True)]
            axes = tuple(axis for axis in shared if axis is not None)
            if len(axes) < len(shared):
                continue
            known = [part.axes for part in [*parts, *hidden] if part.about == one.about]
            if not any(_within(axes, others) for others in known):
                hidden.append(self._margin(one, axes))
                known.append(axes)
            for part in (one, other):
                finest = tuple(tree.finest(axis) for tree, axis in zip(self.trees, part.axes, strict=True))
                if not _linked(finest, axes, known):
                    links.append((part, axes))
                    known.append(axes)
        return hidden, links

    def _over(self, part: _Part, axes: tuple[Integers, ...]) -> tuple[Integers, Integers]:
        """The finest cells of a table within coarser axes, by their places, and the key of the sum of each."""
        keys = np.full(len(part.keys), part.about * prod(map(len, self.trees)), dtype=np.int64)
        kept = np.ones(len(part.keys), dtype=bool)
        for at, (tree, axis) in enumerate(zip(self.trees, axes, strict=True)):
            nodes = self.nodes(part.keys, at)
            finest, above = tree.finest(part.axes[at]), tree.nearest(axis)
            kept &= _listed(finest, len(tree))[nodes] & (above[nodes] >= 0)
            keys += above[nodes] * self.strides[at]
        return np.flatnonzero(kept), keys[kept]

    def _margin(self, part: _Part, axes: tuple[Integers, ...]) -> _Part:
        """The sums of a table over coarser axes."""
        child, parent = self._over(part, axes)
        distinct, place = np.unique(parent, return_inverse=True)
        value: Floats = np.bincount(place, weights=part.value[child], minlength=len(distinct)).astype(np.float64)
        return _Part(about=part.about, axes=axes, keys=distinct, value=value, complete=True)


def _linked(fine: tuple[Integers, ...], coarse: tuple[Integers, ...], known: Sequence[tuple[Integers, ...]]) -> bool:
    """Whether sums over one tree after the other, each in some table, lead from one table to coarser axes."""
    apart = [at for at, (a, b) in enumerate(zip(fine, coarse, strict=True)) if not np.array_equal(a, b)]
    if len(apart) <= 1:
        return True
    steps = [(*fine[:at], coarse[at], *fine[at + 1 :]) for at in apart]
    return any(any(_within(step, axes) for axes in known) and _linked(step, coarse, known) for step in steps)


def single_sums(equations: Any) -> tuple[Any, Integers]:
    """The parts of every equation that has one sum, and the cell that is this sum."""
    single = np.flatnonzero(np.asarray((equations < 0).sum(axis=1)).ravel() == 1)
    some = equations[single].tocsr()
    parts = some.multiply(some > 0).tocsr()
    listed = some.tocoo()
    sums = np.zeros(len(single), dtype=np.int64)
    sums[listed.row[listed.data < 0]] = listed.col[listed.data < 0]
    return parts, sums


def _do_not_add_up() -> MethodError:
    return MethodError(
        _WHERE,
        expected="tables that add up",
        found="a sum that differs from its parts",
        do="count all tables from the same records; tables of other records are `about` something else",
    )


def _listed(nodes: Integers, size: int) -> Flags:
    flags = np.zeros(size, dtype=bool)
    flags[nodes] = True
    return flags


def _within(axes: Sequence[Integers], others: Sequence[Integers]) -> bool:
    return all(bool(np.isin(axis, other).all()) for axis, other in zip(axes, others, strict=True))


def _without_repetition(matrix: Any) -> Any:
    """The same equations, each once: two tables may tell the same sum."""
    mixed = np.arange(1, matrix.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    signed = np.where(matrix.data > 0, mixed[matrix.indices], np.uint64(0) - mixed[matrix.indices])
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(signed, dtype=np.uint64)])
    _, first = np.unique(sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]], return_index=True)
    return matrix[np.sort(first)]
