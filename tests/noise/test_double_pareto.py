"""The noise that is drawn has exactly the distribution that is stated."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import zeta
from scipy.stats import binomtest, chi2

from sfumato.noise.pareto import DoublePareto
from sfumato.noise.randomness import Seeded
from sfumato.noise.refinement import SATURATION

ACCEPTED, REJECTED = 1e-3, 1e-6

SETTINGS = [
    pytest.param(Fraction("1.0499638873"), Fraction("20.984117374"), 10, id="alpha .1, epsilon 2, a small cell"),
    pytest.param(Fraction("1.0499638873"), Fraction("20.984117374"), 4_321, id="alpha .1, epsilon 2, a large cell"),
    pytest.param(Fraction(1, 7), Fraction(5, 3), 1, id="a scale far below one"),
    pytest.param(Fraction(1, 3), Fraction("1.001"), 20, id="a tail close to one"),
    pytest.param(Fraction(1, 3), Fraction(5, 2), 10**9, id="a scale of hundreds of millions"),
]


class Stuck:
    """A source that gives the same word for ever."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, n: int, /) -> NDArray[np.uint64]:
        return np.full(n, self.word, dtype=np.uint64)


def goodness_of_fit(drawn: NDArray[np.int64], noise: DoublePareto, multiple: int) -> float:
    """The p-value of a chi-square test of magnitudes, in up to forty classes of about equal probability."""
    scale, tail = float(noise.unit * multiple), float(noise.tail)
    quantiles = scale * ((1 - np.arange(1, 40) / 40) ** (-1 / tail) - 1)
    edges = np.unique(np.ceil(quantiles + 0.5))
    beyond = (1 + (edges - 0.5) / scale) ** (-tail)  # P(|J| ≥ edge), written out rather than asked of the class
    expected = -np.diff(np.concatenate([[1], beyond, [0]])) * len(drawn)
    observed = np.bincount(np.searchsorted(edges, np.abs(drawn), side="right"), minlength=len(expected))
    assert expected.min() > 5
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.mark.parametrize(("unit", "tail", "multiple"), SETTINGS)
class TestFrequencies:
    def drawn(self, unit: Fraction, tail: Fraction, multiple: int) -> tuple[DoublePareto, NDArray[np.int64]]:
        noise = DoublePareto(unit=unit, tail=tail)
        return noise, noise.sample(np.full(400_000, multiple), Seeded(20))

    def test_noise_has_the_stated_distribution(self, unit: Fraction, tail: Fraction, multiple: int) -> None:
        noise, drawn = self.drawn(unit, tail, multiple)
        assert goodness_of_fit(drawn, noise, multiple) > ACCEPTED

    @pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
    def test_noise_of_a_scale_ten_percent_off_is_rejected(
        self, unit: Fraction, tail: Fraction, multiple: int, factor: Fraction
    ) -> None:
        noise, drawn = self.drawn(unit, tail, multiple)
        assert goodness_of_fit(drawn, replace(noise, unit=unit * factor), multiple) < REJECTED

    @pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
    def test_noise_of_a_tail_ten_percent_off_is_rejected(
        self, unit: Fraction, tail: Fraction, multiple: int, factor: Fraction
    ) -> None:
        noise, drawn = self.drawn(unit, tail, multiple)
        assert goodness_of_fit(drawn, replace(noise, tail=tail * factor), multiple) < REJECTED

    def test_noise_is_as_often_negative_as_positive(self, unit: Fraction, tail: Fraction, multiple: int) -> None:
        _, drawn = self.drawn(unit, tail, multiple)
        assert binomtest(int((drawn > 0).sum()), int((drawn != 0).sum())).pvalue > ACCEPTED

    def test_sign_and_magnitude_are_independent(self, unit: Fraction, tail: Fraction, multiple: int) -> None:
        _, drawn = self.drawn(unit, tail, multiple)
        large = drawn[np.abs(drawn) > np.median(np.abs(drawn[drawn != 0]))]
        assert binomtest(int((large > 0).sum()), len(large)).pvalue > ACCEPTED

    @pytest.mark.parametrize("first_bits", [4, 8])
    def test_forced_refining_gives_the_same_distribution(
        self, unit: Fraction, tail: Fraction, multiple: int, first_bits: int
    ) -> None:
        noise = DoublePareto(unit=unit, tail=tail)
        drawn = noise.sample(np.full(5_000, multiple), Seeded(21), first_bits=first_bits)
        assert goodness_of_fit(drawn, noise, multiple) > ACCEPTED
        assert goodness_of_fit(drawn, replace(noise, unit=unit * Fraction(13, 10)), multiple) < ACCEPTED


def test_every_draw_has_the_scale_of_its_own_multiple() -> None:
    noise = DoublePareto(unit=Fraction(1, 2), tail=Fraction(6))
    multiples = np.tile([3, 700], 200_000)
    drawn = noise.sample(multiples, Seeded(4))
    for multiple in (3, 700):
        assert goodness_of_fit(drawn[multiples == multiple], noise, multiple) > ACCEPTED


def test_words_of_zeros_saturate_upwards() -> None:
    noise = DoublePareto(unit=Fraction(1), tail=Fraction(10))
    assert noise.sample(np.array([1, 50]), Stuck(0)).tolist() == [SATURATION, SATURATION]


@pytest.mark.parametrize("multiple", [1, 50, 10**9, 2**62])
def test_words_of_ones_give_no_noise(multiple: int) -> None:
    noise = DoublePareto(unit=Fraction(1), tail=Fraction(10))
    assert noise.sample(np.array([multiple]), Stuck(2**64 - 1)).tolist() == [0]


