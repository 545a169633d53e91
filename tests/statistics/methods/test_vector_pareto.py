"""Vector Pareto: parameters, guarantee, blocks, error figures and intervals."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.method import published_figures
from sfumato.noise.randomness import Seeded
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.calibration import calibrate_block, largest_vector_alpha, smallest_vector_epsilon
from sfumato.statistics.jobs.logarithms import LogBox
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import SmoothBox, VectorPareto
from tests.statistics.methods.vector_cells import block_cells

alphas = st.fractions(min_value=Fraction(1, 1000), max_value=2, max_denominator=1000)
epsilons = st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=100)
widths = st.integers(1, 16)
balls = st.sampled_from(["simplex", "box"])


def method_at(alpha: str = "0.05", epsilon: str = "2", worker_cells: int = 8) -> VectorPareto:
    return VectorPareto(alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=worker_cells)


@pytest.mark.parametrize("worker_cells", [0, 1, 8])
def test_the_guarantee_is_strong_and_costs_epsilon_once(worker_cells: int) -> None:
    expected = EmployerEmployee(definition="strong", alpha=Fraction("0.05"), epsilon=Fraction(2))
    assert method_at(worker_cells=worker_cells).guarantee() == expected


@given(ball=balls, alpha=alphas, epsilon=epsilons, cells=widths)
def test_noise_exists_exactly_where_epsilon_exceeds_the_cells_times_the_log_of_one_step(
    ball: str, alpha: Fraction, epsilon: Fraction, cells: int
) -> None:
    assume(abs(float(epsilon) - cells * log(1 + alpha)) > 1e-6)
    if epsilon > cells * log(1 + alpha):
        found = calibrate_block("m", ball, alpha=alpha, epsilon=epsilon, cells=cells)
        assert found.tail > 1
        assert found.scale > 0
    else:
        with pytest.raises(MethodError, match="does not exist"):
            calibrate_block("m", ball, alpha=alpha, epsilon=epsilon, cells=cells)


@given(alpha=alphas, epsilon=epsilons, cells=widths)
def test_the_suggested_settings_exist(alpha: Fraction, epsilon: Fraction, cells: int) -> None:
    VectorPareto(alpha=alpha, epsilon=Fraction(smallest_vector_epsilon(alpha=alpha, cells=cells)), worker_cells=cells)
    suggested = largest_vector_alpha(epsilon=epsilon, cells=cells)
    if suggested is not None:
        VectorPareto(alpha=Fraction(suggested), epsilon=epsilon, worker_cells=cells)


def test_a_setting_without_the_mechanism_names_the_inequality_and_the_ways_out() -> None:
    with pytest.raises(MethodError) as refusal:
        method_at(alpha="0.1", epsilon="0.5")
    assert refusal.value.expected.startswith("epsilon > 8 · ln(1 + alpha) = 8 · ln(1.1) = 0.7625")
    assert refusal.value.do.startswith(
        "choose epsilon = 0.77 or more, or alpha = 0.064 or less, or at most 5 worker cells"
    )


@pytest.mark.parametrize("ball", ["simplex", "box"])
@pytest.mark.parametrize(("alpha", "epsilon", "cells"), [("0.1", "2", 8), ("0.05", "4", 8), ("0.01", "40", 2)])
def test_no_other_tail_on_a_grid_has_a_smaller_error(ball: str, alpha: str, epsilon: str, cells: int) -> None:
    a, e, g = float(alpha), float(epsilon), log(1 + float(alpha))
    found = calibrate_block(
        "m",
        ball,
        alpha=Fraction(alpha),
        epsilon=Fraction(epsilon),
        cells=cells,
    )
    most = e / g if ball == "simplex" else 1 + e / g - cells
    tail = np.linspace(3, most, 5000)
    alone = np.expm1((e + (g if ball == "box" else 0)) / (tail + cells))
    both = (1 + a) * np.expm1((e - cells * g) / (tail + cells))
    least = (1 / (np.minimum(alone, both) * (tail - 1))).min()
    assert float(found.scale / (found.tail - 1)) < 1.0001 * least


def test_more_cells_than_the_noise_is_made_for_are_refused() -> None:
    with pytest.raises(MethodError, match="at most 4,096"):
        VectorPareto(alpha=Fraction("0.0001"), epsilon=Fraction(8), worker_cells=4_097)
    for box in (SmoothBox, LogBox):
        with pytest.raises(MethodError, match=r"at most 128 (.|\n)*or the method vector-pareto"):
            box(alpha=Fraction("0.001"), epsilon=Fraction(8), worker_cells=129)


def test_with_many_cells_a_setting_without_the_mechanism_names_ways_out_that_exist() -> None:
    with pytest.raises(MethodError) as refusal:
        method_at(alpha="0.01", epsilon="2", worker_cells=768)
    assert refusal.value.do == "choose epsilon = 7.7 or more, or alpha = 0.0026 or less, or at most 200 worker cells"
    for alpha, epsilon, cells in (("0.01", "7.7", 768), ("0.0026", "2", 768), ("0.01", "2", 200)):
        assert method_at(alpha=alpha, epsilon=epsilon, worker_cells=cells).calibration.tail > 1
    with pytest.raises(MethodError):
        method_at(alpha="0.01", epsilon="2", worker_cells=201)


@pytest.mark.parametrize("alpha", [Fraction(0), Fraction(0.1), 0.1])
def test_parameters_outside_their_ranges_are_refused(alpha: Fraction) -> None:
    with pytest.raises(MethodError):
        VectorPareto(alpha=alpha, epsilon=Fraction(2), worker_cells=2)


def test_all_cells_of_a_block_have_the_noise_of_its_largest_employer() -> None:
    method = method_at(worker_cells=3)
    cells = block_cells([[0, 5, 3_000], [1, 1, 1]], largest_employer=[2_000, 3])
    error = method.expected_error(cells).reshape(2, 3)
    assert np.allclose(error[0], 0.05 * 2_000 * method.error_in_scales, rtol=1e-3)
    assert np.all(error[1] == method.planned_error().floor)


def test_the_order_of_the_dimensions_does_not_matter() -> None:
    sex = Dimension(name="sex", codes=("F", "M"), public=False)
    place = Dimension(name="place", codes=tuple(map(str, range(20_000))))
    employer = np.tile([10, 4_000], 10_000)
    columns = {"count": np.tile(employer, 2), "largest_employer": np.tile(employer, 2)}
    cells = Cells(dimensions=(sex, place), positions=np.arange(40_000), columns=columns)
    error = np.abs(method_at(worker_cells=2).protect(cells, Seeded(3))["value"] - cells["count"])
    assert error[cells["count"] == 10].mean() < 2
    assert error[cells["count"] == 4_000].mean() > 50


def test_errors_of_one_block_go_together_and_those_of_two_do_not() -> None:
    error = np.abs(
        method_at(alpha="0.1", epsilon="1", worker_cells=8)
        .protect(block_cells(np.full((20_000, 8), 500)), Seeded(4))["value"]
        .reshape(-1, 8)
        - 500
    )
    ranks = error.argsort(axis=0).argsort(axis=0)
    assert np.corrcoef(ranks[:, 0], ranks[:, 7])[0, 1] > 0.05
    assert abs(np.corrcoef(ranks[:-1, 0], ranks[1:, 7])[0, 1]) < 0.03


@pytest.mark.parametrize(
    "cells",
    [
        block_cells([[1, 2]], largest_employer=[4]),  # more than the block holds
        block_cells([[-1, 2]]),
        block_cells([[2**59, 2]]),
    ],
)
def test_cells_that_do_not_fit_together_are_refused_without_naming_a_number(cells: Cells) -> None:
    with pytest.raises(MethodError, match="a cell outside these limits"):
        method_at(worker_cells=2).protect(cells, Seeded(1))


def test_cells_of_another_table_are_refused() -> None:
    with pytest.raises(MethodError, match="8 worker cells"):
        method_at().protect(block_cells([[1, 2]]), Seeded(1))


def test_a_missing_column_is_named() -> None:
    cells = block_cells([[1, 2]])
    bare = Cells(dimensions=cells.dimensions, positions=cells.positions, columns={"count": cells["count"]})
    with pytest.raises(MethodError, match="no largest_employer"):
        method_at(worker_cells=2).protect(bare, Seeded(1))


BLOCKS = {
    "nobody": ([0] * 8, 0),
    "one worker": ([1] + [0] * 7, 1),
    "one employer": ([40, 3, 0, 0, 250, 80, 12, 1], 386),
    "many employers": ([400, 300, 20, 10, 250, 800, 120, 10], 60),
}


@pytest.mark.parametrize(("counts", "employer"), BLOCKS.values(), ids=list(BLOCKS))
@pytest.mark.parametrize(("alpha", "epsilon"), [("0.05", "2"), ("0.05", "4"), ("0.1", "2")])
class TestPublishedFigures:
    def drawn(self, counts: list[int], employer: int, alpha: str, epsilon: str) -> tuple[VectorPareto, Cells, Cells]:
        method = method_at(alpha, epsilon)
        cells = block_cells(np.tile(counts, (8_000, 1)), largest_employer=np.full(8_000, employer))
        return method, cells, method.protect(cells, Seeded(9))

    def test_the_interval_holds_the_true_count_as_often_as_stated(
        self, counts: list[int], employer: int, alpha: str, epsilon: str
    ) -> None:
        method, cells, answer = self.drawn(counts, employer, alpha, epsilon)
        figures = published_figures(method, answer, 0.9)
        covered = (figures.low <= cells["count"]) & ~(figures.high < cells["count"])
        assert np.all(covered.reshape(-1, 8).mean(axis=0) > 0.9 - 4 * np.sqrt(0.09 / 8_000))

    def test_the_error_figure_is_on_average_not_below_the_true_error(
        self, counts: list[int], employer: int, alpha: str, epsilon: str
    ) -> None:
        method, cells, answer = self.drawn(counts, employer, alpha, epsilon)
        published = published_figures(method, answer, 0.9).error
        assert published.mean() + 4 * published.std() / np.sqrt(8_000) >= method.expected_error(cells)[0]


@pytest.mark.parametrize("employer", [30, 4_000])
def test_intervals_of_768_worker_cells_hold_the_true_count_as_often_as_stated(employer: int) -> None:
    counts = np.zeros(768, dtype=np.int64)
    counts[:300] = np.arange(300) ** 2 // 400
    method = method_at("0.001", "2", worker_cells=768)
    cells = block_cells(np.tile(counts, (1_000, 1)), largest_employer=np.full(1_000, employer))
    answer = method.protect(cells, Seeded(9))
    figures = published_figures(method, answer, 0.9)
    covered = (figures.low <= cells["count"]) & ~(figures.high < cells["count"])
    assert np.all(covered.reshape(-1, 768).mean(axis=0) > 0.9 - 5 * np.sqrt(0.09 / 1_000))
    true = method.expected_error(cells)[0]
    assert np.isclose(np.abs(answer["value"] - cells["count"]).mean(), true, rtol=0.01)
    assert figures.error.mean() > true


def test_figures_are_made_from_published_values_alone() -> None:
    answer = method_at().protect(block_cells(np.full((5, 8), 30)), Seeded(9))
    again = Cells(dimensions=answer.dimensions, positions=answer.positions, columns={"value": answer["value"]})
    first, second = (published_figures(method_at(), cells, 0.9) for cells in (answer, again))
    assert all(np.array_equal(getattr(first, f), getattr(second, f), equal_nan=True) for f in ("error", "low", "high"))


def test_one_value_without_its_block_has_no_figures() -> None:
    with pytest.raises(ValueError, match="published_figures"):
        method_at().published_error(np.array([3]))


def test_with_one_cell_the_figures_are_those_of_smooth_pareto() -> None:
    values = np.arange(-50, 2_000, 7)
    vector, scalar = method_at(worker_cells=0), SmoothPareto(alpha=Fraction("0.05"), epsilon=Fraction(2))
    assert np.array_equal(vector.published_error(values), scalar.published_error(values))
    assert all(
        np.array_equal(a, b)
        for a, b in zip(vector.published_interval(values, 0.9), scalar.published_interval(values, 0.9), strict=True)
    )


class Zeros:
    """Words of zeros, which draw the largest noise there is."""

    def words(self, n: int, /) -> np.ndarray:
        return np.zeros(n, dtype=np.uint64)


def test_saturated_values_do_not_depend_on_the_count() -> None:
    values = method_at(worker_cells=2).protect(block_cells([[0, 0], [7, 10**12]]), Zeros())["value"]
    assert values.tolist() == [2**61] * 4


@pytest.mark.parametrize(("alpha", "epsilon", "cells"), [("0.1", "2", 8), ("0.05", "4", 4), ("0.01", "2", 8)])
def test_one_draw_for_the_block_errs_less_than_a_share_of_epsilon_for_each_cell(
    alpha: str, epsilon: str, cells: int
) -> None:
    parameters = {"alpha": Fraction(alpha), "epsilon": Fraction(epsilon), "worker_cells": cells}
    shared = SmoothPareto(**parameters).error_in_scales
    assert VectorPareto(**parameters).error_in_scales < shared / 2
    assert SmoothBox(**parameters).error_in_scales < shared
