"""The gate: a figure is kept only for a result whose errors are those of its own noise."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.shared.expected import (
    Expected,
    clamped_laplace,
    discrete_laplace,
    infused,
    laplace,
    moves_of,
    perturbed,
    smooth_pareto,
    vector_pareto,
)
from bench.shared.gate import WrongResultError, check_in_place, check_noisy
from sfumato.arrays import Floats
from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto
from sfumato.statistics.totals.cell_keys import CellKeyTable

CELLS = 40_000
NO_BIAS = np.zeros(CELLS)
TRUE = np.random.default_rng(1).integers(0, 500, CELLS).astype(np.float64)
ALPHA, EPSILON = Fraction("0.1"), Fraction(2)


def two_sided(scale: float) -> Floats:
    """Noise with P(k) ∝ e^(−|k|/scale), the difference of two geometric draws."""
    draws = np.random.default_rng(2).geometric(1 - np.exp(-1 / scale), (2, CELLS))
    return (draws[0] - draws[1]).astype(np.float64)


def continuous(scale: float) -> Floats:
    return np.random.default_rng(3).laplace(scale=scale, size=CELLS)


def pareto(multiples: NDArray[np.int64]) -> Floats:
    method = SmoothPareto(alpha=ALPHA, epsilon=EPSILON)
    return method.noise.sample(multiples, Seeded(5)).astype(np.float64)


LARGEST = np.random.default_rng(4).integers(0, 300, CELLS)


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        (two_sided(0.5), discrete_laplace(0.5, NO_BIAS)),
        (two_sided(50), discrete_laplace(50, NO_BIAS)),
        (continuous(0.5), laplace(0.5, NO_BIAS)),
        (Geometric(epsilon=EPSILON).sample(CELLS, Seeded(5)), discrete_laplace(0.5, NO_BIAS)),
        (np.maximum(TRUE + two_sided(0.5), 0) - TRUE, clamped_laplace(0.5, TRUE)),
        (pareto(np.maximum(LARGEST, 10)), smooth_pareto(SmoothPareto(alpha=ALPHA, epsilon=EPSILON), LARGEST)),
    ],
    ids=["discrete", "discrete, large", "continuous", "sfumato's", "clamped", "smooth-pareto"],
)
def test_noise_passes_at_its_own_scale_and_is_refused_at_another(noise: Floats, expected: Expected) -> None:
    found = check_noisy(TRUE + noise, TRUE, expected)
    assert found.observed == pytest.approx(found.expected, rel=0.05)
    for wrong in (0.9, 1.1):
        with pytest.raises(WrongResultError, match="expected"):
            check_noisy(TRUE + wrong * noise, TRUE, expected)


def test_truncation_is_expected_with_the_noise_and_missed_without_it() -> None:
    kept = np.minimum(TRUE, 100)
    values = kept + two_sided(50)
    check_noisy(values, TRUE, discrete_laplace(50, kept - TRUE))
    with pytest.raises(WrongResultError):
        check_noisy(values, TRUE, discrete_laplace(50, NO_BIAS))


def test_counts_that_are_all_one_too_large_are_refused_although_their_errors_are_small() -> None:
    with pytest.raises(WrongResultError):
        check_noisy(TRUE + two_sided(0.5) + 1, TRUE, discrete_laplace(0.5, NO_BIAS))
    with pytest.raises(WrongResultError, match="signed"):
        check_noisy(TRUE + np.abs(two_sided(0.5)), TRUE, discrete_laplace(0.5, NO_BIAS))


def test_true_values_are_refused_from_somebody_who_says_that_they_are_noisy() -> None:
    with pytest.raises(WrongResultError):
        check_noisy(TRUE, TRUE, discrete_laplace(0.5, NO_BIAS))


def test_values_in_the_wrong_cells_are_refused() -> None:
    with pytest.raises(WrongResultError):
        check_noisy(np.roll(TRUE + two_sided(0.5), 1), TRUE, discrete_laplace(0.5, NO_BIAS))


def test_worker_cells_that_share_a_draw_are_judged_together() -> None:
    method = VectorPareto(alpha=ALPHA, epsilon=EPSILON, worker_cells=8)
    employer = np.repeat(LARGEST[: CELLS // 8], 8)
    noise = method.noise.sample(np.maximum(employer[::8], 10), Seeded(5)).reshape(-1).astype(np.float64)
    expected = vector_pareto(method, employer)
    check_noisy(TRUE + noise, TRUE, expected)
    with pytest.raises(WrongResultError):
        check_noisy(TRUE + 1.3 * noise, TRUE, expected)


def test_keyed_counts_are_moved_as_their_table_says() -> None:
    table = CellKeyTable(variance=Fraction(3), deviation=5)
    counts = TRUE.astype(np.int64)
    words = np.random.default_rng(6).integers(0, 2**64, CELLS, dtype=np.uint64)
    published = table.published(counts, words).astype(np.float64)
    check_noisy(published, TRUE, perturbed(counts, moves_of(table)))
    other = CellKeyTable(variance=Fraction(4), deviation=5)
    with pytest.raises(WrongResultError):
        check_noisy(published, TRUE, perturbed(counts, moves_of(other)))


@pytest.mark.parametrize(("most", "passes"), [(0.25, True), (0.35, False)])
def test_factors_with_other_ends_are_refused(most: float, passes: bool) -> None:
    generator = np.random.default_rng(7)
    cell, workers = generator.integers(0, 2_000, 20_000), generator.integers(1, 50, 20_000).astype(np.float64)
    counts = np.bincount(cell, workers, minlength=2_000)
    distortion = most - (most - 0.1) * np.sqrt(generator.random(20_000))
    factors = 1 + distortion * generator.choice([-1, 1], 20_000)
    values = np.rint(np.bincount(cell, workers * factors, minlength=2_000))
    expected = infused(cell, workers, counts, least=0.1, most=0.25, base=0)
    if passes:
        check_noisy(values, counts, expected)
    else:
        with pytest.raises(WrongResultError):
            check_noisy(values, counts, expected)


def test_a_change_that_no_draw_has_shown_is_refused_only_where_there_can_be_none() -> None:
    generator = np.random.default_rng(8)
    workers = np.array([1.0, 40.0] * 1_000)
    expected = infused(np.arange(2_000), workers, workers, least=0.1, most=0.25, base=0)
    assert expected.changeable is not None
    assert expected.changeable.tolist() == [False, True] * 1_000
    distortion = (0.25 - 0.15 * np.sqrt(generator.random(2_000))) * generator.choice([-1, 1], 2_000)
    values = np.rint(workers * (1 + distortion))
    check_noisy(values, workers, expected)
    values[0] = 2
    with pytest.raises(WrongResultError, match="published as they are"):
        check_noisy(values, workers, expected)
    check_noisy(values, workers, replace(expected, changeable=np.ones(2_000, dtype=np.bool_)))


@pytest.mark.parametrize("largest", [1, 30, 3_000])
def test_rounding_is_part_of_how_much_pareto_noise_varies(largest: int) -> None:
    method = SmoothPareto(alpha=ALPHA, epsilon=EPSILON)
    expected = smooth_pareto(method, np.full(CELLS, largest))
    noise = pareto(np.maximum(np.full(CELLS, largest), 10))
    assert np.abs(noise).std() == pytest.approx(expected.size_deviation[0], rel=0.05)
    assert noise.std() == pytest.approx(expected.deviation[0], rel=0.05)


def test_small_counts_in_the_wrong_cells_are_found_below_larger_noise() -> None:
    true = np.random.default_rng(8).poisson(0.3, CELLS).astype(np.float64)
    noise, expected = two_sided(6), discrete_laplace(6, NO_BIAS)
    check_in_place(true + noise, true, expected)
    wrong = np.roll(true, 1) + noise
    check_noisy(wrong, true, expected)  # whose errors are hardly larger
    with pytest.raises(WrongResultError, match="count by the true value"):
        check_in_place(wrong, true, expected)


def test_errors_of_labelled_groups_may_go_together() -> None:
    together = np.random.default_rng(9).permutation(np.arange(CELLS) // 400)
    noise = np.random.default_rng(10).choice([-1.0, 1.0], CELLS // 400)[together] * 2
    alone = Expected(size=NO_BIAS + 2, size_deviation=NO_BIAS, bias=NO_BIAS, deviation=NO_BIAS + 2)
    check_noisy(TRUE + noise, TRUE, replace(alone, block=together))
    with pytest.raises(WrongResultError, match="signed"):
        check_noisy(TRUE + noise, TRUE, alone)
