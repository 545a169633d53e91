"""The smallest weighted quadratic change that gives a table the margins it should have; no matrix is written down.

The change d minimises Σ d²/v over all cells, v being the variances of what is changed, among those with M·d = r: r is
what the margins lack. Then d = V·Mᵀλ with (M·V·Mᵀ)λ = r. docs/methods/hypercube.md proves the three ways to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Flags, Floats
from sfumato.cube.margins import Axes, Margin, fibre, opened, summed

Sums = list[Floats]

_SAME = 1e-12
_MOST_STEPS = 2_000


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change that gives margins what they lack, up to rounding in floating point."""

    cells: Floats
    steps: int
    """Passes over the table."""


def nearest_change(shape: tuple[int, ...], lacking: Sequence[Margin], *, variances: Floats | None = None) -> Change:
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


def conjugate_gradients(
    system: System, target: Sequence[Floats], *, enough: float, added: float = 0.0, most: int = _MOST_STEPS
) -> tuple[Sums, int]:
    """Solve the system until no sum is off by more than `enough`; the number of steps tells how long it took.

    The matrix is singular, because margins share margins, but a target that agrees in these has a solution. `added`
    is a multiple of the diagonal to add where it may have none.
    """
    diagonal = system.diagonal()
    solution = [np.zeros_like(part) for part in target]
    residual = list(target)
    scaled = [r / d for r, d in zip(residual, diagonal, strict=True)]
    direction, product = scaled, _dot(residual, scaled)
    for step in range(most):
        if _largest(residual) <= enough or product <= 0:
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
