"""The cheapest pattern of a small system, by one mixed-integer program: a yardstick for the quick search.

One variable a cell says whether it is withheld, and for every bound of every sensitive cell there is a shift of its
own, within what is withheld. With twenty sensitive cells in a hundred it takes seconds, with more it takes too long.
"""

from typing import Any

import numpy as np
from scipy import sparse

from sfumato.arrays import Flags, Floats
from sfumato.errors import MethodError
from sfumato.exact.programs import solve
from sfumato.exact.reduced import Reduced
from sfumato.exact.rules import Protection
from sfumato.exact.search import Search
from sfumato.exact.system import System

MOST = 400_000
"""Variables of the largest program that is worth trying."""


def cheapest(system: System, protection: Protection, *, cost: Floats, seconds: float = 60.0) -> Flags:
    """The cells that are withheld in the cheapest pattern, by proof of the solver."""
    smaller = Reduced.of(system)
    known = smaller.protection(protection)
    search = Search(smaller.system, known, np.ones(len(smaller.system)), np.zeros(len(smaller.system), dtype=bool))
    n, rows = len(smaller.system), smaller.system.equations.shape[0]
    tasks = [(cell, 1.0) for cell in np.flatnonzero(search.open_up)]
    tasks += [(cell, -1.0) for cell in np.flatnonzero(search.open_down)]
    if n * (1 + len(tasks)) > MOST:
        raise MethodError(
            "the cheapest pattern",
            expected=f"at most {MOST:,} cells times bounds of sensitive cells",
            found="more",
            do="take a smaller table",
        )
    # Columns: whether each cell is withheld, then the shift of each task. Rows of each task: the equations, and that a
    # shift stays within what is withheld, from below and from above.
    up, down = sparse.diags(search.above), sparse.diags(search.below)
    one = sparse.identity(n)
    blocks: list[list[Any]] = []
    for at in range(len(tasks)):
        before, after = [None] * at, [None] * (len(tasks) - at - 1)
        blocks.append([sparse.csr_matrix((rows, n)), *before, smaller.system.equations, *after])
        blocks.append([up, *before, -one, *after])
        blocks.append([down, *before, one, *after])
    matrix = sparse.bmat(blocks, format="csc") if blocks else sparse.csc_matrix((0, n))
    lower, upper = np.tile(-search.below, len(tasks)), np.tile(search.above, len(tasks))
    for at, (cell, sign) in enumerate(tasks):
        (lower if sign > 0 else upper)[at * n + cell] = (known.up if sign > 0 else -known.down)[cell]
    price = np.where(smaller.system.hidden, 0.0, smaller.sums(cost))
    whole = np.concatenate([np.ones(n, dtype=bool), np.zeros(n * len(tasks), dtype=bool)])
    solved = solve(
        matrix,
        np.zeros(matrix.shape[0]),
        slack=np.tile(np.repeat([0.0, np.inf, np.inf], [rows, n, n]), len(tasks)),
        cost=np.concatenate([price, np.zeros(n * len(tasks))]),
        lower=np.concatenate([search.free.astype(np.float64), lower]),
        upper=np.concatenate([np.ones(n), upper]),
        whole=whole,
        seconds=seconds,
    )
    if solved is None or not solved.best:
        raise MethodError(
            "the cheapest pattern",
            expected="an optimum within the time limit",
            found="none",
            do="take a smaller table, or give more time; a cell that nothing protects has no pattern at all",
        )
    chosen = solved.value[:n] > 0.5
    return (smaller.whole(chosen) | protection.sensitive) & ~system.hidden
