"""Calibrate a cube to its controls: by least squares, by raking, or blended with noisy controls."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sfumato.agree.least_squares import (
    Axes,
    Margin,
    largest_gap,
    nonnegative_change,
    opened,
    residuals,
    smallest_change,
    summed,
)
from sfumato.agree.whole_numbers import largest_codes, met_in_reference_cells, nearest_whole
from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.statistics.cube.controls import Control, agreed_margins, reconciled
from sfumato.statistics.cube.levels import MeasuredMargin, effect_variances

# What a calibration hands back: the cube's numbers, and how well they meet the controls.

CalibrationMethod = Literal["least-squares", "raking"]


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """Calibrated numbers in whole units, so that every table summed from them adds up exactly."""

    values: Integers
    calibration: CalibrationMethod
    converged: bool
    """Whether every control is met: exactly by least squares, within the tolerance by raking."""
    cycles: int
    """Passes over the controls, or rounds of the bounded problem."""
    largest_gap: int
    """The largest difference between a sum and its control, in units."""
    change: float
    """The sum of squared changes, each divided by the cell's variance, in squared units."""


# Noisy controls combined with what the cube itself tells about them, so that no control ever makes a table worse.
#
# A cube is the sum of orthogonal effects (`cube/levels.py`). Every effect inside a noisy control is measured twice: by
# the controls, with the variance that they have together, and by the cube. The best estimate weights both by their
# precision; docs/methods/hypercube.md has the theory.


def blended(
    dimensions: tuple[Dimension, ...],
    values: Integers,
    controls: Sequence[Control],
    *,
    variance: float,
    strata: int | None = None,
) -> list[Control]:
    """The same controls, noisy ones moved towards the sums of the cube by as much as those are to be trusted.

    `variance` is that of a cell of the cube. Exact controls stay. With `strata`, an axis that every control has, noise
    differs from one of its codes to the next, and each is a cube of its own.
    """
    if not variance or all(control.exact for control in controls):
        return list(controls)
    names = [dimension.name for dimension in dimensions]
    shape = [len(dimension) for dimension in dimensions]
    apart = () if strata is None else (strata,)
    inside = [length for axis, length in enumerate(shape) if axis not in apart]
    place = {axis: at for at, axis in enumerate(axis for axis in range(len(shape)) if axis not in apart)}

    def axes_of(control: Control) -> Axes:
        return tuple(sorted(place[names.index(name)] for name in control.by if names.index(name) not in apart))

    told = effect_variances(inside, [MeasuredMargin(axes=axes_of(c), variance=c.variance) for c in controls])
    agreed = reconciled(dimensions, controls)
    found = []
    for control in controls:
        if control.exact:
            found.append(control)
            continue
        axes = tuple(names.index(name) for name in control.by)
        order = np.argsort(np.argsort(axes))
        own = summed(values, tuple(sorted(axes))).transpose(order).astype(np.float64)
        trusted = {
            frozenset(axis for axis, at in place.items() if at in effect): variance / (variance + of)
            for effect, of in told.items()
        }
        moved = own + _weighted(agreed[control.name] - own, axes, apart, trusted)
        found.append(replace(control, values=np.rint(moved).astype(np.int64)))
    return found


def _weighted(table: Floats, axes: Axes, apart: Axes, weights: "dict[frozenset[int], float]") -> Floats:
    """A table whose effects are multiplied, each by its weight; `apart` are axes over which nothing is averaged."""
    free = [at for at, axis in enumerate(axes) if axis not in apart]
    total = np.zeros_like(table)
    # By taking means over one axis after the other, and what is left, every effect is split off once.
    parts = [(frozenset[int](), table)]
    for at in free:
        split = []
        for effect, part in parts:
            mean = part.mean(axis=at, keepdims=True)
            split += [(effect, mean), (effect | {axes[at]}, part - mean)]
        parts = split
    for effect, part in parts:
        total += weights[effect] * part
    return total


# Calibrate a cube by the smallest quadratic change that meets every control; docs/methods/hypercube.md has the theory.
#
# It takes the noise of the cube out of the controlled margins and leaves the rest alone, so it never adds variance to
# any table, and it has a solution whenever controls agree with each other.


def least_squares(
    dimensions: tuple[Dimension, ...],
    values: Integers,
    controls: Sequence[Control],
    *,
    variances: Floats | None = None,
    nonnegative: bool = False,
) -> Calibrated:
    """The nearest numbers, in whole units, that add up to every control exactly.

    `variances` are those of the noise, cell by cell, where they differ. With `nonnegative` no cell is below zero, at
    the price of a bias. There is always a result: where exact
    controls close a ring that no such cube meets, `largest_gap` says by how much it misses them.
    """
    _check(dimensions, values, variances)
    margins = agreed_margins(dimensions, controls, nonnegative=nonnegative)
    if nonnegative:
        return _bounded(values, margins, variances)
    change = smallest_change(values.shape, residuals(values, margins), variances=variances)
    whole = values + np.rint(change.cells).astype(np.int64)
    if margins:
        whole = met_in_reference_cells(whole, margins, base=largest_codes(margins, values.ndim))
    return Calibrated(
        values=whole,
        calibration="least-squares",
        converged=True,
        cycles=change.steps,
        largest_gap=largest_gap(whole, margins),
        change=_quadratic(change.cells, variances),
    )


