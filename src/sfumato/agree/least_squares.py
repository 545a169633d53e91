"""The smallest weighted quadratic change that gives tables their margins, with or without negative cells."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol, TypeVar

import numpy as np

from sfumato.arrays import Flags, Floats, Integers

# Margins of dense tables: sums over axes, and how a margin is laid back over the table it belongs to.

Numbers = TypeVar("Numbers", Integers, Floats)

Axes = tuple[int, ...]
"""Ascending axes of a table; its margin over them has a cell for each combination of their codes."""
_LONG = 16


@dataclass(frozen=True, kw_only=True)
class Margin:
    """Whole numbers over some axes of a table: sums it has, or should have."""

    axes: Axes
    values: Integers


def summed(table: Numbers, axes: Axes) -> Numbers:
    """The margin over some axes: the sum over all others.

    Memory decides how long it takes, so it is read in long runs: first the last axes, if they are all summed, as one;
    then one axis after the other from the outermost, each of which leaves at most half for the next.

    >>> summed(np.arange(6).reshape(2, 3), (1,))
    array([3, 5, 7])
    """
    if len(axes) == table.ndim > 0:
        return table
    kept = [axis in axes for axis in range(table.ndim)]
    first = max((axis + 1 for axis in axes), default=0)
    last = prod(table.shape[first:])
    if last >= _LONG or first == 0:
        table = table.reshape(*table.shape[:first], last).sum(axis=-1)
        del kept[first:]
    while not all(kept):
        axis = kept.index(False)
        shape = table.shape
        table = table.reshape(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])).sum(axis=1)
        table = table.reshape(shape[:axis] + shape[axis + 1 :])
        del kept[axis]
    return table


def opened(margin: Numbers, axes: Axes, rank: int) -> Numbers:
    """The margin with an axis of length one for each axis that was summed, ready to be combined with its table."""
    lengths = iter(margin.shape)
    return margin.reshape([next(lengths) if axis in axes else 1 for axis in range(rank)])


def fibre(axes: Axes, shape: Sequence[int]) -> int:
    """How many cells of the table each cell of the margin is the sum of."""
    return prod(length for axis, length in enumerate(shape) if axis not in axes)


def within(axes: Axes, larger: Axes) -> Axes:
    """Where axes of a table are among the axes of a margin that has them all.

    >>> within((2, 5), (0, 2, 5))
    (1, 2)
    """
    return tuple(larger.index(axis) for axis in axes)


def residuals(table: Integers, margins: Sequence[Margin]) -> list[Margin]:
    """What is missing in the sums of a table, exactly."""
    return [Margin(axes=margin.axes, values=margin.values - summed(table, margin.axes)) for margin in margins]


def largest_gap(table: Integers, margins: Sequence[Margin]) -> int:
    """The largest difference between a sum of the table and what it should be."""
    return max((int(np.abs(gap.values).max(initial=0)) for gap in residuals(table, margins)), default=0)


# The change d minimises Σ d²/v over all cells, v being the variances of what is changed, among those with M·d = r: r is
# what the margins lack. Then d = V·Mᵀλ with (M·V·Mᵀ)λ = r. docs/methods/hypercube.md proves the three ways to it.

Sums = list[Floats]

_SAME = 1e-12
_MOST_STEPS = 2_000


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change that gives margins what they lack, up to rounding in floating point."""

    cells: Floats
    steps: int
    """Passes over the table."""


def smallest_change(shape: tuple[int, ...], lacking: Sequence[Margin], *, variances: Floats | None = None) -> Change:
    """The smallest change; `variances` of all cells, or none where they are all the same.

    Where variances are a product of one factor for each axis, correcting one margin after the other once is exact:
    the corrections are projections that commute. Otherwise it takes conjugate gradients.
    """
    if variances is None or is_product(variances):
        return Change(cells=_one_pass(shape, lacking, variances), steps=1)
    system = System(shape=shape, axes=[margin.axes for margin in lacking], variances=variances)
    target = [margin.values.astype(np.float64) for margin in lacking]
    found, steps = conjugate_gradients(system, target, enough=1e-12 * max(_largest(target), 1.0))
    return Change(cells=system.laid(found) * variances, steps=steps)


def is_product(variances: Floats) -> bool:
    """Whether a table is the product of one factor for each of its axes."""
    total = float(variances.sum())
    if total <= 0:
        return False
    product = np.full((1,) * variances.ndim, total)
    for axis in range(variances.ndim):
        product = product * opened(summed(variances, (axis,)) / total, (axis,), variances.ndim)
    return bool(np.abs(product - variances).max() <= _SAME * variances.max())


def _one_pass(shape: tuple[int, ...], lacking: Sequence[Margin], variances: Floats | None) -> Floats:
    change = np.zeros(shape)
    for margin in lacking:
        gap = margin.values - summed(change, margin.axes)
        if variances is None:
            change += opened(gap / fibre(margin.axes, shape), margin.axes, len(shape))
        else:
            whole = summed(variances, margin.axes)
            share = np.divide(gap, whole, out=np.zeros_like(whole), where=whole > 0)
            change += variances * opened(share, margin.axes, len(shape))
    return change


