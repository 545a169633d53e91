"""Indicators of one period with a guarantee: what is measured, what is drawn, and the figures beside the values."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.noise.box_pareto import sum_tail
from sfumato.noise.randomness import Seeded
from sfumato.statistics.panel.formal_figures import PeriodFigures
from sfumato.statistics.panel.formal_period import (
    AT,
    AVERAGE,
    CHANGES,
    COUNTS,
    FLOWS,
    OF,
    PAY,
    PeriodPareto,
    created_and_destroyed,
    grouped,
)
from sfumato.statistics.panel.indicators import CODES
from sfumato.statistics.panel.tabulate_formal import true_indicators
from tests.noise.fit import ACCEPTED, REJECTED, p_value
from tests.statistics.panel.histories import measured

CAP, PAY_OF_A_JOB = 50_000, 15_000
WITHOUT_YEAR = tuple(code for code in CODES if code not in ("new_hires", "recalls"))


def method(epsilon: str = "4", worker_cells: int = 1, indicators: tuple[str, ...] = CODES, **more: Any) -> PeriodPareto:
    return PeriodPareto(
        alpha=Fraction("0.1"),
        epsilon=Fraction(epsilon),
        indicators=indicators,
        worker_cells=worker_cells,
        cap=CAP,
        **more,
    )


def establishment(jobs: int, worker_cells: int = 1) -> np.ndarray:
    """So many jobs of all kinds at one establishment, as a workplace cell."""
    each = np.floor(np.array([0.8, 0.05, 0.02, 0.03, 0.06, 0.04]) * jobs / worker_cells + 0.5).astype(np.int64)
    other = (each.sum() - each[0]) * PAY_OF_A_JOB
    one = [*each, abs(each[2] + each[4] - each[1]), each[0] * PAY_OF_A_JOB, other]
    return np.tile(np.array(one, dtype=np.int64), (worker_cells, 1))


def drawn(of: PeriodPareto, cell: np.ndarray, draws: int, seed: int = 5) -> np.ndarray:
    """The indicators of the same workplace cell many times over, all of it one establishment."""
    largest = np.array([cell[:, :6].sum(), cell[:, 7:].sum()])
    return of.protect(np.tile(cell, (draws, 1, 1)), np.tile(largest, (draws, 1)), Seeded(seed))


# What is measured.


def test_fewer_indicators_need_fewer_groups_of_jobs() -> None:
    assert len(grouped(CODES)) == 6
    assert len(grouped(WITHOUT_YEAR)) == 4
    assert grouped(["employment"]) == grouped([]) == ((0, 1, 2, 3, 4, 5),)
    assert grouped(["separations"]) == ((0, 2, 4), (1, 3, 5))
    assert grouped([AVERAGE]) == ((0,), (1, 2, 3, 4, 5))
    assert method(indicators=("payroll",)).cells == {PAY: 1}
    assert method(indicators=("job_creation",)).cells == {COUNTS: 3, CHANGES: 1}


@pytest.mark.parametrize("indicators", [CODES, WITHOUT_YEAR, *((code,) for code in CODES)], ids=len)
def test_every_indicator_is_a_sum_of_the_groups_that_are_measured(indicators: tuple[str, ...]) -> None:
    groups = grouped(indicators)
    assert sorted(kind for group in groups for kind in group) == list(range(6))
    for code in indicators:
        if code in OF:
            assert {kind for group in groups if set(group) <= set(OF[code]) for kind in group} == set(OF[code])


def test_epsilon_is_shared_by_the_cells_of_each_part_and_one_more_or_as_it_is_said() -> None:
    assert method("12").spent == {COUNTS: 7, CHANGES: 2, PAY: 3}
    assert method("12", indicators=("employment", "payroll")).spent == {COUNTS: 6, PAY: 6}
    assert method("12", indicators=("beginning", "end")).spent == {COUNTS: 12}
    said = {COUNTS: Fraction(1), CHANGES: Fraction(1), PAY: Fraction(2)}
    assert method("12", shares=tuple(said.items())).spent == {COUNTS: 3, CHANGES: 3, PAY: 6}
    assert sum(method("4", worker_cells=2).spent.values()) == 4


@pytest.mark.parametrize("pattern", ["".join(bits) for bits in product("01", repeat=6)])
def test_one_job_more_is_in_one_group_and_moves_the_change_of_its_employer_by_one_at_most(pattern: str) -> None:
    """Whatever the histories of others are, none of their numbers changes."""
    rng = np.random.default_rng(3)
    others = [("".join(rng.choice(["0", "1"], 6)), 10, int(rng.integers(2))) for _ in range(9)]
    for period in range(6):
        before, after = (measured(jobs, period, 2) for jobs in (others, [*others, (pattern, 10, 1)]))
        there = int(pattern[period])
        assert np.abs(after - before)[:, :6].sum() == there
        assert np.abs(after - before)[:, 6].sum() <= there
        assert np.abs(after - before)[:, 7:].sum() == 10 * there


# What is drawn.


def survival(of: PeriodPareto, part: str, cells: int, scale: float, off: float) -> Any:
    """P(|sum of the noise of so many cells| ≥ j), before rounding, which is little beside a large scale."""
    one = of.parts[part].calibration
    wide = float(one.scale) * scale * off
    return lambda j: 2 * sum_tail(cells).mixed(np.maximum(j - 0.5, 0) / wide, float(one.tail))


@pytest.mark.parametrize(
    ("code", "part", "cells"),
    [("employment", COUNTS, 6), ("beginning", COUNTS, 2), ("full_quarter", COUNTS, 1), ("payroll", PAY, 2)],
)
def test_indicators_have_the_stated_noise_and_one_that_is_a_tenth_off_is_noticed(
    code: str, part: str, cells: int
) -> None:
    of, cell = method(), establishment(2_000)
    off = drawn(of, cell, 100_000)[:, 0, AT[code]] - true_indicators(cell, months=3)[0, AT[code]]
    scale = 200.0 if part == COUNTS else 0.1 * cell[:, 7:].sum()
    assert p_value(np.abs(off), survival(of, part, cells, scale, 1)) > ACCEPTED
    assert p_value(np.abs(off), survival(of, part, cells, scale, 1.1)) < REJECTED
    assert p_value(np.abs(off), survival(of, part, cells, scale, 0.9)) < REJECTED
    assert abs(off.mean()) < 5 * off.std() / np.sqrt(len(off))


def test_jobs_created_and_destroyed_have_the_stated_noise_and_one_that_is_a_tenth_off_is_noticed() -> None:
    of, cell = method(), establishment(2_000)
    noise = PeriodFigures(method=of).flows
    for code in FLOWS:
        off = np.abs(drawn(of, cell, 100_000)[:, 0, AT[code]] - true_indicators(cell, months=3)[0, AT[code]]) / 200

        def beyond(j: np.ndarray, scale: float) -> np.ndarray:
            return np.array([noise.beyond(one / scale) for one in np.asarray(j, dtype=np.float64) / 1000])

        thousandths = np.rint(off * 1000).astype(np.int64)
        assert p_value(thousandths, lambda j: beyond(j, 1.0)) > ACCEPTED
        assert p_value(thousandths, lambda j: beyond(j, 1.1)) < REJECTED
        assert p_value(thousandths, lambda j: beyond(j, 0.9)) < REJECTED
        assert off.mean() == pytest.approx(noise.mean, rel=0.02)


@pytest.mark.parametrize("jobs", [0, 7, 300])
def test_identities_hold_in_every_draw_and_values_are_right_on_average(jobs: int) -> None:
    of, cell, at = method("6", 2), establishment(jobs, 2), AT
    value = drawn(of, cell, 20_000)
    one = {code: value[..., at[code]] for code in CODES}
    assert np.array_equal(one["beginning"] + one["accessions"] - one["separations"], one["end"])
    assert np.array_equal(one["beginning"] + one["accessions"], one["employment"])
    assert np.array_equal(one["new_hires"] + one["recalls"], one["accessions"])
    assert np.array_equal(one["job_creation"] - one["job_destruction"], one["end"] - one["beginning"])
    true = true_indicators(cell, months=3)
    for code in CODES[:-1]:
        off = one[code] - true[:, at[code]]
        assert abs(off.mean()) < 5 * off.std() / np.sqrt(off.size)


def test_a_coin_makes_created_and_destroyed_whole_and_leaves_them_right_on_average() -> None:
    change, net = np.array([4, 5, 4] * 10_000), np.array([2, 2, -3] * 10_000)
    created, destroyed = created_and_destroyed(change, net, Seeded(2))
    assert np.array_equal(created - destroyed, net)
    assert set((created + destroyed - change).tolist()) == {-1, 0, 1}
    assert abs((created + destroyed - change).mean()) < 0.03


def test_measuring_the_change_of_employers_errs_no_more_than_measuring_both_flows() -> None:
    """The pair, made to agree with the net change by least squares, at the shares of epsilon that are used."""
    of = method("4")
    counts, change = of.parts[COUNTS], of.parts[CHANGES]
    pair = method("4").parts[CHANGES].__class__(alpha=of.alpha, epsilon=of.spent[CHANGES], worker_cells=2)
    net, one, both = (3 * (counts.variance or 0), change.variance or 0, pair.variance or 0)
    ours = (one + net) / 4
    agreed = (2 * both + 1 / (1 / (2 * both) + 1 / net)) / 4
    assert ours < 0.6 * agreed


# The figures beside the values.


def covered(of: PeriodPareto, cell: np.ndarray, draws: int) -> dict[str, tuple[float, float]]:
    """How often the interval of each indicator holds the truth, and how many have one."""
    value, figures = drawn(of, cell, draws), PeriodFigures(method=of)
    told = figures.status(value) == 0
    value[..., AT[AVERAGE]] = of.average(value)
    found, true = figures.figures(value), true_indicators(cell, months=3)
    holds = (found.low <= true) & ~(found.high < true)
    return {
        code: (holds[..., AT[code]][own].mean(), own.mean()) for code in of.known if (own := told[..., AT[code]]).any()
    }


@pytest.mark.parametrize(("epsilon", "worker_cells"), [("3", 1), ("4", 1), ("8", 1), ("4", 2), ("8", 2)])
@pytest.mark.parametrize("jobs", [100, 1_000, 20_000])
def test_intervals_hold_the_truth_in_nine_cases_of_ten(epsilon: str, worker_cells: int, jobs: int) -> None:
    found = covered(method(epsilon, worker_cells), establishment(jobs, worker_cells), 8_000)
    for code, (share, some) in found.items():
        if some > 0.9:
            assert 0.88 <= share <= 0.99, code


@pytest.mark.parametrize("jobs", [0, 3, 20])
def test_intervals_of_small_cells_hold_the_truth_no_less_often(jobs: int) -> None:
    found = covered(method("4"), establishment(jobs), 8_000)
    assert all(share >= 0.88 for share, some in found.values() if some > 0.9)
    assert found.get(AVERAGE, (0, 0))[1] < 0.001 if jobs == 0 else True


def test_errors_are_no_less_than_the_true_ones_and_those_of_one_establishment_are_these() -> None:
    of, cell = method("4", 2), establishment(500, 2)
    value, figures = drawn(of, cell, 20_000), PeriodFigures(method=of)
    true, told = true_indicators(cell, months=3), figures.figures(value)
    expected = figures.errors(np.array([[cell[:, :6].sum(), cell[:, 7:].sum()]]))[0]
    for code in CODES[:-1]:
        off = np.abs(value[..., AT[code]] - true[:, AT[code]])
        sure = 4 * off.std() / np.sqrt(off.size)
        assert told.error[..., AT[code]].mean() > off.mean() - sure
        assert expected[AT[code]] == pytest.approx(off.mean(), abs=2 * sure, rel=0.03)


def test_what_is_not_asked_for_is_not_told() -> None:
    of = method(indicators=("separations", "payroll"))
    value = drawn(of, establishment(100), 10)
    status, figures = PeriodFigures(method=of).status(value), PeriodFigures(method=of).figures(value)
    told = [code for code in CODES if (status[..., AT[code]] == 0).all()]
    assert told == ["employment", "separations", "payroll"]
    assert np.isnan(figures.error[..., AT["beginning"]]).all()
    assert not value[..., AT["beginning"]].any()
