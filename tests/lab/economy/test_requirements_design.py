"""The sample of a survey of requirements is proportional to size, and its replicates find the sampling variance."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.frame.records import Replicates
from sfumato_lab.economy import industries
from sfumato_lab.economy.requirements.design import PER_INDUSTRY, draw_design
from sfumato_lab.economy.requirements.draws import (
    FEWEST_JOBS,
    HADAMARD,
    MOST_JOBS,
    NAMES,
    REPLICATES,
    ROWS,
    Establishments,
    Loops,
    Quotes,
    allocate,
    draw_establishments,
    draw_loops,
    draw_quotes,
    replicate_weights,
    rows_of,
)
from sfumato_lab.economy.requirements.generate import FEWEST, MOST
from sfumato_lab.economy.requirements.sizes import SIZE, SPREAD, STARTS
from sfumato_lab.economy.requirements.variables import EDUCATION, NOISE, VARIABLES


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def all_replicates(weight: np.ndarray, rows: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """A column for every replicate."""
    return np.column_stack([replicate_weights(weight, rows, number) for number in range(REPLICATES)])


def variance(total: float, replicated: np.ndarray) -> float:
    """By the rule that the release file names."""
    rule = Replicates(columns=NAMES, rule="successive-difference")
    return float(rule.factor(REPLICATES)) * float(np.sum((replicated - total) ** 2))


def rows_of_quotes(drawn: Quotes, establishments: Establishments, loops: Loops) -> tuple[np.ndarray, np.ndarray]:
    return rows_of(loops, drawn.establishment, drawn.job, establishments.sure)


def test_ten_requirements_have_the_cells_of_the_paper() -> None:
    ten = sorted(
        (len(variable.codelist) for variable in VARIABLES if variable not in (EDUCATION, NOISE)),
        reverse=True,
    )
    assert ten == [5, 4, 3, 3, 3, 2, 2, 2, 2, 2]
    assert np.prod(ten) == 17_280


@given(st.integers(FEWEST, MOST), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_quotas_add_up_and_leave_room_for_two_establishments_in_every_stratum(quotes: int, seed: int) -> None:
    quotas = allocate(quotes, draw_design(seed))
    assert quotas.sum() == quotes
    assert quotas[:, : len(SIZE)].min() >= 2 * FEWEST_JOBS


@pytest.mark.parametrize("quotes", [FEWEST, 9_999, 10_000, 43_211])
def test_a_sample_has_exactly_the_quotes_asked_for(quotes: int) -> None:
    establishments = draw_establishments(quotes, draw_design(3), rng())
    assert establishments.jobs.sum() == quotes
    assert set(np.unique(establishments.jobs)) <= set(range(FEWEST_JOBS, MOST_JOBS + 1))
    assert np.all(np.diff(establishments.stratum) >= 0)
    sizes = establishments.size[~establishments.sure]
    classes = np.searchsorted(STARTS, sizes, side="right") - 1
    assert np.array_equal(classes, establishments.size_class[~establishments.sure])


def test_establishments_are_taken_with_probability_proportional_to_size() -> None:
    establishments = draw_establishments(400_000, draw_design(1), rng())
    normal = NormalDist()
    for industry in (3, 4, 15):
        mean = industries.column("size")[industry]
        among_establishments = np.log(mean) - SPREAD**2 / 2
        for size in range(len(SIZE)):
            here = establishments.stratum == industry * PER_INDUSTRY + size
            ends = np.log(STARTS[size : size + 2])
            of_establishments, of_workers = (
                np.diff([normal.cdf((end - center) / SPREAD) for end in ends])[0]
                for center in (among_establishments, among_establishments + SPREAD**2)
            )
            # Establishments a worker: what the inverse of the size estimates, if that was the chance to be taken.
            expected = of_establishments / (mean * of_workers)
            assert np.mean(1 / establishments.size[here]) == pytest.approx(expected, rel=0.01)


def test_rows_of_the_matrix_are_orthogonal_and_sum_to_zero() -> None:
    rows = HADAMARD.astype(np.int64)
    assert np.array_equal(rows @ rows.T, REPLICATES * np.eye(ROWS, dtype=np.int64))
    assert np.array_equal(rows.sum(axis=1), np.zeros(ROWS))
    # No replicate is the full sample again: each has both signs.
    assert np.all(np.abs(rows.sum(axis=0)) < ROWS)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=ROWS),
    st.integers(0, ROWS - 1),
    st.integers(1, ROWS - 1),
)
def test_in_a_loop_the_variance_is_half_the_sum_of_squared_differences_of_neighbours(
    values: list[float], start: int, step: int
) -> None:
    z = np.array(values)
    every = np.arange(len(z))
    loops = Loops(
        position=every,
        length=np.full(len(z), len(z)),
        start=np.full(len(z), start),
        step=np.full(len(z), step),
    )
    rows = rows_of(loops, every, np.zeros_like(every), np.zeros(len(z), dtype=np.bool_))
    estimated = variance(z.sum(), all_replicates(np.ones(len(z)), rows).T @ z)
    assert estimated == pytest.approx(np.sum((z - np.roll(z, 1)) ** 2) / 2, rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("quotes", [FEWEST, 20_000, 200_000])
def test_loops_never_leave_a_stratum_and_no_row_comes_twice_in_one(quotes: int) -> None:
    establishments = draw_establishments(quotes, draw_design(1), rng())
    loops = draw_loops(establishments, rng(2))
    kept = ~establishments.sure
    begins = np.flatnonzero(loops.position[kept] == 0)
    length = loops.length[kept][begins]
    assert np.array_equal(np.diff(begins, append=np.count_nonzero(kept)), length)
    assert length.min() >= 2
    assert length.max() <= ROWS
    loop = np.repeat(np.arange(len(begins)), length)
    for constant in (establishments.stratum, loops.start, loops.step, loops.length):
        assert np.array_equal(constant[kept], constant[kept][begins][loop])
    assert np.array_equal(loops.position[kept], np.arange(len(loop)) - begins[loop])
    first, _ = rows_of(loops, np.flatnonzero(kept), np.zeros(len(loop), dtype=np.int64), establishments.sure)
    assert len(np.unique(loop * ROWS + first)) == len(loop)


@pytest.mark.slow
def test_replicates_find_the_variance_over_all_samples() -> None:
    design, samples = draw_design(1), 300
    totals, estimates = np.empty((2, samples, 2))
    for number in range(samples):
        of_sample = rng(1_000 + number)
        establishments = draw_establishments(10_000, design, of_sample)
        drawn = draw_quotes(establishments, slice(None), design, of_sample)
        weight = establishments.weight[drawn.establishment]
        rows = rows_of_quotes(drawn, establishments, draw_loops(establishments, of_sample))
        # Only the difference of two entries of a row matters, so sum within rows before replicating.
        for which, y in enumerate((drawn.prep_days, drawn.requirements["driving"])):
            by_row = np.bincount(rows[0], weight * y, ROWS) - np.bincount(rows[1], weight * y, ROWS)
            totals[number, which] = weight @ y
            estimates[number, which] = variance(0.0, 2**-1.5 * by_row @ HADAMARD)
    np.testing.assert_allclose(estimates.mean(axis=0), totals.var(axis=0, ddof=1), rtol=0.2)


def test_the_shortcut_of_the_variance_test_is_the_variance_by_replicate_weights() -> None:
    design = draw_design(1)
    establishments = draw_establishments(10_000, design, rng(5))
    drawn = draw_quotes(establishments, slice(None), design, rng(6))
    weight = establishments.weight[drawn.establishment]
    rows = rows_of_quotes(drawn, establishments, draw_loops(establishments, rng(7)))
    y = drawn.prep_days.astype(np.float64)
    by_row = np.bincount(rows[0], weight * y, ROWS) - np.bincount(rows[1], weight * y, ROWS)
    replicated = all_replicates(weight, rows).T @ y
    assert variance(weight @ y, replicated) == pytest.approx(variance(0.0, 2**-1.5 * by_row @ HADAMARD), rel=1e-9)
