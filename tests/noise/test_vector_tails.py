"""Tails of the form e^(−x)·polynomial, and words laid out in blocks."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare, gamma

from sfumato.noise.box_pareto import Tail, hull_tail, sum_tail
from sfumato.noise.passes import choices
from sfumato.noise.randomness import Seeded

WIDTHS = [1, 2, 5, 8, 40, 128]


@pytest.mark.parametrize("cells", WIDTHS)
def test_a_tail_begins_at_its_probability_and_falls(cells: int) -> None:
    x = np.linspace(0, 60, 301)
    assert np.isclose(hull_tail(cells).at(np.array(0.0)), 1)
    assert np.isclose(sum_tail(cells).at(np.array(0.0)), 0.5)
    for tail in (hull_tail(cells), sum_tail(cells)):
        assert np.all(np.diff(tail.at(x)) <= 0)
        assert np.all(np.diff(tail.mixed(x, 7.5)) <= 0)


@pytest.mark.parametrize("cells", [1, 2, 5, 8])
def test_the_tail_of_a_sum_of_laplace_variables_is_what_a_simulation_shows(cells: int) -> None:
    sums = np.random.default_rng(1).laplace(size=(200_000, cells)).sum(axis=1)
    for x in (0.5, 2.0, 5.0):
        expected = float(sum_tail(cells).at(np.array(x)))
        assert abs((sums > x).mean() - expected) < 4 * np.sqrt(expected / len(sums))


@pytest.mark.parametrize("cells", [1, 3, 8])
@pytest.mark.parametrize("shape", [1.5, 14.0])
def test_a_mixed_tail_is_the_mean_over_a_gamma_variable(cells: int, shape: float) -> None:
    tail = hull_tail(cells)
    for x in (0.05, 1.0, 4.0):
        mean = quad(lambda g, x=x: float(tail.at(np.array(x * g))) * gamma(shape).pdf(g), 0, 200, limit=400)[0]
        assert np.isclose(tail.mixed(np.array(x), shape), mean, rtol=1e-6)


@pytest.mark.parametrize("rate", [0.3, 1.0, 1.7])
def test_an_integral_is_what_quadrature_finds(rate: float) -> None:
    tail = hull_tail(5)
    for x in (0.0, 0.7, 6.0):
        found = quad(lambda u: float(tail.at(np.array(u))) * np.exp((1 - rate) * u), x, 300, limit=400)[0]
        assert np.isclose(tail.integral(rate).at(np.array(rate * x)), found, rtol=1e-7)


@pytest.mark.parametrize("cells", WIDTHS)
@pytest.mark.parametrize("probability", [0.6, 0.9, 0.999])
def test_a_quantile_is_exceeded_as_often_as_it_says_and_never_more(cells: int, probability: float) -> None:
    for tail in (hull_tail(cells), sum_tail(cells)):
        plain, mixed = np.array(tail.quantile(probability)), np.array(tail.mixed_quantile(probability, 9.0))
        for beyond in (tail.at(plain), tail.mixed(mixed, 9.0)):
            assert beyond <= 1 - probability
            assert np.isclose(beyond, 1 - probability, rtol=1e-6)


def test_a_quantile_below_what_a_one_sided_tail_leaves_is_zero() -> None:
    assert Tail(logs=(float(np.log(0.5)),)).quantile(0.4) == 0


@pytest.mark.parametrize("options", [1, 2, 3, 9, 128])
def test_choices_are_equally_likely(options: int) -> None:
    found = choices(50_000, options, Seeded(2))
    assert chisquare(np.bincount(found, minlength=options)).pvalue > 1e-3 if options > 1 else not found.any()


def test_words_that_would_favour_some_options_are_drawn_again() -> None:
    class Top:
        """The highest word first, then ones that choose the second option."""

        def __init__(self) -> None:
            self.left = 1

        def words(self, n: int, /) -> np.ndarray:
            first, self.left = self.left, 0
            return np.full(n, 2**64 - 1 if first else 1, dtype=np.uint64)

    assert choices(4, 3, Top()).tolist() == [1, 1, 1, 1]
