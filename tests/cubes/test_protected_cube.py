"""A protected cube: noise of the stated size in every column, controls met, and nothing else changed."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.adjust.protected_cube import protected_cube
from sfumato.cube.cube import MILLION, Cube
from sfumato.cube.scale import FEWEST, average_scale
from sfumato.cube.section import CubeSection
from sfumato.cube.tabulated import Chunk, tabulated
from sfumato.noise.randomness import Seeded
from sfumato.planned_cube import cube_method
from tests.cubes.survey import DIMENSIONS

BY = [dimension.name for dimension in DIMENSIONS]


def true_cube(records: int = 300) -> Cube:
    rng = np.random.default_rng(5)
    positions = rng.integers(0, 20, records)  # four of 24 cells stay empty
    weights = np.rint(rng.lognormal(3, 0.5, records) * MILLION).astype(np.int64)
    cube = tabulated(DIMENSIONS, [Chunk(positions=positions, weights=weights)])
    pay = np.zeros(len(cube), dtype=np.int64)
    np.add.at(pay, positions, weights * rng.integers(0, 100, records))
    return cube.with_column("pay", pay.reshape(cube.shape), parts=MILLION)


def protect(true: Cube, seed: int, **changes: Any) -> tuple[Cube, Any]:
    described: dict[str, Any] = {"name": "c", "by": BY, "epsilon": 2, "cap": 7}
    section = CubeSection.model_validate(described | changes)
    return protected_cube(
        true,
        cube_method(section, alpha=Fraction(1)),
        Seeded(seed),
        stratum=section.stratum,
        calibration=section.calibration,
        nonnegative=section.nonnegative,
    )


def test_all_columns_have_the_same_draws_each_times_its_average() -> None:
    true = true_cube()
    cube, figures = protect(true, 1)
    drawn = cube["count"] // MILLION - true["count"]
    assert drawn.any()
    assert np.abs(drawn).max() <= 7
    for name in ("weighted", "pay"):
        scale = figures.noise[name].scale.overall
        assert scale == pytest.approx(true.total(name) / true.total("count"), rel=0.005)
        assert np.array_equal(cube[name] - true[name], scale * drawn)


def test_noise_has_the_stated_variance_in_every_cell() -> None:
    true = true_cube()
    drawn = np.array([protect(true, seed)[0]["count"] // MILLION - true["count"] for seed in range(1_500)])
    expected = cube_method(
        CubeSection.model_validate({"name": "c", "by": BY, "epsilon": 2, "cap": 7}), alpha=Fraction(1)
    ).counts.variance
    assert (drawn**2).mean() == pytest.approx(expected, rel=0.04), "would reject a scale that is 5% off"
    assert abs(drawn.mean()) < 4 * (expected / drawn.size) ** 0.5


def test_controls_are_met_exactly_in_every_column() -> None:
    true = true_cube()
    controls = [{"by": ["level", "region"], "exact": True}, {"by": ["job"], "epsilon": 1}]
    cube, figures = protect(true, 2, controls=controls)
    assert figures.calibration.converged
    assert figures.calibration.largest_gap == 0
    for name in true.columns:
        exact = true.only(name).project("level", "region")[name] * (MILLION if name == "count" else 1)
        assert np.array_equal(cube.only(name).project("level", "region")[name], exact)
        noisy, plain = (table.only(name).project("job")[name] for table in (cube, true))
        assert noisy.sum() == plain.sum() * (MILLION if name == "count" else 1)
    assert not np.array_equal(cube.project("job")["count"], true.project("job")["count"] * MILLION)


def test_strata_have_noise_of_their_own_average_weight() -> None:
    true = true_cube()
    cube, figures = protect(true, 3, weights="region")
    drawn = cube["count"] // MILLION - true["count"]
    scale = figures.noise["weighted"].scale
    counts, sums = true.project("region")["count"], true.project("region")["weighted"]
    for place in range(4):
        enough = counts[place] >= FEWEST
        average = sums[place] / counts[place] if enough else true.total("weighted") / true.total("count")
        assert scale.by_code[place] == pytest.approx(average, rel=0.005)
        assert np.array_equal((cube["weighted"] - true["weighted"])[place], drawn[place] * scale.by_code[place])
    assert len(set(scale.by_code)) > 1


def test_a_stratum_of_few_records_takes_the_average_of_all() -> None:
    true = true_cube(60)
    scale = average_scale(true, "weighted", "region")
    counts = true.project("region")["count"]
    assert (counts < FEWEST).all()
    assert set(scale.by_code) == {scale.overall}


def test_the_strict_option_gives_weighted_counts_noise_of_their_own() -> None:
    true = true_cube()
    true = true.only("count", "weighted").with_column("weighted", true["weighted"] // MILLION * MILLION, parts=MILLION)
    cube, figures = protect(true, 4, sensitivity="weight", largest_weight=200)
    units = (cube["weighted"] - true["weighted"]) // MILLION
    assert np.array_equal(units * MILLION, cube["weighted"] - true["weighted"])
    drawn = cube["count"] // MILLION - true["count"]
    assert np.abs(units).max() > 7
    assert not np.array_equal(units % 2, drawn % 2)
    assert figures.noise["weighted"].variance > 1_000 * figures.noise["count"].variance


def test_weighted_counts_of_the_strict_option_are_multiples_of_the_unit() -> None:
    true = true_cube()
    whole = true["weighted"] // (20 * MILLION) * 20 * MILLION
    true = true.only("count", "weighted").with_column("weighted", whole, parts=MILLION)
    cube, _ = protect(true, 4, sensitivity="weight", largest_weight=200, weight_unit=20)
    assert (cube["weighted"] != true["weighted"]).any()
    assert not (cube["weighted"] % (20 * MILLION)).any(), "the digits tell nothing"


def test_digits_of_weighted_counts_tell_which_cells_hold_records_unless_the_option_is_strict() -> None:
    true = true_cube()
    cube, figures = protect(true, 7)
    told = cube["weighted"] % figures.noise["weighted"].scale.overall != 0
    assert np.array_equal(told, true["count"] > 0), "as the statement says of average weights"


def test_dropped_empty_cells_stay_zero_without_calibration() -> None:
    true = true_cube()
    empty = true["count"] == 0
    changed = np.array(
        [protect(true, s, empty_cells="0.25", epsilon="0.1")[0]["count"][empty] != 0 for s in range(400)]
    )
    assert changed.mean() == pytest.approx(0.25 * 0.94, abs=0.05)


def test_nonnegative_cubes_have_no_cell_below_zero_and_still_meet_their_controls() -> None:
    true = true_cube()
    cube, figures = protect(true, 5, nonnegative=True, controls=[{"by": ["job"], "exact": True}])
    assert all(int(column.min()) >= 0 for column in cube.columns.values())
    assert np.array_equal(cube.project("job")["weighted"], true.project("job")["weighted"])
    assert figures.calibration.converged
    alone, _ = protect(true, 5, nonnegative=True)
    assert all(int(column.min()) >= 0 for column in alone.columns.values())


def test_raking_says_whether_it_converged() -> None:
    _, figures = protect(true_cube(5_000), 6, calibration="raking", controls=[{"by": ["job"], "epsilon": 1}])
    assert figures.calibration.method == "raking"
    assert figures.calibration.converged
    assert figures.noise["count"].controls == {}
