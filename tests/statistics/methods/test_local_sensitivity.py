"""The local sensitivity is what a search over every legal record finds, and the corners of the box are not enough."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.statistics.people.noisy_regression import LineSums, rounded_mean
from sfumato.statistics.people.sensitivity import Reach, mean_reach, prediction_reach
from tests.statistics.methods.groups import exact_prediction, sums_of

HIGH_X, HIGH_Y = 24, 5
people = st.lists(st.tuples(st.integers(0, HIGH_X), st.integers(0, HIGH_Y)), min_size=2, max_size=12)
ranks = st.fractions(min_value=0, max_value=HIGH_X, max_denominator=4)
EVERYBODY = list(product(range(HIGH_X + 1), range(HIGH_Y + 1)))
CORNERS = list(product((0, HIGH_X), (0, HIGH_Y)))


def changes(group: list[tuple[int, int]], rank: Fraction, added: list[tuple[int, int]]) -> list[Fraction]:
    """By how much each added record moves the prediction, exactly."""
    before = exact_prediction(group, rank)
    after = [exact_prediction([*group, person], rank) for person in added]
    assert before is not None
    return [moved - before for moved in after if moved is not None]


def reach(group: list[tuple[int, int]], rank: Fraction) -> Reach:
    line = LineSums.of(sums_of(group))
    return prediction_reach(line, rank, low_x=0, high_x=HIGH_X, low_y=0, high_y=HIGH_Y)


@given(group=people, rank=ranks)
def test_the_reach_of_a_prediction_is_what_a_search_over_every_legal_record_finds(
    group: list[tuple[int, int]], rank: Fraction
) -> None:
    found = reach(group, rank)
    if exact_prediction(group, rank) is None:
        assert np.isnan(found.sensitivity()[0])
        return
    moved = changes(group, rank, EVERYBODY)
    assert found.least[0] == pytest.approx(float(min(moved)), rel=1e-11, abs=1e-11)
    assert found.most[0] == pytest.approx(float(max(moved)), rel=1e-11, abs=1e-11)
    assert found.sensitivity()[0] == pytest.approx(float(max(map(abs, moved))), rel=1e-11)


@pytest.mark.slow
@given(group=people, rank=ranks)
def test_the_reach_of_a_clipped_prediction_is_what_a_search_finds(group: list[tuple[int, int]], rank: Fraction) -> None:
    before = exact_prediction(group, rank)
    if before is None:
        return
    value = LineSums.of(sums_of(group)).prediction(rank)
    found = reach(group, rank).clipped(value, 0, HIGH_Y).sensitivity()[0]
    clipped = [min(max(before + moved, Fraction(0)), Fraction(HIGH_Y)) for moved in changes(group, rank, EVERYBODY)]
    start = min(max(before, Fraction(0)), Fraction(HIGH_Y))
    assert found == pytest.approx(float(max(abs(after - start) for after in clipped)), rel=1e-9, abs=1e-9)
    assert found <= HIGH_Y + 1e-9


def test_the_four_corners_are_not_enough_in_a_small_group() -> None:
    group, rank = [(12, 2), (13, 3), (11, 2), (12, 3)], Fraction(12)
    everywhere, corners = (max(map(abs, changes(group, rank, added))) for added in (EVERYBODY, CORNERS))
    assert everywhere > 10 * corners
    assert reach(group, rank).sensitivity()[0] == pytest.approx(float(everywhere))


def test_the_four_corners_are_enough_once_the_group_is_large_and_spread_out() -> None:
    group = [(x, (x * 7) % (HIGH_Y + 1)) for x in range(HIGH_X + 1)] * 4
    everywhere, corners = (max(map(abs, changes(group, Fraction(10), added))) for added in (EVERYBODY, CORNERS))
    assert everywhere == corners


@given(group=st.lists(st.integers(0, HIGH_Y), min_size=1, max_size=12))
def test_the_reach_of_a_mean_is_at_the_ends(group: list[int]) -> None:
    found = mean_reach(sums_of([(0, y) for y in group]), low_y=0, high_y=HIGH_Y)
    mean = Fraction(sum(group), len(group))
    moved = [Fraction(sum(group) + y, len(group) + 1) - mean for y in range(HIGH_Y + 1)]
    assert (found.least[0], found.most[0]) == pytest.approx((float(min(moved)), float(max(moved))), abs=1e-12)
    assert len(group) * found.sensitivity()[0] < HIGH_Y  # the range bounds χ of a mean, whatever the data


def wide(n: int, mean: int, off: int) -> tuple[Cells, LineSums]:
    """n people at ranks around a mean, half of them one way and half the other, all with outcome = rank."""
    half = n // 2
    columns = {"count": n, "sum_x": n * mean, "sum_y": n * mean}
    square = half * ((mean - off) ** 2 + (mean + off) ** 2)
    columns |= {"sum_xx": square, "sum_xy": square}
    cells = Cells(
        dimensions=(Dimension(name="group", codes=("0",)),),
        positions=np.array([0]),
        columns={name: np.array([column], dtype=np.int64) for name, column in columns.items()},
    )
    return cells, LineSums.of(cells)


@pytest.mark.parametrize("off", [1, 50, 5_000])
def test_ten_million_people_with_ranks_up_to_ten_thousand_lose_no_digits(off: int) -> None:
    n, mean, rank = 10_000_000, 5_000, Fraction(7_500)
    _, line = wide(n, mean, off)
    assert line.spread[0] == n * n * off * off  # beyond 64 bits
    assert line.rounded_prediction(rank, grid=100)[0] == 750_000
    found = prediction_reach(line, rank, low_x=0, high_x=10_000, low_y=0, high_y=10_000)
    spread, rho, best = Fraction(n * off * off), rank - mean, Fraction(0)
    for x in range(10_001):
        d = x - mean
        weight = (spread + n * rho * d) / ((n + 1) * spread + n * d * d)
        best = max(best, *(abs((y - mean - d) * weight) for y in (0, 10_000)))
    assert found.sensitivity()[0] == pytest.approx(float(best), rel=1e-9)


@given(group=people, rank=ranks, grid=st.sampled_from([1, 10, 1_000]))
def test_predictions_are_rounded_exactly(group: list[tuple[int, int]], rank: Fraction, grid: int) -> None:
    exact = exact_prediction(group, rank)
    line = LineSums.of(sums_of(group))
    assert line.is_defined()[0] == (exact is not None)
    if exact is not None:
        assert abs(line.rounded_prediction(rank, grid=grid)[0] - exact * grid) <= Fraction(1, 2)
        assert line.prediction(rank)[0] == pytest.approx(float(exact), rel=1e-9, abs=1e-9)


def test_means_are_rounded_exactly_and_an_empty_group_has_none() -> None:
    cells = sums_of([(0, 1), (0, 2), (0, 2)], [])
    assert rounded_mean(cells, grid=100).tolist() == [167, 0]
    assert np.isnan(mean_reach(cells, low_y=0, high_y=9).sensitivity()).tolist() == [False, True]
