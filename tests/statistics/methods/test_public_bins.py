"""Public bins: equal masses of a guess within declared bounds, and clear words about bins that cannot be."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato.errors import MethodError
from sfumato.statistics.people.bins import PublicBins


@given(
    number=st.integers(2, 200),
    median=st.integers(10**6, 10**8),
    sigma=st.fractions(Fraction(3, 10), Fraction(3, 2), max_denominator=100),
)
def test_every_bin_has_the_same_mass_of_the_guess_and_the_guess_is_found_again(
    number: int, median: int, sigma: Fraction
) -> None:
    bins = PublicBins.equal_mass(median=median, sigma=sigma, number=number, minimum=0, maximum=2**52)
    masses = np.diff(norm.cdf((np.log(np.maximum(bins.edges, 1e-9)) - np.log(median)) / float(sigma)))
    assert len(bins) == number
    assert masses == pytest.approx(1 / number, rel=1e-3)
    if number > 2:
        assert bins.guess == pytest.approx((np.log(median), float(sigma)), rel=1e-3)


def test_the_first_and_the_last_bin_reach_to_the_declared_bounds_or_five_deviations_out() -> None:
    guess = {"median": 45_000, "sigma": Fraction("0.75"), "number": 20}
    declared = PublicBins.equal_mass(**guess, minimum=1_000, maximum=10**6).edges
    assert (declared[0], declared[-1]) == (1_000, 10**6)
    free = PublicBins.equal_mass(**guess).edges
    assert free[1:-1] == declared[1:-1]
    assert np.log(np.array(free)[[0, -1]] / 45_000) == pytest.approx([-3.75, 3.75], rel=1e-3)


@given(number=st.integers(2, 90), groups=st.integers(2, 90))
def test_groups_are_whole_bins_as_even_as_they_can_be(number: int, groups: int) -> None:
    bins = PublicBins(edges=tuple(range(1, number + 2)))
    groups = min(groups, number)
    joined = bins.grouped(groups)
    assert len(joined) == groups
    assert set(joined.edges) <= set(bins.edges)
    assert (joined.edges[0], joined.edges[-1]) == (bins.edges[0], bins.edges[-1])
    assert max(np.diff(joined.edges)) - min(np.diff(joined.edges)) <= 1


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ((), "at least two bins"),
        ((0, 10), "at least two bins"),
        ((0, 10, 10), "increase strictly"),
        ((0, 20, 10), "increase strictly"),
        ((-5, 10, 20), "edges from 0"),
        ((0, 10, 2**54), "2\\^53"),
        ((0, 10.5, 20), "whole numbers"),
    ],
)
def test_edges_that_are_no_bins_are_refused(edges: tuple[int, ...], words: str) -> None:
    with pytest.raises(MethodError, match=words):
        PublicBins(edges=edges)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"number": 1}, "at least two bins"),
        ({"sigma": Fraction(0)}, "above 0"),
        ({"median": 0}, "above 0"),
        ({"minimum": 50_000}, "minimum < median < maximum"),
        ({"maximum": 45_000}, "minimum < median < maximum"),
        ({"maximum": 60_000}, "bounds outside the edges"),
        ({"minimum": 40_000}, "bounds outside the edges"),
        ({"median": 5, "minimum": 0, "number": 100}, "increase strictly"),
    ],
)
def test_a_guess_that_makes_no_bins_is_refused(changes: dict[str, object], words: str) -> None:
    guess: dict[str, object] = {"median": 45_000, "sigma": Fraction(1), "number": 20, "minimum": 0, "maximum": 10**6}
    with pytest.raises(MethodError, match=words):
        PublicBins.equal_mass(**(guess | changes))


@given(
    number=st.integers(2, 100),
    median=st.integers(10**4, 10**8),
    sigma=st.fractions(Fraction(1, 10), Fraction(3, 2), max_denominator=100),
    groups=st.integers(2, 100),
)
def test_bins_of_a_guess_are_those_of_equal_mass_with_more_of_them_far_out(
    number: int, median: int, sigma: Fraction, groups: int
) -> None:
    bins = PublicBins.of_guess(median=median, sigma=sigma, number=number, minimum=0)
    even = PublicBins.equal_mass(median=median, sigma=sigma, number=number, minimum=0)
    assert bins.even.edges[:-1] == even.edges[:-1]
    assert bins.guess == even.guess
    assert bins.edges[-2] > 15 * median
    assert bins.edges[1] < median / 15
    joined = bins.grouped(min(groups, number))
    assert joined.shares == min(groups, number)
    assert set(joined.edges) <= set(bins.edges)
    assert set(bins.even.grouped(min(groups, number)).inner) == set(joined.inner)


def test_bins_of_a_guess_end_at_the_declared_bounds() -> None:
    bins = PublicBins.of_guess(median=45_000, sigma=Fraction("0.7"), number=8, minimum=15_000, maximum=120_000)
    assert (bins.edges[0], bins.edges[-1]) == (15_000, 120_000)
    assert bins.edges[1] > 15_000
    assert bins.edges[-2] < 120_000
