"""The second pass: where it is certain it gives what exact arithmetic gives, and it settles nearly all at any scale."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.noise import laplace, refinement
from sfumato.noise import quartic as quartic_draws
from sfumato.noise.box_laplace import BoxLaplace
from sfumato.noise.box_pareto import BoxPareto
from sfumato.noise.geometric import Geometric
from sfumato.noise.laplace import LogLaplace, RoundedLaplace
from sfumato.noise.pareto import DoublePareto, SimplexPareto
from sfumato.noise.passes import Uniforms
from sfumato.noise.quartic import Quartic
from sfumato.noise.randomness import OperatingSystem, Seeded
from sfumato.noise.refinement import Twofold
from tests.noise.fit import ACCEPTED, REJECTED, p_value

Found = tuple[Integers, NDArray[np.bool_]]

ROWS = 300
LARGE = 2**46 - 5
"""A scale at which one float tells no whole number."""
OFFSET = Fraction(10)
DOUBLE_PARETO = DoublePareto(unit=Fraction(3, 7), tail=Fraction(5, 3))
ROUNDED_LAPLACE = RoundedLaplace(unit=Fraction(3, 7))
GEOMETRIC = Geometric(epsilon=Fraction(3, LARGE))
LOG_LAPLACE = LogLaplace(unit=Fraction(3, 7), spread=Fraction(1, 3), offset=OFFSET)
QUARTIC = Quartic(unit=Fraction(3, 7))
SIMPLEX = SimplexPareto(unit=Fraction(3, 7), tail=Fraction(3), cells=5)
BOX_PARETO = BoxPareto(unit=Fraction(3, 7), tail=Fraction(3), cells=5)
BOX_LAPLACE = BoxLaplace(scale=Fraction(1, 9), cells=5)
ZERO = np.arange(ROWS) % 6
UPWARD = np.arange(ROWS) % 2 == 0


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One sampler's second pass beside its bounds in many digits, for rows of so many uniforms."""

    uniforms: int
    second: Callable[[Integers, Uniforms], Found]
    bounds: Callable[[int, list[int], int], list[tuple[int, int]]]
    """Of one row whose multiples are all the same, from the bits of its uniforms and how many these are."""


def one(found: Found) -> Found:
    return found[0][:, None], found[1][:, None]


def column(uniforms: Uniforms) -> Uniforms:
    return Uniforms(lower=uniforms.lower[:, 0], bits=uniforms.bits)


