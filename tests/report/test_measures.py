"""Measures of utility, against values worked out by hand and against SciPy."""

from math import inf, isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.spatial.distance import jensenshannon

from sfumato.measures.formulas import (
    SIZE_CLASSES,
    Spread,
    by_class,
    coefficient_of_variation,
    cramers_v,
    error_ratio,
    hellinger_distance,
    interval_overlap,
    jensen_shannon_distance,
    mean_error,
    percentage_difference,
    proportional_difference,
    relative_error,
    root_integrated_squared_error,
    share_near_reference,
    shares,
    size_classes,
    size_label,
    spearman,
    spread,
    tail_classification,
    total_error,
    utility_loss,
)

TRUE, PROTECTED, REFERENCE = np.array([10, 20, 0, 50]), np.array([12, 19, 1, 50]), np.array([14, 18, 0, 44])
EMPTY = np.array([], dtype=np.int64)

counts = arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 1_000))
pairs = counts.flatmap(
    lambda first: st.tuples(st.just(first), arrays(np.int64, len(first), elements=st.integers(-20, 1_000)))
)


def test_errors_by_hand() -> None:
    assert mean_error(true=TRUE, protected=PROTECTED) == 1
    assert total_error(true=TRUE, protected=PROTECTED) == 4
    assert error_ratio(true=TRUE, protected=PROTECTED, reference=REFERENCE) == 4 / 12
    np.testing.assert_allclose(relative_error(true=TRUE, protected=PROTECTED), [0.2, 0.05, np.nan, 0])
    np.testing.assert_allclose(percentage_difference(true=TRUE, protected=PROTECTED), [20, 5, np.nan, 0])
    np.testing.assert_allclose(utility_loss(perturbation=np.array([-3, 2]), estimate=np.array([12, 0])), [0.25, np.nan])


def test_an_error_ratio_to_an_exact_reference_is_infinite_or_undefined() -> None:
    assert error_ratio(true=TRUE, protected=PROTECTED, reference=TRUE) == inf
    assert isnan(error_ratio(true=TRUE, protected=TRUE, reference=TRUE))


def test_trials_are_averaged() -> None:
    trials = np.stack([PROTECTED, TRUE])
    assert mean_error(true=TRUE, protected=trials) == 0.5
    assert error_ratio(true=TRUE, protected=trials, reference=REFERENCE) == pytest.approx(2 / 12)


def test_a_cell_is_near_the_reference_up_to_ten_points_above_it_and_anywhere_below() -> None:
    true = np.array([100, 100, 100, 100, 0])
    reference = np.array([110, 110, 110, 150, 0])
    protected = np.array([120, 121, 80, 100, 7])  # 20, 21, 20 and 0 percent, against 10, 10, 10 and 50
    assert share_near_reference(true=true, protected=protected, reference=reference) == 3 / 4
    assert isnan(share_near_reference(true=EMPTY, protected=EMPTY, reference=EMPTY))


def test_the_coefficient_of_variation_grows_with_the_variance_of_the_noise() -> None:
    estimate, sampling = np.array([100.0, 0.0]), np.array([64.0, 64.0])
    np.testing.assert_allclose(coefficient_of_variation(estimate=estimate, variance=sampling), [0.08, np.nan])
    np.testing.assert_allclose(coefficient_of_variation(estimate=estimate, variance=sampling + 36), [0.1, np.nan])


@given(pairs)
def test_spearman_agrees_with_scipy_on_ties(pair: tuple[np.ndarray, np.ndarray]) -> None:
    first, second = pair
    if len(set(first.tolist())) > 1 and len(set(second.tolist())) > 1:
        expected = stats.spearmanr(first, second).statistic
        assert spearman(true=first, protected=second) == pytest.approx(expected, abs=1e-12)


def test_spearman_of_one_cell_or_of_equal_cells_is_undefined() -> None:
    assert isnan(spearman(true=np.array([3]), protected=np.array([4])))
    assert isnan(spearman(true=np.array([3, 3]), protected=np.array([4, 5])))


def test_tails_by_hand() -> None:
    true = np.arange(20)
    protected = true.copy()
    protected[[0, 5]] = protected[[5, 0]]  # one of the two smallest leaves its tail
    found = tail_classification(true=true, protected=protected)
    assert (found.bottom, found.top) == (0.5, 1.0)
    both = tail_classification(true=true, protected=np.stack([protected, true]))
    assert both.bottom == 0.75
    assert isnan(tail_classification(true=EMPTY, protected=EMPTY).top)
    with pytest.raises(ValueError, match="tail"):
        tail_classification(true=true, protected=protected, tail=0.5)


@given(pairs)
def test_jensen_shannon_agrees_with_scipy(pair: tuple[np.ndarray, np.ndarray]) -> None:
    first, second = pair[0], np.maximum(pair[1], 0)
    if first.sum() and second.sum():
        expected = jensenshannon(first, second, base=2)
        assert jensen_shannon_distance(true=first, protected=second) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("distance", [jensen_shannon_distance, hellinger_distance, root_integrated_squared_error])
