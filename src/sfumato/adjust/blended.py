"""Noisy controls combined with what the cube itself tells about them, so that no control ever makes a table worse.

A cube is the sum of orthogonal effects (cube/effects.py). Every effect inside a noisy control is measured twice: by the
controls, with the variance that they have together, and by the cube. The best estimate weights both by their precision;
docs/methods/hypercube.md has the theory.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.adjust.controls import Control, reconciled
from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.cube.effects import Measured, effect_variances
from sfumato.cube.margins import Axes, summed


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

    told = effect_variances(inside, [Measured(axes=axes_of(c), variance=c.variance) for c in controls])
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
