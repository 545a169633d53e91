"""Rounded Laplace noise has exactly the distribution that is stated."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest

from sfumato.noise.laplace import RoundedLaplace, magnitude_bounds
from sfumato.noise.randomness import Seeded
from sfumato.noise.refinement import SATURATION
from tests.noise.fit import ACCEPTED, REJECTED, Stuck, p_value

SCALES = [
    pytest.param(Fraction(1, 2), 1, id="a scale below one"),
    pytest.param(Fraction(1, 10), 75, id="a small cell"),
    pytest.param(Fraction(1, 10), 43_210, id="a large cell"),
    pytest.param(Fraction(7, 3), 10**9, id="a scale of billions"),
]
units = st.fractions(min_value=Fraction(1, 100), max_value=50, max_denominator=10**9)
multiples = st.one_of(st.integers(1, 100), st.integers(1, 10**6), st.integers(1, 2**62))


def fit(drawn: NDArray[np.int64], scale: float) -> float:
    return p_value(np.abs(drawn), lambda j: np.where(j <= 0, 1, np.exp(-(j - 0.5) / scale)))


@pytest.mark.parametrize(("unit", "multiple"), SCALES)
def test_noise_has_the_stated_distribution_and_no_scale_ten_percent_off(unit: Fraction, multiple: int) -> None:
    drawn = RoundedLaplace(unit=unit).sample(np.full(400_000, multiple), Seeded(30))
    scale = float(unit * multiple)
    assert fit(drawn, scale) > ACCEPTED
    assert fit(drawn, 0.9 * scale) < REJECTED
    assert fit(drawn, 1.1 * scale) < REJECTED
    assert binomtest(int((drawn > 0).sum()), int((drawn != 0).sum())).pvalue > ACCEPTED


@pytest.mark.parametrize(("unit", "multiple"), SCALES)
@pytest.mark.parametrize("first_bits", [4, 8])
def test_forced_refining_gives_the_same_distribution(unit: Fraction, multiple: int, first_bits: int) -> None:
    drawn = RoundedLaplace(unit=unit).sample(np.full(5_000, multiple), Seeded(31), first_bits=first_bits)
    scale = float(unit * multiple)
    assert fit(drawn, scale) > ACCEPTED
    assert fit(drawn, 1.3 * scale) < ACCEPTED


@given(unit=units, multiple=multiples, bits=st.integers(1, 53), data=st.data())
def test_first_pass_agrees_with_many_digits_wherever_it_claims_certainty(
    unit: Fraction, multiple: int, bits: int, data: st.DataObject
) -> None:
    check(unit, multiple, data.draw(st.integers(0, 2**bits - 1)), bits)


@given(unit=units, multiple=multiples, j=st.integers(1, 10**6), off=st.integers(-40, 40))
def test_first_pass_agrees_with_many_digits_next_to_a_rounding_boundary(
    unit: Fraction, multiple: int, j: int, off: int
) -> None:
    head = int(np.exp(-(j - 0.5) / float(unit * multiple)) * 2**53) + off
    check(unit, multiple, min(max(head, 0), 2**53 - 1), 53)


def check(unit: Fraction, multiple: int, head: int, bits: int) -> None:
    found, certain = RoundedLaplace(unit=unit).first_pass(np.array([multiple]), np.array([head]), bits)
    if certain[0]:
        bounds = magnitude_bounds(scale=unit * multiple, numerator=head, bits=bits)
        assert bounds == (found[0], found[0])


@given(unit=units, multiple=multiples, bits=st.integers(2, 53), data=st.data())
def test_more_bits_never_leave_the_interval(unit: Fraction, multiple: int, bits: int, data: st.DataObject) -> None:
    head, more = data.draw(st.integers(0, 2**bits - 1)), data.draw(st.integers(0, 2**20 - 1))
    low, high = magnitude_bounds(scale=unit * multiple, numerator=head, bits=bits)
    inner = magnitude_bounds(scale=unit * multiple, numerator=head << 20 | more, bits=bits + 20)
    assert low <= inner[0] <= inner[1] <= high


def test_words_of_zeros_saturate_and_words_of_ones_give_no_noise() -> None:
    # U would have to be below e^(−2^62/s) to reach the limit, so the scale is near it.
    noise = RoundedLaplace(unit=Fraction(2**62))
    assert noise.sample(np.array([1]), Stuck(0)).tolist() == [SATURATION]
    assert RoundedLaplace(unit=Fraction(50)).sample(np.array([1]), Stuck(2**64 - 1)).tolist() == [0]


@given(scale=st.floats(0.2, 400))
def test_masses_sum_to_the_survival_they_leave_and_make_the_mean(scale: float) -> None:
    noise, j = RoundedLaplace(unit=Fraction(scale)), np.arange(-30_000, 30_001)
    mass = np.exp(noise.log_mass(j, np.ones(1)))
    assert np.isclose(mass.sum(), 1, rtol=1e-12)
    assert np.isclose((mass * np.abs(j)).sum(), noise.expected_magnitude(np.ones(1))[0], rtol=1e-9)
    assert np.isclose(noise.survival(np.array([3]), np.ones(1))[0], mass[np.abs(j) >= 3].sum(), rtol=1e-9)


@pytest.mark.parametrize("wrong", [Fraction(0), Fraction(-1)])
def test_scales_without_a_meaning_are_refused(wrong: Fraction) -> None:
    with pytest.raises(ValueError, match="must be"):
        RoundedLaplace(unit=wrong)
    with pytest.raises(ValueError, match="must be"):
        RoundedLaplace(unit=Fraction(1)).sample(np.array([0]), Seeded(1))
    with pytest.raises(ValueError, match="must be"):
        RoundedLaplace(unit=Fraction(1)).quantile(1.0)
