"""Two-sided geometric noise with a cap: exact frequencies, and exactly the (ε, δ) that is stated."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest, chisquare

from sfumato.errors import MethodError
from sfumato.noise.geometric import LARGEST_CAP, TruncatedGeometric, smallest_cap
from sfumato.noise.randomness import Seeded
from tests.noise.fit import ACCEPTED, REJECTED, Stuck

NOISES = [
    pytest.param(TruncatedGeometric(epsilon=Fraction(2), cap=7), id="the paper's Table 2"),
    pytest.param(TruncatedGeometric(epsilon=Fraction(7), cap=1), id="the paper's evaluation"),
    pytest.param(TruncatedGeometric(epsilon=Fraction(1, 10), cap=40), id="much noise"),
    pytest.param(TruncatedGeometric(epsilon=Fraction(1), cap=60, sensitivity=9), id="large weights"),
]
epsilons = st.fractions(min_value=Fraction(1, 50), max_value=9, max_denominator=1000)


def fit(drawn: NDArray[np.int64], epsilon: float, noise: TruncatedGeometric) -> float:
    """The p-value of a chi-square test of P(|J| = k) at another ε, rare outcomes taken together."""
    magnitudes = np.arange(noise.cap + 1)
    chances = np.exp(-epsilon / noise.sensitivity * magnitudes) * np.where(magnitudes == 0, 1, 2)
    expected = chances / chances.sum() * len(drawn)
    observed = np.bincount(np.abs(drawn), minlength=noise.cap + 1).astype(float)
    often = int((expected > 20).sum())
    if often < len(expected):
        expected = np.append(expected[:often], expected[often:].sum())
        observed = np.append(observed[:often], observed[often:].sum())
    return float(chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("noise", NOISES)
def test_noise_has_the_stated_distribution_and_no_epsilon_five_percent_off(noise: TruncatedGeometric) -> None:
    drawn = noise.sample(4_000_000, Seeded(60))
    assert fit(drawn, float(noise.epsilon), noise) > ACCEPTED
    assert fit(drawn, 0.95 * float(noise.epsilon), noise) < REJECTED
    assert fit(drawn, 1.05 * float(noise.epsilon), noise) < REJECTED
    assert np.abs(drawn).max() <= noise.cap
    assert binomtest(int((drawn > 0).sum()), int((drawn != 0).sum())).pvalue > ACCEPTED


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("first_bits", [1, 5])
def test_forced_refining_gives_the_same_distribution(noise: TruncatedGeometric, first_bits: int) -> None:
    drawn = noise.sample(6_000, Seeded(61), first_bits=first_bits)
    assert fit(drawn, float(noise.epsilon), noise) > ACCEPTED
    if noise.probabilities[noise.cap] < 0.9:  # in few draws rare noise tells nothing about its scale
        assert fit(drawn, 1.5 * float(noise.epsilon), noise) < ACCEPTED


@given(epsilon=epsilons, cap=st.integers(1, 30), word=st.integers(0, 2**64 - 1))
def test_every_word_gives_the_magnitude_that_eighty_digits_give(epsilon: Fraction, cap: int, word: int) -> None:
    drawn = int(TruncatedGeometric(epsilon=epsilon, cap=cap).sample(1, Stuck(word))[0])
    uniform = Fraction(word >> 11, 2**53)
    with localcontext(prec=80):
        ratio = (-Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        whole = 1 + 2 * sum(ratio**k for k in range(1, cap + 1))
        bounds = [Fraction(2 * sum(ratio**i for i in range(k, cap + 1)) / whole) for k in range(1, cap + 1)]
    # A stuck source repeats the word, so U is known only to lie in its first interval.
    least = sum(uniform + Fraction(1, 2**53) <= bound for bound in bounds)
    most = sum(uniform <= bound for bound in bounds)
    assert least <= abs(drawn) <= most
    assert drawn == 0 or (drawn > 0) == (word % 2 == 0)


def test_a_magnitude_rarer_than_any_word_can_still_be_drawn() -> None:
    noise = TruncatedGeometric(epsilon=Fraction(20), cap=4)
    assert noise.delta() < 2.0**-100
    assert abs(int(noise.sample(1, Stuck(0))[0])) == 4


@given(epsilon=epsilons, cap=st.integers(1, 60))
def test_probabilities_sum_to_one_and_fall_by_one_factor(epsilon: Fraction, cap: int) -> None:
    noise = TruncatedGeometric(epsilon=epsilon, cap=cap)
    chances = noise.probabilities
    assert np.isclose(chances.sum(), 1, rtol=1e-13)
    assert np.allclose(chances[cap + 1 :] / chances[cap:-1], np.exp(-float(epsilon)), rtol=1e-12)
    assert np.array_equal(chances, chances[::-1])
    assert noise.probability(np.array([cap + 1, -cap - 1])).tolist() == [0, 0]
    assert np.isclose(noise.variance, (chances * np.arange(-cap, cap + 1.0) ** 2).sum())
    assert 0 <= noise.expected_magnitude <= cap


def test_quantiles_invert_the_distribution() -> None:
    noise = TruncatedGeometric(epsilon=Fraction(1), cap=5)
    upto = np.cumsum(noise.probabilities)
    assert [noise.quantile(float(p)) for p in upto] == list(range(-5, 6))
    assert (noise.quantile(0.5), noise.quantile(1.0), noise.quantile(1e-9)) == (0, 5, -5)
    with pytest.raises(ValueError, match="probability"):
        noise.quantile(0)


def hockey_stick(noise: TruncatedGeometric, shift: int, epsilon: float) -> float:
    """The exact Σ max(P(j) − e^ε·P′(j), 0) between a count and one that is larger by `shift`, in both directions."""
    published = np.arange(-noise.cap - shift, noise.cap + 2 * shift + 1)
    one, other = noise.probability(published), noise.probability(published - shift)
    return max(
        float(np.maximum(a - np.exp(epsilon) * (1 + 1e-12) * b, 0).sum()) for a, b in ((one, other), (other, one))
    )


@pytest.mark.parametrize("cap", [1, 2, 7, 20])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2), Fraction(7)])
def test_delta_of_a_count_is_exactly_the_probability_of_the_cap_at_one_end(epsilon: Fraction, cap: int) -> None:
    noise = TruncatedGeometric(epsilon=epsilon, cap=cap)
    found = hockey_stick(noise, 1, float(epsilon))
    assert np.isclose(found, noise.delta(), rtol=1e-9)
    assert np.isclose(found, noise.probability(np.array([cap]))[0], rtol=1e-9)
    assert hockey_stick(noise, 1, 50.0) == pytest.approx(found, rel=1e-9), "no ε makes it smaller"
    assert hockey_stick(noise, 1, 0.9 * float(epsilon)) > 1.01 * found, "and ε is needed"


@given(epsilon=epsilons, sensitivity=st.integers(1, 12), cap=st.integers(1, 40), data=st.data())
def test_delta_of_a_weight_is_the_probability_of_as_many_outcomes_at_one_end_as_it_shifts(
    epsilon: Fraction, sensitivity: int, cap: int, data: st.DataObject
) -> None:
    noise = TruncatedGeometric(epsilon=epsilon, cap=cap, sensitivity=sensitivity)
    shift = data.draw(st.integers(0, sensitivity))
    assert np.isclose(hockey_stick(noise, shift, float(epsilon)), noise.delta(shift), rtol=1e-9)
    if 1 < sensitivity <= cap:
        assert noise.delta() > 1.5 * noise.probability(np.array([cap]))[0], "one outcome would be too little"


def test_a_record_that_changes_its_cell_costs_two_epsilon_and_both_deltas() -> None:
    noise = TruncatedGeometric(epsilon=Fraction(2), cap=3)
    published = np.arange(-5, 7)
    at, up = noise.probability(published), noise.probability(published - 1)
    before, after = np.multiply.outer(at, up), np.multiply.outer(up, at)
    found = float(np.maximum(before - np.exp(4.0) * (1 + 1e-12) * after, 0).sum())
    assert found == pytest.approx(1 - (1 - noise.delta()) ** 2, rel=1e-9)


@given(epsilon=epsilons, cap=st.integers(1, 40), sensitivity=st.integers(1, 5))
def test_the_stated_delta_is_a_short_fraction_that_is_not_too_small(
    epsilon: Fraction, cap: int, sensitivity: int
) -> None:
    noise = TruncatedGeometric(epsilon=epsilon, cap=cap, sensitivity=sensitivity)
    assert noise.delta() * (1 - 1e-11) <= float(noise.delta_bound()) <= noise.delta() * (1 + 1e-10)


def test_no_delta_is_above_one_however_far_a_record_reaches() -> None:
    # Of these caps some have shares that add up to a last digit more than 1.
    for cap in (1, 2, 3, 5, 8):
        assert TruncatedGeometric(epsilon=Fraction(1, 7), cap=cap, sensitivity=50).delta_bound() == 1


@given(epsilon=epsilons, delta=st.floats(1e-12, 0.3), sensitivity=st.integers(1, 20))
def test_the_smallest_cap_keeps_delta_and_no_smaller_one_does(
    epsilon: Fraction, delta: float, sensitivity: int
) -> None:
    cap = smallest_cap(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert TruncatedGeometric(epsilon=epsilon, cap=cap, sensitivity=sensitivity).delta() <= delta
    if cap > 1:
        assert TruncatedGeometric(epsilon=epsilon, cap=cap - 1, sensitivity=sensitivity).delta() > delta


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"epsilon": Fraction(0), "cap": 7}, "epsilon above 0"),
        ({"epsilon": Fraction(-1), "cap": 7}, "epsilon above 0"),
        ({"epsilon": Fraction(2), "cap": 0}, "a cap from 1"),
        ({"epsilon": Fraction(2), "cap": LARGEST_CAP + 1}, "a cap from 1"),
        ({"epsilon": Fraction(2), "cap": 7, "sensitivity": 0}, "a sensitivity from 1"),
    ],
)
def test_parameters_without_a_meaning_are_refused(about: dict[str, object], words: str) -> None:
    with pytest.raises(MethodError, match=words):
        TruncatedGeometric(**about)


def test_floats_and_impossible_deltas_are_refused() -> None:
    with pytest.raises(TypeError, match="exact"):
        TruncatedGeometric(epsilon=0.1, cap=3)
    with pytest.raises(MethodError, match="delta"):
        smallest_cap(epsilon=Fraction(1), delta=0.0)
    with pytest.raises(MethodError, match="reaches"):
        smallest_cap(epsilon=Fraction(1, 10**5), delta=1e-9)
    with pytest.raises(ValueError, match="shift"):
        TruncatedGeometric(epsilon=Fraction(1), cap=3).delta(2)