COMPARED = {
    "double Pareto": lambda m: Compared(
        uniforms=1,
        second=lambda _, u: one(DOUBLE_PARETO.second_pass(np.full(ROWS, m), column(u))),
        bounds=lambda _, known, bits: [
            refinement.magnitude_bounds(
                tail=DOUBLE_PARETO.tail, scale=DOUBLE_PARETO.unit * m, numerator=known[0], bits=bits
            )
        ],
    ),
    "Laplace": lambda m: Compared(
        uniforms=1,
        second=lambda _, u: one(ROUNDED_LAPLACE.second_pass(np.full(ROWS, m), column(u))),
        bounds=lambda _, known, bits: [
            laplace.magnitude_bounds(scale=ROUNDED_LAPLACE.unit * m, numerator=known[0], bits=bits)
        ],
    ),
    "geometric": lambda m: Compared(
        uniforms=1,
        second=lambda _, u: one(Geometric(epsilon=Fraction(3, m)).second_pass(column(u))),
        bounds=lambda _, known, bits: [Geometric(epsilon=Fraction(3, m)).magnitude_bounds(known[0], bits)],
    ),
    "log-Laplace": lambda m: Compared(
        uniforms=1,
        second=lambda _, u: one(LOG_LAPLACE.second_pass(np.full(ROWS, m), UPWARD, column(u))),
        bounds=lambda row, known, bits: [
            LOG_LAPLACE.value_bounds(LOG_LAPLACE.unit * m, bool(UPWARD[row]), known[0], bits)
        ],
    ),
    "simplex Pareto": lambda m: Compared(
        uniforms=5,
        second=lambda _, u: SIMPLEX.second_pass(np.full(ROWS, m), u),
        bounds=lambda _, known, bits: SIMPLEX.magnitude_bounds(SIMPLEX.unit * m, known, bits),
    ),
    "box Pareto": lambda m: Compared(
        uniforms=12,
        second=lambda _, u: BOX_PARETO.second_pass(np.full((ROWS, 5), m), ZERO, u),
        bounds=lambda row, known, bits: BOX_PARETO.noise_bounds([BOX_PARETO.unit * m] * 5, int(ZERO[row]), known, bits),
    ),
    "box Laplace": lambda m: Compared(
        uniforms=12,
        second=lambda _, u: BOX_LAPLACE.second_pass(np.full((ROWS, 5), m), ZERO, u, unit=Fraction(3, 7), offset=OFFSET),
        bounds=lambda row, known, bits: BOX_LAPLACE.value_bounds(
            [Fraction(3, 7) * m] * 5, OFFSET, int(ZERO[row]), known, bits
        ),
    ),
}


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("multiple", [1, 1000, LARGE, 2**58])
def test_what_is_certain_is_what_many_digits_give(name: str, multiple: int) -> None:
    compared, chance = COMPARED[name](multiple), Seeded(multiple % 1000)
    heads = (chance.words(ROWS * compared.uniforms) >> np.uint64(11)).view(np.int64).reshape(ROWS, -1)
    words = chance.words(heads.size).reshape(heads.shape)
    with np.errstate(all="ignore"):
        found, certain = compared.second(np.arange(ROWS), Uniforms.of(heads, words, first_bits=53))
    assert certain.mean() > 0.995
    for row in range(ROWS):
        known = [head << 53 | word >> 11 for head, word in zip(heads[row].tolist(), words[row].tolist(), strict=True)]
        bounds = compared.bounds(row, known, 106)
        for place, (low, high) in enumerate(bounds):
            assert not certain[row, place] or found[row, place] == low == high


@pytest.mark.parametrize("multiple", [1, LARGE, 2**58])
def test_points_of_quartic_noise_that_are_certain_are_those_of_whole_numbers(multiple: int) -> None:
    chance = Seeded(91)
    heads = (chance.words(2 * ROWS) >> np.uint64(11)).view(np.int64).reshape(2, -1)
    words = chance.words(heads.size).reshape(heads.shape)
    across, up = (Uniforms.of(head, word, first_bits=53) for head, word in zip(heads, words, strict=True))
    scale = QUARTIC.unit * multiple
    magnitudes = Twofold.of_integers(np.full(ROWS, multiple)) * Twofold.of(QUARTIC.unit)
    found, certain = quartic_draws.second_pass(scale=magnitudes, across=across, up=up)
    assert certain.mean() > 0.995
    for i in np.flatnonzero(certain):
        t, v = (int(head[i]) << 53 | int(word[i]) >> 11 for head, word in zip(heads, words, strict=True))
        kind = quartic_draws.point(across=t, up=v, bits=106)
        if found[i] == quartic_draws.REJECTED:
            assert kind == "rejected"
        else:
            bounds = quartic_draws.magnitude_bounds(scale=scale, across=t, bits=106, inner=kind == "inner")
            assert kind != "rejected"
            assert bounds == (found[i], found[i])


def test_uniforms_that_may_be_zero_are_never_certain() -> None:
    nothing = np.zeros((ROWS, 12), dtype=np.int64)
    for name, compared in COMPARED.items():
        case = compared(LARGE)
        heads = nothing[:, : case.uniforms]
        with np.errstate(all="ignore"):
            _, certain = case.second(np.arange(ROWS), Uniforms.of(heads, heads.view(np.uint64), first_bits=53))
        assert not certain[:, -1].any(), name


