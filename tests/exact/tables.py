"""Small tables with totals as systems, and a proof of a pattern by other means: scipy, one program a bound."""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from sfumato.arrays import Flags, Floats
from sfumato.exact.rules import Protection
from sfumato.exact.system import System, Table, build_system
from sfumato.exact.trees import Tree


def with_totals(inner: np.ndarray) -> np.ndarray:
    for axis in range(inner.ndim):
        inner = np.concatenate([inner.sum(axis=axis, keepdims=True), inner], axis=axis)
    return inner


def cross(inner: np.ndarray, **options: object) -> System:
    """A table with all its totals: index 0 of every dimension is the total."""
    counts = with_totals(np.asarray(inner))
    trees = [Tree.of(f"d{at}", {f"d{at}": [str(k) for k in range(n)]}) for at, n in enumerate(np.shape(inner))]
    one = Table(
        axes=tuple((tree, np.arange(len(tree))) for tree in trees),
        positions=np.arange(counts.size),
        value=counts.ravel().astype(np.int64),
    )
    return build_system({"t": one}, **options)


def protection(system: System, needs: dict[int, float] | Floats, owner: dict[int, int] | None = None) -> Protection:
    """Cells that need so much, both ways."""
    size = np.zeros(len(system))
    for cell, need in needs.items() if isinstance(needs, dict) else enumerate(needs):
        size[cell] = need
    owners = np.full(len(system), -1, dtype=np.int64)
    for cell, who in (owner or {}).items():
        owners[cell] = who
    below, above = system.freedom
    return Protection(
        sensitive=size > 0,
        reasons=(size > 0).astype(np.int64),
        down=np.minimum(size, below),
        up=np.minimum(size, above),
        owner=owners,
    )


def interval(system: System, withheld: Flags, cell: int, known: tuple[int, ...] = ()) -> tuple[float, float]:
    """What a reader can work out of one cell, by scipy."""
    free = withheld | system.hidden
    limits = [
        (low if loose and at not in known else value, high if loose and at not in known else value)
        for at, (value, low, high, loose) in enumerate(zip(system.value, system.lower, system.upper, free, strict=True))
    ]
    cost = np.zeros(len(system))
    cost[cell] = 1.0
    found = []
    for sign in (1.0, -1.0):
        solved = linprog(
            sign * cost,
            A_eq=sparse.csr_matrix(system.equations),
            b_eq=np.zeros(system.equations.shape[0]),
            bounds=limits,
        )
        if solved.status == 3:
            found.append(-np.inf)
            continue
        assert solved.status == 0, solved.message
        found.append(float(solved.fun))
    return found[0], -found[1]


def unprotected(system: System, withheld: Flags, needs: Protection) -> list[int]:
    """The sensitive cells that a reader knows better than allowed, by scipy."""
    found = []
    for cell in np.flatnonzero(needs.sensitive):
        low, high = interval(system, withheld, int(cell))
        value = system.value[cell]
        if low > value - needs.down[cell] + 1e-5 or high < value + needs.up[cell] - 1e-5:
            found.append(int(cell))
    return found
