"""Permanent factors: distorted enough, not too much, one on average, the same for ever, and secret."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from sfumato.noise.factors import ONE, Factors, hashes

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
    assert factors().of(hashes(["1", "12-345678", "Zürich"])).tolist() == [1180985, 824591, 1175081]


def test_another_key_or_purpose_gives_unrelated_factors(drawn: np.ndarray) -> None:
    for other in (factors(OTHER).of(UNITS), factors().of(UNITS, purpose="edges")):
        assert abs(np.corrcoef(drawn, other)[0, 1]) < 4 / np.sqrt(len(drawn))


def test_hashes_of_different_units_differ() -> None:
    assert len(np.unique(UNITS)) == len(UNITS)
    assert hashes([]).dtype == np.uint64


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
