"""The smallest epsilon and cap of a cube: what it promises is what drawing many cubes shows."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.checking import check
from sfumato.cli.tune_summaries import tuned_cube_summary
from sfumato.errors import SfumatoError
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Seeded
from sfumato.release import load
from sfumato.statistics.cube.protect import protected_cube
from sfumato.statistics.cube.tabulate import Chunk, tabulated
from sfumato.statistics.cube.truncated_laplace import cube_method
from sfumato.statistics.cube.tune import Error, TunedCube, find_cube, tune_cube
from sfumato.statistics.jobs.tune import read_accuracy
from tests.cli.call import call
from tests.statistics.cube.survey import DIMENSIONS, release

NO_CONTROLS = ('controls = [{ by = ["region"], epsilon = 0.5 }, { by = ["level", "job"], epsilon = 0.5 }]\n', "")
DELTA = Fraction(1, 10**6)


def tuned(
    folder: Path, accuracy: str, *changes: tuple[str, str], dimensions: int = 1, delta: Fraction = DELTA, **options: Any
) -> TunedCube:
    made = load(release(folder, *changes))
    (cube,) = check(made, data=False).plan.cubes
    (section,) = made.cubes
    wanted = read_accuracy(accuracy, "records")
    return tune_cube(cube, section, accuracy=wanted, dimensions=dimensions, delta=delta, **options)


def errors(found: TunedCube, *by: str, runs: int = 250) -> np.ndarray:
    """The noise in the cells of a table of many cubes that are protected as was found."""
    counts = np.full(24, 10)
    positions = np.repeat(np.arange(24), counts)
    true = tabulated(DIMENSIONS, [Chunk(positions=positions, weights=np.full(len(positions), 1_000_000))])
    method = cube_method(found.section, alpha=Fraction(1))
    off = []
    for seed in range(runs):
        cube, _ = protected_cube(true.only("count"), method, Seeded(seed))
        off.append(cube.project(*by).values("count") - true.project(*by).values("count"))
    return np.stack(off)


def test_a_cube_without_negative_cells_is_refused_because_its_errors_follow_from_the_data(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match="nonnegative = true: raising cells to 0"):
        tuned(tmp_path, "mean error below 5 records", ("cap = 7\n", "cap = 7\nnonnegative = true\n"))


@pytest.mark.parametrize("controls", [True, False])
def test_as_many_cells_are_within_the_limit_as_was_asked_for(tmp_path: Path, controls: bool) -> None:
    changes = () if controls else (NO_CONTROLS,)
    found = tuned(tmp_path, "90% of cells of at least 60 records within 5%", *changes)
    off = np.abs(errors(found, *found.noisiest))
    assert np.mean(off <= 3) == pytest.approx(found.figure, abs=0.04)
    assert found.figure >= 0.9
    others = [np.mean(np.abs(errors(found, name, runs=100)) <= 3) for name in ("region", "job", "level")]
    assert min(others) > 0.85, "the noisiest table stands for all"


@pytest.mark.parametrize("controls", [True, False])
def test_the_mean_error_is_as_small_as_was_asked_for(tmp_path: Path, controls: bool) -> None:
    found = tuned(tmp_path, "mean error below 2 records", *(() if controls else (NO_CONTROLS,)))
    assert found.figure <= 2
    assert np.abs(errors(found, *found.noisiest)).mean() == pytest.approx(found.figure, rel=0.1)


def test_no_smaller_epsilon_on_the_curve_does(tmp_path: Path) -> None:
    found = tuned(tmp_path, "90% within 10%", dimensions=2)
    assert all(point.meets == (point.epsilon >= found.epsilon) for point in found.curve)


def test_the_cap_is_the_least_that_keeps_delta_and_controls_keep_their_share(tmp_path: Path) -> None:
    found = tuned(tmp_path, "mean error below 2 records")
    assert found.guarantee.delta <= DELTA
    smaller = TruncatedGeometric(epsilon=found.epsilon, cap=found.section.cap - 1)
    assert smaller.delta() > float(DELTA) / 3
    assert {control.epsilon / found.epsilon for control in found.section.controls if control.epsilon} == {
        Fraction(1, 4)
    }
    assert found.guarantee.epsilon == found.epsilon * Fraction(3, 2)


def test_more_dimensions_need_less_because_less_noise_adds_up(tmp_path: Path) -> None:
    needed = [tuned(tmp_path, "mean error below 2 records", NO_CONTROLS, dimensions=size).epsilon for size in range(4)]
    assert needed == sorted(needed, reverse=True)


def test_true_cells_are_looked_at_only_when_told(tmp_path: Path) -> None:
    counts = np.zeros((4, 3, 2), dtype=np.int64)
    counts[0, 0, 0] = 50
    rule = "90% of cells of at least 50 records within 10%"
    found = tuned(tmp_path, rule, NO_CONTROLS, dimensions=3, counts=counts)
    assert found.confidential
    assert found.epsilon == tuned(tmp_path, rule, NO_CONTROLS, dimensions=3).epsilon, "its one cell is the one assumed"
    larger = tuned(tmp_path, rule, NO_CONTROLS, dimensions=3, counts=counts * 10)
    assert larger.epsilon < found.epsilon
    with pytest.raises(SfumatoError, match="cells of the size"):
        tuned(tmp_path, "90% of cells of at least 99 records within 10%", NO_CONTROLS, dimensions=3, counts=counts)


@pytest.mark.parametrize("cells", [1, 7, 200])
def test_the_distribution_of_a_sum_is_that_of_drawn_ones(cells: int) -> None:
    noise = TruncatedGeometric(epsilon=Fraction(1), cap=9)
    error = Error.of(noise, cells)
    drawn = np.abs(noise.sample(cells * 20_000, Seeded(1)).reshape(20_000, cells).sum(axis=1))
    assert error.mean == pytest.approx(drawn.mean(), rel=0.03)
    for limit in (0.0, 1.5, 4.0):
        assert error.within(np.array([limit]))[0] == pytest.approx(np.mean(drawn <= limit), abs=0.015)
    nearly = Error(variance=noise.variance * 200)
    assert nearly.within(np.array([20.5]))[0] == pytest.approx(
        Error.of(noise, 200).within(np.array([20.5]))[0], abs=0.005
    )


def test_the_command_says_what_to_write_and_reads_no_data(tmp_path: Path) -> None:
    file = release(tmp_path)
    (tmp_path / "records.parquet").unlink()
    said = " ".join(call("tune", "cube", file, "--accuracy", "mean error below 3 records").stdout.split())
    assert "is the least that meets: mean error below 3 records in cells of at most 100 records" in said
    assert "To use it: epsilon = " in said
    _, data = tuned_cube_summary(tuned(tmp_path / "again", "90% within 10%"))
    found = json.loads(json.dumps(data, allow_nan=False))
    assert found["lines"]["cap"] == str(found["cap"])
    assert found["epsilon"] == min(point["epsilon"] for point in found["curve"] if point["meets"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"accuracy": "90% of cells of at least 100 jobs within 10%"},
            "a sentence such as: mean error below 2 records",
        ),
        ({"accuracy": "90% within 10%", "dimensions": 4}, "0 to 3 dimensions"),
        ({"accuracy": "90% within 10%", "delta": Fraction(2)}, "delta = 2"),
    ],
)
def test_what_cannot_be_tuned_is_refused_in_words(tmp_path: Path, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(SfumatoError, match=words):
        tuned(tmp_path, **asked)


def test_a_cube_is_found_by_its_name(tmp_path: Path) -> None:
    cubes = check(load(release(tmp_path)), data=False).plan.cubes
    assert find_cube(cubes, None) is find_cube(cubes, "people") is cubes[0]
    with pytest.raises(SfumatoError, match="one of people"):
        find_cube(cubes, "folk")
