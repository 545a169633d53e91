"""Log Box and Smooth Box: guarantee, errors, intervals and refusals."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import MethodError
from sfumato.method import published_figures
from sfumato.noise.randomness import Seeded
from sfumato.statistics.jobs.logarithms import LogBox
from sfumato.statistics.jobs.vector import SmoothBox
from tests.statistics.methods.vector_cells import block_cells

ROWS = 8_000
BLOCKS = {
    "nobody": ([0, 0, 0, 0], [0, 0, 0, 0]),
    "one worker": ([1, 0, 0, 0], [1, 0, 0, 0]),
    "one employer": ([40, 3, 0, 250], [40, 3, 0, 250]),
    "many employers": ([400, 3_000, 20, 10], [30, 60, 2, 1]),
}
box = pytest.mark.parametrize("method_class", [LogBox, SmoothBox])
blocks = pytest.mark.parametrize(("counts", "largest"), BLOCKS.values(), ids=list(BLOCKS))


def method_at(method_class: type, alpha: str = "0.05", epsilon: str = "2", worker_cells: int = 4) -> LogBox | SmoothBox:
    return method_class(alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=worker_cells)


@box
def test_the_guarantee_is_weak_on_worker_attributes_strong_without_and_costs_epsilon_once(method_class: type) -> None:
    assert str(method_at(method_class).guarantee()) == "weak, alpha = 0.05, epsilon = 2"
    assert str(method_at(method_class, worker_cells=0).guarantee()) == "strong, alpha = 0.05, epsilon = 2"


@box
@blocks
def test_values_are_unbiased_and_err_as_expected(method_class: type, counts: list[int], largest: list[int]) -> None:
    method = method_at(method_class)
    cells = block_cells(np.tile(counts, (ROWS, 1)), largest=np.tile(largest, (ROWS, 1)))
    error = (method.protect(cells, Seeded(5))["value"] - cells["count"]).reshape(ROWS, 4)
    expected = method.expected_error(cells).reshape(ROWS, 4)[0]
    assert np.all(np.abs(error.mean(axis=0)) < 4.5 * error.std(axis=0) / np.sqrt(ROWS))
    assert np.all(np.abs(np.abs(error).mean(axis=0) - expected) < 4.5 * np.abs(error).std(axis=0) / np.sqrt(ROWS))


@box
@blocks
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_the_interval_holds_the_true_count_as_often_as_stated(
    method_class: type, counts: list[int], largest: list[int], confidence: float
) -> None:
    method = method_at(method_class)
    cells = block_cells(np.tile(counts, (ROWS, 1)), largest=np.tile(largest, (ROWS, 1)))
    figures = published_figures(method, method.protect(cells, Seeded(6)), confidence)
    covered = (figures.low <= cells["count"]) & ~(figures.high < cells["count"])
    assert np.all(covered.reshape(ROWS, 4).mean(axis=0) > confidence - 4 * np.sqrt(0.25 / ROWS))


@box
@blocks
def test_the_published_error_is_on_average_not_below_the_true_one(
    method_class: type, counts: list[int], largest: list[int]
) -> None:
    method = method_at(method_class)
    cells = block_cells(np.tile(counts, (ROWS, 1)), largest=np.tile(largest, (ROWS, 1)))
    published = method.published_error(method.protect(cells, Seeded(7))["value"]).reshape(ROWS, 4)
    expected = method.expected_error(cells).reshape(ROWS, 4)[0]
    assert np.all(published.mean(axis=0) + 4 * published.std(axis=0) / np.sqrt(ROWS) >= expected)


@box
def test_the_interval_moves_with_the_published_value_and_holds_whole_numbers(method_class: type) -> None:
    low, high = method_at(method_class).published_interval(np.arange(-300, 4_000, 3), 0.9)
    for end in (low, high):
        assert np.array_equal(end, np.floor(end))
        assert np.all(np.diff(end) >= 0)
    assert np.all(low >= 0)
    assert np.all(low <= high)


def test_each_cell_of_smooth_box_has_the_noise_of_its_own_largest_contribution() -> None:
    method = method_at(SmoothBox)
    error = method.expected_error(block_cells([[0, 21, 4_000, 4_000]], largest=[[0, 21, 40, 4_000]]))
    assert error[0] == error[1] == method.planned_error().floor
    assert np.isclose(error[2], method.error_in_scales * 2, rtol=0.02)
    assert np.isclose(error[3], method.error_in_scales * 200, rtol=1e-3)


def test_the_error_of_smooth_box_is_a_share_of_the_largest_contribution_at_any_alpha() -> None:
    method, sizes = method_at(SmoothBox, alpha="3/40"), np.array([[400, 800, 4_000, 80_000]])
    expected = method.error_in_scales * float(method.alpha) * sizes[0]
    assert method.expected_error(block_cells(sizes, largest=sizes)) == pytest.approx(expected, rel=1e-3)


def test_log_box_errs_by_a_share_of_the_count_plus_one_over_alpha() -> None:
    method = method_at(LogBox)
    error = method.expected_error(block_cells([[10**6, 10**5, 10**4, 10**3]]))
    assert np.allclose(error, method.error_share * (np.array([10**6, 10**5, 10**4, 10**3]) + 20), rtol=1e-3)


def test_log_box_exists_where_smooth_box_does_not() -> None:
    with pytest.raises(MethodError, match="does not exist"):
        method_at(SmoothBox, epsilon="0.15")
    assert method_at(LogBox, epsilon="0.15").error_share < 10


def test_log_box_refuses_parameters_without_a_mean_and_names_the_nearest_that_have_one() -> None:
    with pytest.raises(MethodError) as refusal:
        method_at(LogBox, alpha="0.1", epsilon="0.09")
    assert "mean error is infinite" in refusal.value.expected
    assert refusal.value.do == "choose epsilon = 0.096 or more, or alpha = 0.094 or less"
    method_at(LogBox, alpha="0.1", epsilon="0.096")
    method_at(LogBox, alpha="0.094", epsilon="0.09")


def test_no_value_of_log_box_falls_below_what_the_logarithm_allows() -> None:
    values = method_at(LogBox, alpha="0.1", epsilon="0.2").protect(block_cells(np.zeros((5_000, 4))), Seeded(8))[
        "value"
    ]
    assert values.min() >= -10
    assert values.min() < -8


@box
def test_rounding_bias_is_stated_and_small(method_class: type) -> None:
    method = method_at(method_class)
    if isinstance(method, LogBox):
        assert np.all(np.abs(method.expected_bias(block_cells([[0, 1, 5, 1_000]]))) < 0.01)
