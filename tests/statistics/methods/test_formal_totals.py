"""Noise for totals in money: its loss, its distribution, and the figures beside the values."""

from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest

from sfumato.cells import Cells, Dimension
from sfumato.method import method_words, public_parameters, published_figures
from sfumato.noise.pareto import DoublePareto, SimplexPareto
from sfumato.noise.randomness import Seeded
from sfumato.noise.sums import spread
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato.statistics.registry import build, built_again
from tests.noise.fit import ACCEPTED, REJECTED, p_value
from tests.statistics.methods.audit import money_loss
from tests.statistics.methods.cells import cells_of
from tests.statistics.methods.test_vector_audit import outcomes

CAP = 120_000_00
"""In cents."""
GRID = [(Fraction(a), Fraction(e)) for a in ("0.01", "0.1", "0.2") for e in ("0.25", "1", "2", "4")]
GRID = [(a, e) for a, e in GRID if float(e) > log(1 + a)]
on_grid = pytest.mark.parametrize(("alpha", "epsilon"), GRID)
TENTH, TWO = Fraction("0.1"), Fraction(2)


def scalar(alpha: Fraction = TENTH, epsilon: Fraction = TWO, cap: int = CAP) -> SmoothPareto:
    return SmoothPareto(alpha=alpha, epsilon=epsilon, floor=cap)


def vector(cells: int, cap: int = CAP) -> VectorPareto:
    return VectorPareto(alpha=TENTH, epsilon=TWO, worker_cells=cells, floor=cap)


def scales(method: SmoothPareto | VectorPareto, largest: int) -> float:
    """k·max(αx, B), written out rather than asked of the method."""
    return float(method.calibration.scale * max(method.alpha * largest, CAP))


# The loss, over whole cents.


@on_grid
def test_the_loss_over_neighbouring_payrolls_is_epsilon_and_no_more(alpha: Fraction, epsilon: Fraction) -> None:
    loss = money_loss(scalar(alpha, epsilon).noise, alpha, CAP)
    assert 0.95 * float(epsilon) < loss <= float(epsilon) + 1e-9


@on_grid
def test_a_scale_that_is_a_tenth_smaller_loses_more(alpha: Fraction, epsilon: Fraction) -> None:
    noise = scalar(alpha, epsilon).noise
    smaller = replace(noise, unit=noise.unit * Fraction(9, 10))
    assert money_loss(smaller, alpha, CAP) > 1.001 * float(epsilon)


def test_a_job_that_were_not_cut_would_be_told_by_more_than_epsilon() -> None:
    noise, pay = scalar().noise, 3 * CAP
    before = noise.log_mass(np.array([0, pay]), np.array(10 * CAP))
    after = noise.log_mass(np.array([-pay, 0]), np.array(10 * CAP))
    assert np.abs(before - after).max() > 2 * 2


def joint_loss(noise: SimplexPareto, scale: float) -> float:
    """The greatest loss of all worker cells over neighbouring payrolls: workers more, paid in all what a step adds."""
    rng, d, worst = np.random.default_rng(3), noise.cells, 0.0
    for pays in (0.0, CAP, 5.0 * CAP, 10.0 * CAP, 40.0 * CAP):
        before = max(0.1 * pays, CAP)
        for split in (np.eye(d)[0], np.full(d, 1 / d), *rng.dirichlet(np.ones(d), 3)):
            shift = split * before
            after = max(0.1 * (pays + before), CAP)
            z = outcomes(shift, np.full(d, scale * before), rng)
            ratios = noise.log_density(z, scale * before) - noise.log_density(z - shift, scale * after)
            worst = max(worst, float(np.abs(ratios).max()))
    return worst


@pytest.mark.parametrize("cells", [2, 4, 8])
def test_the_loss_of_all_worker_cells_together_is_epsilon_and_a_smaller_scale_loses_more(cells: int) -> None:
    method = vector(cells)
    noise, k = method.noise, float(method.calibration.scale)
    assert 0.95 * 2 < joint_loss(noise, k) <= 2 + 1e-9
    assert joint_loss(noise, 0.9 * k) > 1.0001 * 2


# What is drawn.


@pytest.mark.parametrize("largest", [0, 3 * CAP, 50 * CAP], ids=["nobody", "below the cap", "a large payroll"])
@pytest.mark.parametrize("cells", [0, 2])
def test_totals_get_the_stated_noise_in_money_and_one_that_is_a_tenth_off_is_noticed(largest: int, cells: int) -> None:
    drawn, method = errors(cells, largest)
    tail, scale = float(method.calibration.tail), scales(method, largest)

    def survival(off: float):
        return lambda j: (1 + np.maximum(j - 0.5, 0) / (off * scale)) ** -tail

    assert p_value(np.abs(drawn), survival(1)) > ACCEPTED
    assert p_value(np.abs(drawn), survival(1.1)) < REJECTED
    assert p_value(np.abs(drawn), survival(0.9)) < REJECTED
    assert abs(drawn.mean()) < 5 * drawn.std() / np.sqrt(len(drawn))


