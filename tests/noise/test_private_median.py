"""The private median is drawn with exactly the probabilities of the exponential mechanism."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from sfumato.noise.choice import PrivateMedian
from sfumato.noise.randomness import Seeded
from tests.noise.fit import ACCEPTED, REJECTED

GROUPS = {
    "no value": [],
    "one value": [3],
    "an even number": [1, 4, 4, 9],
    "an odd number": [0, 2, 3, 7, 10],
    "all the same": [6] * 7,
    "at both ends": [0, 0, 0, 10, 10],
}


def fit(median: PrivateMedian, drawn: np.ndarray, values: list[int]) -> float:
    expected = median.probabilities(np.array(values, dtype=np.int64)) * len(drawn)
    observed = np.bincount(drawn - median.low, minlength=len(expected))
    few = expected < 10
    expected = np.append(expected[~few], expected[few].sum() + 1e-9)
    observed = np.append(observed[~few], observed[few].sum())
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.mark.parametrize("width", [0, 1])
@pytest.mark.parametrize("values", GROUPS.values(), ids=list(GROUPS))
def test_draws_have_the_stated_probabilities(values: list[int], width: int) -> None:
    median = PrivateMedian(decay=Fraction(1, 3), low=0, high=10, width=width)
    n = 40_000
    groups, said = np.repeat(np.arange(n), len(values)), np.tile(np.array(values, dtype=np.int64), n)
    drawn = median.sample(groups, said, n, Seeded(1))
    assert fit(median, drawn, values) > ACCEPTED


def test_groups_of_very_different_sizes_have_the_stated_probabilities_side_by_side() -> None:
    median, n = PrivateMedian(decay=Fraction(1, 5), low=-3, high=12, width=1), 12_000
    kinds = [[], [4], [-3, 12, 12], [5] * 40, list(range(-3, 13)) * 3]
    owner = np.concatenate([np.repeat(np.arange(n) * len(kinds) + at, len(kind)) for at, kind in enumerate(kinds)])
    said = np.concatenate([np.tile(np.array(kind, dtype=np.int64), n) for kind in kinds])
    drawn = median.sample(owner, said, n * len(kinds), Seeded(3)).reshape(n, -1)
    for at, kind in enumerate(kinds):
        assert fit(median, drawn[:, at], kind) > ACCEPTED


class Counted:
    """A stream that counts the words it gave."""

    def __init__(self) -> None:
        self.given, self._stream = 0, Seeded(4)

    def words(self, n: int, /) -> np.ndarray:
        self.given += n
        return self._stream.words(n)


@pytest.mark.parametrize("values", [[], [5_000_000] * 1_600], ids=["no value", "all the same"])
def test_a_draw_takes_two_words_even_where_nearly_all_levels_are_empty(values: list[int]) -> None:
    n, words = 50, Counted()
    median = PrivateMedian(decay=Fraction(1, 10**6), low=0, high=10**7)
    median.sample(np.repeat(np.arange(n), len(values)), np.tile(np.array(values, dtype=np.int64), n), n, words)
    assert words.given <= 2 * n + 10


def test_a_decay_that_is_seven_percent_off_is_found_out() -> None:
    values, n = list(range(100)), 100_000
    median = PrivateMedian(decay=Fraction(1, 10), low=0, high=100)
    drawn = median.sample(np.repeat(np.arange(n), 100), np.tile(np.array(values), n), n, Seeded(2))
    assert fit(median, drawn, values) > ACCEPTED
    for off in (Fraction(93, 1000), Fraction(107, 1000)):
        assert fit(PrivateMedian(decay=off, low=0, high=100), drawn, values) < REJECTED


@settings(max_examples=25)
@given(
    groups=st.lists(st.lists(st.integers(-5, 20), max_size=9), min_size=1, max_size=6),
    width=st.integers(0, 3),
    seed=st.integers(0, 2**32),
)
def test_groups_of_all_sizes_side_by_side_do_not_disturb_each_other(
    groups: list[list[int]], width: int, seed: int
) -> None:
    median = PrivateMedian(decay=Fraction(8), low=-5, high=20, width=width)
    owner = np.array([place for place, group in enumerate(groups) for _ in group], dtype=np.int64)
    said = np.array([value for group in groups for value in group], dtype=np.int64)
    drawn = median.sample(owner, said, len(groups), Seeded(seed))
    for value, group in zip(drawn, groups, strict=True):
        # With such a decay, a step away from the middle has a chance of a few in ten thousand.
        assert median.costs(np.array(group, dtype=np.int64))[value + 5] <= 2


RNG = np.random.default_rng(8)
OWNER = np.repeat(np.arange(3_000), RNG.integers(0, 40, 3_000))


@pytest.mark.parametrize("size", [3_000, 70_000])
def test_the_order_in_which_values_come_changes_nothing(size: int) -> None:
    values, order = RNG.integers(0, 500, len(OWNER)), RNG.permutation(len(OWNER))
    median = PrivateMedian(decay=Fraction(1, 4), low=0, high=500, width=3)
    expected = median.sample(OWNER, values, size, Seeded(5))
    assert np.array_equal(median.sample(OWNER[order], values[order], size, Seeded(5)), expected)


@pytest.mark.parametrize("points", [2**14 - 1, 2**15 - 1, 2**30 - 1, 2**31 - 1])
@pytest.mark.parametrize("width", [0, 2**31])
@pytest.mark.parametrize("low", [-(10**13), 123_456_789_012])
def test_a_grid_may_be_anywhere_and_of_any_length(points: int, width: int, low: int) -> None:
    values = RNG.integers(0, points, len(OWNER))
    values[:: len(OWNER) // 7] = points - 1
    at = {0: values, low: values + low}
    drawn = {
        start: PrivateMedian(decay=Fraction(1, 4), low=start, high=start + points - 1, width=width).sample(
            OWNER, said, 3_000, Seeded(6)
        )
        for start, said in at.items()
    }
    assert np.array_equal(drawn[low] - low, drawn[0])
    assert 0 <= drawn[0].min() <= drawn[0].max() < points
    # With such a width no point is better than another, and draws have the spread of a uniform one, 0.289.
    assert (drawn[0].std() > 0.27 * points) == (width > 0)


@given(
    values=st.lists(st.integers(0, 12), max_size=8),
    added=st.integers(0, 12),
    width=st.integers(0, 2),
)
def test_one_value_more_changes_every_cost_by_at_most_one(values: list[int], added: int, width: int) -> None:
    median = PrivateMedian(decay=Fraction(1), low=0, high=12, width=width)
    before, after = (median.costs(np.array(v, dtype=np.int64)) for v in (values, [*values, added]))
    assert np.abs(after - before).max() <= 1


def test_a_grid_without_points_or_too_many_is_refused() -> None:
    for low, high in ((1, 0), (0, 2**44)):
        with pytest.raises(ValueError, match="grid"):
            PrivateMedian(decay=Fraction(1), low=low, high=high)
