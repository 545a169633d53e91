"""How far off percentiles are in cells like graduates', and whether the published errors say so."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from sfumato.arrays import Floats
from sfumato.noise.randomness import Seeded
from sfumato.statistics.people.curves import Percentiles
from sfumato.statistics.people.percentiles import CURVES, CurveName, NoisyQuantiles, curve_named, planned, recommended
from tests.statistics.methods.graduates import AT, SIZES, bins, bins_for, cells_of_bins, counted, earnings, percentiles

EPSILON = Fraction(3, 2)
CELLS = 700
PEOPLE = 1_000_000
"""Large cells are made in smaller numbers."""


@cache
def measured(
    curve: CurveName, number: int, size: int, epsilon: Fraction = EPSILON, part_time: float = 0.0
) -> tuple[Percentiles, Floats]:
    """Percentiles of many cells of a size, and the true ones."""
    earned = earnings(min(CELLS, PEOPLE // size), size, seed=6, part_time=part_time)
    public = bins_for(curve, number)
    found = curve_named(curve, bins=public, at=AT, epsilon=epsilon)
    counts = counted(earned, public)
    return found.percentiles(found.measured(counts, Seeded(size))), percentiles(earned)


def errors(curve: CurveName, number: int, size: int, **others: float) -> Floats:
    """The mean absolute relative error of each percentile, those included of which only a bound is published."""
    found, true = measured(curve, number, size, **others)  # type: ignore[arg-type]
    return np.abs(np.exp(found.logs) / true - 1).mean(axis=0)


@pytest.mark.parametrize("size", [size for size in SIZES if size >= 100])
def test_medians_of_a_hundred_graduates_and_more_are_within_five_percent(size: int) -> None:
    assert errors("adaptive", 20, size)[1] < 0.05
    assert errors("adaptive", 60, size)[1] < 0.05


def improvement(number: int, **others: float) -> Floats:
    """By how much each size has a smaller error than by the plain sum of 20 bins, over all percentiles."""
    pairs = [(errors("adaptive", number, size, **others), errors("plain", 20, size, **others)) for size in SIZES]
    return np.array([1 - better.mean() / usual.mean() for better, usual in pairs])


@pytest.mark.parametrize("number", [20, 60])
def test_the_adaptive_curve_is_better_than_the_plain_sum_by_fifteen_percent_on_average_and_nowhere_worse(
    number: int,
) -> None:
    gains = improvement(number)
    assert gains.mean() > 0.15
    assert gains.min() > 0.04


@pytest.mark.slow
def test_it_is_so_in_cells_that_are_not_log_normal_too() -> None:
    gains = improvement(60, part_time=0.15)
    assert gains.mean() > 0.15
    assert gains.min() > 0.04


@pytest.mark.parametrize("number", [14, 20, 30, 60])
def test_no_number_of_bins_makes_the_plain_sum_as_good(number: int) -> None:
    pairs = [(errors("adaptive", 60, size).mean(), errors("plain", number, size).mean()) for size in SIZES]
    assert np.mean([1 - better / usual for better, usual in pairs]) > 0.15


def test_squares_that_know_the_noise_help_small_cells_a_little_and_large_ones_not_at_all() -> None:
    for number in (20, 60):
        for size in (30, 50):
            assert errors("isotonic", number, size).mean() < 0.97 * errors("plain", number, size).mean()
        assert errors("isotonic", number, 1_000).mean() == pytest.approx(
            errors("plain", number, 1_000).mean(), rel=0.03
        )


def test_a_tree_pays_only_with_many_bins_and_many_people() -> None:
    assert errors("hierarchical", 20, 100).mean() > errors("plain", 20, 100).mean()
    assert errors("hierarchical", 60, 500).mean() < errors("plain", 60, 500).mean()


@pytest.mark.parametrize("curve", ["plain", "isotonic", "hierarchical", "adaptive"])
@pytest.mark.parametrize("number", [20, 60])
def test_95_percent_intervals_hold_the_true_percentile_about_so_often(curve: CurveName, number: int) -> None:
    covered = []
    for size in SIZES:
        found, true = measured(curve, number, size)
        value = np.exp(found.logs)
        told = found.ends.side == 0
        covered.append(np.mean(np.abs(value - true) <= 1.96 * value * found.errors, where=told))
    assert 0.93 < np.mean(covered) < 0.98
    assert min(covered) > 0.9


def test_intervals_of_chosen_bins_hold_the_true_percentile_at_least_so_often() -> None:
    covered = []
    for size in SIZES:
        found, true = measured("exponential", 60, size)
        value = np.exp(found.logs)
        covered.append((np.abs(value - true) <= 1.96 * value * found.errors).mean())
    assert np.mean(covered) > 0.93
    assert min(covered) > 0.9


@pytest.mark.parametrize("curve", CURVES)
def test_published_errors_depend_on_what_was_measured_only(curve: CurveName) -> None:
    public = bins_for(curve, 20)
    drawn = curve_named(curve, bins=public, at=AT, epsilon=EPSILON)
    seen = drawn.measured(counted(earnings(30, 80, seed=8), public), Seeded(8))
    found = drawn.percentiles(seen)
    for rows in (slice(0, 1), slice(7, 20)):
        alone = drawn.percentiles(seen[rows].copy())
        assert alone.logs == pytest.approx(found.logs[rows], rel=1e-9)
        assert alone.errors == pytest.approx(found.errors[rows], rel=1e-6)


@pytest.mark.parametrize("curve", ["plain", "isotonic", "adaptive"])
@pytest.mark.parametrize("size", [50, 100, 300])
def test_planned_errors_are_near_the_measured_ones(curve: CurveName, size: int) -> None:
    plan = planned(curve, bins=bins_for(curve, 20), at=AT, epsilon=EPSILON, size=size)
    found, true = measured(curve, 20, size)
    off = np.mean(np.abs(np.exp(found.logs) / true - 1), axis=0, where=found.ends.side == 0)
    assert plan.errors == pytest.approx(off, rel=0.3)


@pytest.mark.slow
def test_the_adaptive_curve_is_recommended_but_for_large_cells_with_many_bins_where_a_tree_is_better() -> None:
    sizes = (30, 100, 300, 1_000, 3_000)
    best = {size: recommended(bins=bins(120), at=AT, epsilon=EPSILON, size=size) for size in sizes}
    assert [best[size][0].curve for size in sizes] == ["adaptive"] * 4 + ["hierarchical"]
    assert all(plans[-1].curve == "exponential" for plans in best.values())
    assert errors("hierarchical", 120, 3_000).mean() < errors("adaptive", 120, 3_000).mean()
    assert recommended(bins=bins(20), at=AT, epsilon=EPSILON, size=3_000)[0].curve == "adaptive"


def test_planned_error_of_the_method_is_that_of_a_hundred_people() -> None:
    method = NoisyQuantiles(alpha=Fraction(1), epsilon=3 * EPSILON, periods=3, edges=bins(20).edges)
    plan = planned("adaptive", bins=bins(20), at=AT, epsilon=EPSILON, size=100)
    assert method.planned_error().share == plan.error
    assert "100 people" in method.planned_error().in_a_large_cell


def test_expected_errors_from_true_counts_are_near_the_measured_ones() -> None:
    earned = earnings(CELLS, 100, seed=6)
    cells = cells_of_bins(counted(earned, bins(20)))
    method = NoisyQuantiles(alpha=Fraction(1), epsilon=EPSILON, edges=bins(20).edges, minimum=0)
    expected = method.expected_error(cells).reshape(-1, 3)
    protected = method.protect(cells, Seeded(9))
    told = (protected["status"].reshape(-1, 3) == 0) & ~np.isnan(expected)
    off = np.abs(protected["value"].reshape(-1, 3) - percentiles(earned))
    assert np.mean(expected, axis=0, where=told) == pytest.approx(np.mean(off, axis=0, where=told), rel=0.2)