def test_distances_are_symmetric_zero_for_equal_shares_and_undefined_for_empty_tables(distance) -> None:
    assert distance(true=TRUE, protected=PROTECTED) == pytest.approx(distance(true=PROTECTED, protected=TRUE))
    assert distance(true=TRUE, protected=3 * TRUE) == pytest.approx(0, abs=1e-7)
    assert distance(true=TRUE, protected=-PROTECTED) == pytest.approx(
        distance(true=EMPTY, protected=EMPTY), nan_ok=True
    )
    assert isnan(distance(true=np.zeros(3), protected=np.ones(3)))


@given(pairs)
def test_distances_and_differences_stay_in_their_ranges(pair: tuple[np.ndarray, np.ndarray]) -> None:
    true, protected = pair
    if true.sum() and (protected > 0).any():
        assert 0 <= jensen_shannon_distance(true=true, protected=protected) <= 1
        assert 0 <= hellinger_distance(true=true, protected=protected) <= 1 + 1e-12
        assert 0 <= root_integrated_squared_error(true=true, protected=protected) <= sqrt(2) + 1e-12
        assert np.all(np.abs(proportional_difference(true=true, protected=protected)) <= 2)


def test_disjoint_tables_are_as_far_apart_as_can_be() -> None:
    left, right = np.array([5, 0]), np.array([0, 9])
    assert jensen_shannon_distance(true=left, protected=right) == 1
    assert hellinger_distance(true=left, protected=right) == 1
    assert root_integrated_squared_error(true=left, protected=right) == pytest.approx(sqrt(2))
    np.testing.assert_array_equal(proportional_difference(true=left, protected=right), [2, -2])


def test_distances_by_hand() -> None:
    half, quarter = np.array([2, 2]), np.array([1, 3])
    assert root_integrated_squared_error(true=half, protected=quarter) == pytest.approx(sqrt(1 / 8))
    affinity = sqrt(0.5 * 0.25) + sqrt(0.5 * 0.75)
    assert hellinger_distance(true=half, protected=quarter) == pytest.approx(sqrt(1 - affinity))
    np.testing.assert_allclose(proportional_difference(true=half, protected=quarter), [0.25 / 0.375, -0.25 / 0.625])


def test_a_negative_value_has_no_share() -> None:
    np.testing.assert_allclose(shares(np.array([-5, 1, 3])), [0, 0.25, 0.75])
    np.testing.assert_array_equal(proportional_difference(true=np.array([0, 4]), protected=np.array([-2, 4])), [0, 0])


def test_the_spread_describes_the_cells_themselves() -> None:
    assert spread(np.array([1.0, 3.0])) == Spread(mean=2.0, deviation=1.0)
    assert isnan(spread(EMPTY).mean)


@given(arrays(np.int64, (3, 4), elements=st.integers(1, 50)))
def test_cramers_v_agrees_with_scipy_and_does_not_mind_the_order_of_attributes(table: np.ndarray) -> None:
    assert cramers_v(table) == pytest.approx(stats.contingency.association(table, method="cramer"), abs=1e-9)
    assert cramers_v(table) == pytest.approx(cramers_v(table.T))


def test_cramers_v_ignores_empty_rows_and_is_undefined_for_a_single_one() -> None:
    table = np.array([[10, 5], [3, 9]])
    padded = np.array([[10, 0, 5], [0, 0, 0], [3, 0, 9]])
    assert cramers_v(padded) == pytest.approx(cramers_v(table))
    assert isnan(cramers_v(np.array([[1, 2, 3]])))
    assert isnan(cramers_v(np.zeros((2, 2))))


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ((0, 10), (0, 10), 1),
        ((0, 10), (5, 15), 0.5),
        ((0, 10), (0, 40), (1 + 0.25) / 2),
        ((0, 10), (11, 12), 0),
        ((4, 4), (4, 4), 1),
        ((4, 4), (0, 10), 0.5),
        ((4, 4), (5, 10), 0),
    ],
)
def test_interval_overlap_by_hand_and_either_way(
    first: tuple[int, int], second: tuple[int, int], overlap: float
) -> None:
    for one, other in ((first, second), (second, first)):
        low, high, other_low, other_high = (np.array([end], dtype=float) for end in (*one, *other))
        found = interval_overlap(low=low, high=high, protected_low=other_low, protected_high=other_high)
        assert found == pytest.approx([overlap])


def test_any_measure_can_be_had_by_class() -> None:
    classes = np.array(["town", "city", "town", "city"])
    assert by_class(mean_error, classes=classes, true=TRUE, protected=PROTECTED) == {"city": 0.5, "town": 1.5}
    assert by_class(mean_error, classes=EMPTY, true=EMPTY, protected=EMPTY) == {}


def test_every_count_has_one_size_class() -> None:
    numbers = np.array([0, 1, 9, 10, 99, 100, 9_999, 10_000, 10**9])
    places = size_classes(numbers)
    for number, place in zip(numbers, places, strict=True):
        low, high = SIZE_CLASSES[place]
        assert low <= number <= (inf if high is None else high)
    assert [size_label(place) for place in (0, 2, 5)] == ["0", "10–99", "10,000+"]
