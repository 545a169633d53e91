"""Noise of density 1/(1 + z⁴) has exactly the distribution that is stated."""

from fractions import Fraction
from math import pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import binomtest

from sfumato.noise.quartic import Quartic, first_pass, magnitude_bounds, point, resolve
from sfumato.noise.randomness import Seeded
from sfumato.noise.refinement import SATURATION
from tests.noise.fit import ACCEPTED, REJECTED, p_value

SCALES = [
    pytest.param(Fraction(1, 2), 1, id="a scale below one"),
    pytest.param(Fraction(8, 10), 10, id="a small cell"),
    pytest.param(Fraction(8, 10), 43_210, id="a large cell"),
    pytest.param(Fraction(7, 3), 10**9, id="a scale of billions"),
]
heads = st.integers(0, 2**53 - 1)


def survival(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(|Z| ≥ z) in the closed form with logarithm and arctangents."""
    root = sqrt(2)
    logs = np.log((z * z + root * z + 1) / (z * z - root * z + 1)) / 2
    return 1 - (logs + np.arctan(root * z + 1) + np.arctan(root * z - 1)) / pi


def fit(drawn: NDArray[np.int64], scale: float) -> float:
    return p_value(np.abs(drawn), lambda j: np.where(j <= 0, 1, survival((j - 0.5) / scale)))


@pytest.mark.parametrize(("unit", "multiple"), SCALES)
def test_noise_has_the_stated_distribution_and_no_scale_ten_percent_off(unit: Fraction, multiple: int) -> None:
    drawn = Quartic(unit=unit).sample(np.full(400_000, multiple), Seeded(50))
    scale = float(unit * multiple)
    assert fit(drawn, scale) > ACCEPTED
    assert fit(drawn, 0.9 * scale) < REJECTED
    assert fit(drawn, 1.1 * scale) < REJECTED
    large = drawn[np.abs(drawn) > np.median(np.abs(drawn[drawn != 0]))]
    for some in (drawn, large):  # sign and magnitude are independent
        assert binomtest(int((some > 0).sum()), int((some != 0).sum())).pvalue > ACCEPTED


@pytest.mark.parametrize(("unit", "multiple"), SCALES)
@pytest.mark.parametrize("first_bits", [3, 6])
def test_forced_refining_gives_the_same_distribution(unit: Fraction, multiple: int, first_bits: int) -> None:
    drawn = Quartic(unit=unit).sample(np.full(5_000, multiple), Seeded(51), first_bits=first_bits)
    scale = float(unit * multiple)
    assert fit(drawn, scale) > ACCEPTED
    assert fit(drawn, 1.3 * scale) < ACCEPTED


def test_every_draw_has_the_scale_of_its_own_multiple() -> None:
    multiples = np.tile([3, 700], 200_000)
    drawn = Quartic(unit=Fraction(1, 2)).sample(multiples, Seeded(52))
    for multiple in (3, 700):
        assert fit(drawn[multiples == multiple], multiple / 2) > ACCEPTED


@given(
    scale=st.fractions(min_value=Fraction(1, 100), max_value=10**12, max_denominator=10**6),
    bits=st.integers(1, 53),
    data=st.data(),
)
def test_first_pass_agrees_with_whole_numbers_wherever_it_claims_certainty(
    scale: Fraction, bits: int, data: st.DataObject
) -> None:
    across, up = (data.draw(st.integers(0, 2**bits - 1)) for _ in range(2))
    check(scale, across, up, bits)


@given(across=heads, off=st.integers(-40, 40), outer=st.booleans())
def test_first_pass_agrees_with_whole_numbers_next_to_the_curves_that_decide(
    across: int, off: int, outer: bool
) -> None:
    t = Fraction(across, 2**53)
    curve = (1 + t**2 if outer else 1) / (1 + t**4) * Fraction(4, 5)
    check(Fraction(100), across, min(max(int(curve * 2**53) + off, 0), 2**53 - 1), 53)


@given(j=st.integers(1, 10**6), off=st.integers(-40, 40), inner=st.booleans())
def test_first_pass_agrees_with_whole_numbers_next_to_a_rounding_boundary(j: int, off: int, inner: bool) -> None:
    edge = (j - Fraction(1, 2)) / 1000
    across = int(min(edge if inner else 1 / edge, Fraction(1)) * 2**53) + off
    check(Fraction(1000), min(max(across, 0), 2**53 - 1), 2**52 if inner else int(0.801 * 2**53), 53)


def check(scale: Fraction, across: int, up: int, bits: int) -> None:
    magnitude, kept, certain = first_pass(
        scale=np.array([float(scale)]), across=np.array([across]), up=np.array([up]), bits=bits
    )
    if not certain[0]:
        assert not kept[0]
        return
    kind = point(across=across, up=up, bits=bits)
    assert kind is not None
    assert kept[0] == (kind != "rejected")
    if kept[0]:
        bounds = magnitude_bounds(scale=scale, across=across, bits=bits, inner=kind == "inner")
        assert bounds == (magnitude[0], magnitude[0])


@given(across=heads, up=heads, bits=st.integers(1, 52))
def test_more_bits_never_change_what_fewer_decided(across: int, up: int, bits: int) -> None:
    fewer = point(across=across >> 53 - bits, up=up >> 53 - bits, bits=bits)
    if fewer is not None:
        assert point(across=across, up=up, bits=53) == fewer


def test_first_pass_is_certain_of_almost_every_ordinary_draw() -> None:
    words = Seeded(3).words(200_000).reshape(2, -1) >> np.uint64(11)
    across, up = words.astype(np.int64)
    _, kept, certain = first_pass(scale=np.full(100_000, 1600.0), across=across, up=up, bits=53)
    assert certain.mean() > 0.9999
    assert abs(kept.mean() - pi / (2 * sqrt(2)) / 1.25) < 0.005


def test_a_point_that_may_be_infinitely_far_out_has_no_bound_but_saturation() -> None:
    assert magnitude_bounds(scale=Fraction(10), across=0, bits=3, inner=False) == (80, SATURATION)
    seen = {resolve(scale=Fraction(2**61), across=0, up=7, bits=3, randomness=Seeded(seed)) for seed in range(60)}
    assert None in seen


@given(scale=st.floats(0.05, 2000), j=st.integers(-(10**6), 10**6))
def test_mass_is_the_integral_of_the_density(scale: float, j: int) -> None:
    noise, one = Quartic(unit=Fraction(scale)), np.ones(1)
    ends = (abs(j) - 0.5) / scale, (abs(j) + 0.5) / scale
    found = np.exp(noise.log_mass(np.array([j]), one)[0])
    # Substituted by 1/z outside, where the range of integration would be long and the values tiny.
    if ends[0] > 1:
        integral = quad(lambda u: u * u / (1 + u**4), 1 / ends[1], 1 / ends[0], epsabs=0, epsrel=1e-11)[0]
    else:
        integral = quad(lambda z: 1 / (1 + z**4), *ends, epsabs=0, epsrel=1e-11, limit=200)[0]
    assert np.isclose(found, integral * sqrt(2) / pi, rtol=1e-8)


@pytest.mark.parametrize("scale", ["0.3", "1", "7.5", "15.9", "16.1", "400"])
def test_masses_make_the_survival_and_the_mean(scale: str) -> None:
    noise, one = Quartic(unit=Fraction(scale)), np.ones(1)
    j = np.arange(0, 60_000)
    beyond = noise.survival(j[1:], one)
    assert np.allclose(beyond[:300], survival((j[1:301] - 0.5) / float(scale)), rtol=1e-6, atol=1e-14)
    # The terms beyond the last fall as j^−3: their sum is half of the last one's times its j.
    assert np.isclose(beyond.sum() + beyond[-1] * j[-1] / 2, noise.expected_magnitude(one)[0], rtol=1e-9)


def test_density_and_moments_are_the_stated_ones() -> None:
    z = np.linspace(-3000, 3000, 6_000_001)
    density = np.exp(Quartic(unit=Fraction(1)).log_density(z, np.ones(1)))
    assert np.isclose(density.sum() * 1e-3, 1, rtol=1e-6)
    assert np.isclose((density * np.abs(z)).sum() * 1e-3, 1 / sqrt(2), rtol=1e-6)
    assert np.isclose((density * z**2).sum() * 1e-3, 1, rtol=1e-3)


@pytest.mark.parametrize("probability", [0.0, 0.5, 0.9, 0.999999])
def test_quantile_is_exceeded_as_often_as_it_says(probability: float) -> None:
    z = Quartic(unit=Fraction(1)).quantile(probability)
    assert np.isclose(survival(np.array([z]))[0], 1 - probability, rtol=1e-6)


def test_scales_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="must be"):
        Quartic(unit=Fraction(0))
    with pytest.raises(ValueError, match="must be"):
        Quartic(unit=Fraction(1)).sample(np.array([0]), Seeded(1))
    with pytest.raises(ValueError, match="must be"):
        Quartic(unit=Fraction(1)).sample(np.array([1]), Seeded(1), first_bits=54)
    with pytest.raises(ValueError, match="must be"):
        Quartic(unit=Fraction(1)).quantile(1.0)
