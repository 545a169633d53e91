"""Figures about the bottom-up hypercube: the published ones that hold, and the known ones for those that do not."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sfumato.cube.effects import remaining_share
from sfumato.noise.truncated_geometric import TruncatedGeometric
from sfumato.reproduce.li2020.published import CARDINALITIES, CELLS, DELTA, TABLE_2, TABLE_4


@pytest.mark.parametrize(("j", "printed"), TABLE_2.items())
def test_table_2_comes_out_to_every_printed_digit(j: int, printed: str) -> None:
    noise = TruncatedGeometric(epsilon=Fraction(2), cap=7)
    decimals = len(printed.partition(".")[2])
    for signed in {j, -j}:
        assert f"{noise.probability(np.array([signed]))[0]:.{decimals}f}" == printed


def test_delta_is_the_printed_one() -> None:
    assert f"{TruncatedGeometric(epsilon=Fraction(2), cap=7).delta():.7f}" == DELTA


def test_the_noise_of_the_evaluation_is_rare_and_has_the_printed_variance() -> None:
    noise = TruncatedGeometric(epsilon=Fraction(7), cap=1)
    assert f"{noise.variance:.5f}" == "0.00182"
    assert 1 - noise.probability(np.array([0]))[0] == pytest.approx(0.00182, abs=5e-6), "not 23.5%"


def test_only_these_cardinalities_make_as_many_cells() -> None:
    assert np.prod(CARDINALITIES) == CELLS
    # 17,280 = 2⁷·3³·5: one factor of 5, and ten variables of two to five categories leave one way for the rest.
    ways = {
        (fives, fours, threes, 10 - fives - fours - threes)
        for fives in range(11)
        for fours in range(11 - fives)
        for threes in range(11 - fives - fours)
        if 5**fives * 4**fours * 3**threes * 2 ** (10 - fives - fours - threes) == CELLS
    }
    assert ways == {(1, 1, 3, 5)}


def expected(size: int) -> tuple[float, float, float]:
    """The variance over runs by tables, that over all cells in a run about their mean, and what calibration leaves."""
    variance = TruncatedGeometric(epsilon=Fraction(7), cap=1).variance
    tables = list(combinations(range(10), size))
    cells = np.array([np.prod([CARDINALITIES[axis] for axis in table]) for table in tables])
    left = [remaining_share(CARDINALITIES, table, [(axis,) for axis in range(10)]) for table in tables]
    pooled = variance * CELLS * (len(tables) / cells.sum() - (len(tables) / cells.sum()) ** 2)
    return float(np.mean(variance * CELLS / cells)), pooled, variance * CELLS * float(np.sum(left)) / cells.sum()


def test_one_way_cells_have_a_variance_of_12_4_over_runs() -> None:
    assert expected(1)[0] == pytest.approx(12.43, abs=0.01)


@pytest.mark.parametrize("size", TABLE_4)
def test_table_4_without_calibration_is_two_sided_noise_over_all_cells_of_a_run(size: int) -> None:
    printed = TABLE_4[size][0]
    # Its 224 runs were those that raking converged in, which have somewhat less noise.
    assert 0.9 * expected(size)[1] < printed + 0.0005
    assert printed - 0.0005 < expected(size)[1]
    assert expected(size)[1] / 2 < printed - 0.0005, "without negative cells it would be half from two dimensions on"


@pytest.mark.parametrize("size", range(1, 6))
def test_least_squares_is_expected_to_take_away_more_than_the_published_share(size: int) -> None:
    _, before, after = expected(size)
    assert 1 - after / before >= TABLE_4[size][2] - 1e-12
