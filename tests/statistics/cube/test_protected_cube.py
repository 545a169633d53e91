"""A protected cube: noise of the stated size in every column, controls met, and nothing else changed."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Seeded
from sfumato.statistics.cube.cube import MILLION, Cube
from sfumato.statistics.cube.cube_query import Rules
from sfumato.statistics.cube.figures import FEWEST, Figures, average_scale
from sfumato.statistics.cube.protect import protected_cube
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.cube.tabulate import Chunk, tabulated
from sfumato.statistics.cube.truncated_laplace import cube_method
from tests.statistics.cube.survey import DIMENSIONS

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


def test_every_column_has_whole_units_and_draws_of_its_own() -> None:
    true = true_cube()
    found = [protect(true, seed) for seed in range(400)]
    units = {}
    for name in true.columns:
        scale = found[0][1].noise[name].scale.overall
        if name == "count":
            assert scale == MILLION
        else:
            assert scale == pytest.approx(true.total(name) / true.total("count"), rel=0.005)
        values = np.array([cube[name] for cube, _ in found])
        assert not (values % scale).any(), "digits below a unit would have no noise"
        units[name] = values // scale
    count, weighted, pay = (units[name] - units[name].mean(axis=0) for name in ("count", "weighted", "pay"))
    for one, other in ((count, weighted), (count, pay), (weighted, pay)):
        correlation = (one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum())
        assert abs(correlation) < 5 / np.sqrt(one.size), "one minus a multiple of the other would be the truth"


@pytest.mark.slow
def test_rounding_to_units_is_right_on_average_and_has_the_stated_variance() -> None:
    true = true_cube()
    found = [protect(true, seed) for seed in range(3_000)]
    noise = found[0][1].noise["weighted"]
    errors = np.array([cube["weighted"] for cube, _ in found]) - true["weighted"]
    deviation = noise.scale.overall * np.sqrt(noise.variance + 0.25)
    assert np.abs(errors.mean(axis=0)).max() < 5 * deviation / np.sqrt(len(found))
    spread = errors.var(axis=0) / float(noise.scale.overall) ** 2
    empty = true["count"] == 0
    assert spread[empty].mean() == pytest.approx(noise.variance, rel=0.06)
    part = (true["weighted"][~empty] % noise.scale.overall) / noise.scale.overall
    assert spread[~empty].mean() == pytest.approx(noise.variance + (part * (1 - part)).mean(), rel=0.04)
    assert noise.rounding == pytest.approx((part * (1 - part)).mean(), rel=0.25), "an average over what is rounded"


@pytest.mark.parametrize("weight", [1, 4, 7, 10, 11, 25])
def test_a_record_of_k_averages_moves_no_log_probability_by_more_than_k_epsilon(weight: int) -> None:
    noise = TruncatedGeometric(epsilon=Fraction(1, 2), cap=60)
    unit, most = 10, -(-weight // 10)
    whole = np.arange(-70, 80)

    def masses(total: int) -> Any:
        """P(floor((total + V)/unit) + J = j), V uniform below the unit."""
        parts = np.zeros(len(whole))
        for moved in range(unit):
            shifted = np.abs(whole - (total + moved) // unit)
            parts += np.where(shifted <= noise.cap, np.exp(-0.5 * shifted), 0) / unit
        return parts

    losses = []
    for total in range(40):
        one, other = masses(total), masses(total + weight)
        # Beyond the last outcomes, whose probability is part of δ.
        inside = np.abs(whole - total // unit) < noise.cap - most
        losses.append(np.abs(np.log(one[inside] / other[inside])).max())
    assert max(losses) <= most * 0.5 + 1e-9
    assert max(losses) > (most - 1) * 0.5


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
    scale = figures.noise["weighted"].scale
    counts, sums = true.project("region")["count"], true.project("region")["weighted"]
    for place in range(4):
        enough = counts[place] >= FEWEST
        average = sums[place] / counts[place] if enough else true.total("weighted") / true.total("count")
        assert scale.by_code[place] == pytest.approx(average, rel=0.005)
        assert not (cube["weighted"][place] % scale.by_code[place]).any()
        assert np.abs(cube["weighted"] - true["weighted"])[place].max() <= 8 * scale.by_code[place]
    assert len(set(scale.by_code)) > 1


@pytest.mark.slow
def test_calibrated_strata_have_the_error_that_is_told() -> None:
    weights = np.array([1, 5, 20, 100])
    counts = np.full((4, 3, 2), 200)
    weighted = counts * weights[:, None, None] * MILLION
    true = Cube(dimensions=DIMENSIONS, columns={"count": counts, "weighted": weighted}, parts={"weighted": MILLION})
    controls = [{"by": ["region", "job"], "epsilon": 1}, {"by": ["region"], "epsilon": "0.5"}]
    found = [protect(true, seed, weights="region", epsilon="0.5", cap=40, controls=controls) for seed in range(600)]
    errors = np.array([c.project("region")["weighted"] for c, _ in found]) - true.project("region")["weighted"]
    # All are whole units here, so that nothing is rounded.
    figures = Figures(noise={name: replace(noise, rounding=0.0) for name, noise in found[0][1].noise.items()})
    told = PublishedCube(name="c", title="", cube=found[0][0], figures=figures, rules=Rules())
    expected = told.totals("region").perturbation_error
    assert np.allclose(errors.std(axis=0) / MILLION / expected, 1, atol=0.12)
    with pytest.raises(ValueError, match="every control has 'region'"):
        protect(true, 1, weights="region", controls=[{"by": ["job"], "epsilon": 1}])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "3"])
def test_noisy_controls_raise_the_variance_of_no_table(epsilon: str) -> None:
    true = true_cube()
    controls = [{"by": ["job", "region"], "epsilon": epsilon}, {"by": ["level"], "epsilon": epsilon}]
    tables = [(), ("job",), ("region",), ("level",), ("job", "region"), ("level", "job"), tuple(BY)]
    with_controls, without = (
        [protect(true, seed, epsilon="0.5", cap=40, controls=used)[0] for seed in range(400)] for used in (controls, [])
    )
    for by in tables:
        spread = [
            np.array([cube.only("count").project(*by)["count"] for cube in cubes]).var(axis=0).mean()
            for cubes in (with_controls, without)
        ]
        assert spread[0] < spread[1] * 1.08, f"{by}: within the error of 400 runs"
    assert (
        np.array([cube.total("count") for cube in with_controls]).var()
        < 0.97 * np.array([cube.total("count") for cube in without]).var()
    )


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
