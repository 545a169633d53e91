"""Samples keep the records of groups in order, and know the groups without any."""

import numpy as np
import pytest

from sfumato.cells import Dimension
from sfumato.statistics.people.small_samples import Samples

SEX = Dimension(name="sex", codes=("F", "M"))
PLACE = Dimension(name="place", codes=("A", "B"))


def held(positions: list[int], groups: list[int] | None = None) -> Samples:
    values = np.arange(len(positions), dtype=np.int64)
    return Samples(
        dimensions=(PLACE, SEX),
        positions=np.array(positions, dtype=np.int64),
        x=values,
        y=values,
        groups=None if groups is None else np.array(groups, dtype=np.int64),
    )


def test_every_combination_of_codes_is_a_group_with_or_without_records() -> None:
    samples = held([0, 0, 3])
    assert samples.listed.tolist() == [0, 1, 2, 3]
    assert samples.sizes.tolist() == [2, 0, 0, 1]
    assert samples.starts.tolist() == [0, 2, 2, 2, 3]


def test_a_table_may_list_fewer_groups() -> None:
    samples = held([1, 3], [1, 2, 3])
    assert len(samples) == 3
    assert samples.sizes.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("positions", "groups"), [([1, 0], None), ([4], None), ([-1], None), ([0], [1, 2]), ([1], [2, 1]), ([], [5])]
)
def test_records_out_of_order_or_outside_the_groups_are_refused(positions: list[int], groups: list[int] | None) -> None:
    with pytest.raises(ValueError, match="groups"):
        held(positions, groups)


def test_columns_of_another_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="64-bit"):
        Samples(dimensions=(SEX,), positions=np.array([0]), x=np.array([0.5]), y=np.array([1]))
