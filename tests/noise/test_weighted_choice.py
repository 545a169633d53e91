"""A choice with exponential weights: exact frequencies, whatever the costs are."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.noise.randomness import Seeded
from sfumato.noise.weighted_choice import MOST_TIMES, WeightedChoice
from tests.noise.fit import ACCEPTED, REJECTED, Stuck

CHOICE = WeightedChoice(rate=Fraction(1, 3))
COSTS = np.array([5, 0, 2, 9, 0, 1])


def fit(drawn: np.ndarray, choice: WeightedChoice) -> float:
    expected = choice.probabilities(COSTS[None])[0] * len(drawn)
    return float(chisquare(np.bincount(drawn, minlength=len(COSTS)), expected).pvalue)


def test_candidates_are_drawn_as_often_as_stated_and_not_as_at_another_rate() -> None:
    drawn = CHOICE.sample(np.tile(COSTS, (400_000, 1)), Seeded(80))
    assert fit(drawn, CHOICE) > ACCEPTED
    assert fit(drawn, WeightedChoice(rate=CHOICE.rate * Fraction("0.95"))) < REJECTED
    assert fit(drawn, WeightedChoice(rate=CHOICE.rate * Fraction("1.05"))) < REJECTED


@pytest.mark.parametrize("first_bits", [1, 4])
def test_forced_refining_gives_the_same_distribution(first_bits: int) -> None:
    drawn = CHOICE.sample(np.tile(COSTS, (5_000, 1)), Seeded(81), first_bits=first_bits)
    assert fit(drawn, CHOICE) > ACCEPTED


@given(costs=st.lists(st.integers(0, 40), min_size=2, max_size=6), rate=st.fractions(Fraction(1, 50), 3))
def test_every_word_falls_on_the_candidate_whose_part_it_is_in(costs: list[int], rate: Fraction) -> None:
    choice = WeightedChoice(rate=rate)
    ends = np.cumsum(choice.probabilities(np.array([costs]))[0])
    for word in range(2**60, 2**64, 2**61):
        chosen = int(choice.sample(np.array([costs]), Stuck(word))[0])
        expected = int(np.searchsorted(ends, word / 2**64, side="right"))
        assert chosen == expected or abs(ends[min(chosen, expected)] - word / 2**64) < 1e-12


def test_only_differences_of_costs_matter_and_huge_ones_exclude() -> None:
    assert np.array_equal(CHOICE.probabilities(COSTS[None]), CHOICE.probabilities(COSTS[None] + 10**12))
    assert set(CHOICE.sample(np.tile([10**15, 3], (1_000, 1)), Seeded(1)).tolist()) == {1}


def test_a_rate_that_is_not_exact_or_not_positive_is_refused() -> None:
    for rate in (0, 0.5, Fraction(-1, 2)):
        with pytest.raises(ValueError, match="rate"):
            WeightedChoice(rate=rate)  # type: ignore[arg-type]


@pytest.mark.parametrize("first_bits", [3, 53])
def test_a_candidate_that_stands_for_several_is_chosen_as_often_as_all_of_these(first_bits: int) -> None:
    n = 30_000 if first_bits == 53 else 3_000
    costs, times = np.tile([0, 3, 5, 5, 9], (n, 1)), np.tile([0, 7, 1, 0, 40], (n, 1))
    drawn = CHOICE.sample(costs, Seeded(6), times=times, first_bits=first_bits)
    weights = times[0] * np.exp(-costs[0] / 3)
    expected = n * weights / weights.sum()
    seen = np.bincount(drawn, minlength=5)
    assert seen[[0, 3]].tolist() == [0, 0]
    kept = expected > 0
    assert chisquare(seen[kept], expected[kept]).pvalue > ACCEPTED


@pytest.mark.parametrize("times", [[0, 0], [-1, 2], [1, MOST_TIMES + 1]])
def test_numbers_of_candidates_without_a_meaning_are_refused(times: list[int]) -> None:
    with pytest.raises(ValueError, match="candidate"):
        CHOICE.sample(np.array([[0, 1]]), Seeded(1), times=np.array([times]))
