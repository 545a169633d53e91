"""A cube perturbed and calibrated: noise in its cells and in its controls, then the cube made to add up to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.agree.least_squares import Axes
from sfumato.arrays import Floats, Integers
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Randomness
from sfumato.statistics.cube.calibrate import Calibrated, CalibrationMethod, blended, least_squares, rake
from sfumato.statistics.cube.controls import Control, PublicTotals
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.figures import Calibration, ColumnNoise, Figures, Scale, average_scale
from sfumato.statistics.cube.levels import Level, SeveralLevels
from sfumato.statistics.cube.section import COUNT, WEIGHTED
from sfumato.statistics.cube.truncated_laplace import ControlNoise, TruncatedLaplace

_WHOLE = Scale(overall=MILLION)
ROUNDING = 1 / 6
"""The variance of rounding by chance in a cell with records, in squared units, on average over what is rounded."""


def protected_cube(
    true: Cube,
    method: TruncatedLaplace,
    randomness: Randomness,
    *,
    totals: Sequence[PublicTotals] = (),
    stratum: str | None = None,
    calibration: CalibrationMethod = "least-squares",
    nonnegative: bool = False,
    whole: bool = False,
) -> tuple[Cube, Figures]:
    """The cube that is published, counts in millionths and others in their own parts, and figures for its errors.

    Which empty cells get noise is drawn first, then the noise of every column and of its controls, each by itself: with
    the same draws in two columns, one minus a multiple of the other would have no noise. Only a method whose draws are
    `shared` has it that way. `totals` are controls that are public already; a column that they do not have is not
    changed by them. With `whole` all is measured in whole units, and so is what comes out, none of it negative.
    """
    chosen = method.perturbed_cells(true[COUNT] == 0, randomness)
    columns, noise, done = {}, {}, dict[str, Calibrated]()
    draws = _Draws(randomness=randomness, shared=method.shared)
    axes = tuple(range(len(true.dimensions)))
    for name in true.columns:
        own = name == WEIGHTED and method.weights is not None
        unit = Scale(overall=MILLION * method.weight_unit) if own else _WHOLE
        scale = unit if own or name == COUNT else average_scale(true, name, stratum)
        cells = method.weights if own and method.weights is not None else method.counts
        if whole:
            design = _several_levels(true, method, own=own)
            units = _in_units(true[name] * parts_of(name), scale.laid(axes), randomness)
            columns[name] = design.consistent(design.measure(units, randomness)) * scale.laid(axes)
            noise[name] = _noise(true, method, totals, scale, column=name, own=own, calibration=calibration)
            continue
        values = draws.perturbed(true[name] * parts_of(name), cells, scale, axes, chosen=chosen)
        wanted = [_control(true, name, control, scale, draws, own=own) for control in method.controls]
        wanted += public_controls(totals, name)
        if wanted or nonnegative:
            variances = _relative(scale, true.shape)
            typical = cells.variance * scale.mean_square(axes)
            if calibration == "least-squares":
                strata = None if stratum is None else true.names.index(stratum)
                wanted = blended(true.dimensions, values, wanted, variance=typical, strata=strata)
            found = _calibrated(true, values, wanted, variances, calibration=calibration, nonnegative=nonnegative)
            values = found.values
            done[name] = found
        columns[name] = values
        noise[name] = _noise(true, method, totals, scale, column=name, own=own, calibration=calibration)
    cube = Cube(dimensions=true.dimensions, columns=columns, parts={**true.parts, COUNT: MILLION})
    return cube, Figures(noise=noise, calibration=_summary(done, calibration))


def _several_levels(true: Cube, method: TruncatedLaplace, *, own: bool) -> SeveralLevels:
    """The cube and its noisy controls as levels of one design, which spend what the method says."""
    noises = [(control.by, control.weights if own else control.counts) for control in method.controls]
    noises.append((true.names, method.weights if own else method.counts))
    levels = tuple(Level(axes=true.axes(by), noise=noise) for by, noise in noises if noise is not None)
    return SeveralLevels(dimensions=true.dimensions, levels=levels)


def public_controls(totals: Sequence[PublicTotals], column: str) -> list[Control]:
    """Public totals of a column as exact controls, in the parts in which it is published."""
    return [
        Control(name=f"{found.name} ({found.source})", by=found.by, values=found.columns[column] * MILLION)
        for found in totals
        if column in found.columns
    ]


@dataclass(frozen=True, kw_only=True)
class _Draws:
    """The noise of the cube and of its controls, drawn anew for every column or once for all."""

    randomness: Randomness
    shared: bool
    _kept: dict[Axes, Integers] = field(default_factory=dict)

    def perturbed(
        self,
        true: Integers,
        noise: TruncatedGeometric,
        scale: Scale,
        axes: Axes,
        *,
        chosen: NDArray[np.bool_] | None = None,
    ) -> Integers:
        """Numbers of the table over some axes with noise in whole units, in the chosen cells or in all.

        With draws of their own they are rounded to whole units by chance first; with shared ones they stay as they are.
        """
        unit, drawn = scale.laid(axes), self._kept.get(axes)
        if drawn is None:
            drawn = noise.sample(true.size, self.randomness).reshape(true.shape)
            if chosen is not None:
                drawn *= chosen
        if self.shared:
            self._kept[axes] = drawn
            return np.asarray(true + drawn * unit)
        drawn += _in_units(true, unit, self.randomness)
        drawn *= unit
        return drawn


def _in_units(true: Integers, unit: Integers | int, randomness: Randomness) -> Integers:
    """Numbers in whole units, rounded by chance so that they are right on average.

    What lies between two units would be published as it is: noise in whole units does not change it.
    """
    units, rest = map(np.asarray, np.divmod(true, unit))  # of a grand total they are numbers
    between = rest != 0
    length = np.broadcast_to(unit, true.shape)[between]
    drawn = (randomness.words(int(between.sum())) % length.astype(np.uint64)).astype(np.int64)
    units[between] += rest[between] + drawn >= length
    return units


def _control(true: Cube, column: str, control: ControlNoise, scale: Scale, draws: _Draws, *, own: bool) -> Control:
    """A control of one column: the true table with its noise."""
    values = true.only(column).project(*control.by)[column] * parts_of(column)
    noise = control.weights if own else control.counts
    if noise is None:
        return Control(name=control.name, by=control.by, values=values)
    axes = tuple(true.names.index(name) for name in control.by)
    return Control(
        name=control.name,
        by=control.by,
        values=draws.perturbed(values, noise, scale, axes),
        variance=(noise.variance + _rounding(column, own=own or draws.shared)) * scale.mean_square(axes),
    )


def _calibrated(
    true: Cube,
    values: Integers,
    controls: list[Control],
    variances: Floats | None,
    *,
    calibration: CalibrationMethod,
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


def _noise(
    true: Cube,
    method: TruncatedLaplace,
    totals: Sequence[PublicTotals],
    scale: Scale,
    *,
    column: str,
    own: bool,
    calibration: CalibrationMethod,
) -> ColumnNoise:
    cells = method.weights if own and method.weights is not None else method.counts
    controls: dict[Axes, float] = {}
    if calibration != "raking":  # of which it is not known what it does to the noise
        used = [(control, control.weights if own else control.counts) for control in method.controls]
        rounded = _rounding(column, own=own or method.shared)
        controls = {
            true.axes(control.by): 0.0 if noise is None else noise.variance + rounded for control, noise in used
        }
        controls |= {true.axes(found.by): 0.0 for found in totals if column in found.columns}
    rounded = _rounding(column, own=own or method.shared)
    return ColumnNoise(variance=cells.variance, controls=controls, scale=scale, rounding=rounded)


def _rounding(column: str, *, own: bool) -> float:
    """The variance of rounding to units of noise: counts, and weights with noise of their own, are whole units.

    With shared draws nothing is rounded.
    """
    return 0.0 if own or column == COUNT else ROUNDING


def _summary(done: Mapping[str, Calibrated], calibration: CalibrationMethod) -> Calibration | None:
    if not done:
        return None
    return Calibration(
        method=calibration,
        converged=all(found.converged for found in done.values()),
        largest_gap=max(found.largest_gap for found in done.values()),
        cycles=max(found.cycles for found in done.values()),
        gaps={name: found.largest_gap for name, found in done.items()},
    )


def parts_of(column: str) -> int:
    """What takes a column to the parts in which it is published: calibrated counts are fractions."""
    return MILLION if column == COUNT else 1
