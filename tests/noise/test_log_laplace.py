"""Log-Laplace noise has exactly the distribution that is stated."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.noise.laplace import LogLaplace
from sfumato.noise.randomness import Seeded
from sfumato.noise.refinement import SATURATION
from tests.noise.fit import ACCEPTED, REJECTED, Stuck, p_value

SETTINGS = [
    pytest.param(LogLaplace(unit=Fraction(1), spread=Fraction("0.0953"), offset=Fraction(10)), 10, id="an empty cell"),
    pytest.param(
        LogLaplace(unit=Fraction(1), spread=Fraction("0.0953"), offset=Fraction(10)), 4_321, id="a large cell"
    ),
    pytest.param(
        LogLaplace(unit=Fraction(1, 3), spread=Fraction("0.9"), offset=Fraction(20, 3)), 500, id="a wide spread"
    ),
    pytest.param(
        LogLaplace(unit=Fraction(99, 100), spread=Fraction("0.1"), offset=Fraction(10)), 10**12, id="billions"
    ),
]
noises = st.builds(
    LogLaplace,
    unit=st.fractions(min_value=Fraction(1, 100), max_value=50, max_denominator=10**6),
    spread=st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100), max_denominator=10**6),
    offset=st.fractions(min_value=Fraction(1, 10), max_value=1000, max_denominator=10**6),
)
multiples = st.one_of(st.integers(1, 1000), st.integers(1, 2**55))


def fit(drawn: NDArray[np.int64], noise: LogLaplace, multiple: int, spread: float = 1.0, median: float = 1.0) -> float:
    """Against the distribution function written out, with the spread and the median changed by factors."""
    power = 1 / (float(noise.spread) * spread)

    def survival(value: NDArray[np.int64]) -> NDArray[np.float64]:
        w = np.maximum((value - 0.5 + float(noise.offset)) / (float(noise.unit * multiple) * median), 1e-12)
        return np.where(w >= 1, 0.5 * np.maximum(w, 1) ** -power, 1 - 0.5 * np.minimum(w, 1) ** power)

    return p_value(drawn, survival)


@pytest.mark.parametrize(("noise", "multiple"), SETTINGS)
def test_noise_has_the_stated_distribution_and_no_parameter_off(noise: LogLaplace, multiple: int) -> None:
    drawn = noise.sample(np.full(400_000, multiple), Seeded(40))
    assert fit(drawn, noise, multiple) > ACCEPTED
    for factor in (0.9, 1.1):
        assert fit(drawn, noise, multiple, spread=factor) < REJECTED
        assert fit(drawn, noise, multiple, median=factor) < REJECTED


@pytest.mark.parametrize(("noise", "multiple"), SETTINGS)
@pytest.mark.parametrize("first_bits", [4, 8])
def test_forced_refining_gives_the_same_distribution(noise: LogLaplace, multiple: int, first_bits: int) -> None:
    drawn = noise.sample(np.full(5_000, multiple), Seeded(41), first_bits=first_bits)
    assert fit(drawn, noise, multiple) > ACCEPTED
    assert fit(drawn, noise, multiple, spread=1.3) < ACCEPTED


@given(noise=noises, multiple=multiples, upward=st.booleans(), bits=st.integers(1, 53), data=st.data())
def test_first_pass_agrees_with_many_digits_wherever_it_claims_certainty(
    noise: LogLaplace, multiple: int, upward: bool, bits: int, data: st.DataObject
) -> None:
    check(noise, multiple, upward, data.draw(st.integers(0, 2**bits - 1)), bits)


@given(noise=noises, multiple=multiples, j=st.integers(-1000, 10**6), off=st.integers(-40, 40))
def test_first_pass_agrees_with_many_digits_next_to_a_rounding_boundary(
    noise: LogLaplace, multiple: int, j: int, off: int
) -> None:
    w = max((j - 0.5 + float(noise.offset)) / float(noise.unit * multiple), 1e-300)
    head = int(min(w, 1 / w) ** (1 / float(noise.spread)) * 2**53) + off
    check(noise, multiple, w >= 1, min(max(head, 0), 2**53 - 1), 53)


def check(noise: LogLaplace, multiple: int, upward: bool, head: int, bits: int) -> None:
    value, certain = noise.first_pass(np.array([multiple]), np.array([head]), np.array([upward]), bits)
    if certain[0]:
        assert noise.value_bounds(noise.unit * multiple, upward, head, bits) == (value[0], value[0])


@given(noise=noises, multiple=multiples, upward=st.booleans(), bits=st.integers(2, 53), data=st.data())
def test_more_bits_never_leave_the_interval(
    noise: LogLaplace, multiple: int, upward: bool, bits: int, data: st.DataObject
) -> None:
    head, more = data.draw(st.integers(0, 2**bits - 1)), data.draw(st.integers(0, 2**20 - 1))
    low, high = noise.value_bounds(noise.unit * multiple, upward, head, bits)
    inner = noise.value_bounds(noise.unit * multiple, upward, head << 20 | more, bits + 20)
    assert low <= inner[0] <= inner[1] <= high


def test_the_extremes_are_saturation_above_and_the_offset_below() -> None:
    noise = LogLaplace(unit=Fraction(1), spread=Fraction(9, 10), offset=Fraction(10))
    assert noise.sample(np.array([2**40]), Stuck(0)).tolist() == [SATURATION]
    assert noise.sample(np.array([50]), Stuck(1)).tolist() == [-10]


@given(spread=st.floats(0.02, 0.3), count=st.integers(0, 300), shrink=st.floats(0.9, 1))
def test_masses_sum_to_one_and_make_the_expected_deviations(spread: float, count: int, shrink: float) -> None:
    noise = LogLaplace(unit=Fraction(shrink), spread=Fraction(spread), offset=Fraction(10))
    value, multiple = np.arange(-11, 200_000), np.array([count + 10])
    mass = np.exp(noise.log_mass(value, multiple))
    over, under = noise.expected_deviation(np.array([count]), multiple)
    beyond = noise.survival(np.array([200_000]), multiple)[0]
    assert np.isclose(mass.sum() + beyond, 1, rtol=1e-9)
    if beyond < 1e-9:
        assert np.isclose((mass * np.maximum(value - count, 0)).sum(), over[0], rtol=1e-3, atol=1e-6)
        assert np.isclose((mass * np.maximum(count - value, 0)).sum(), under[0], rtol=1e-6, atol=1e-6)


def test_the_lowest_value_is_the_same_in_every_pass_at_the_largest_offset() -> None:
    noise = LogLaplace(unit=Fraction(1), spread=Fraction(1, 10), offset=Fraction(SATURATION))
    for first_bits in (2, 53):
        drawn = noise.sample(np.array([1] * 50), Seeded(1), first_bits=first_bits)
        assert drawn.min() >= -SATURATION
        assert drawn.max() < -SATURATION + 10


@pytest.mark.parametrize(
    "wrong",
    [{"unit": Fraction(0)}, {"spread": Fraction(1)}, {"offset": Fraction(-1)}, {"offset": Fraction(SATURATION + 1)}],
)
def test_parameters_without_a_meaning_are_refused(wrong: dict[str, Fraction]) -> None:
    with pytest.raises(ValueError, match="must be"):
        LogLaplace(**({"unit": Fraction(1), "spread": Fraction(1, 2), "offset": Fraction(1)} | wrong))
