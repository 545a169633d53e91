"""What readers can work out who know bounds of every cell and every sum, and the proof that it is little enough.

Rounded numbers, ranges and sums of other releases are bounds that readers know. The proof is that of withheld cells,
with every cell free within its bounds. Programs know nothing of whole numbers: docs/methods/rounding.md says what that
leaves open.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Flags, Floats, Integers
from sfumato.exact.proof import prove
from sfumato.exact.rules import Protection
from sfumato.exact.system import System


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """For some cells a low and a high value that tables have which readers cannot tell from the true one."""

    cells: Integers
    low: Floats
    high: Floats
    exact: Flags
    """Whether the two are the ends of the interval, and not only within it."""
    too_narrow: Flags
    """Cells whose interval does not hold what was asked for."""

    @property
    def proved(self) -> bool:
        """Whether every cell has the interval that was asked for."""
        return not bool(self.too_narrow.any())


def prove_intervals(known: System, cells: Integers, lower: Floats, upper: Floats) -> Intervals:
    """Whether the interval of every cell holds everything from `lower` below its value to `upper` above it.

    `known` has the bounds that readers know of every cell, after everything was published.
    """
    needs = asked_for(len(known), cells, lower, upper)
    proof = prove(known, ~known.fixed, needs, readers=False)
    return Intervals(
        cells=cells,
        low=proof.low[cells],
        high=proof.high[cells],
        exact=proof.exact[cells],
        too_narrow=proof.unprotected[cells],
    )


def asked_for(number: int, cells: Integers, lower: Floats, upper: Floats) -> Protection:
    """The same that is asked for of some cells of a system, over all of them."""
    down, up = np.zeros(number), np.zeros(number)
    down[cells], up[cells] = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
    none = np.zeros(number, dtype=np.int64)
    return Protection(sensitive=down + up > 0, reasons=none, down=down, up=up, owner=none - 1)
