"""A choice with exponential weights: exact frequencies, whatever the costs are."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sfumato.noise.choice import MOST_TIMES, WeightedChoice
from sfumato.noise.randomness import Seeded
from tests.noise.fit import ACCEPTED, REJECTED, Stuck

CHOICE = WeightedChoice(rate=Fraction(1, 3))
COSTS = np.array([5, 0, 2, 9, 0, 1])
RNG = np.random.default_rng(12)
MANY = RNG.integers(0, 200, (5_000, 37))


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


class Words:
    """A source that gives these words, and then those of a seed."""

    def __init__(self, words: list[int]) -> None:
        self._first, self._later = np.array(words, dtype=np.uint64), Seeded(3)

    def words(self, n: int, /) -> np.ndarray:
        given, self._first = self._first[:n], self._first[n:]
        return np.concatenate([given, self._later.words(n - len(given))])


@given(
    candidates=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2**44)), min_size=1, max_size=30),
    rate=st.fractions(Fraction(1, 100), 5),
    apart=st.sampled_from([0, 7, 10**9]),
    words=st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=2),
)
def test_a_word_falls_between_the_ends_of_its_candidate_computed_to_fifty_digits(
    candidates: list[tuple[int, int]], rate: Fraction, apart: int, words: list[int]
) -> None:
    costs, times = np.array(candidates).T
    times[np.argmin(costs)] += not times.any()
    # The second row costs more throughout, so that what is far for one is near for the other.
    rows = np.stack([costs, costs + apart])
    drawn = WeightedChoice(rate=rate).sample(rows, Words(words), times=np.stack([times, times]))
    ends = exact_ends(rate, costs, times)
    for chosen, word in zip(drawn.tolist(), words, strict=True):
        assert may_fall_on(chosen, word, ends)


def test_a_word_next_to_an_end_falls_on_the_right_side_of_it() -> None:
    rate, costs = Fraction(1, 20), RNG.integers(0, 150, 80)
    ends = exact_ends(rate, costs, np.ones_like(costs))
    nearest = [int(end * 2**53 / ends[-1]) + step for end in ends[1:-1] for step in range(-4, 5)]
    words = [head << 11 for head in nearest]
    drawn = WeightedChoice(rate=rate).sample(np.tile(costs, (len(words), 1)), Words(words))
    assert all(may_fall_on(chosen, word, ends) for chosen, word in zip(drawn.tolist(), words, strict=True))


def exact_ends(rate: Fraction, costs: np.ndarray, times: np.ndarray) -> list[Decimal]:
    """Of all candidates laid end to end, to fifty digits, and before them 0."""
    with localcontext(prec=50):
        exponent = Decimal(rate.numerator) / rate.denominator
        weights = (int(t) * (-exponent * int(c)).exp() for c, t in zip(costs, times, strict=True))
        return list(accumulate(weights, initial=Decimal(0)))


def may_fall_on(chosen: int, word: int, ends: list[Decimal]) -> bool:
    """Whether some uniform that begins with the first 53 bits of the word is between the ends of the candidate."""
    with localcontext(prec=50):
        low, high = (ends[-1] * ((word >> 11) + more) / 2**53 for more in (0, 1))
    return ends[chosen] < high and low < ends[chosen + 1]


@pytest.mark.parametrize(
    ("costs", "rate"),
    [
        (MANY + RNG.integers(0, 10**9, (len(MANY), 1)), Fraction(1, 20)),
        (MANY * 10**7, Fraction(1, 20 * 10**7)),
        (MANY * 10**7 + RNG.integers(0, 10**15, (len(MANY), 1)), Fraction(1, 20 * 10**7)),
    ],
    ids=["rows far apart", "no table", "rows far apart, no table"],
)
def test_however_costs_are_weighed_the_same_words_fall_on_the_same_candidates(
    costs: np.ndarray, rate: Fraction
) -> None:
    near = WeightedChoice(rate=Fraction(1, 20)).sample(MANY, Seeded(2))
    assert np.array_equal(WeightedChoice(rate=rate).sample(costs, Seeded(2)), near)


@pytest.mark.parametrize("far", [0, 10**6])
def test_one_row_of_costs_goes_for_all_rows_of_times(far: int) -> None:
    costs, times = np.append(MANY[0], far), RNG.integers(0, 50, (9_000, 38)).astype(np.int16)
    # These can only have what is far from the cheapest of all.
    times[::3, :-1], times[::3, -1] = 0, 1
    together = CHOICE.sample(costs[None], Seeded(4), times=times)
    assert np.array_equal(together, CHOICE.sample(np.tile(costs, (9_000, 1)), Seeded(4), times=times))
    assert set(together[::3].tolist()) == {37}


def test_a_row_without_candidates_is_refused() -> None:
    with pytest.raises(ValueError, match="candidate"):
        CHOICE.sample(np.empty((3, 0), dtype=np.int64), Seeded(1))
    assert CHOICE.sample(np.empty((0, 4), dtype=np.int64), Seeded(1)).shape == (0,)


@pytest.mark.parametrize("times", [[0, 0], [-1, 2], [1, MOST_TIMES + 1]])
def test_numbers_of_candidates_without_a_meaning_are_refused(times: list[int]) -> None:
    with pytest.raises(ValueError, match="candidate"):
        CHOICE.sample(np.array([[0, 1]]), Seeded(1), times=np.array([times]))
