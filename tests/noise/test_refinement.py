"""The interval that is known of |Z|, and the first pass that must never claim more than it knows."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.noise.passes import first_pass
from sfumato.noise.randomness import Seeded
from sfumato.noise.refinement import SATURATION, magnitude_bounds, refine

units = st.fractions(min_value=Fraction(1, 100), max_value=50, max_denominator=10**9)
tails = st.fractions(min_value=Fraction(1, 2), max_value=200, max_denominator=10**9)
multiples = st.one_of(st.integers(1, 100), st.integers(1, 10**6), st.integers(1, 2**62))


def boundary(tail: Fraction, scale: Fraction, j: int, bits: int) -> int:
    """The first bits of the U at which |Z| passes from rounding to j to rounding to j − 1."""
    with localcontext(prec=80):
        ratio = 1 + (Fraction(2 * j - 1, 2)) / scale
        log = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        return int((-log * tail.numerator / tail.denominator).exp() * 2**bits)


def test_bounds_enclose_a_value_known_in_closed_form() -> None:
    # Tail 1 and scale 8: |Z| = 8(1/U − 1). U in [5/8, 6/8] gives |Z| in [2.67, 4.8].
    assert magnitude_bounds(tail=Fraction(1), scale=Fraction(8), numerator=5, bits=3) == (3, 5)


def test_a_uniform_that_may_be_zero_has_no_upper_bound_but_saturation() -> None:
    low, high = magnitude_bounds(tail=Fraction(1), scale=Fraction(8), numerator=0, bits=3)
    assert (low, high) == (56, SATURATION)


@given(tail=tails, unit=units, multiple=multiples, bits=st.integers(2, 53), data=st.data())
def test_more_bits_never_leave_the_interval(
    tail: Fraction, unit: Fraction, multiple: int, bits: int, data: st.DataObject
) -> None:
    head = data.draw(st.integers(0, 2**bits - 1))
    more = data.draw(st.integers(0, 2**20 - 1))
    low, high = magnitude_bounds(tail=tail, scale=unit * multiple, numerator=head, bits=bits)
    inner_low, inner_high = magnitude_bounds(
        tail=tail, scale=unit * multiple, numerator=head << 20 | more, bits=bits + 20
    )
    assert low <= inner_low <= inner_high <= high


@given(tail=tails, unit=units, multiple=multiples, bits=st.integers(1, 53), data=st.data())
def test_first_pass_agrees_with_many_digits_wherever_it_claims_certainty(
    tail: Fraction, unit: Fraction, multiple: int, bits: int, data: st.DataObject
) -> None:
    head = data.draw(st.integers(0, 2**bits - 1))
    check_first_pass(tail, unit, multiple, head, bits)


@given(tail=tails, unit=units, multiple=multiples, j=st.integers(1, 10**6), off=st.integers(-40, 40))
def test_first_pass_agrees_with_many_digits_next_to_a_rounding_boundary(
    tail: Fraction, unit: Fraction, multiple: int, j: int, off: int
) -> None:
    head = boundary(tail, unit * multiple, j, 53) + off
    check_first_pass(tail, unit, multiple, min(max(head, 0), 2**53 - 1), 53)


def check_first_pass(tail: Fraction, unit: Fraction, multiple: int, head: int, bits: int) -> None:
    magnitude, certain = first_pass(
        tail=tail, unit=unit, multiples=np.array([multiple]), heads=np.array([head]), bits=bits
    )
    if certain[0]:
        expected = int(magnitude[0])
        bounds = magnitude_bounds(tail=tail, scale=unit * multiple, numerator=head, bits=bits)
        assert bounds == (expected, expected)
    else:
        assert magnitude[0] == 0


def test_first_pass_is_certain_of_almost_every_ordinary_draw() -> None:
    heads = (Seeded(3).words(100_000) >> np.uint64(11)).astype(np.int64)
    multiples = np.full(len(heads), 2_000)
    _, certain = first_pass(tail=Fraction(21), unit=Fraction(1), multiples=multiples, heads=heads, bits=53)
    assert certain.mean() > 0.9999


def test_first_pass_is_never_certain_at_a_uniform_of_zero() -> None:
    _, certain = first_pass(tail=Fraction(21), unit=Fraction(1), multiples=np.array([1]), heads=np.array([0]), bits=53)
    assert not certain[0]


@pytest.mark.parametrize("j", [1, 2, 3, 5])
def test_a_draw_on_the_boundary_is_decided_by_further_bits(j: int) -> None:
    tail, scale = Fraction("20.98"), Fraction("10.5")
    head = boundary(tail, scale, j, 53)
    assert magnitude_bounds(tail=tail, scale=scale, numerator=head, bits=53) == (j - 1, j)
    drawn = {refine(tail=tail, scale=scale, numerator=head, bits=53, randomness=Seeded(seed)) for seed in range(40)}
    assert drawn == {j - 1, j}


def test_refining_ignores_the_precision_a_user_set_for_decimals() -> None:
    arguments = {"tail": Fraction("20.98"), "scale": Fraction(10**9), "numerator": 12345, "bits": 53}
    with localcontext(prec=2):
        coarse = magnitude_bounds(**arguments)
    assert coarse == magnitude_bounds(**arguments)
