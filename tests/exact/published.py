"""Small tables that others published, with what their programs withhold."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Flags, Floats
from sfumato.exact.rules import Protection
from sfumato.exact.system import System, Table, build_system
from sfumato.exact.trees import Tree
from tests.exact.tables import cross, protection


@dataclass(frozen=True, kw_only=True, eq=False)
class Instance:
    """A table whose cells cost their values, what is sensitive in it, and what the published pattern costs."""

    name: str
    source: str
    system: System
    needs: Protection
    published: float
    """The cost of the cells that are withheld beside sensitive ones in the best published pattern."""

    @property
    def cost(self) -> Floats:
        return np.maximum(self.system.value, 1e-6)

    def price(self, withheld: Flags) -> float:
        return float(self.cost[withheld & ~self.needs.sensitive].sum())


def at(shape: tuple[int, ...], *cells: tuple[int, ...]) -> Flags:
    """Flags of inner cells, by their place without totals."""
    flags = np.zeros([size + 1 for size in shape], dtype=bool)
    for cell in cells:
        flags[tuple(place + 1 for place in cell)] = True
    return flags.ravel()


def vignette() -> Instance:
    """The first of its three attributes has a code, B, that is a sum of three others."""
    fine = [
        [[12, 16, 11, 13, 6, 22], [19, 21, 15, 11, 13, 10]],
        [[18, 15, 26, 7, 13, 18], [12, 12, 10, 13, 15, 16]],
        [[18, 10, 15, 15, 9, 18], [12, 6, 21, 12, 21, 16]],
        [[10, 17, 7, 13, 14, 19], [18, 12, 21, 16, 11, 18]],
        [[11, 12, 11, 8, 10, 14], [16, 12, 15, 14, 17, 10]],
        [[13, 10, 14, 14, 12, 16], [19, 16, 11, 8, 9, 15]],
    ]
    lies = {"A": "a", "Ba": "b", "Bb": "b", "Bc": "b", "C": "c", "D": "d"}
    first = Tree.of("first", {"letter": ["a", "b", "c", "d"], "code": list(lies)}, above=[("code", "letter", lies)])
    others = [Tree.of(f"{n}", {f"{n}": [str(code) for code in range(n)]}) for n in (2, 6)]
    parts = np.vstack([np.ones(6), [0, 1, 1, 1, 0, 0], np.eye(6)]).astype(np.int64)
    value = np.einsum("ai,bj,ck,ijk", parts, *(np.vstack([np.ones(n), np.eye(n)]) for n in (2, 6)), np.array(fine))
    axes = ((first, np.concatenate([[0], first.nodes("letter", ["b"]), first.nodes("code", list(lies))])),)
    axes += tuple((tree, np.arange(len(tree))) for tree in others)
    table = Table(axes=axes, positions=np.arange(value.size), value=value.ravel().astype(np.int64))
    system = build_system({"t": table})
    return Instance(
        name="168 counts in three ways",
        source="sdcTable 0.33.0, vignette, counts of at most 10; its methods OPT and HITAS, run anew",
        system=system,
        needs=protection(system, (system.value <= 10).astype(float)),
        published=354.0,
    )


def rectangle() -> Instance:
    system = cross(np.array([[18, 2], [14, 19], [12, 10], [11, 14]]))
    return Instance(
        name="four regions by gender",
        source="sdcTable 0.33.0, data microdata1 and the test of protectTable: OPT, HITAS and HYPERCUBE",
        system=system,
        needs=protection(system, at((4, 2), (0, 1)).astype(float)),
        published=40.0,
    )


def recomputed() -> Instance:
    system = cross(
        np.array([[30, 47, 64, 89], [90, 124, 5, 31], [92, 100, 59, 85], [800, 991, 651, 685]]), zeros_known=False
    )
    cells = at((4, 4), (0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 1), (2, 3), (3, 1), (3, 3))
    return Instance(
        name="two sensitive cells in every line",
        source="sdcTable 0.33.0, the test of SIMPLEHEURISTIC: one cell more",
        system=system,
        needs=protection(system, cells.astype(float)),
        published=31.0,
    )


def incomes() -> Instance:
    other, work = [11, 7, 5, 13, 9, 12, 6, 9], [11, 1, 8, 2, 14, 9, 4, 3]
    support, insurance = [55, 29, 35, 17, 63, 24, 22, 38], [36, 18, 25, 13, 52, 22, 8, 15]
    system = cross(np.array([other, work, support, insurance]).T, zeros_known=False)
    return Instance(
        name="eight regions by source of income",
        source="SSBtools 1.8.6, data z1, counts of at most 3; OPT of sdcTable 0.33.0, run anew",
        system=system,
        needs=protection(system, at((8, 4), (1, 1), (3, 1), (7, 1)).astype(float)),
        published=29.0,
    )


INSTANCES: tuple[Callable[[], Instance], ...] = (vignette, rectangle, recomputed, incomes)
