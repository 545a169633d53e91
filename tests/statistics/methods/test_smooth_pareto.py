"""Smooth Pareto: parameters, guarantee, error figures and intervals."""

from decimal import Decimal
from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.cells import Cells, Dimension
from sfumato.errors import MethodError
from sfumato.noise.randomness import Seeded
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.calibration import calibrate, largest_alpha, smallest_epsilon, worst_loss
from sfumato.statistics.jobs.smooth import SmoothPareto

alphas = st.fractions(min_value=Fraction(1, 1000), max_value=10, max_denominator=1000)
epsilons = st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=100)


def cells_of(count: list[int], largest: list[int]) -> Cells:
    place = Dimension(name="place", codes=tuple(map(str, range(len(count)))))
    columns = {"count": np.array(count, dtype=np.int64), "largest": np.array(largest, dtype=np.int64)}
    return Cells(dimensions=(place,), positions=np.arange(len(count)), columns=columns)


def method_at(alpha: str = "0.1", epsilon: str = "2", worker_cells: int = 0) -> SmoothPareto:
    return SmoothPareto(alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=worker_cells)


def test_a_table_of_workplace_attributes_is_strong_and_costs_epsilon_once() -> None:
    expected = EmployerEmployee(definition="strong", alpha=Fraction("0.1"), epsilon=Fraction(2))
    assert method_at().guarantee() == expected


@pytest.mark.parametrize("worker_cells", [1, 3, 8])
def test_a_table_with_worker_attributes_is_weak_and_still_costs_epsilon(worker_cells: int) -> None:
    expected = EmployerEmployee(definition="weak", alpha=Fraction("0.1"), epsilon=Fraction(2))
    assert method_at(worker_cells=worker_cells).guarantee() == expected


def test_each_worker_cell_gets_an_equal_share_of_epsilon() -> None:
    assert method_at(epsilon="8", worker_cells=4).calibration == method_at(epsilon="2").calibration


@given(alpha=alphas, epsilon=epsilons)
def test_calibration_exists_exactly_where_epsilon_exceeds_the_log_of_one_step(
    alpha: Fraction, epsilon: Fraction
) -> None:
    assume(abs(float(epsilon) - log(1 + alpha)) > 1e-6)
    if epsilon > log(1 + alpha):
        found = calibrate(alpha=alpha, epsilon=epsilon)
        loss = worst_loss(alpha=alpha, tail=found.tail, scale=found.scale)
        assert epsilon * Fraction(999, 1000) < Fraction(loss) <= epsilon
        assert found.tail > 1
    else:
        with pytest.raises(MethodError, match="epsilon >"):
            calibrate(alpha=alpha, epsilon=epsilon)


@given(alpha=alphas, shares=st.integers(1, 20))
def test_the_suggested_epsilon_is_admissible_and_nearly_the_smallest(alpha: Fraction, shares: int) -> None:
    suggested = smallest_epsilon(alpha=alpha, shares=shares)
    calibrate(alpha=alpha, epsilon=Fraction(suggested), shares=shares)
    assert suggested <= Decimal(str(1.1 * shares * log(1 + alpha) + 1e-9))


@given(epsilon=epsilons, shares=st.integers(1, 20))
def test_the_suggested_alpha_is_admissible(epsilon: Fraction, shares: int) -> None:
    suggested = largest_alpha(epsilon=epsilon, shares=shares)
    assert suggested is not None
    calibrate(alpha=Fraction(suggested), epsilon=epsilon, shares=shares)


def test_an_inadmissible_setting_names_the_inequality_and_the_ways_out() -> None:
    with pytest.raises(MethodError) as refusal:
        method_at(epsilon="0.5", worker_cells=8)
    assert refusal.value.expected == "epsilon > 8 · ln(1 + alpha) = 8 · ln(1.1) = 0.7625"
    assert refusal.value.do == ("choose epsilon = 0.77 or more, or alpha = 0.064 or less, or at most 5 worker cells")


@pytest.mark.parametrize(
    ("alpha", "epsilon", "worker_cells"),
    [
        (Fraction(0), Fraction(1), 0),
        (Fraction(-1, 10), Fraction(1), 0),
        (Fraction(11), Fraction(9), 0),
        (Fraction(0.1), Fraction(1), 0),  # the exact value of a float has a huge denominator
        (Fraction(1, 10), Fraction(0), 0),
        (Fraction(1, 10), Fraction(-1), 0),
        (Fraction(1, 10), Fraction(1), -1),
        (0.1, Fraction(1), 0),
        (Fraction(1, 10), 1.0, 0),
    ],
)
def test_parameters_outside_their_ranges_are_refused(alpha: Fraction, epsilon: Fraction, worker_cells: int) -> None:
    with pytest.raises(MethodError):
        SmoothPareto(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells)


@pytest.mark.parametrize(("count", "largest"), [([5], [6]), ([5], [-1]), ([2**61], [1]), ([2**60], [2**60])])
def test_cells_beyond_the_limits_are_refused_without_naming_a_number(count: list[int], largest: list[int]) -> None:
    method = method_at(alpha="0.999999", epsilon="8")
    with pytest.raises(MethodError, match="a cell outside these limits") as refusal:
        method.protect(cells_of(count, largest), Seeded(1))
    assert str(count[0]) not in str(refusal.value)