def test_magnitudes_beyond_the_limit_saturate_as_often_as_they_should() -> None:
    noise = DoublePareto(unit=Fraction(1), tail=Fraction(1, 50))
    drawn = noise.sample(np.ones(4_000, dtype=np.int64), Seeded(8))
    assert np.abs(drawn).max() == SATURATION
    saturated = int((np.abs(drawn) == SATURATION).sum())
    assert binomtest(saturated, len(drawn), (1 + SATURATION) ** -0.02).pvalue > ACCEPTED


def test_no_draws_need_no_words() -> None:
    noise = DoublePareto(unit=Fraction(1), tail=Fraction(2))
    assert noise.sample(np.array([], dtype=np.int64), Seeded(1)).tolist() == []


@pytest.mark.parametrize(
    "refused",
    [
        lambda: DoublePareto(unit=Fraction(0), tail=Fraction(2)),
        lambda: DoublePareto(unit=Fraction(1), tail=Fraction(-2)),
        lambda: DoublePareto(unit=Fraction(1), tail=Fraction(2)).sample(np.array([0]), Seeded(1)),
        lambda: DoublePareto(unit=Fraction(1), tail=Fraction(2)).sample(np.array([1]), Seeded(1), first_bits=54),
        lambda: DoublePareto(unit=Fraction(1), tail=Fraction(2)).quantile(1.0),
    ],
)
def test_parameters_without_a_meaning_are_refused(refused: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        refused()


noises = st.builds(
    DoublePareto,
    unit=st.fractions(min_value=Fraction(1, 20), max_value=40, max_denominator=10**6),
    tail=st.fractions(min_value=Fraction(101, 100), max_value=60, max_denominator=10**6),
)


@given(noise=noises, multiple=st.integers(1, 10**5))
def test_masses_sum_to_the_survival_they_leave(noise: DoublePareto, multiple: int) -> None:
    j = np.arange(-200, 201)
    m = np.full(len(j), multiple)
    total = np.exp(noise.log_mass(j, m)).sum()
    rest = noise.survival(np.array([201]), np.array([multiple]))[0]
    assert np.isclose(total + rest, 1, rtol=1e-12)


@given(noise=noises, multiple=st.integers(1, 10**5), j=st.integers(-(10**9), 10**9))
def test_mass_is_the_density_integrated_over_the_rounding_cell(noise: DoublePareto, multiple: int, j: int) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(40)
    low, high = (0.0, 0.5) if j == 0 else (abs(j) - 0.5, abs(j) + 0.5)
    z = (low + high) / 2 + (high - low) / 2 * nodes
    density = noise.log_density(z, np.full(len(z), multiple))
    peak = density.max()
    integral = peak + np.log((weights * np.exp(density - peak)).sum() * (high - low) / 2)
    mass = noise.log_mass(np.array([j]), np.array([multiple]))[0]
    scale = float(noise.unit * multiple)
    if scale > 2:  # forty nodes resolve the peak
        assert np.isclose(mass, integral + (np.log(2) if j == 0 else 0), rtol=1e-9, atol=1e-9)


def test_mass_far_in_the_tail_stays_accurate() -> None:
    noise = DoublePareto(unit=Fraction(1), tail=Fraction(40))
    j = np.array([10**12])
    expected = noise.log_density(j.astype(np.float64), np.array([10]))
    assert np.isclose(noise.log_mass(j, np.array([10]))[0], expected[0], rtol=1e-12)


@pytest.mark.parametrize("tail", ["1.01", "1.5", "5", "21", "42", "100"])
@pytest.mark.parametrize("scale", ["0.1", "0.7", "3", "10.5", "100", "1000"])
def test_expected_magnitude_is_the_hurwitz_zeta_function(tail: str, scale: str) -> None:
    # Σ (1 + (j − ½)/s)^(−a) = s^a·ζ(a, s + ½)
    a, s = float(tail), float(scale)
    log_zeta = np.log(zeta(a, s + 0.5)) if (s + 0.5) ** -a > 1e-290 else np.nan
    if np.isfinite(log_zeta):
        found = DoublePareto(unit=Fraction(scale), tail=Fraction(tail)).expected_magnitude(np.array([1]))
        assert np.isclose(found[0], np.exp(log_zeta + a * np.log(s)), rtol=1e-11)


@given(noise=noises, multiple=st.integers(1, 10**12))
def test_rounding_never_adds_to_the_mean_magnitude(noise: DoublePareto, multiple: int) -> None:
    continuous = float(noise.unit * multiple / (noise.tail - 1))
    rounded = noise.expected_magnitude(np.array([multiple]))[0]
    assert rounded <= continuous * (1 + 1e-12)


def test_expected_magnitude_keeps_the_order_of_the_multiples() -> None:
    noise = DoublePareto(unit=Fraction(1), tail=Fraction(4))
    mixed = noise.expected_magnitude(np.array([9, 2, 9, 5]))
    assert np.array_equal(mixed, [noise.expected_magnitude(np.array([m]))[0] for m in (9, 2, 9, 5)])


def test_a_tail_of_one_has_no_mean() -> None:
    noise = DoublePareto(unit=Fraction(1), tail=Fraction(1))
    assert np.isinf(noise.expected_magnitude(np.array([1, 2]))).all()


@pytest.mark.parametrize("probability", [0.0, 0.5, 0.9, 0.999999])
def test_quantile_is_exceeded_as_often_as_it_says(probability: float) -> None:
    noise = DoublePareto(unit=Fraction(1), tail=Fraction(21, 2))
    assert np.isclose((1 + noise.quantile(probability)) ** -10.5, 1 - probability, rtol=1e-9)
