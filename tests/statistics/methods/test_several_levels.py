"""Several levels: the same budget as the cube alone, unbiased least squares, and whole numbers that agree."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.agree.least_squares import Margin, summed
from sfumato.cells import Dimension
from sfumato.errors import MethodError
from sfumato.noise.geometric import TruncatedGeometric
from sfumato.noise.randomness import Seeded
from sfumato.statistics.cube.levels import (
    MOST_ASKED,
    SeveralLevels,
    all_tables,
    better_by_themselves,
    better_weighted,
    compared,
    noise_of_one,
    recommended,
)
from sfumato.statistics.cube.truncated_laplace import ControlNoise, TruncatedLaplace

SHAPE = (6, 4, 3, 3)
DIMENSIONS = tuple(
    Dimension(name=name, codes=tuple(map(str, range(length)))) for name, length in zip("abcd", SHAPE, strict=True)
)
ONE_WAY = {("a",): Fraction(1, 8), ("b",): Fraction(1, 8), ("c",): Fraction(1, 8), ("d",): Fraction(1, 8)}
CROSSED = {("a", "b"): Fraction(1, 4), ("b", "c"): Fraction(1, 4), (): Fraction(1, 20)}
RING = {("a", "b"): Fraction(1, 4), ("b", "c"): Fraction(1, 4), ("a", "c"): Fraction(1, 4)}
DELTA = 1e-6


def design(levels: dict[tuple[str, ...], Fraction], epsilon: Fraction = Fraction(1)) -> SeveralLevels:
    return SeveralLevels.split(DIMENSIONS, levels=levels, epsilon=epsilon, delta=DELTA)


def counts(seed: int, mean: float = 1.5) -> np.ndarray:
    return np.random.default_rng(seed).poisson(mean, SHAPE).astype(np.int64)


@pytest.mark.parametrize("levels", [{}, ONE_WAY, CROSSED, RING], ids=["bottom-up", "one-way", "crossed", "ring"])
def test_all_levels_together_spend_what_the_cube_alone_would(levels: dict[tuple[str, ...], Fraction]) -> None:
    several = design(levels)
    assert several.epsilon == 1
    assert several.delta <= DELTA
    assert len(several.levels) == len(levels) + 1


@pytest.mark.parametrize("levels", [ONE_WAY, CROSSED, RING], ids=["one-way", "crossed", "ring"])
def test_combined_measurements_are_the_weighted_least_squares_fit(levels: dict[tuple[str, ...], Fraction]) -> None:
    several, true = design(levels), counts(1)
    measured = several.measure(true, Seeded(5))
    found = several.combined(measured)
    unit = np.eye(true.size).reshape(true.size, *SHAPE)
    blocks, targets = [], []
    for level, margin in zip(several.levels, measured, strict=True):
        scale = np.sqrt(level.noise.variance)
        blocks.append(np.array([np.ravel(summed(cell, level.axes)) for cell in unit]).T / scale)
        targets.append(np.ravel(margin.values) / scale)
    best = np.linalg.lstsq(np.vstack(blocks), np.concatenate(targets), rcond=None)[0]
    assert found.ravel() == pytest.approx(best, abs=1e-8)


@pytest.mark.slow
def test_errors_of_every_table_are_the_expected_ones() -> None:
    several, true = design(CROSSED), counts(2)
    runs = 1_500
    tables = [axes for size in range(5) for axes in combinations(range(4), size)]
    squares, sums = dict.fromkeys(tables, 0.0), np.zeros(SHAPE)
    for run in range(runs):
        error = several.combined(several.measure(true, Seeded(run))) - true
        sums += error
        for axes in tables:
            squares[axes] += float(np.square(summed(error, axes)).mean()) / runs
    for axes, square in squares.items():
        assert square == pytest.approx(several.expected_variance(*("abcd"[axis] for axis in axes)), rel=0.15)
    spread = np.sqrt(several.expected_variance(*"abcd") / runs)
    assert np.abs(sums / runs).max() < 5 * spread, "no cell is biased"


def test_bottom_up_is_the_cube_with_noise_in_every_cell() -> None:
    several, true = design({}), counts(3)
    measured = several.measure(true, Seeded(1))
    drawn = TruncatedGeometric(epsilon=Fraction(1), cap=several.levels[0].noise.cap).sample(true.size, Seeded(1))
    assert np.array_equal(measured[-1].values, true + drawn.reshape(SHAPE))
    assert np.array_equal(several.combined(measured), measured[-1].values)
    assert several.expected_variance("a") == pytest.approx(36 * several.levels[0].noise.variance)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    mean=st.sampled_from([0.05, 0.5, 5.0]),
    levels=st.sampled_from([{}, ONE_WAY, CROSSED, RING]),
)
def test_the_consistent_cube_has_whole_numbers_and_none_is_negative(
    seed: int, mean: float, levels: dict[tuple[str, ...], Fraction]
) -> None:
    several, true = design(levels), counts(seed, mean)
    found = several.consistent(several.measure(true, Seeded(seed)))
    assert found.dtype == np.int64
    assert found.shape == SHAPE
    assert found.min() >= 0


def test_without_noise_the_consistent_cube_is_the_true_one() -> None:
    several, true = design(ONE_WAY), counts(4)
    exact = [Margin(axes=level.axes, values=np.asarray(summed(true, level.axes))) for level in several.levels]
    assert np.array_equal(several.combined(exact), true)
    assert np.array_equal(several.consistent(exact), true)


def test_whole_numbers_from_one_way_levels_have_small_errors_where_a_clamped_cube_has_large_ones() -> None:
    levels, bottom_up, true = design(ONE_WAY), design({}), counts(6, mean=0.2)
    ours, theirs = 0.0, 0.0
    for run in range(30):
        ours += float(np.square(summed(levels.consistent(levels.measure(true, Seeded(run))) - true, (0,))).mean())
        clamped = bottom_up.consistent(bottom_up.measure(true, Seeded(run)))
        theirs += float(np.square(summed(clamped - true, (0,))).mean())
    assert ours < theirs / 3


def test_the_recommendation_follows_the_tables_that_are_asked_for() -> None:
    sixes = tuple(Dimension(name=name, codes=tuple(map(str, range(6)))) for name in "abcdef")
    coarse = recommended(sixes, all_tables(sixes, 1), epsilon=Fraction(1), delta=DELTA)
    fine = recommended(sixes, all_tables(sixes, 6), epsilon=Fraction(1), delta=DELTA)
    assert coarse[0].name == "one-way tables"
    assert fine[0].is_bottom_up
    assert [candidate.error for candidate in coarse] == sorted(candidate.error for candidate in coarse)
    assert any(candidate.is_bottom_up for candidate in coarse)
    bottom_up = next(candidate for candidate in coarse if candidate.is_bottom_up)
    assert coarse[0].error < bottom_up.error / 5
    named = recommended(sixes, {("a", "b"): 1.0, ("c",): 1.0}, epsilon=Fraction(1), delta=DELTA)
    assert named[0].name == "the tables asked for"
    assert all(candidate.design.epsilon == 1 for candidate in named)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({("a",): Fraction(1)}, "leave something"),
        ({("a",): Fraction(0)}, "positive shares"),
        ({("height",): Fraction(1, 2)}, "'height'"),
    ],
)
def test_impossible_levels_are_refused(levels: dict[tuple[str, ...], Fraction], words: str) -> None:
    with pytest.raises(MethodError, match=words):
        design(levels)


def test_a_workload_without_tables_is_refused() -> None:
    with pytest.raises(MethodError, match="workload"):
        recommended(DIMENSIONS, {}, epsilon=Fraction(1), delta=DELTA)


@pytest.mark.slow
def test_a_plan_is_compared_with_both_approaches_at_the_same_budget_by_dimension() -> None:
    sixes = tuple(Dimension(name=name, codes=tuple(map(str, range(6)))) for name in "abcdef")
    counts = TruncatedGeometric(epsilon=Fraction(1), cap=14)
    plain = TruncatedLaplace(alpha=Fraction(1), counts=counts)
    found = compared(sixes, plain)
    alone = SeveralLevels.split(sixes, levels={}, epsilon=Fraction(1), delta=counts.delta())
    assert list(found.planned) == [1, 2, 3, 6]
    assert found.planned == found.bottom_up
    assert found.bottom_up[1] == pytest.approx(alone.expected_variance("a") ** 0.5)
    assert found.several_levels[1] == pytest.approx(found.levels.design.expected_variance("a") ** 0.5)
    assert (found.recommended[1], found.recommended[6]) == ("several-levels", "bottom-up")
    assert found.levels.design.epsilon == 1
    assert found.levels.design.delta <= counts.delta()

    controls = tuple(ControlNoise(by=(name,), counts=counts) for name in "abcdef")
    spent = compared(sixes, replace(plain, controls=controls))
    assert spent.levels.design.epsilon == 7, "what controls cost is there for the alternatives, too"
    assert spent.bottom_up[1] < found.bottom_up[1]
    assert compared(sixes, replace(plain, controls=controls), calibrated=False).planned == found.planned
    exact = replace(plain, controls=tuple(ControlNoise(by=(name,), counts=None) for name in "abcdef"))
    assert compared(sixes, exact).planned[1] == 0
    assert compared(sixes, plain, public=[("a",), ("b",)]).planned[1] < found.planned[1]


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(4)])
def test_as_many_tables_are_better_asked_one_by_one_as_share_a_budget_with_no_more_noise(epsilon: Fraction) -> None:
    for error in (0.5, 3.0, 20.0):
        tables = better_by_themselves(epsilon, 1e-6, error)
        assert tables == 0 or noise_of_one(epsilon, 1e-6, tables).variance <= error**2 * (1 + 1e-6)
        assert noise_of_one(epsilon, 1e-6, tables + 1).variance > error**2
    assert better_by_themselves(epsilon, 1e-6, 1e9) == MOST_ASKED - 1


def test_weighted_counts_are_better_asked_as_long_as_noise_for_the_heaviest_record_is_below_that_of_the_cube() -> None:
    epsilon, error, heaviest = Fraction(3), 102.3, 12.0
    tables = better_weighted(epsilon, error, heaviest)
    assert tables is not None

    def noise(number: int) -> float:
        """The standard deviation of Laplace noise, in average weights."""
        return 2**0.5 * heaviest * number / float(epsilon)

    assert noise(tables) <= error < noise(tables + 1)
    assert better_weighted(epsilon, error, None) is None, "nothing bounds what a record weighs"
