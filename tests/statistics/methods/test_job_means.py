"""Means of jobs: intervals from the noise of both numbers, and no mean where the count may be 0."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.method import CONFIDENCE, NOT_AVAILABLE, published_figures
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.mean_of import CERTAINTY, JOBS, TOTAL, MeanOf, allows_means, beside, fewest_jobs, part_of
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto
from tests.statistics.methods.cells import cells_of

TENTH, CAP, DRAWS = Fraction("0.1"), 250_000, 20_000


def means(epsilon: str) -> MeanOf:
    """Both numbers spend this."""
    common = {"alpha": TENTH, "epsilon": Fraction(epsilon)}
    return MeanOf(total=SmoothPareto(**common, floor=CAP), jobs=SmoothPareto(**common))


def vector_means(epsilon: str) -> MeanOf:
    common = {"alpha": TENTH, "epsilon": Fraction(epsilon), "worker_cells": 2}
    return MeanOf(total=VectorPareto(**common, floor=CAP), jobs=VectorPareto(**common))


def one_establishment(mean: int, jobs: int, draws: int = DRAWS) -> Cells:
    """The same cell many times over, all of it one establishment: error figures then suppose what is the case."""
    own = [[number] * draws for number in (mean * jobs, jobs)]
    return beside(*(cells_of(count=number, largest=number) for number in own))


def worker_cells(jobs: Any, mean: Any, draws: int) -> Cells:
    """Women and men of one establishment, many times over."""
    place = Dimension(name="place", codes=tuple(map(str, range(draws))), public=True)
    sex = Dimension(name="sex", codes=("F", "M"), public=False)
    parts = [
        Cells(
            dimensions=(place, sex),
            positions=np.arange(2 * draws),
            columns={"count": np.tile(own, draws), "largest_employer": np.full(2 * draws, own.sum())},
        )
        for own in (np.multiply(jobs, mean), np.asarray(jobs))
    ]
    return beside(*parts)


@pytest.mark.parametrize("epsilon", ["1", "2"])
@pytest.mark.parametrize(("mean", "jobs"), [(40_000, 20), (40_000, 100), (40_000, 1_000), (150_000, 1_000)])
def test_intervals_hold_the_mean_in_about_nine_cases_of_ten(epsilon: str, mean: int, jobs: int) -> None:
    method = means(epsilon)
    answer = method.protect(one_establishment(mean, jobs), Seeded(3))
    figures, told = method.published_figures(answer, CONFIDENCE), answer["status"] == 0
    covered = ((figures.low <= mean) & (mean <= figures.high))[told].mean()
    assert 0.88 < covered < 0.93
    missed = [(figures.low > mean)[told].mean(), (figures.high < mean)[told].mean()]
    assert max(missed) < 0.06  # on both sides alike


SPENT = [("1", "1"), ("2", "2"), ("3", "1"), ("0.6", "0.6"), ("2", "0.5"), ("3.8", "0.2")]
"""On the total, and on the count."""


def of_both(total: str, jobs: str) -> MeanOf:
    return MeanOf(
        total=SmoothPareto(alpha=TENTH, epsilon=Fraction(total), floor=CAP),
        jobs=SmoothPareto(alpha=TENTH, epsilon=Fraction(jobs)),
    )


@pytest.mark.parametrize("spent", SPENT)
@pytest.mark.parametrize("mean", [20_000, 100_000, 240_000])
def test_intervals_hold_the_mean_from_as_many_jobs_on_as_a_mean_needs(spent: tuple[str, str], mean: int) -> None:
    method = of_both(*spent)
    for times in (1, 2):
        answer = method.protect(one_establishment(mean, times * fewest_jobs(method.jobs)), Seeded(3))
        figures, told = method.published_figures(answer, CONFIDENCE), answer["status"] == 0
        assert told.mean() > 0.48
        assert ((figures.low <= mean) & (mean <= figures.high))[told].mean() > 0.88


@pytest.mark.parametrize("spent", SPENT)
def test_a_cell_without_jobs_has_a_mean_in_at_most_one_of_a_thousand_cases(spent: tuple[str, str]) -> None:
    method = of_both(*spent)
    k, tail = (float(number) for number in (method.jobs.calibration.scale, method.jobs.calibration.tail))
    least = fewest_jobs(method.jobs) - 0.5  # what noise has to reach before it is rounded
    none, one = (((1 + (least - jobs) / k) ** -tail) / 2 for jobs in (0, 1))
    assert none <= 0.001
    assert one < 0.002
    for jobs, chance in ((0, none), (1, one)):
        told = (method.protect(one_establishment(240_000, jobs), Seeded(11))["status"] == 0).mean()
        assert abs(told - chance) < 4 * np.sqrt(chance / DRAWS)


@pytest.mark.parametrize("jobs", [5, 20, 1_000])
@pytest.mark.parametrize("epsilon", ["1.4", "2", "4"])
def test_a_worker_cell_without_jobs_has_a_mean_as_rarely(epsilon: str, jobs: int) -> None:
    answer = vector_means(epsilon).protect(worker_cells([0, jobs], [0, 40_000], 10_000), Seeded(4))
    assert (answer["status"][::2] == 0).mean() <= 0.001


def test_a_mean_needs_so_many_published_jobs() -> None:
    method = means("1")
    answer = method.protect(one_establishment(40_000, 9, draws=2_000), Seeded(7))
    assert fewest_jobs(method.jobs) == 10
    assert np.array_equal(answer["status"] == 0, answer[JOBS] >= 10)


@pytest.mark.parametrize("cells", [2, 8])
def test_a_count_that_is_never_certain_allows_no_mean(cells: int) -> None:
    """However many jobs there are, and however few others beside them."""
    found = {
        epsilon: allows_means(VectorPareto(alpha=TENTH, epsilon=Fraction(epsilon), worker_cells=cells))
        for epsilon in (1, 2, 4, 8)
    }
    assert found == {1: False, 2: cells == 2, 4: True, 8: True}
    assert allows_means(SmoothPareto(alpha=TENTH, epsilon=Fraction("0.15")))


@pytest.mark.parametrize("epsilon", ["2.5", "4"])
def test_intervals_of_worker_cells_hold_their_means(epsilon: str) -> None:
    method, draws = vector_means(epsilon), 10_000
    jobs, mean = np.array([60, 140]), np.array([35_000, 55_000])
    answer = method.protect(worker_cells(jobs, mean, draws), Seeded(4))
    figures = method.published_figures(answer, CONFIDENCE)
    for cell in range(2):
        told = answer["status"][cell::2] == 0
        low, high = figures.low[cell::2][told], figures.high[cell::2][told]
        assert 0.88 < ((low <= mean[cell]) & (mean[cell] <= high)).mean() < 0.93


def test_where_no_establishment_has_all_jobs_the_interval_only_holds_more_often() -> None:
    method = means("2")
    total = cells_of(count=[40_000 * 3_000] * 5_000, largest=[5 * CAP] * 5_000)
    jobs = cells_of(count=[3_000] * 5_000, largest=[40] * 5_000)
    figures = method.published_figures(method.protect(beside(total, jobs), Seeded(5)), CONFIDENCE)
    assert ((figures.low <= 40_000) & (figures.high >= 40_000)).mean() > 0.99


@pytest.mark.parametrize("epsilon", ["2", "4"])
def test_the_error_is_about_the_mean_absolute_error(epsilon: str) -> None:
    method, cells = means(epsilon), one_establishment(40_000, 200)
    answer = method.protect(cells, Seeded(6))
    off = np.abs(answer["value"] / answer[JOBS] - 40_000)
    assert np.isclose(method.published_figures(answer, CONFIDENCE).error.mean(), off.mean(), rtol=0.05)
    assert np.isclose(method.expected_error(cells)[0], off.mean(), rtol=0.05)


def test_there_is_no_mean_where_the_interval_of_the_count_reaches_zero() -> None:
    method = means("1")
    answer = method.protect(one_establishment(40_000, 9, draws=2_000), Seeded(7))
    jobs = part_of(Cells(dimensions=answer.dimensions, positions=answer.positions, columns={JOBS: answer[JOBS]}), JOBS)
    alone = Cells(dimensions=jobs.dimensions, positions=jobs.positions, columns={"value": jobs["count"]})
    low = published_figures(method.jobs, alone, 2 * CERTAINTY - 1).low
    assert np.array_equal(answer["status"] == NOT_AVAILABLE, (low <= 0) | (answer[JOBS] <= 0))
    assert 0.05 < (answer["status"] == 0).mean() < 0.95
    figures = method.published_figures(answer, CONFIDENCE)
    assert np.array_equal(np.isnan(figures.low), answer["status"] == NOT_AVAILABLE)
    told = answer["status"] == 0
    assert np.all(figures.low[told] <= figures.high[told])
    assert np.all(figures.low[told] >= 0)


def test_no_interval_reaches_beyond_the_cap_unless_the_mean_itself_does() -> None:
    method = means("1")
    answer = method.protect(one_establishment(CAP, 30, draws=5_000), Seeded(8))
    figures, told = method.published_figures(answer, CONFIDENCE), answer["status"] == 0
    shown = answer["value"][told] / answer[JOBS][told]
    assert np.all(figures.high[told] <= np.maximum(shown, CAP))
    assert np.all(figures.high[told] >= shown)


def test_both_numbers_are_charged() -> None:
    found = means("2").guarantee()
    assert (found.epsilon, found.definition) == (4, "strong")


def test_a_mean_is_made_of_the_total_and_the_count_as_each_is_protected_by_itself() -> None:
    method, cells = means("2"), one_establishment(40_000, 50, draws=100)
    chance = Seeded(9)
    total = method.total.protect(part_of(cells, TOTAL), chance)
    jobs = method.jobs.protect(part_of(cells, JOBS), chance)
    answer = method.protect(cells, Seeded(9))
    assert np.array_equal(answer["value"], total["value"])
    assert np.array_equal(answer[JOBS], jobs["value"])
