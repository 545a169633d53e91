"""One cube, made in a process of its own: `python -m bench.cube.child RELEASE` tells seconds and peak memory."""

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from bench.shared.child import peak_bytes, say
from bench.shared.gate import WrongResultError
from bench.shared.processes import T
from sfumato.checking import checked
from sfumato.noise.randomness import OperatingSystem
from sfumato.release import load
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.figures import ColumnNoise, Figures
from sfumato.statistics.cube.levels import MeasuredMargin, effect_variances, table_variance
from sfumato.statistics.cube.stored import stored

_TOLERANCE = 0.02
"""Of the noise variance over millions of cells."""


def main() -> None:
    """Build, perturb and calibrate, write; refuse a cube whose noise is not what it says or that misses a control."""
    seconds: dict[str, float] = {}
    with checked(load(Path(sys.argv[1]))) as ready:
        (planned,) = ready.plan.cubes
        true, _ = _timed(seconds, "build", lambda: ready.count({planned.name: planned})[planned.name])
    cube, figures = _timed(seconds, "protect", lambda: planned.protect(true, OperatingSystem()))
    content = _timed(seconds, "write", lambda: stored(cube, figures))
    peak = peak_bytes()
    _check(true, cube, figures)
    say(seconds=seconds, peak_bytes=peak, file_bytes=len(content))


def _timed(seconds: dict[str, float], name: str, work: Callable[[], T]) -> T:
    begin = perf_counter()
    done = work()
    seconds[name] = perf_counter() - begin
    return done


def _check(true: Cube, cube: Cube, figures: Figures) -> None:
    calibration = figures.calibration
    if calibration is None or not calibration.converged or calibration.largest_gap:
        raise WrongResultError("the cube does not add up to its controls")
    expected = _variance(true.shape, figures.noise["count"])
    observed = float(np.mean((cube["count"] / MILLION - true["count"]) ** 2))
    if abs(observed / expected - 1) > _TOLERANCE:
        raise WrongResultError(f"noise of variance {observed:.4f} where {expected:.4f} is expected")


def _variance(shape: tuple[int, ...], noise: ColumnNoise) -> float:
    measured = [MeasuredMargin(axes=axes, variance=variance) for axes, variance in noise.controls.items()]
    every = tuple(range(len(shape)))
    return table_variance(shape, every, effect_variances(shape, measured), otherwise=noise.variance)


if __name__ == "__main__":
    main()
