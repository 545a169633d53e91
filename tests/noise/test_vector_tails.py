"""Tails of the form e^(−x)·polynomial, and words laid out in blocks."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from math import comb

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


@pytest.mark.parametrize("cells", [1, 2, 5, 17])
def test_the_tail_of_a_sum_is_the_mean_over_how_many_are_positive(cells: int) -> None:
    d, found = cells, [Fraction(0)] * cells
    for k in range(1, d + 1):  # with k positive ones it is the difference of two gamma variables of shapes k and d − k
        rest = d - k
        inner = [Fraction(comb(rest + n - 1, n), 2 ** (rest + n)) if rest else Fraction(n == 0) for n in range(k)]
        for j, within in enumerate(reversed(list(accumulate(inner)))):
            found[j] += Fraction(comb(d, k), 2**d) * within
    assert shares_of_a_sum(d) == found


def shares_of_a_sum(cells: int) -> list[Fraction]:
    """j!·c_j of the tail of a sum of Laplace variables, exactly."""
    terms = (Fraction(comb(cells + n - 1, n), 2 ** (cells + n)) for n in range(cells))
    return list(reversed(list(accumulate(terms))))


def exact_mixed(shares: list[Fraction], x: float, shape: Fraction) -> Decimal:
    """E[T(xG)] to fifty digits: the mean of the shares over a negative binomial number."""
    with localcontext(prec=60):
        m, at = Decimal(shape.numerator) / shape.denominator, Decimal(x)
        term, total = (-m * (1 + at).ln()).exp(), Decimal(0)
        for j, share in enumerate(shares):
            total += term * share.numerator / share.denominator
            term = term * (m + j) / (j + 1) * at / (1 + at)
        return total


@pytest.mark.parametrize("cells", [129, 768, 1_024, pytest.param(4_096, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", [Fraction(3), Fraction("803.9"), Fraction(2 * 10**7)])
def test_quantiles_of_the_sum_of_many_cells_are_not_exceeded_more_often_in_exact_arithmetic(
    cells: int, shape: Fraction
) -> None:
    tail, shares = sum_tail(cells), shares_of_a_sum(cells)
    for probability in (0.9, 0.99, 0.999):
        x = tail.mixed_quantile(probability, float(shape))
        beyond = float(exact_mixed(shares, x, shape)) / (1 - probability)
        assert 1 - 1e-7 < beyond <= 1
        assert np.isclose(float(tail.mixed(np.array(x), float(shape))) / (1 - probability), beyond, rtol=1e-10)


@pytest.mark.parametrize("cells", [129, 1_024])
def test_the_mean_of_the_sum_of_many_cells_is_what_exact_arithmetic_gives(cells: int) -> None:
    exact = sum(shares_of_a_sum(cells))  # the integral of e^(−x)·x^j/j! is 1
    assert np.isclose(float(sum_tail(cells).integral().at(np.array(0.0))), float(exact), rtol=1e-11)


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
