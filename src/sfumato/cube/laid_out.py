"""A stored cube in another order of dimensions, codes and measures: the same numbers, as a release asks for them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sfumato.cells import Dimension
from sfumato.cube.cube import Cube
from sfumato.cube.figures import ColumnNoise, Figures
from sfumato.cube.scale import Scale
from sfumato.cube.section import COUNT, WEIGHTED
from sfumato.cube.stored import read_stored, stored


def laid_out(content: bytes, by: Sequence[Dimension], measures: Sequence[str]) -> bytes:
    """The file of a cube with these dimensions and measures, which are its own in another order."""
    cube, figures = read_stored(content)
    axes = [cube.names.index(dimension.name) for dimension in by]
    codes = [[cube.dimensions[axis].places[code] for code in d.codes] for axis, d in zip(axes, by, strict=True)]
    names = [name for name in cube.columns if name in (COUNT, WEIGHTED)] + list(measures)
    moved = Cube(
        dimensions=tuple(by),
        columns={name: np.ascontiguousarray(cube[name].transpose(axes)[np.ix_(*codes)]) for name in names},
        parts={name: cube.parts[name] for name in names},
    )
    to = {axis: place for place, axis in enumerate(axes)}
    noise = {name: _noise(figures.noise[name], to, codes) for name in names if name in figures.noise}
    return stored(moved, Figures(noise=noise, sampling=figures.sampling, calibration=figures.calibration))


def _noise(noise: ColumnNoise, to: Mapping[int, int], codes: Sequence[Sequence[int]]) -> ColumnNoise:
    controls = {tuple(sorted(to[axis] for axis in axes)): variance for axes, variance in noise.controls.items()}
    return replace(noise, controls=controls, scale=_scale(noise.scale, to, codes))


def _scale(scale: Scale, to: Mapping[int, int], codes: Sequence[Sequence[int]]) -> Scale:
    if scale.axis is None:
        return scale
    axis = to[scale.axis]
    return replace(scale, axis=axis, by_code=tuple(scale.by_code[place] for place in codes[axis]))
