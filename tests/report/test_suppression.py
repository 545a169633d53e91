"""Suppression rules, by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cells import Cells, Dimension
from sfumato.measures.risk import (
    PublicationChange,
    Suppression,
    below_threshold,
    fails_p_percent,
    is_dominated,
    least_second,
    publication_change,
    publishable,
    suppression,
)


def table(**columns: list[int]) -> Cells:
    arrays = {name: np.array(values, dtype=np.int64) for name, values in columns.items()}
    length = len(arrays["count"])
    place = Dimension(name="place", codes=tuple(map(str, range(length))))
    return Cells(dimensions=(place,), positions=np.arange(length), columns=arrays)


def test_the_threshold_hides_cells_with_some_but_few_contributors() -> None:
    np.testing.assert_array_equal(below_threshold(contributors=np.array([0, 1, 2, 3])), [False, True, True, False])


def test_the_p_percent_rule_compares_the_remainder_with_the_largest() -> None:
    total, largest, second = np.array([100, 111, 109, 0]), np.array([100, 90, 90, 0]), np.array([0, 11, 11, 0])
    # Remainders: 0 of 100, 10 of 90, 8 of 90.
    found = fails_p_percent(total=total, largest=largest, second=second)
    np.testing.assert_array_equal(found, [True, False, True, False])


def test_dominance_is_more_than_the_stated_share() -> None:
    total, largest = np.array([100, 100, 0]), np.array([75, 76, 0])
    np.testing.assert_array_equal(is_dominated(total=total, largest=largest), [False, True, False])
    np.testing.assert_array_equal(is_dominated(total=total, largest=largest, percent=74), [True, True, False])


@given(st.lists(st.integers(0, 500), min_size=1, max_size=8))
def test_the_second_largest_is_never_below_its_bound(sizes: list[int]) -> None:
    ordered = sorted(sizes, reverse=True)
    bound = least_second(total=np.array(sum(sizes)), largest=np.array(ordered[0]), contributors=np.array(len(sizes)))
    assert bound <= (ordered[1] if len(ordered) > 1 else 0)


def test_a_table_is_counted_by_rule() -> None:
    cells = table(count=[50, 40, 300, 100, 0], largest=[50, 20, 100, 80, 0], establishments=[1, 2, 30, 9, 2])
    # One establishment; two, which know each other; many; one above 75%; none with jobs.
    assert suppression(cells) == Suppression(cells=4, threshold=2, p_percent=2, dominance=2, any_rule=3)


def test_without_the_number_of_establishments_the_threshold_is_not_known() -> None:
    found = suppression(table(count=[50, 40], largest=[50, 20]))
    assert found == Suppression(cells=2, threshold=None, p_percent=1, dominance=1, any_rule=1)


def test_an_empty_table_hides_nothing() -> None:
    assert suppression(table(count=[0], largest=[0], establishments=[1])).any_rule == 0


def test_protection_can_make_estimates_publishable_or_not() -> None:
    sample = np.array([10, 10, 30, 30])
    before = publishable(contributors=sample, least=20, variation=np.array([0.1, 0.1, 0.1, np.nan]), most=0.3)
    after = publishable(contributors=sample + 15, least=20, variation=np.array([0.2, 0.4, 0.4, 0.2]), most=0.3)
    assert publication_change(before=before, after=after) == PublicationChange(
        publishable=0, newly_publishable=2, newly_suppressed=1, suppressed=1
    )
