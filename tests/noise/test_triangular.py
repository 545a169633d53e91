"""Triangular noise and directions from keyed words: their range, their distribution, and the same for ever."""

import numpy as np
import pytest
from scipy.stats import binomtest, kstest, triang

from sfumato.noise.factors import ONE, directions, triangular
from sfumato.noise.keyed import Keyed, hashes

SPREAD = 300_000
B = SPREAD / ONE
N = 400_000
KEYED = Keyed(key=bytes(range(16)))
UNITS = np.arange(N, dtype=np.uint64)


@pytest.fixture(scope="module")
def noise() -> np.ndarray:
    return triangular(KEYED.words(UNITS, purpose="noise"), spread=SPREAD)


@pytest.fixture(scope="module")
def turned() -> np.ndarray:
    return directions(KEYED.words(UNITS, purpose="direction"))


def test_noise_stays_within_its_spread_and_reaches_its_ends() -> None:
    ends = triangular(np.array([0, 2**64 - 1], dtype=np.uint64), spread=SPREAD)
    assert ends.tolist() == [ONE - SPREAD, ONE + SPREAD]


def test_noise_is_symmetric_word_by_word_so_that_its_mean_is_exactly_one() -> None:
    words = KEYED.words(UNITS, purpose="noise")
    assert np.array_equal(triangular(~words, spread=SPREAD) - ONE, ONE - triangular(words, spread=SPREAD))


def test_noise_has_the_triangular_distribution_and_not_one_that_is_three_percent_wider(noise: np.ndarray) -> None:
    def fit(b: float) -> float:
        return float(kstest(noise / ONE, triang(0.5, loc=1 - b, scale=2 * b).cdf).pvalue)

    assert fit(B) > 1e-3
    assert fit(B * 1.03) < 1e-6
    assert fit(B / 1.03) < 1e-6


def test_the_variance_is_a_sixth_of_the_squared_spread_and_not_a_twelfth(noise: np.ndarray) -> None:
    centred = noise / ONE - 1
    error = np.sqrt((centred**4).mean() / N)
    assert abs((centred**2).mean() - B**2 / 6) < 4 * error
    assert abs((centred**2).mean() - B**2 / 12) > 100 * error


def test_directed_noise_has_mean_zero_and_variance_one_and_a_sixth_of_the_squared_spread(
    noise: np.ndarray, turned: np.ndarray
) -> None:
    directed = turned * noise / ONE
    assert abs(directed.mean()) < 4 * directed.std() / np.sqrt(N)
    error = (directed**2).std() / np.sqrt(N)
    assert abs((directed**2).mean() - (1 + B**2 / 6)) < 4 * error
    assert abs((directed**2).mean() - (1 + B**2 / 12)) > 10 * error


def test_directions_are_fair(turned: np.ndarray) -> None:
    assert set(turned) == {-1, 1}
    assert binomtest(int((turned > 0).sum()), N).pvalue > 1e-3


def test_noise_and_directions_stay_as_they_are_in_every_version() -> None:
    units = hashes(["1", "12-345678", "Zürich"])
    assert triangular(KEYED.words(units, purpose="noise"), spread=SPREAD).tolist() == [1006711, 875510, 965624]
    assert directions(KEYED.words(units, purpose="direction")).tolist() == [-1, -1, 1]


def test_no_words_give_no_noise() -> None:
    nothing = np.empty(0, dtype=np.uint64)
    assert len(triangular(nothing, spread=SPREAD)) == len(directions(nothing)) == 0


@pytest.mark.parametrize("spread", [0, -1, ONE, 2 * ONE])
def test_a_spread_that_would_let_noise_vanish_or_turn_around_is_refused(spread: int) -> None:
    with pytest.raises(ValueError, match="spread"):
        triangular(np.zeros(1, dtype=np.uint64), spread=spread)