class Zeros:
    """Words of zeros, which draw the largest noise there is."""

    def words(self, n: int, /) -> NDArray[np.uint64]:
        return np.zeros(n, dtype=np.uint64)


def test_saturated_values_do_not_depend_on_the_count() -> None:
    cells = cells_of([0, 7, 2**61 - 1], [0, 7, 7])
    assert method_at().protect(cells, Zeros())["value"].tolist() == [2**61] * 3


@pytest.mark.parametrize(("alpha", "floor_size"), [("0.1", 10), ("0.15", 6), ("0.01", 100), ("2", 0)])
def test_planned_error_is_the_error_of_small_and_of_large_cells(alpha: str, floor_size: int) -> None:
    method = method_at(alpha=alpha)
    planned = method.planned_error()
    large = 10**7
    errors = method.expected_error(cells_of([floor_size, large], [floor_size, large]))
    assert planned.floor_size == floor_size
    assert np.isclose(errors[0], planned.floor)
    assert np.isclose(errors[1], planned.share * large)


@pytest.mark.parametrize(("count", "largest"), [(0, 0), (3, 3), (40, 40), (500, 20), (9_000, 9_000)])
def test_published_error_is_on_average_not_below_the_true_error(count: int, largest: int) -> None:
    method = method_at(epsilon="1")
    cells = cells_of([count] * 40_000, [largest] * 40_000)
    published = method.published_error(method.protect(cells, Seeded(9))["value"])
    standard_error = published.std() / np.sqrt(len(published))
    assert published.mean() + 4 * standard_error >= method.expected_error(cells)[0]


def test_published_error_treats_the_published_count_as_one_establishment() -> None:
    method = method_at()
    values = np.array([-50, 0, 9, 10, 1_000])
    k_over_mean = float(method.calibration.scale / (method.calibration.tail - 1))
    assert np.allclose(method.published_error(values), k_over_mean * np.array([1, 1, 1, 1, 100]))


settings = st.sampled_from([("0.1", "2"), ("0.1", "1"), ("0.01", "0.25"), ("0.2", "4"), ("0.2", "0.25"), ("1", "1")])
confidences = st.sampled_from([0.5, 0.9, 0.95, 0.99])


@given(settings, confidences, st.one_of(st.integers(0, 60), st.integers(0, 10**7)), st.data())
def test_interval_covers_every_true_count_with_the_stated_confidence(
    setting: tuple[str, str], confidence: float, count: int, data: st.DataObject
) -> None:
    method = method_at(*setting)
    largest = data.draw(st.integers(0, count))
    p, q = method.alpha.numerator, method.alpha.denominator
    multiple = np.array([max(p * largest, q)])
    # The least distance that the noise exceeds with a probability of at most 1 − confidence.
    reach = int(float(method.noise.unit) * multiple[0] * method.noise.quantile(confidence) + 0.5)
    while method.noise.survival(np.array([reach + 1]), multiple)[0] > 1 - confidence:
        reach += 1
    while reach > 0 and method.noise.survival(np.array([reach]), multiple)[0] <= 1 - confidence:
        reach -= 1
    offsets = np.unique(np.linspace(-reach, reach, 301).astype(np.int64))
    low, high = method.published_interval(count + offsets, confidence)
    assert np.all(low <= count)
    assert np.all(np.isnan(high) | (high >= count))


@given(settings, confidences)
def test_interval_holds_whole_numbers_and_moves_with_the_published_value(
    setting: tuple[str, str], confidence: float
) -> None:
    values = np.arange(-500, 5_000, 7)
    low, high = method_at(*setting).published_interval(values, confidence)
    assert np.array_equal(low, np.floor(low))
    assert np.all(low >= 0)
    assert np.all(np.diff(low) >= 0)
    if not np.isnan(high).any():
        assert np.array_equal(high, np.floor(high))
        assert np.all(high >= low)
        assert np.all(np.diff(high) >= 0)


def test_interval_keeps_exactly_the_counts_that_the_test_does_not_reject_and_below_zero_those_of_0() -> None:
    method, confidence = method_at(), 0.95
    width = float(method.calibration.scale) * method.noise.quantile(confidence)
    n = np.arange(0, 3_000)
    for value in (-3, 0, 4, 25, 300, 1_000):
        kept = n[np.abs(max(value, 0) - n) <= width * np.maximum(0.1 * n, 1) + 0.5]
        low, high = method.published_interval(np.array([value]), confidence)
        assert (low[0], high[0]) == (kept[0], kept[-1])


def test_interval_has_no_upper_end_where_the_noise_may_hide_any_count() -> None:
    low, high = method_at(alpha="0.2", epsilon="0.25").published_interval(np.array([10, 1_000]), 0.95)
    assert np.isnan(high).all()
    assert np.isfinite(low).all()


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_that_is_no_probability_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        method_at().published_interval(np.array([1]), confidence)