def _bounded(values: Integers, margins: Sequence[Margin], variances: Floats | None) -> Calibrated:
    lacking = residuals(values, margins)
    found = nonnegative_change(values, lacking, variances=variances)
    # What the solver left open is closed here: whole numbers meet margins that make a chain from wherever they start.
    whole = nearest_whole(np.maximum(values + found.cells, 0), margins)
    gap = largest_gap(whole, margins)
    return Calibrated(
        values=whole,
        calibration="least-squares",
        converged=gap == 0,
        cycles=found.rounds,
        largest_gap=gap,
        change=_quadratic(found.cells, variances),
    )


def _quadratic(change: Floats, variances: Floats | None) -> float:
    if variances is None:
        return float(np.vdot(change, change))
    scaled = np.divide(change, variances, out=np.zeros_like(change), where=variances > 0)
    return float(np.vdot(change, scaled))


def _check(dimensions: tuple[Dimension, ...], values: Integers, variances: Floats | None) -> None:
    shape = tuple(map(len, dimensions))
    if values.shape != shape or values.dtype != np.int64:
        raise ValueError("one 64-bit integer for each cell of the product")
    if variances is not None and (variances.shape != shape or not bool(np.all(variances >= 0))):
        raise ValueError("one variance from 0 on for each cell of the product")


# Calibrate a cube by raking: multiply every cell until margins fit, one control after the other, again and again.
#
# It is what Li and Krenzke (2020) did. On cells that may be negative it often does not converge, and it can raise the
# variance of tables that are not controlled; `least_squares` does neither.

MOST_CYCLES = 10
"""As in the paper."""
_FARTHEST = 1_000.0
"""How many times the magnitudes of the cube and its controls raked ones may add up to: beyond, it ran away."""
_EXACT = 2.0**61
"""In units: magnitudes that add up to less are summed exactly, whichever of them are."""
_PRECISION = 2.0**-46
"""What sums in floating point are off by, as a share of the largest."""


def rake(
    dimensions: tuple[Dimension, ...],
    values: Integers,
    controls: Sequence[Control],
    *,
    tolerance: float = 1.0,
    most_cycles: int = MOST_CYCLES,
) -> Calibrated:
    """Raked numbers, rounded to whole units; `converged` says whether every sum came within the tolerance, in units.

    Where it does not converge the cycle that came nearest to the controls is handed back, and where every one is
    farther from them than the cube was, the cube as it was: numbers that ran away are never published.
    """
    if values.shape != tuple(map(len, dimensions)) or values.dtype != np.int64:
        raise ValueError("one 64-bit integer for each cell of the product")
    if not (tolerance >= 0 and most_cycles >= 1):
        raise ValueError("a tolerance from 0 on, and one cycle or more")
    margins = agreed_margins(dimensions, controls)
    raked = nearest = values.astype(np.float64)
    sizes = [float(np.abs(margin.values.astype(np.float64)).sum()) for margin in margins]
    largest = max([float(np.abs(raked).sum()), *sizes])
    farthest, enough = min(_FARTHEST * largest, _EXACT), max(tolerance, _PRECISION * largest)
    cycles, gap = 0, _largest(gaps(raked, margins))
    while gap > enough and cycles < most_cycles:
        # A factor grows without limit where a sum is nearly zero.
        with np.errstate(over="ignore", invalid="ignore"):
            raked = one_cycle(raked, margins)
            off = _largest(gaps(raked, margins)) if float(np.abs(raked).sum()) <= farthest else np.inf
        cycles += 1
        if off < gap:
            nearest, gap = raked, off
    found = np.rint(nearest).astype(np.int64)
    change = nearest - values
    return Calibrated(
        values=found,
        calibration="raking",
        converged=gap <= enough,
        cycles=cycles,
        largest_gap=largest_gap(found, margins),
        change=float(np.vdot(change, change)),
    )


def one_cycle(table: Floats, margins: Sequence[Margin]) -> Floats:
    """Multiply a table so that it fits one margin after the other; a sum of 0 cannot be multiplied and is left."""
    table = table.copy()
    for margin in margins:
        sums = summed(table, margin.axes)
        factors = np.divide(margin.values, sums, out=np.ones_like(sums), where=sums != 0)
        table *= opened(factors, margin.axes, table.ndim)
    return table


def gaps(table: Floats, margins: Sequence[Margin]) -> list[Floats]:
    """How far each sum is from what it should be."""
    return [np.abs(summed(table, margin.axes) - margin.values) for margin in margins]


def _largest(parts: Sequence[Floats]) -> float:
    return max((float(part.max(initial=0.0)) for part in parts), default=0.0)
