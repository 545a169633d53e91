"""Small tables with all totals, as systems."""

from itertools import product

import numpy as np

from sfumato.exact.system import System, Table, build_system
from sfumato.exact.trees import Tree


def flat(name: str, size: int) -> Tree:
    return Tree.of(name, {name: [f"{name}{code}" for code in range(size)]})


def in_pairs(name: str, size: int) -> Tree:
    """Codes two by two in groups."""
    codes = [f"{name}{code}" for code in range(size)]
    groups = [f"g{code // 2}" for code in range(size)]
    return Tree.of(
        name,
        {"group": list(dict.fromkeys(groups)), name: codes},
        above=[(name, "group", dict(zip(codes, groups, strict=True)))],
    )


def with_totals(counts: np.ndarray, trees: list[Tree] | None = None, **options: bool) -> System:
    """Counts of the finest codes of each tree with all levels and totals."""
    trees = trees or [flat("abcdef"[axis], size) for axis, size in enumerate(counts.shape)]
    whole = np.asarray(counts, dtype=np.int64)
    for axis, tree in enumerate(trees):
        parents, depth = tree.parents[0], _depth(tree)
        nodes = np.zeros((len(tree), *np.delete(whole.shape, axis)), dtype=np.int64)
        finest = np.flatnonzero(depth == depth.max())
        nodes[finest] = np.moveaxis(whole, axis, 0)
        for deep in range(int(depth.max()), 0, -1):
            at = np.flatnonzero(depth == deep)
            np.add.at(nodes, parents[at], nodes[at])
        whole = np.moveaxis(nodes, 0, axis)
    table = Table(
        axes=tuple((tree, np.arange(len(tree))) for tree in trees), positions=np.arange(whole.size), value=whole.ravel()
    )
    return build_system({"t": table}, **options)


def _depth(tree: Tree) -> np.ndarray:
    depth, at = np.zeros(len(tree), dtype=np.int64), tree.parents[0]
    while np.any(at >= 0):
        depth += at >= 0
        at = np.where(at >= 0, tree.parents[0][at], -1)
    return depth


def nearest_by_trying(system: System, base: int) -> int | None:
    """The least distance of any zero-restricted rounding, by trying all."""
    value = system.value.astype(np.int64)
    open_to = np.flatnonzero(value % base)
    assert len(open_to) <= 16
    best = None
    for ups in product((0, 1), repeat=len(open_to)):
        rounded = value // base * base
        rounded[open_to] += base * np.array(ups, dtype=np.int64)
        if not np.any(system.equations @ rounded):
            distance = int(np.abs(rounded - value).sum())
            best = distance if best is None else min(best, distance)
    return best
