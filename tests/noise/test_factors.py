"""Permanent factors: distorted enough, not too much, one on average, the same for ever, and secret."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binomtest, kstest

from sfumato.noise.factors import ONE, Factors
from sfumato.noise.keyed import hashes

KEY, OTHER = bytes(range(16)), bytes(16)
LEAST, MOST = Fraction("0.15"), Fraction("0.25")
UNITS = hashes(map(str, range(200_000)))


def factors(key: bytes = KEY) -> Factors:
    return Factors(key=key, least=LEAST, most=MOST)


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    return factors().of(UNITS)


def test_factor_is_never_closer_to_one_than_the_least_distortion(drawn: np.ndarray) -> None:
    assert np.abs(drawn - ONE).min() >= LEAST * ONE


def test_factor_is_never_farther_from_one_than_the_most_distortion(drawn: np.ndarray) -> None:
    assert np.abs(drawn - ONE).max() <= MOST * ONE


def test_factors_are_one_on_average_and_as_often_above_as_below(drawn: np.ndarray) -> None:
    assert abs(drawn.mean() / ONE - 1) < 4 * drawn.std() / ONE / np.sqrt(len(drawn))
    assert binomtest(int((drawn > ONE).sum()), len(drawn)).pvalue > 1e-3


def test_distortions_have_the_density_that_falls_evenly_from_the_least_to_the_most(drawn: np.ndarray) -> None:
    least, most = float(LEAST), float(MOST)
    distortion = np.abs(drawn - ONE) / ONE

    def below(x: np.ndarray, most: float = most) -> np.ndarray:
        return 1 - (np.clip(most - x, 0, None) / (most - least)) ** 2

    assert kstest(distortion, below).pvalue > 1e-3
    assert kstest(distortion, lambda x: below(x, most * 1.1)).pvalue < 1e-6


def test_a_factor_depends_on_the_unit_and_not_on_its_company(drawn: np.ndarray) -> None:
    order = np.random.default_rng(1).permutation(len(UNITS))
    assert np.array_equal(factors().of(UNITS[order]), drawn[order])
    assert factors().of(UNITS[:1])[0] == drawn[0]
    assert len(factors().of(UNITS[:0])) == 0


def test_factors_stay_as_they_are_in_every_version() -> None:
    assert factors().of(hashes(["1", "12-345678", "Zürich"])).tolist() == [1174831, 1191901, 802872]


def test_another_key_or_purpose_gives_unrelated_factors(drawn: np.ndarray) -> None:
    for other in (factors(OTHER).of(UNITS), factors().of(UNITS, purpose="edges")):
        assert abs(np.corrcoef(drawn, other)[0, 1]) < 4 / np.sqrt(len(drawn))


@pytest.mark.parametrize(("least", "most"), [("0.15", "0.25"), ("0.05", "0.9"), ("0.099999", "0.1")])
def test_the_moments_are_those_of_the_density(least: str, most: str) -> None:
    a, b = 1 + float(Fraction(least)), 1 + float(Fraction(most))

    def mean_of(power: int) -> float:
        above = quad(lambda x: abs(x - 1) ** power * (b - x) / (b - a) ** 2, a, b)[0]
        below = quad(lambda x: abs(x - 1) ** power * (b + x - 2) / (b - a) ** 2, 2 - b, 2 - a)[0]
        return above + below

    stated = Factors(key=KEY, least=Fraction(least), most=Fraction(most))
    assert mean_of(0) == pytest.approx(1, rel=1e-9)
    assert stated.mean_distortion == pytest.approx(mean_of(1), rel=1e-9)
    assert stated.deviation == pytest.approx(np.sqrt(mean_of(2)), rel=1e-9)


def test_the_moments_are_those_of_the_factors(drawn: np.ndarray) -> None:
    distortion = np.abs(drawn - ONE) / ONE
    assert distortion.mean() == pytest.approx(factors().mean_distortion, rel=1e-3)
    assert np.sqrt((distortion**2).mean()) == pytest.approx(factors().deviation, rel=1e-3)


def test_the_secrets_are_in_no_text_and_no_error() -> None:
    text = repr(factors()) + str(factors())
    assert not any(secret in text for secret in (str(KEY), "0.15", "3/20", "1/4", "0.25"))
    with pytest.raises(ValueError, match="16 bytes") as refusal:
        Factors(key=b"short secret", least=LEAST, most=MOST)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(("least", "most"), [("0", "0.2"), ("0.2", "0.1"), ("0.2", "1"), ("1/3", "0.5")])
def test_distortions_out_of_range_or_finer_than_millionths_are_refused(least: str, most: str) -> None:
    with pytest.raises(ValueError, match="least < most"):
        Factors(key=KEY, least=Fraction(least), most=Fraction(most))
