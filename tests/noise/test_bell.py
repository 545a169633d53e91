"""Bell noise and noise on inverse hyperbolic sines have exactly the distributions that are stated."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chisquare, kstest

from sfumato.arrays import Floats, Integers
from sfumato.noise.bell import SimplexBell
from sfumato.noise.box_bell import BoxBell, Corners
from sfumato.noise.box_pareto import HullPoints, hull_norm
from sfumato.noise.box_sinh import BoxSinh
from sfumato.noise.randomness import Seeded
from tests.noise.fit import ACCEPTED, REJECTED, Stuck

BLOCKS = 40_000
# A scale so large that rounding to whole numbers does not show in a test of the continuous distribution.
FINE = 10**7

# At ε = 2 and α = 0.1 and 0.05, and where the noise hardly exists.
shapes = pytest.mark.parametrize(
    ("rate", "cells"), [("20.984117374", 1), ("20.984117374", 8), ("40.99", 3), ("8.02", 8), ("20.984117374", 20)]
)


def simplex(rate: str, cells: int) -> SimplexBell:
    return SimplexBell(unit=Fraction(1), rate=Fraction(rate), cells=cells)


def box(rate: str, cells: int) -> BoxBell:
    """With a piece of even slope in the middle, or without where the others meet below it."""
    steepest = (Fraction(rate) - cells + 1) * Fraction("1.05")
    return BoxBell(unit=Fraction(1), rate=Fraction(rate), steepest=steepest, cells=cells)


def fall(noise: SimplexBell | BoxBell, w: float) -> float:
    """By how much ln h falls at w: the least of the three slopes, as the proof has it."""
    d, rate = noise.cells, float(noise.rate)
    outer, steepest = (rate + d, rate) if isinstance(noise, SimplexBell) else (rate + 1, float(noise.steepest))
    return min((rate - d) / (1 - w) if w < 1 else np.inf, steepest, outer / (1 + w))


def radius_below(noise: SimplexBell | BoxBell) -> Callable[[Floats], Floats]:
    """P(radius ≤ w), by integrating the stated slopes and nothing of the code."""
    grid = np.concatenate([np.linspace(0, 3, 60_001), np.geomspace(3, 3_000, 20_001)[1:]])
    middles, steps = (grid[1:] + grid[:-1]) / 2, np.diff(grid)
    logs = np.concatenate([[0.0], -np.cumsum([fall(noise, w) for w in middles] * steps)])
    with np.errstate(divide="ignore"):
        density = np.exp((noise.cells - 1) * np.log(np.maximum(grid, 1e-300)) + logs)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * steps)])
    return lambda w: np.interp(w, grid, below / below[-1])


def drawn(noise: SimplexBell | BoxBell, **options: int) -> tuple[Floats, Floats]:
    """Noise in scales, and its norms."""
    if isinstance(noise, SimplexBell):
        z = noise.sample(np.full(BLOCKS, FINE), Seeded(20), **options) / FINE
        return z, np.abs(z).sum(axis=1)
    z = noise.sample(np.full((BLOCKS, noise.cells), FINE), Seeded(20), **options) / FINE
    return z, hull_norm(z)


@shapes
@pytest.mark.parametrize("make", [simplex, box])
class TestFrequencies:
    def test_norms_are_those_of_the_stated_slopes_and_a_scale_ten_percent_off_is_rejected(
        self, make: Callable[[str, int], SimplexBell | BoxBell], rate: str, cells: int
    ) -> None:
        noise = make(rate, cells)
        _, norm = drawn(noise)
        below = radius_below(noise)
        assert kstest(below(norm), "uniform").pvalue > ACCEPTED
        for factor in (0.9, 1.1):
            assert kstest(below(factor * norm), "uniform").pvalue < REJECTED

    def test_every_cell_by_itself_has_the_law_that_figures_are_made_from(
        self, make: Callable[[str, int], SimplexBell | BoxBell], rate: str, cells: int
    ) -> None:
        noise = make(rate, cells)
        z, _ = drawn(noise)
        for c in {0, cells - 1}:
            assert kstest(1 - noise.marginal.survival(np.abs(z[:4_000, c])), "uniform").pvalue > ACCEPTED
            assert kstest(1 - noise.marginal.survival(np.abs(z[:4_000, c]) * 1.15), "uniform").pvalue < 1e-3
        if noise.radii.pieces[-1].power - cells > 4:  # elsewhere a mean of draws is no estimate of it
            assert np.isclose(np.abs(z).mean(), noise.marginal.mean, rtol=0.03)
        assert np.isclose((np.abs(z[:, 0]) > noise.marginal.quantile(0.9)).mean(), 0.1, atol=0.006)

    def test_all_signs_are_as_likely(
        self, make: Callable[[str, int], SimplexBell | BoxBell], rate: str, cells: int
    ) -> None:
        z, _ = drawn(make(rate, cells))
        assert chisquare([(z[:, 0] > 0).sum(), (z[:, 0] < 0).sum()]).pvalue > ACCEPTED


def test_given_the_sum_the_magnitudes_are_uniform_on_the_simplex() -> None:
    z, norm = drawn(simplex("20.984117374", 8))
    share = np.abs(z[:, -1]) / norm
    for half in (norm < np.median(norm), norm >= np.median(norm)):  # on either side of where the pieces meet
        assert kstest(1 - (1 - share[half]) ** 7, "uniform").pvalue > ACCEPTED


def test_given_the_norm_points_are_those_of_a_uniform_point_of_the_hull() -> None:
    corners = Corners.draw(60_000, 3, Seeded(4), bits=53).coordinates
    points = HullPoints.draw(60_000, 3, Seeded(5), bits=53).coordinates
    points /= hull_norm(points)[:, None]
    assert np.allclose(hull_norm(corners), 1)
    for c in range(3):
        assert kstest(corners[:, c], points[:, c]).pvalue > ACCEPTED
    assert kstest(corners.sum(axis=1), points.sum(axis=1)).pvalue > ACCEPTED


def test_sums_of_cells_exceed_what_is_stated_as_often_as_stated() -> None:
    noise = simplex("20.984117374", 8)
    z, _ = drawn(noise)
    for cells in (1, 3, 8):
        total = z[:, :cells].sum(axis=1)
        assert np.isclose((total > noise.sum_quantile(cells, 0.05)).mean(), 0.05, atol=0.005)
        assert np.isclose(np.abs(total).mean(), noise.sum_mean(cells), rtol=0.02)


def test_errors_of_rounded_noise_are_what_is_drawn() -> None:
    noise = simplex("20.984117374", 8)
    for multiple in (4, 11, 300):
        z = noise.sample(np.full(BLOCKS, multiple), Seeded(6))
        assert np.isclose(np.abs(z).mean(), noise.marginal.expected_magnitude(np.array([multiple]))[0], rtol=0.02)


@pytest.mark.parametrize("noise", [simplex("20.984117374", 3), box("20.984117374", 3)])
def test_forced_refining_gives_the_same_distribution(noise: SimplexBell | BoxBell) -> None:
    def sample(blocks: int, seed: int, bits: int) -> Integers:
        scales = np.full(blocks, 40) if isinstance(noise, SimplexBell) else np.full((blocks, 3), 40)
        return noise.sample(scales, Seeded(seed), first_bits=bits)

    few, many = sample(600, 21, 9), sample(40_000, 22, 53)
    edges = np.unique(np.quantile(many, np.linspace(0, 1, 13)[1:-1]))
    for c in range(3):
        counts = [np.bincount(np.searchsorted(edges, x[:, c]), minlength=len(edges) + 1) for x in (few, many)]
        assert chisquare(counts[0], counts[1] * (counts[0].sum() / counts[1].sum())).pvalue > ACCEPTED


rates = st.fractions(min_value=Fraction(13, 2), max_value=3000, max_denominator=10**6)


@given(rate=rates, cells=st.integers(1, 5), multiple=st.integers(1, 10**8), piece=st.integers(0, 1), data=st.data())
def test_first_pass_agrees_with_many_digits_wherever_it_claims_certainty(
    rate: Fraction, cells: int, multiple: int, piece: int, data: st.DataObject
) -> None:
    noise = SimplexBell(unit=Fraction(1, 64), rate=rate, cells=cells)
    bits = data.draw(st.integers(4, 53))
    heads = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=cells, max_size=cells))
    found, doubtful = noise.first_pass(np.array([multiple]), np.array([piece]), np.array([heads]), bits)
    bounds = noise.row_bounds(noise.unit * multiple, piece)
    inner = bounds(heads, bits)
    assert all(low <= high for low, high in inner)
    if not len(doubtful):
        accepted, *magnitudes = found[0].tolist()
        assert inner[0] == (accepted, accepted)
        assert not accepted or inner[1:] == [(m, m) for m in magnitudes]
    more = data.draw(st.lists(st.integers(0, 2**20 - 1), min_size=cells, max_size=cells))
    longer = bounds([h << 20 | m for h, m in zip(heads, more, strict=True)], bits + 20)
    assert all(a <= b <= c <= d for (a, d), (b, c) in zip(inner, longer, strict=True))


@given(rate=rates, cells=st.integers(2, 5), multiple=st.integers(1, 10**8), data=st.data())
def test_first_pass_in_the_box_agrees_with_many_digits(
    rate: Fraction, cells: int, multiple: int, data: st.DataObject
) -> None:
    noise = BoxBell(unit=Fraction(1, 3), rate=rate, steepest=rate - cells + Fraction(1, 2), cells=cells)
    bits, piece = data.draw(st.integers(4, 53)), data.draw(st.integers(0, len(noise.radii.pieces) - 1))
    heads = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=2 * cells + 1, max_size=2 * cells + 1))
    zero, other = data.draw(st.integers(0, cells)), data.draw(st.integers(0, cells - 1))
    one = other + (other >= zero)
    points = Corners(heads=np.array([heads[cells:]]), zero=np.array([zero]), one=np.array([one]), bits=bits)
    scales = np.full((1, cells), multiple)
    found, doubtful = noise.first_pass(scales, np.array([piece]), np.array([heads[:cells]]), points)
    if not len(doubtful):
        bounds = noise.row_bounds(scales[0].tolist(), piece, (zero, one))(heads, bits)
        accepted, *values = found[0].tolist()
        assert bounds[0] == (accepted, accepted)
        assert not accepted or bounds[1:] == [(v, v) for v in values]


@pytest.mark.parametrize("noise", [simplex("20.984117374", 8), box("20.984117374", 8), simplex("2000.5", 1_000)])
def test_pieces_are_chosen_as_often_as_their_masses_say(noise: SimplexBell | BoxBell) -> None:
    radii = noise.radii
    seen = np.bincount(radii.choose(50_000, Seeded(3)), minlength=len(radii.pieces))
    ends = [float(low) for low, _ in radii.thresholds(30)]
    assert chisquare(seen, np.diff([0.0, *ends, 1.0]) * 50_000).pvalue > ACCEPTED
    below, above = radii.thresholds(30)[0]
    assert 0 < above - below < Fraction(1, 10**29)


def test_a_uniform_next_to_the_end_of_a_piece_is_refined_until_it_is_certain() -> None:
    radii = simplex("20.984117374", 8).radii
    (below, above), *_ = radii.thresholds(60)
    head = int(below * 2**64)
    for word, expected in ((0, 0), (2**64 - 1, 1)):
        assert radii._chosen_exactly(head, Stuck(word)) == expected
    assert below < above


class TestSines:
    noise = BoxSinh(scale=Fraction("0.047655"), cells=4, size=Fraction("10.476"))

    @pytest.mark.parametrize("count", [0, 3, 40, 100_000])
    def test_values_are_right_on_average_and_off_by_what_is_stated(self, count: int) -> None:
        values = self.noise.sample(np.full((BLOCKS, 4), count), Seeded(7))
        off = values - count
        over, under = (found[0] for found in self.noise.expected_deviation(np.array([count])))
        assert abs(off.mean() - (over - under)) < 5 * off.std() / np.sqrt(off.size / 4)
        assert np.isclose(np.abs(off).mean(), over + under, rtol=0.02)
        assert over + under <= self.noise.error_share * np.hypot(count, 10.476) + 0.01
        for other in (Fraction("0.9"), Fraction("1.1")):
            wrong = replace(self.noise, scale=self.noise.scale * other).expected_deviation(np.array([count]))
            assert not np.isclose(np.abs(off).mean(), sum(wrong), rtol=0.05)

    def test_inverse_hyperbolic_sines_have_the_noise_of_log_box(self) -> None:
        values = self.noise.sample(np.full((BLOCKS, 4), 10**9), Seeded(8))
        z = np.arcsinh(values / float(self.noise.size * self.noise.factor)) - np.arcsinh(10**9 / 10.476)
        tail = self.noise.logarithm.one_cell
        for c in range(4):
            assert kstest(1 - tail.at(np.abs(z[:, c]) / 0.047655), "uniform").pvalue > ACCEPTED
            assert kstest(1 - tail.at(1.1 * np.abs(z[:, c]) / 0.047655), "uniform").pvalue < REJECTED

    def test_forced_refining_gives_the_same_values_on_average(self) -> None:
        few, many = (
            self.noise.sample(np.full((n, 4), 40), Seeded(9), first_bits=b) for n, b in ((500, 9), (BLOCKS, 53))
        )
        assert abs(few.mean() - many.mean()) < 4 * few.std() / np.sqrt(len(few))

    @given(count=st.integers(0, 10**9), bits=st.integers(4, 53), data=st.data())
    def test_first_pass_agrees_with_many_digits(self, count: int, bits: int, data: st.DataObject) -> None:
        heads = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=10, max_size=10))
        zero = data.draw(st.integers(0, 4))
        points = HullPoints(heads=np.array([heads[5:]]), zero=np.array([zero]), bits=bits)
        found, certain = self.noise.first_pass(np.full((1, 4), count), np.array([heads[:5]]), points)
        bounds = self.noise.value_bounds([count] * 4, zero)(heads, bits)
        for value, sure, (low, high) in zip(found[0].tolist(), certain[0], bounds, strict=True):
            assert low <= high
            assert not sure or (low, high) == (value, value)


def test_the_law_of_radii_is_what_its_slopes_integrate_to() -> None:
    noise = simplex("12.5", 3)
    height = lambda w: w**2 * np.exp(noise.radii.log_height(np.array([w]))[0])  # noqa: E731
    whole = quad(height, 0, 0.24)[0] + quad(height, 0.24, np.inf)[0]
    assert np.isclose(np.log(whole), noise.radii.log_mass, rtol=1e-8)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: simplex("8", 8),
        lambda: simplex("20", 0),
        lambda: simplex("5000", 4_097),
        lambda: box("8", 8),
        lambda: box("200", 129),
        lambda: BoxBell(unit=Fraction(1), rate=Fraction(20), steepest=Fraction(11), cells=8),
        lambda: simplex("20", 2).sample(np.array([0]), Seeded(1)),
        lambda: BoxSinh(scale=Fraction(2), cells=2, size=Fraction(10)),
        lambda: BoxSinh(scale=Fraction(1, 2), cells=2, size=Fraction(10)).sample(np.array([[-1, 0]]), Seeded(1)),
    ],
)
def test_parameters_without_a_meaning_are_refused(refused: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        refused()
