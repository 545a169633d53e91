"""A cube perturbed and calibrated: noise in its cells and in its controls, then the cube made to add up to them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.adjust.calibrated import Calibrated
from sfumato.adjust.calibrated import Calibration as Way
from sfumato.adjust.controls import Control
from sfumato.adjust.least_squares_cube import least_squares
from sfumato.adjust.rake import rake
from sfumato.cube.cube import MILLION, Cube
from sfumato.cube.figures import Calibration, ColumnNoise, Figures
from sfumato.cube.scale import Scale, average_scale
from sfumato.cube.section import COUNT, WEIGHTED
from sfumato.methods.truncated_laplace import ControlNoise, TruncatedLaplace
from sfumato.noise.randomness import Randomness
from sfumato.noise.truncated_geometric import TruncatedGeometric

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_WHOLE = Scale(overall=MILLION)


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """Units of noise for a table: of counts, and of weighted counts where they have their own."""

    counts: Integers | None
    weights: Integers | None = None


def protected_cube(
    true: Cube,
    method: TruncatedLaplace,
    randomness: Randomness,
    *,
    stratum: str | None = None,
    calibration: Way = "least-squares",
    nonnegative: bool = False,
) -> tuple[Cube, Figures]:
    """The cube that is published, counts in millionths and others in their own parts, and figures for its errors.

    Which empty cells get noise is drawn first, then the noise of the cube, then that of every control.
    """
    chosen = method.perturbed_cells(true[COUNT] == 0, randomness)
    cells = _Drawn(
        counts=_draw(method.counts, chosen, randomness),
        weights=None if method.weights is None else _draw(method.weights, chosen, randomness),
    )
    controls = [(control, _drawn(control, true, randomness)) for control in method.controls]
    columns, noise, done = {}, {}, []
    axes = tuple(range(len(true.dimensions)))
    for name in true.columns:
        own = name == WEIGHTED and method.weights is not None
        unit = Scale(overall=MILLION * method.weight_unit) if own else _WHOLE
        scale = unit if own or name == COUNT else average_scale(true, name, stratum)
        drawn = cells.weights if own else cells.counts
        values = true[name] * _parts(name)
        if drawn is not None:
            values += drawn * scale.laid(axes)
        wanted = [_control(true, name, control, found, scale, own=own) for control, found in controls]
        if wanted or nonnegative:
            variances = _relative(scale, true.shape)
            found = _calibrated(true, values, wanted, variances, calibration=calibration, nonnegative=nonnegative)
            values = found.values
            done.append(found)
        columns[name] = values
        noise[name] = _noise(true, method, scale, own=own, calibration=calibration)
    cube = Cube(dimensions=true.dimensions, columns=columns, parts={**true.parts, COUNT: MILLION})
    return cube, Figures(noise=noise, calibration=_summary(done, calibration))


def _draw(noise: TruncatedGeometric, chosen: NDArray[np.bool_], randomness: Randomness) -> Integers:
    drawn = noise.sample(chosen.size, randomness).reshape(chosen.shape)
    drawn *= chosen
    return drawn


def _drawn(control: ControlNoise, true: Cube, randomness: Randomness) -> _Drawn:
    shape = tuple(len(true.dimensions[true.names.index(name)]) for name in control.by)
    everywhere = np.ones(shape, dtype=np.bool_)
    return _Drawn(
        counts=None if control.counts is None else _draw(control.counts, everywhere, randomness),
        weights=None if control.weights is None else _draw(control.weights, everywhere, randomness),
    )


def _control(true: Cube, column: str, control: ControlNoise, drawn: _Drawn, scale: Scale, *, own: bool) -> Control:
    """A control of one column: the true table with its noise."""
    values = true.only(column).project(*control.by)[column] * _parts(column)
    units, noise = (drawn.weights, control.weights) if own else (drawn.counts, control.counts)
    if units is None or noise is None:
        return Control(name=control.name, by=control.by, values=values)
    axes = tuple(true.names.index(name) for name in control.by)
    return Control(
        name=control.name,
        by=control.by,
        values=values + units * scale.laid(axes),
        variance=noise.variance * scale.mean_square(axes),
    )


def _calibrated(
    true: Cube,
    values: Integers,
    controls: list[Control],
    variances: Floats | None,
    *,
    calibration: Way,
    nonnegative: bool,
) -> Calibrated:
    if calibration == "raking":
        return rake(true.dimensions, values, controls)
    return least_squares(true.dimensions, values, controls, variances=variances, nonnegative=nonnegative)


def _relative(scale: Scale, shape: tuple[int, ...]) -> Floats | None:
    """The variances of cells in relation to each other, where they differ."""
    if scale.axis is None:
        return None
    laid = np.asarray(scale.laid(tuple(range(len(shape)))), dtype=np.float64)
    return np.array(np.broadcast_to((laid / scale.overall) ** 2, shape))


def _noise(true: Cube, method: TruncatedLaplace, scale: Scale, *, own: bool, calibration: Way) -> ColumnNoise:
    cells = method.weights if own and method.weights is not None else method.counts
    controls: Mapping[tuple[int, ...], float] = {}
    if calibration != "raking":  # of which it is not known what it does to the noise
        used = [(control, control.weights if own else control.counts) for control in method.controls]
        controls = {true.axes(control.by): 0.0 if noise is None else noise.variance for control, noise in used}
    return ColumnNoise(variance=cells.variance, controls=controls, scale=scale)


def _summary(done: list[Calibrated], calibration: Way) -> Calibration | None:
    if not done:
        return None
    return Calibration(
        method=calibration,
        converged=all(found.converged for found in done),
        largest_gap=max(found.largest_gap for found in done),
        cycles=max(found.cycles for found in done),
    )


def _parts(column: str) -> int:
    """What takes a column to the parts in which it is published: calibrated counts are fractions."""
    return MILLION if column == COUNT else 1
