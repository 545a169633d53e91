"""The number of neighbour steps between two α, against counting them one by one."""

from fractions import Fraction
from math import ceil, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.privacy.steps import neighbour_steps


def reach(size: int, alpha: Fraction) -> int:
    return max(int((1 + alpha) * size), size + 1)


def counted(alpha: Fraction, wider: Fraction, *, below: int) -> int:
    """The most steps any size below a limit needs, by walking from it."""

    def steps(size: int) -> int:
        target, count = reach(size, wider), 0
        while size < target:
            size, count = reach(size, alpha), count + 1
        return count

    return max(map(steps, range(below)))


fractions = st.builds(Fraction, st.integers(1, 30), st.integers(1, 30))


@pytest.mark.parametrize(
    ("alpha", "wider", "steps"),
    [
        ("1/10", "1/2", 7),  # from 14 to 21; the logarithms say 5
        ("1/10", "21/100", 3),  # 1.1² is 1.21 exactly, but rounding costs a third step
        ("1/10", "331/1000", 5),
        ("1/100", "1/2", 67),
        ("1/20", "1/10", 3),
        ("1/200", "1/2", 133),
        ("1/2", "5/4", 3),
        ("3/2", "21/4", 3),
    ],
)
def test_steps_are_what_counting_one_by_one_gives(alpha: str, wider: str, steps: int) -> None:
    assert neighbour_steps(Fraction(alpha), Fraction(wider)) == steps
    assert counted(Fraction(alpha), Fraction(wider), below=3000) == steps


@given(alpha=fractions, wider=fractions)
@settings(deadline=None, max_examples=200)
def test_no_size_needs_more_steps_and_some_size_needs_as_many(alpha: Fraction, wider: Fraction) -> None:
    # With denominators up to 30 the size that needs most steps is below 100; larger ones confirm it.
    assert neighbour_steps(alpha, wider) == counted(alpha, wider, below=600)


@given(alpha=fractions, power=st.integers(2, 4))
@settings(deadline=None, max_examples=60)
def test_an_exact_power_needs_more_steps_than_its_exponent_unless_nothing_is_rounded(
    alpha: Fraction, power: int
) -> None:
    steps = neighbour_steps(alpha, (1 + alpha) ** power - 1)
    assert (steps == power) == (alpha.denominator == 1)


@given(alpha=fractions, narrower=fractions)
def test_a_narrower_alpha_is_one_step(alpha: Fraction, narrower: Fraction) -> None:
    assert neighbour_steps(max(alpha, narrower), min(alpha, narrower)) == 1


@pytest.mark.parametrize("gap", [Fraction(1, 10**k) for k in (3, 6, 9, 12, 15)])
def test_a_power_missed_by_a_hair_is_still_decided_exactly(gap: Fraction) -> None:
    """Just below 1.1² two steps suffice from about 1/gap workers on; smaller sizes decide, and need three."""
    assert neighbour_steps(Fraction(1, 10), Fraction(21, 100) - gap) == 3


def test_numbers_beyond_64_bits_are_counted_exactly() -> None:
    tenth = Fraction(0.1)  # the binary fraction next to a tenth, with a denominator of 2⁵⁵
    assert neighbour_steps(tenth, Fraction(1, 2)) == counted(tenth, Fraction(1, 2), below=2000)


@pytest.mark.parametrize("denominator", [100, 1000, 10000])
def test_small_alpha_needs_many_more_steps_than_the_logarithms_say(denominator: int) -> None:
    """Below 2/α workers a step adds a single one, so growing by a half up to there takes 2/(3α) steps."""
    steps = neighbour_steps(Fraction(1, denominator), Fraction(1, 2))
    assert steps == ceil(Fraction(2 * denominator, 3)) > 1.6 * log(1.5) / log(1 + 1 / denominator)


def test_alpha_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        neighbour_steps(Fraction(0), Fraction(1, 2))