def test_a_value_of_box_noise_at_a_rounding_boundary_is_left_in_doubt() -> None:
    noise, base, offset, step = BoxLaplace(scale=Fraction(9, 10), cells=5), 2**54, Fraction(10), Fraction(1)
    heads, words = (Seeded(seed).words(12)[None] >> np.uint64(11) for seed in (1, 2))
    known = [int(head) << 53 | int(word) for head, word in zip(heads[0], words[0], strict=True)]

    def bounds(offset: Fraction) -> tuple[int, int]:
        return noise.value_bounds([Fraction(base)] * 5, offset, 0, known, 106)[0]

    value = bounds(offset)[0]
    while len(set(bounds(offset))) == 1:  # halved until the bits not known yet decide between two whole numbers
        step /= 2
        assert step > Fraction(1, 2**90)
        offset += step if bounds(offset)[0] == value else -step
    uniforms = Uniforms.of(heads.view(np.int64), words << np.uint64(11), first_bits=53)
    _, certain = noise.second_pass(np.full((1, 5), base), np.array([0]), uniforms, unit=Fraction(1), offset=offset)
    assert not certain[0, 0]
    assert certain[0, 1:].all()


class Told:
    """Words that are told."""

    def __init__(self, *told: list[int]) -> None:
        self._told = list(told)

    def words(self, n: int, /) -> NDArray[np.uint64]:
        told = self._told.pop(0)
        assert len(told) == n
        return np.array(told, dtype=np.uint64)


def test_what_two_passes_leave_is_refined_at_the_scale_of_its_own_draw() -> None:
    # Both passes take these two uniforms for zero, and they turn out to be 2^−118. One goes up and the other down.
    multiples, told = np.array([2, 3]), ([0, 1], [0, 0], [2**63], [2**63])
    far = 118 * np.log(2) * 3 / 7
    assert ROUNDED_LAPLACE.sample(multiples, Told(*told)).tolist() == [round(2 * far), -round(3 * far)]
    pareto = DoublePareto(unit=Fraction(2), tail=Fraction(2))
    assert pareto.sample(multiples, Told(*told)).tolist() == [4 * (2**59 - 1), -6 * (2**59 - 1)]
    log_laplace = LogLaplace(unit=Fraction(3, 2), spread=Fraction(1, 2), offset=OFFSET)
    assert log_laplace.sample(multiples, Told(*told)).tolist() == [3 * 2**59 - 10, -10]


def test_what_two_passes_leave_of_box_noise_is_refined_at_its_own_size() -> None:
    # Uniforms of 2^−118 and ½ make a radius of 119·ln 2; the point is half of it away from zero.
    told = Told([0, 2**63], [0, 2**63], [0], [0, 0, 0, 0], [2**63, 0, 0, 0])
    noise = BoxLaplace(scale=Fraction(2, 7), cells=1)
    assert noise.sample(np.array([[2]]), told, unit=Fraction(3, 2), offset=OFFSET).tolist() == [[3 * 2**17 - 10]]


@pytest.mark.parametrize("off", [0.95, 1.05])
def test_noise_at_scales_beyond_one_float_has_its_distribution_and_no_scale_five_percent_off(off: float) -> None:
    multiples = np.full(600_000, LARGE)
    for noise in (DOUBLE_PARETO, ROUNDED_LAPLACE, QUARTIC):
        drawn = np.abs(noise.sample(multiples, Seeded(92)))
        assert p_value(drawn, lambda j, noise=noise: noise.survival(j, np.full(len(j), LARGE))) > ACCEPTED
        assert p_value(drawn, lambda j, noise=noise: noise.survival(j, np.full(len(j), off * LARGE))) < REJECTED
    drawn = np.abs(GEOMETRIC.sample(600_000, Seeded(93)))
    other = Geometric(epsilon=GEOMETRIC.epsilon * Fraction(off))
    assert p_value(drawn, GEOMETRIC.survival) > ACCEPTED
    assert p_value(drawn, other.survival) < REJECTED


def test_the_last_digits_of_large_noise_are_as_likely_as_each_other() -> None:
    """One float would leave out odd numbers from 2^53 on; exact noise has every one of them."""
    for noise in (DOUBLE_PARETO, ROUNDED_LAPLACE, QUARTIC):
        drawn = np.abs(noise.sample(np.full(40_000, 2**58), OperatingSystem()))
        last = np.bincount(drawn[drawn < refinement.SATURATION] % 8, minlength=8)
        assert ((last - last.mean()) ** 2 / last.mean()).sum() < 50, type(noise).__name__
