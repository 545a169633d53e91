"""Rare events among very many draws: found without making the others, each with exactly its probability."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from sfumato.noise.geometric import Geometric
from sfumato.noise.randomness import Seeded
from sfumato.noise.waiting import Excess, Gaps
from tests.noise.fit import ACCEPTED, REJECTED, Stuck, p_value

NOISE = Geometric(epsilon=Fraction(1, 2))


def survival(rate: float):  # type: ignore[no-untyped-def]
    return lambda k: np.exp(-rate * k)


def test_gaps_and_excesses_have_the_stated_distribution_and_none_five_percent_off() -> None:
    for waiting in (Gaps(noise=NOISE, bound=9), Excess(noise=Geometric(epsilon=Fraction(1, 50)))):
        drawn, rate = waiting.sample(400_000, Seeded(1)), float(waiting.rate(30))
        assert p_value(drawn, survival(rate)) > ACCEPTED
        for wrong in (0.95, 1.05):
            assert p_value(drawn, survival(wrong * rate)) < REJECTED


@pytest.mark.parametrize("first_bits", [1, 6])
def test_forced_refining_gives_the_same_distribution(first_bits: int) -> None:
    gaps = Gaps(noise=NOISE, bound=9)
    assert p_value(gaps.sample(2_000, Seeded(2), first_bits=first_bits), survival(float(gaps.rate(30)))) > ACCEPTED


@given(bound=st.integers(1, 60), word=st.integers(1, 2**64 - 1))
def test_every_word_gives_the_gap_that_eighty_digits_give(bound: int, word: int) -> None:
    drawn = int(Gaps(noise=NOISE, bound=bound).sample(1, Stuck(word))[0])
    with localcontext(prec=80):
        r = (-Decimal(1) / 2).exp()
        rate = -(1 - r**bound / (1 + r)).ln()
        ends = [Decimal((word >> 11) + more) / 2**53 for more in (1, 0)]
        within = [int(-u.ln() / rate) if u else 2**62 for u in ends]
    assert within[0] <= drawn <= within[1]


def test_what_reaches_a_bound_is_as_frequent_as_among_draws_that_are_all_made() -> None:
    gaps, total = Gaps(noise=NOISE, bound=6), 300_000
    places = gaps.places(total, Seeded(3))
    chance = float(gaps.chance(30))
    assert chance == pytest.approx(float((NOISE.sample(1_000_000, Seeded(4)) >= 6).mean()), rel=0.03)
    assert binomtest(len(places), total, chance).pvalue > ACCEPTED
    assert binomtest(len(places), total, 1.05 * chance).pvalue < 1e-3
    assert np.all(np.diff(places) > 0)
    assert places[0] >= 0
    assert places[-1] < total
    assert abs(places.mean() / total - 0.5) < 0.02, "they are spread evenly"


def test_billions_of_draws_are_not_made() -> None:
    gaps = Gaps(noise=Geometric(epsilon=Fraction(1)), bound=16)
    places = gaps.places(3_300_000_000, Seeded(5))
    assert len(places) == pytest.approx(3.3e9 * float(gaps.chance(30)), rel=0.1)


def test_a_bound_that_is_hardly_ever_reached_is_refused() -> None:
    rare = Gaps(noise=Geometric(epsilon=Fraction(2)), bound=50)
    assert float(rare.rate(30)) == pytest.approx(np.exp(-100) / (1 + np.exp(-2)), rel=1e-12)
    assert len(rare.places(10**12, Seeded(6))) == 0
    with pytest.raises(ValueError, match="chance"):
        Gaps(noise=Geometric(epsilon=Fraction(10)), bound=50)