@dataclass(frozen=True, kw_only=True)
class System:
    """M·V·Mᵀ + T as an operation on one table of multipliers for every margin."""

    shape: tuple[int, ...]
    axes: Sequence[Axes]
    variances: Floats | None
    free: Flags | None = None
    """Cells that may change; all of them where there is none."""
    slack: Sequence[float] | None = None
    """T: the variance by which sums of each margin may miss what they should be; 0 where there is none."""

    def laid(self, multipliers: Sequence[Floats]) -> Floats:
        """Mᵀλ: the sum of the multipliers that belong to a cell."""
        cells = np.zeros(self.shape)
        for axes, multiplier in zip(self.axes, multipliers, strict=True):
            cells += opened(multiplier, axes, len(self.shape))
        return cells

    def sums(self, cells: Floats) -> Sums:
        """M·x: the margins of a table."""
        return [summed(cells, axes) for axes in self.axes]

    def weighted(self, cells: Floats) -> Floats:
        """V·x in the cells that are free, 0 in the others; the table handed in is used up."""
        if self.variances is not None:
            cells *= self.variances
        if self.free is not None:
            cells *= self.free
        return cells

    def missed(self, multipliers: Sequence[Floats]) -> Sums:
        """Tλ: by how much each sum misses what it should be."""
        slack = [0.0] * len(self.axes) if self.slack is None else self.slack
        return [variance * multiplier for variance, multiplier in zip(slack, multipliers, strict=True)]

    def times(self, multipliers: Sequence[Floats]) -> Sums:
        """(M·V·Mᵀ + T)λ."""
        sums = self.sums(self.weighted(self.laid(multipliers)))
        return [part + left for part, left in zip(sums, self.missed(multipliers), strict=True)]

    def diagonal(self) -> Sums:
        """The diagonal of the matrix, 1 in place of 0."""
        sums = self.sums(self.weighted(np.ones(self.shape)))
        whole = [part + left for part, left in zip(sums, self.missed([np.ones_like(s) for s in sums]), strict=True)]
        return [np.where(part > 0, part, 1.0) for part in whole]


class LinearSystem(Protocol):
    """A symmetric matrix without negative eigenvalues, as an operation on several arrays."""

    def times(self, multipliers: Sequence[Floats]) -> Sums:
        """The matrix times a vector."""
        ...

    def diagonal(self) -> Sums:
        """Its diagonal, 1 in place of 0."""
        ...


def conjugate_gradients(
    system: LinearSystem,
    target: Sequence[Floats],
    *,
    enough: float = 0.0,
    precision: float = 0.0,
    added: float = 0.0,
    most: int = _MOST_STEPS,
) -> tuple[Sums, int]:
    """Solve the system; the number of steps tells how long it took.

    It ends when no sum is off by more than `enough`, or all of them, over the diagonal, by that share of the target.
    The matrix is singular, because margins share margins, but a target that agrees in these has a solution. `added`
    is a multiple of the diagonal to add where it may have none.
    """
    diagonal = system.diagonal()
    solution = [np.zeros_like(part) for part in target]
    residual = list(target)
    scaled = [r / d for r, d in zip(residual, diagonal, strict=True)]
    direction, product = scaled, _dot(residual, scaled)
    small = precision**2 * product
    for step in range(most):
        if _largest(residual) <= enough or product <= small:
            return solution, step
        image = system.times(direction)
        if added:
            image = [i + added * d * p for i, d, p in zip(image, diagonal, direction, strict=True)]
        curvature = _dot(direction, image)
        if curvature <= 0:
            return solution, step
        length = product / curvature
        solution = [s + length * d for s, d in zip(solution, direction, strict=True)]
        residual = [r - length * i for r, i in zip(residual, image, strict=True)]
        scaled = [r / d for r, d in zip(residual, diagonal, strict=True)]
        before, product = product, _dot(residual, scaled)
        direction = [s + product / before * d for s, d in zip(scaled, direction, strict=True)]
    return solution, most


def _dot(first: Sequence[Floats], second: Sequence[Floats]) -> float:
    return float(sum(np.vdot(a, b) for a, b in zip(first, second, strict=True)))


def _largest(parts: Sequence[Floats]) -> float:
    return max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0)


# The smallest weighted quadratic change that gives a table its margins and leaves no cell below zero.
#
# With multipliers λ the change of a cell is the larger of v·(Mᵀλ) and what takes the cell to zero. λ maximises a
# concave function whose gradient is what the margins still lack, by Newton's method: where a cell is at zero the next
# step does not count on it. docs/methods/hypercube.md has the conditions for an optimum, which are checked to end.
#
# A margin may be allowed to miss by `slack`, a variance τ: it then misses by τλ, which costs τλ²/2, and there is a
# solution whatever it asks for.

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
class NonnegativeChange:
    """A change that leaves no cell below zero."""

    cells: Floats
    gap: float
    """The largest amount that a margin still lacks beside its slack; large where no table without negative cells has
    these margins."""
    rounds: int


def nonnegative_change(
    table: Integers,
    lacking: Sequence[Margin],
    *,
    variances: Floats | None = None,
    slack: Sequence[float] | None = None,
    enough: float = 0.25,
) -> NonnegativeChange:
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
    return NonnegativeChange(cells=change, gap=_largest(gap), rounds=rounds)


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
