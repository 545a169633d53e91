"""Numbers as sums of two floats: every operation keeps the bound that the second pass of the samplers relies on."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.noise.refinement import ERROR, SATURATION, Twofold, precise

DIGITS = 60
floats = st.floats(min_value=1e-30, max_value=1e30) | st.floats(min_value=-1e30, max_value=-1e-30)
shares = st.floats(min_value=-1, max_value=1)
uniform = np.random.default_rng(90).uniform


def pair(high: float, share: float) -> Twofold:
    """A float and at most half of its last digit."""
    return Twofold.total(np.array([high]), np.array([high * share * 2.0**-53]))


def exact(value: Twofold, place: int = 0) -> Fraction:
    return Fraction(float(value.high[place])) + Fraction(float(value.low[place]))


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@given(a=floats, b=floats)
def test_sums_and_products_of_floats_are_exact(a: float, b: float) -> None:
    one, other = np.array([a]), np.array([b])
    assert exact(Twofold.total(one, other)) == Fraction(a) + Fraction(b)
    assert exact(Twofold.product(one, other)) == Fraction(a) * Fraction(b)


@given(a=floats, b=floats, more=shares, rest=shares)
def test_one_operation_errs_by_less_than_stated(a: float, b: float, more: float, rest: float) -> None:
    one, other = pair(a, more), pair(b, rest)
    x, y = exact(one), exact(other)
    for found, true in ((one + other, x + y), (one - other, x - y), (one * other, x * y), (one / other, x / y)):
        assert abs(exact(found) - true) <= abs(true) * Fraction(ERROR) / 2
    assert abs(exact(one + b) - (x + Fraction(b))) <= abs(x + Fraction(b)) * Fraction(ERROR) / 2 or x + Fraction(b) == 0


@pytest.mark.parametrize(("low", "high"), [(-600, 600), (-1, 1), (0, 90), (-1e-9, 1e-9), (-1e-30, 1e-30)])
def test_exponentials_err_by_less_than_stated(low: float, high: float) -> None:
    y = Twofold.total(uniform(low, high, 400), uniform(-1, 1, 400) * max(-low, high) * 2.0**-54)
    found = y.exp()
    with localcontext(precise(DIGITS)):
        for i in range(400):
            exponent = decimal(exact(y, i))
            assert abs(decimal(exact(found, i)) / exponent.exp() - 1) < Decimal(ERROR) / 2 * (1 + abs(exponent))


def test_exponentials_too_far_out_are_moved_to_where_they_can_be_told() -> None:
    found = Twofold(np.array([1e5, np.inf, -1e5]), np.zeros(3)).exp()
    assert np.all(found.high[:2] > 2.0**860)
    assert 0 < found.high[2] < 2.0**-860


@pytest.mark.parametrize("bits", [0, 1, 20, 53, 117])
def test_logarithms_err_by_less_than_stated(bits: int) -> None:
    x = Twofold.total(uniform(0.5, 1, 400) * 2.0**-bits, uniform(0, 1, 400) * 2.0 ** (-54 - bits))
    found = x.log()
    with localcontext(precise(DIGITS)):
        for i in range(400):
            log = decimal(exact(x, i)).ln()
            assert abs(decimal(exact(found, i)) - log) < Decimal(ERROR) / 2 * (1 + abs(log))


@given(step=st.integers(1, 2**50))
def test_logarithms_close_to_one_keep_their_sign_and_their_digits(step: int) -> None:
    x = Twofold.total(np.array([1.0]), np.array([-step * 2.0**-106]))
    with localcontext(precise(DIGITS)):
        assert abs(decimal(exact(x.log())) - decimal(exact(x)).ln()) < Decimal(ERROR) / 2


@given(values=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5))
def test_whole_numbers_are_exact(values: list[int]) -> None:
    found = Twofold.of_integers(np.array(values))
    assert [exact(found, i) for i in range(len(values))] == values


@given(value=st.fractions(min_value=Fraction(1, 10**18), max_value=10**18))
def test_a_fraction_is_kept_to_a_hundred_and_six_bits(value: Fraction) -> None:
    found = Twofold.row([value])
    assert abs(exact(found) - value) <= value / 2**106


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 129])
def test_sums_of_columns(columns: int) -> None:
    terms = Twofold.total(uniform(0, 1, (2, columns)), uniform(0, 1, (2, columns)) * 2.0**-53)
    running, whole = terms.running_sums(), terms.sums()
    for row in range(2):
        true = Fraction(0)
        for column in range(columns):
            true += exact(terms[row], column)
            assert abs(exact(running[row], column) - true) <= true * Fraction(ERROR)
        assert abs(exact(whole[row]) - true) <= true * Fraction(ERROR)


@given(
    whole=st.integers(-(2**61), 2**61),
    share=st.fractions(min_value=0, max_value=Fraction(999, 1000)),
    below=st.floats(0, 2),
    above=st.floats(0, 2),
)
def test_a_whole_part_is_certain_only_if_the_whole_interval_shares_it(
    whole: int, share: Fraction, below: float, above: float
) -> None:
    value = Twofold.row([whole + share])
    found, certain = value.whole_parts(below=np.array([below]), above=np.array([above]))
    ends = exact(value) - Fraction(below), exact(value) + Fraction(above)
    if certain[0]:
        assert ends[0] // 1 == ends[1] // 1 == found[0]
    else:
        slack = Fraction(1, 2**48)
        assert found[0] == 0
        assert (ends[0] - slack) // 1 != (ends[1] + slack) // 1


def test_what_is_beyond_any_count_saturates_and_what_may_not_be_is_left_in_doubt() -> None:
    value = Twofold(np.array([2.0**70, -(2.0**70), 2.0**62, 2.0**70, np.nan]), np.zeros(5))
    found, certain = value.whole_parts(below=np.array([1.0, 1, 1, 2.0**70, 1]), above=np.zeros(5))
    assert found.tolist() == [SATURATION, -SATURATION, 0, 0, 0]
    assert certain.tolist() == [True, True, False, False, False]
