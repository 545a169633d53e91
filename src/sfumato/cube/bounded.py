"""The smallest weighted quadratic change that gives a table its margins and leaves no cell below zero.

With multipliers λ the change of a cell is the larger of v·(Mᵀλ) and what takes the cell to zero. λ maximises a concave
function whose gradient is what the margins still lack, by Newton's method: where a cell is at zero the next step does
not count on it. docs/methods/hypercube.md has the conditions for an optimum, which are checked to end.

A margin may be allowed to miss by `slack`, a variance τ: it then misses by τλ, which costs τλ²/2, and there is a
solution whatever it asks for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.arrays import Floats, Integers
from sfumato.cube.margins import Margin
from sfumato.cube.nearest import Sums, System, conjugate_gradients

_MOST_ROUNDS = 100
_MOST_HALVINGS = 40
_ADDED = 1e-10
"""Share of the diagonal added to the matrix, for margins all of whose cells are at zero."""
_SUFFICIENT = 1e-4
_CLOSE = 1e-10
"""Share of what margins lack to which a direction is worked out at most; rougher ones take more rounds."""
_PRECISION = 2.0**-46
"""What sums in floating point are off by, as a share of the largest."""


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """A change that leaves no cell below zero."""

    cells: Floats
    gap: float
    """The largest amount that a margin still lacks beside its slack; large where no table without negative cells has
    these margins."""
    rounds: int


def bounded_change(
    table: Integers,
    lacking: Sequence[Margin],
    *,
    variances: Floats | None = None,
    slack: Sequence[float] | None = None,
    enough: float = 0.25,
) -> Bounded:
    """The smallest change after which no cell is negative and no margin lacks more than `enough`, or can be told to.

    `slack` is one variance for each margin, in relation to those of cells; none may miss where there is none.
    """
    system = System(shape=table.shape, axes=[margin.axes for margin in lacking], variances=variances, slack=slack)
    target = [margin.values.astype(np.float64) for margin in lacking]
    lowest = -table.astype(np.float64)
    multipliers = [np.zeros_like(part) for part in target]
    precision = _PRECISION * max(_largest(target), _largest(system.sums(np.abs(lowest))))
    close, enough = max(min(0.1, enough), 0.1 * precision), max(enough, precision)
    change, value, gap = _evaluated(system, target, lowest, multipliers)
    rounds = 0
    while _largest(gap) > enough and rounds < _MOST_ROUNDS:
        rounds += 1
        free = replace(system, free=change > lowest)
        lacks = _largest(gap)
        direction, _ = conjugate_gradients(
            free, gap, enough=max(close * min(lacks, 1.0), _CLOSE * lacks, 0.1 * precision), added=_ADDED
        )
        slope = sum(float(np.vdot(g, d)) for g, d in zip(gap, direction, strict=True))
        length = 1.0
        for _ in range(_MOST_HALVINGS):
            tried = [m + length * d for m, d in zip(multipliers, direction, strict=True)]
            found = _evaluated(system, target, lowest, tried)
            if found[1] >= value + _SUFFICIENT * length * slope:
                break
            length /= 2
        else:
            break
        multipliers, (change, value, gap) = tried, found
    return Bounded(cells=change, gap=_largest(gap), rounds=rounds)


def _evaluated(system: System, target: Sums, lowest: Floats, multipliers: Sums) -> tuple[Floats, float, Sums]:
    """The change that belongs to the multipliers, the value of the dual function, and what the margins lack."""
    pulled = system.laid(multipliers)
    change = np.maximum(system.weighted(pulled.copy()), lowest)
    # min over d of d²/2v − d·(Mᵀλ), plus λ·r; a cell that cannot change (v = 0) costs nothing.
    variances = system.variances
    if variances is None:
        cost = float(np.vdot(change, 0.5 * change - pulled))
    else:
        half = np.divide(0.5 * change, variances, out=np.zeros_like(change), where=variances > 0)
        cost = float(np.vdot(change, half - pulled))
    missed = system.missed(multipliers)
    value = cost + sum(float(np.vdot(m, t - 0.5 * s)) for m, t, s in zip(multipliers, target, missed, strict=True))
    gap = [t - s - left for t, s, left in zip(target, system.sums(change), missed, strict=True)]
    return change, value, gap


def _largest(parts: Sequence[Floats]) -> float:
    return max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0)
