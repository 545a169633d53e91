"""Figures about the bottom-up hypercube: the published ones that hold, and the known ones for those that do not."""

from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
import pytest

from sfumato.noise.geometric import TruncatedGeometric
from sfumato.statistics.cube.levels import remaining_share
from sfumato_lab.reproduce.li2020 import evaluate as theory
from sfumato_lab.reproduce.li2020.evaluate import CARDINALITIES, CELLS, DELTA, TABLE_2, TABLE_4


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


AVERAGES = {
    "reduction": (1.0, 0.669, 0.382, 0.198, 0.096),
    "by_table": (1.0, 0.635, 0.344, 0.171, 0.080),
    "by_cell": (1.0, 0.595, 0.304, 0.144, 0.066),
    "within_run": (1.0, 0.581, 0.311, 0.156, 0.074),
}


@pytest.mark.parametrize("average", AVERAGES)
def test_how_much_calibration_takes_away_depends_on_what_is_averaged(average: str) -> None:
    found = [getattr(theory.expected(size, variance=0.00182), average) for size in range(1, 6)]
    assert found == pytest.approx(AVERAGES[average], abs=0.0005)


def test_by_table_and_by_cell_are_means_of_the_formula() -> None:
    tables = list(combinations(CARDINALITIES, 3))
    taken = [(1 + sum(k - 1 for k in table)) / prod(table) for table in tables]
    found = theory.expected(3, variance=1.0)
    assert found.by_table == pytest.approx(np.mean(taken))
    assert found.by_cell == pytest.approx(np.average(taken, weights=[prod(table) for table in tables]))


def test_at_the_mean_number_of_categories_the_formula_gives_about_58_29_13_and_6_percent() -> None:
    found = [100 * theory.at_mean_cardinality(size) for size in range(1, 6)]
    assert found == pytest.approx([100, 58, 29, 13, 6], abs=0.7)
