"""Calibrate a cube by the smallest quadratic change that meets every control; docs/methods/hypercube.md has the theory.

It takes the noise of the cube out of the controlled margins and leaves the rest alone, so it never adds variance to
any table, and it has a solution whenever controls agree with each other.
"""

from collections.abc import Sequence

import numpy as np

from sfumato.adjust.calibrated import Calibrated
from sfumato.adjust.controls import Control, agreed_margins
from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.cube.bounded import bounded_change
from sfumato.cube.exact_margins import largest_codes, met_in_reference_cells
from sfumato.cube.margins import Margin, largest_gap, residuals
from sfumato.cube.nearest import nearest_change
from sfumato.cube.whole_numbers import nearest_whole


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
    the price of a bias; the result tells how much larger the change had to be. There is always a result: where exact
    controls close a ring that no such cube meets, `largest_gap` says by how much it misses them.
    """
    _check(dimensions, values, variances)
    margins = agreed_margins(dimensions, controls, nonnegative=nonnegative)
    if nonnegative:
        return _bounded(values, margins, variances)
    change = nearest_change(values.shape, residuals(values, margins), variances=variances)
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
    free = nearest_change(values.shape, lacking, variances=variances)
    unbounded = _quadratic(free.cells, variances)
    del free
    found = bounded_change(values, lacking, variances=variances)
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
        unbounded_change=unbounded,
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
