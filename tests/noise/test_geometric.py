"""Two-sided geometric noise without a cap: exact frequencies, and exactly the ε that is stated."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Seeded
from sfumato.noise.refinement import SATURATION
from tests.noise.fit import ACCEPTED, REJECTED, Stuck, p_value

NOISES = [Geometric(epsilon=Fraction(epsilon)) for epsilon in ("0.02", "0.5", "1.5", "4")]
epsilons = st.fractions(min_value=Fraction(1, 100), max_value=9, max_denominator=1000)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_noise_has_the_stated_distribution_and_no_epsilon_five_percent_off(noise: Geometric) -> None:
    drawn = noise.sample(2_000_000, Seeded(70))
    assert p_value(np.abs(drawn), noise.survival) > ACCEPTED
    for wrong in ("0.95", "1.05"):
        assert p_value(np.abs(drawn), Geometric(epsilon=noise.epsilon * Fraction(wrong)).survival) < REJECTED
    assert binomtest(int((drawn > 0).sum()), int((drawn != 0).sum())).pvalue > ACCEPTED
    assert drawn.var() == pytest.approx(noise.variance, rel=0.02)
    assert np.abs(drawn).mean() == pytest.approx(noise.expected_magnitude, rel=0.02)


@pytest.mark.parametrize("noise", NOISES[1:], ids=str)
@pytest.mark.parametrize("first_bits", [1, 6])
def test_forced_refining_gives_the_same_distribution(noise: Geometric, first_bits: int) -> None:
    drawn = noise.sample(6_000, Seeded(71), first_bits=first_bits)
    assert p_value(np.abs(drawn), noise.survival) > ACCEPTED


@given(epsilon=epsilons, word=st.integers(1, 2**64 - 1))  # zeros for ever are a U of 0, which no bit decides
def test_every_word_gives_the_magnitude_that_eighty_digits_give(epsilon: Fraction, word: int) -> None:
    drawn = int(Geometric(epsilon=epsilon).sample(1, Stuck(word))[0])
    with localcontext(prec=80):
        step = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        # A stuck source repeats the word, so U is known only to lie in its first interval.
        ends = [Decimal((word >> 11) + more) / 2**53 for more in (1, 0)]
        within = [int(((2 / (1 + (-step).exp())).ln() - u.ln()) / step) if u else SATURATION for u in ends]
    assert within[0] <= abs(drawn) <= within[1]
    assert drawn == 0 or (drawn > 0) == (word % 2 == 0)


@given(epsilon=epsilons)
def test_one_person_more_moves_no_log_probability_by_more_than_epsilon_and_some_by_just_that(epsilon: Fraction) -> None:
    noise, published = Geometric(epsilon=epsilon), np.arange(-400, 401)
    loss = np.abs(noise.log_mass(published) - noise.log_mass(published - 1))
    assert loss.max() == pytest.approx(float(epsilon), rel=1e-9)


def test_probabilities_add_up_and_agree_with_each_other() -> None:
    noise = Geometric(epsilon=Fraction(3, 2))
    mass = np.exp(noise.log_mass(np.arange(-60, 61)))
    assert mass.sum() == pytest.approx(1)
    assert noise.survival(np.array([0, 1, 2])) == pytest.approx([1, 1 - mass[60], 2 * mass[62:].sum()])


@pytest.mark.parametrize("epsilon", ["1/50", "1/2", "2", "6"])
def test_the_mean_distance_is_the_sum_over_all_draws(epsilon: str) -> None:
    noise, j = Geometric(epsilon=Fraction(epsilon)), np.arange(-3_000, 3_001)
    away, mass = np.array([0, 1, 3, -7, 40]), np.exp(noise.log_mass(j))
    by_hand = [(mass * np.abs(j + a)).sum() for a in away]
    assert noise.expected_distance(away) == pytest.approx(by_hand, rel=1e-9)
    assert noise.expected_distance(away)[0] == pytest.approx(noise.expected_magnitude)


@given(epsilon=epsilons, probability=st.floats(0, 1, exclude_max=True) | st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_quantile_is_the_least_magnitude_that_is_seldom_enough_exceeded(
    epsilon: Fraction, probability: float
) -> None:
    noise = Geometric(epsilon=epsilon)
    q = noise.quantile(probability)
    with localcontext(prec=80):
        r = (-Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()
        beyond = [2 * r ** (k + 1) / (1 + r) for k in (q, q - 1)]
        assert beyond[0] <= 1 - Decimal(probability)
        assert q == 0 or beyond[1] > 1 - Decimal(probability)


def test_a_quantile_is_exact_where_floats_would_not_tell() -> None:
    noise, q = Geometric(epsilon=Fraction(1, 2)), 20
    with localcontext(prec=80):
        r = Decimal("-0.5").exp()
        within = Fraction(1 - 2 * r ** (q + 1) / (1 + r))  # P(|J| ≤ 20), to eighty digits
    tiny = Fraction(1, 10**70)
    assert (noise.quantile(within - tiny), noise.quantile(within + tiny)) == (q, q + 1)


@pytest.mark.parametrize("probability", [-0.1, 1.0, 1.5])
def test_a_quantile_of_no_probability_is_refused(probability: float) -> None:
    with pytest.raises(ValueError, match="probability must be in"):
        Geometric(epsilon=Fraction(1)).quantile(probability)


@pytest.mark.parametrize("epsilon", [0, Fraction(-1), 2**65])
def test_an_epsilon_that_is_not_positive_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(ValueError, match="epsilon must be in"):
        Geometric(epsilon=epsilon)


def test_a_rounded_epsilon_is_refused() -> None:
    with pytest.raises(TypeError, match="exact"):
        Geometric(epsilon=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", ["1/1000", "1/1000000", "27/1000000000", "1/100000000"])
def test_next_to_a_step_no_magnitude_is_called_certain_that_is_not(epsilon: str) -> None:
    noise, bits = Geometric(epsilon=Fraction(epsilon)), 50
    steps = np.unique(np.geomspace(1, 3 / float(noise.epsilon), 2_000).astype(np.int64))
    # The U at which the magnitude becomes k, and its nearest neighbours.
    edges = np.floor(2.0**bits * noise.survival(steps)).astype(np.int64)
    heads = np.unique(np.clip((edges[:, None] + np.arange(-3, 4)).ravel(), 1, 2**bits - 1))
    found, certain = noise.first_pass(heads, bits)
    assert certain.sum() > 0
    for head, magnitude in zip(heads[certain].tolist(), found[certain].tolist(), strict=True):
        assert noise.magnitude_bounds(head, bits) == (magnitude, magnitude)


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 2**64), Fraction(1, 1000), Fraction(3), Fraction(700), Fraction(1000), 2**64]
)
def test_the_variance_is_told_at_every_epsilon_without_a_warning(epsilon: Fraction) -> None:
    noise = Geometric(epsilon=epsilon)
    with localcontext(prec=80, Emin=-(10**6)):
        ratio = (-Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp() if epsilon < 10**5 else Decimal(0)
        assert noise.variance == pytest.approx(float(2 * ratio / (1 - ratio) ** 2), rel=1e-9)
