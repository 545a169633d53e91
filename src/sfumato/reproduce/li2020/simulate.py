"""Perturb and calibrate the cube many times, many at once: a run is one more dimension of the cube and the controls."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.adjust.controls import Control
from sfumato.adjust.least_squares_cube import least_squares
from sfumato.adjust.rake import gaps, one_cycle
from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.cube.cube import MILLION, Cube
from sfumato.cube.margins import Margin
from sfumato.noise.truncated_geometric import TruncatedGeometric
from sfumato.reproduce.chance import Repeatable
from sfumato.reproduce.li2020.published import CAP, CYCLES, EPSILON
from sfumato.reproduce.li2020.tables import Moments, Tables

Variant = Literal["two-sided", "no-negative"]
VARIANTS: tuple[Variant, ...] = ("two-sided", "no-negative")
Progress = Callable[[str, int, int], None]

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5)
"""In records. The paper does not say which difference from a control it took for none."""
TOLERANCE = TOLERANCES[-1]
"""The one that counts here: of all powers of ten it comes nearest to the published number of runs."""
BOUNDED_RUNS = 20
"""The bounded problem takes longer, and its bias shows in few runs."""
_BATCH = 25


@dataclass(kw_only=True)
class Simulated:
    """What was found with one variant of the noise."""

    variant: Variant
    tables: Tables
    plain: Moments = field(init=False)
    least_squares: Moments = field(init=False)
    plain_where_raked: Moments = field(init=False)
    """Without calibration, in those runs in which raking converged."""
    raked: Moments = field(init=False)
    """In those runs."""
    raked_in_all: Moments = field(init=False)
    """In all runs: where raking did not converge, the cycle that came nearest to the controls."""
    bounded: Moments = field(init=False)
    plain_where_bounded: Moments = field(init=False)
    solved: int = 0
    """Runs in which least squares met every control exactly."""
    within: dict[float, int] = field(default_factory=lambda: dict.fromkeys(TOLERANCES, 0))
    """Runs in which raking came within each tolerance in ten cycles."""

    def __post_init__(self) -> None:
        for name in (
            "plain",
            "least_squares",
            "plain_where_raked",
            "raked",
            "raked_in_all",
            "bounded",
            "plain_where_bounded",
        ):
            setattr(self, name, Moments(self.tables))


def simulate(cube: Cube, *, runs: int, seed: int, progress: Progress) -> dict[Variant, Simulated]:
    """Every run draws noise for all cells; both variants and both calibrations see the same noise."""
    tables = Tables(shape=cube.shape)
    found = {variant: Simulated(variant=variant, tables=tables) for variant in VARIANTS}
    true = cube["count"]
    for batch, first in enumerate(range(0, runs, _BATCH)):
        progress("runs", first, runs)
        number = min(_BATCH, runs - first)
        drawn = TruncatedGeometric(epsilon=EPSILON, cap=CAP).sample(
            number * true.size, Repeatable(seed, "li2020", "noise", batch)
        )
        perturbed = true + drawn.reshape(number, *true.shape)
        for variant, part in found.items():
            values = perturbed if variant == "two-sided" else np.maximum(perturbed, 0)
            _one_batch(part, cube, values, bounded=max(0, min(number, BOUNDED_RUNS - first)))
    return found


def _one_batch(found: Simulated, cube: Cube, perturbed: Integers, *, bounded: int) -> None:
    true = cube["count"].astype(np.float64)
    plain = found.tables.of(perturbed - true)
    found.plain.add(plain)

    dimensions = (_runs(len(perturbed)), *cube.dimensions)
    controls = list(_controls(cube, len(perturbed)))
    calibrated = least_squares(dimensions, perturbed * MILLION, controls)
    found.least_squares.add(found.tables.of(calibrated.values / MILLION - true))
    found.solved += len(perturbed) if calibrated.converged and calibrated.largest_gap == 0 else 0

    raked, off = _raked(perturbed.astype(np.float64), controls)
    for tolerance in TOLERANCES:
        found.within[tolerance] += int((off <= tolerance).sum())
    converged = off <= TOLERANCE
    found.plain_where_raked.add(plain[converged])
    noise = found.tables.of(raked - true)
    found.raked.add(noise[converged])
    found.raked_in_all.add(noise)

    if bounded:
        dimensions = (_runs(bounded), *cube.dimensions)
        values = perturbed[:bounded] * MILLION
        kept = least_squares(dimensions, values, list(_controls(cube, bounded)), nonnegative=True)
        found.bounded.add(found.tables.of(kept.values / MILLION - true))
        found.plain_where_bounded.add(plain[:bounded])


def _raked(perturbed: Floats, controls: list[Control]) -> tuple[Floats, Floats]:
    """Raked cubes, and how far each is from its controls at most; each is raked until it fits, or for ten cycles.

    One that does not fit in the end is taken as it was when it came nearest.
    """
    raked, nearest = perturbed.copy(), perturbed.copy()
    off = _farthest(perturbed, _margins(controls, np.arange(len(perturbed))))
    for _ in range(CYCLES):
        going = np.flatnonzero(off > TOLERANCE)
        if not len(going):
            break
        margins = _margins(controls, going)
        with np.errstate(over="ignore", invalid="ignore"):  # where it does not converge it may run away
            raked[going] = one_cycle(raked[going], margins)
            largest = _farthest(raked[going], margins)
        nearer = largest < off[going]
        nearest[going[nearer]], off[going[nearer]] = raked[going[nearer]], largest[nearer]
    return nearest, off


def _margins(controls: list[Control], runs: NDArray[np.intp]) -> list[Margin]:
    return [
        Margin(axes=(0, place + 1), values=control.values[runs] // MILLION) for place, control in enumerate(controls)
    ]


def _farthest(tables: Floats, margins: list[Margin]) -> Floats:
    return np.asarray(np.max([part.max(axis=1) for part in gaps(tables, margins)], axis=0))


def _runs(number: int) -> Dimension:
    return Dimension(name="run", codes=tuple(map(str, range(number))))


def _controls(cube: Cube, number: int) -> Iterator[Control]:
    """All one-way tables as they are, the same in every run."""
    for name in cube.names:
        once: NDArray[np.int64] = cube.project(name)["count"] * MILLION
        yield Control(name=name, by=("run", name), values=np.tile(once, (number, 1)))