def errors(cells: int, largest: int, draws: int = 100_000) -> tuple[np.ndarray, SmoothPareto | VectorPareto]:
    """How far published totals of one cell, or of the first of several worker cells, are off."""
    total = 3 * largest
    if not cells:
        cell = cells_of(count=[total] * draws, largest=[largest] * draws)
        return scalar().protect(cell, Seeded(5))["value"] - total, scalar()
    drawn = protected(np.array([total, 0]), largest, draws)
    return drawn[:, 0] - total, vector(2)


def block_cells(totals: np.ndarray, largest: int, draws: int) -> Cells:
    """The same worker cells of a workplace cell many times over."""
    place = Dimension(name="place", codes=tuple(map(str, range(draws))), public=True)
    sex = Dimension(name="sex", codes=("F", "M"), public=False)
    columns = {"count": np.tile(totals, draws), "largest_employer": np.full(2 * draws, largest)}
    return Cells(dimensions=(place, sex), positions=np.arange(2 * draws), columns=columns)


def protected(totals: np.ndarray, largest: int, draws: int) -> np.ndarray:
    value = vector(2).protect(block_cells(totals, largest, draws), Seeded(6))["value"]
    return value.reshape(draws, 2)


# The figures beside the values.


@pytest.mark.parametrize("share", [0, 1, 7, 30, 400], ids=lambda share: f"{share} caps")
def test_intervals_hold_the_total_and_errors_are_no_less_than_the_true_ones(share: int) -> None:
    method, total, draws = scalar(), share * CAP, 40_000
    cell = cells_of(count=[total] * draws, largest=[total] * draws)
    answer = method.protect(cell, Seeded(7))
    figures = published_figures(method, answer, 0.9)
    covered = (figures.low <= total) & ~(figures.high < total)
    assert covered.mean() > 0.9 - 4 * np.sqrt(0.09 / draws)
    off = np.abs(answer["value"] - total)
    assert figures.error.mean() > off.mean() - 4 * off.std() / np.sqrt(draws)
    assert np.isclose(off.mean(), method.expected_error(cell)[0], atol=4 * off.std() / np.sqrt(draws))


def test_intervals_of_worker_cells_hold_their_totals() -> None:
    draws, totals = 40_000, np.array([9 * CAP, 3 * CAP])
    answer = vector(2).protect(block_cells(totals, 12 * CAP, draws), Seeded(8))
    figures = published_figures(vector(2), answer, 0.9)
    for place, total in enumerate(totals):
        low, high = figures.low[place::2], figures.high[place::2]
        assert ((low <= total) & ~(high < total)).mean() > 0.9 - 4 * np.sqrt(0.09 / draws)


@pytest.mark.parametrize("cells", [2, 12], ids=["two cells", "a dozen cells"])
def test_sums_of_totals_have_errors_and_intervals_of_their_own(cells: int) -> None:
    """Each cell is one establishment, so that published values suppose no more noise than there is."""
    method, draws = scalar(), 1_500
    true = np.array([(1 + 3 * at**2) * CAP for at in range(cells)])
    tiled = np.tile(true, draws)
    answer = method.protect(cells_of(count=tiled.tolist(), largest=tiled.tolist()), Seeded(9))
    which = np.repeat(np.arange(draws), cells)
    error = published_figures(method, answer, 0.9).error
    found = spread(method.noise_parts(answer, which, error), draws, 0.9)
    off = answer["value"].reshape(draws, cells).sum(axis=1) - true.sum()
    covered = (off <= found.below) & (-off <= np.nan_to_num(found.above, nan=np.inf))
    assert 0.9 - 4 * np.sqrt(0.09 / draws) < covered.mean() < 0.96
    assert np.isclose(found.error.mean(), np.abs(off).mean(), rtol=0.12)


def test_the_planned_error_is_what_a_cell_of_small_payrolls_has() -> None:
    method = scalar()
    planned = method.planned_error()
    assert planned.floor_size == 10 * CAP
    assert np.isclose(planned.floor, method.expected_error(cells_of(count=[0], largest=[0]))[0])
    assert np.isclose(planned.floor, 0.525 * CAP, rtol=1e-3)


# Identity: a count is asked as it always was.


def test_counts_are_called_what_they_were_called_before_there_were_totals() -> None:
    for name, cells in (("smooth-pareto", 0), ("vector-pareto", 2)):
        counts = build(name, alpha=TENTH, epsilon=TWO, worker_cells=cells)
        totals = build(name, alpha=TENTH, epsilon=TWO, worker_cells=cells, of_table={"floor": CAP})
        assert "floor" not in method_words(counts)
        assert "floor" not in public_parameters(counts)
        assert method_words(counts) != method_words(totals)
        assert built_again(name, public_parameters(totals)) == totals
        assert built_again(name, public_parameters(counts)) == counts


def test_the_noise_of_one_worker_cell_is_that_of_a_cell_by_itself() -> None:
    assert vector(0).noise.marginal == scalar().noise
    assert isinstance(scalar().noise, DoublePareto)
