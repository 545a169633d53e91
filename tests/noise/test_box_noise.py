"""Box noise has exactly the joint distribution that is stated: its norm, its direction, and each cell by itself."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import betaprime, chisquare, gamma, kstest

from sfumato.noise.box_laplace import BoxLaplace, expected_deviation, relative_deviation
from sfumato.noise.box_pareto import BoxPareto, HullPoints, hull_norm
from sfumato.noise.randomness import Seeded

ACCEPTED, REJECTED = 1e-3, 1e-6
BLOCKS = 60_000
FINE = 10**8  # so large that rounding does not show in a test of the continuous distribution
WIDTHS = [1, 2, 3, 8]

widths = pytest.mark.parametrize("cells", WIDTHS)
settings = pytest.mark.parametrize(
    ("cells", "tail"), [(d, tail) for d in WIDTHS for tail in (Fraction("13.984117374"), Fraction(5, 2))]
)


def pareto(cells: int, tail: Fraction) -> NDArray[np.float64]:
    noise = BoxPareto(unit=Fraction(1), tail=tail, cells=cells)
    return noise.sample(np.full((BLOCKS, cells), FINE), Seeded(30)) / FINE


def logs(cells: int, scale: Fraction) -> NDArray[np.float64]:
    """The noise on the logarithms, read off values that are large."""
    noise = BoxLaplace(scale=scale, cells=cells)
    values = noise.sample(np.full((BLOCKS, cells), 10**8), Seeded(31), unit=Fraction(1), offset=Fraction(0))
    return np.log(values / 1e8)


def tail_by_quadrature(x: float, cells: int, radius: Callable[[float], float]) -> float:
    """P(R·|W_c| > x), integrated over the distribution of R, whose density is given."""
    d = cells

    def beyond(w: float) -> float:
        return (2 * (1 - w) + (d - 1) * (1 - w) ** 2) / (d + 1)

    return quad(lambda r: radius(r) * beyond(x / r), x, np.inf, limit=200)[0]


@widths
def test_points_of_the_hull_are_uniform(cells: int) -> None:
    w = HullPoints.draw(BLOCKS, cells, Seeded(5), bits=53).coordinates
    assert kstest(hull_norm(w) ** cells, "uniform").pvalue > ACCEPTED
    assert chisquare(np.bincount((w < 0).sum(axis=1), minlength=cells + 1)).pvalue > ACCEPTED


def test_points_of_a_cube_would_not_pass_for_points_of_the_hull() -> None:
    w = np.random.default_rng(1).uniform(-1, 1, (BLOCKS, 3))
    assert chisquare(np.bincount((w < 0).sum(axis=1), minlength=4)).pvalue < REJECTED


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=6), st.data())
def test_the_norm_of_the_hull_is_a_norm_and_falls_when_coordinates_shrink(
    values: list[float], data: st.DataObject
) -> None:
    z = np.array(values)
    other = np.array(data.draw(st.lists(st.floats(-10, 10), min_size=len(z), max_size=len(z))))
    shrink = np.array(data.draw(st.lists(st.floats(0.5, 1), min_size=len(z), max_size=len(z))))
    assert hull_norm(z + other) <= hull_norm(z) + hull_norm(other) + 1e-9
    assert np.isclose(hull_norm(-3 * z), 3 * hull_norm(z))
    assert 0.5 * hull_norm(z) - 1e-12 <= hull_norm(shrink * z) <= hull_norm(z)
    assert np.isclose(hull_norm(np.abs(z)), np.abs(z).max())


@settings
def test_the_norm_of_pareto_noise_is_a_ratio_of_gamma_variables(cells: int, tail: Fraction) -> None:
    norm = hull_norm(pareto(cells, tail))
    assert kstest(norm, betaprime(cells, float(tail)).cdf).pvalue > ACCEPTED
    for factor in (0.9, 1.1):
        assert kstest(norm * factor, betaprime(cells, float(tail)).cdf).pvalue < REJECTED


@settings
def test_the_direction_of_pareto_noise_is_that_of_the_hull_near_and_far(cells: int, tail: Fraction) -> None:
    z = pareto(cells, tail)
    far = hull_norm(z) > np.median(hull_norm(z))
    for part in (z[far], z[~far]):
        assert chisquare(np.bincount((part < 0).sum(axis=1), minlength=cells + 1)).pvalue > ACCEPTED


@settings
def test_one_cell_of_pareto_noise_strays_as_often_as_its_tail_says(cells: int, tail: Fraction) -> None:
    noise = BoxPareto(unit=Fraction(1), tail=tail, cells=cells)
    z = np.abs(pareto(cells, tail))
    for c in range(cells):
        assert kstest(1 - noise.survival(z[:, c]), "uniform").pvalue > ACCEPTED
        assert kstest(1 - noise.survival(1.1 * z[:, c]), "uniform").pvalue < REJECTED


@settings
def test_the_tail_of_one_cell_is_what_quadrature_finds(cells: int, tail: Fraction) -> None:
    noise = BoxPareto(unit=Fraction(1), tail=tail, cells=cells)
    radius = betaprime(cells + 1, float(tail)).pdf
    for x in (0.01, 0.3, 2.0):
        assert np.isclose(noise.survival(np.array(x)), tail_by_quadrature(x, cells, radius), rtol=1e-6)


@widths
def test_the_mean_magnitude_is_two_thirds_of_the_cubes_in_many_cells(cells: int) -> None:
    noise = BoxPareto(unit=Fraction(1), tail=Fraction(14), cells=cells)
    found = noise.expected_magnitude(np.array([[10**6]]))[0, 0] / 10**6
    assert np.isclose(found, (cells + 2) / 3 / 13, rtol=1e-6)
    assert np.isclose(np.abs(pareto(cells, Fraction(14))).mean(), found, rtol=0.02)


@pytest.mark.parametrize("multiple", [1, 4, 30, 2_000])
@widths
def test_the_mean_magnitude_after_rounding_is_the_sum_of_the_tail(cells: int, multiple: int) -> None:
    noise = BoxPareto(unit=Fraction(1), tail=Fraction(9), cells=cells)
    j = np.arange(1, 400 * multiple + 400)
    expected = noise.survival((j - 0.5) / multiple).sum()
    assert np.isclose(noise.expected_magnitude(np.array([multiple]))[0], expected, rtol=1e-6)


@widths
def test_the_norm_of_logarithmic_noise_is_a_gamma_variable(cells: int) -> None:
    norm = hull_norm(logs(cells, Fraction("0.05"))) / 0.05
    assert kstest(norm, gamma(cells).cdf).pvalue > ACCEPTED
    for factor in (0.9, 1.1):
        assert kstest(norm * factor, gamma(cells).cdf).pvalue < REJECTED


@widths
def test_one_cell_of_logarithmic_noise_strays_as_often_as_its_tail_says(cells: int) -> None:
    z = np.abs(logs(cells, Fraction("0.05"))) / 0.05
    one_cell = BoxLaplace(scale=Fraction("0.05"), cells=cells).one_cell
    for c in range(cells):
        assert kstest(1 - one_cell.at(z[:, c]), "uniform").pvalue > ACCEPTED
    for x in (0.1, 1.0, 6.0):
        assert np.isclose(one_cell.at(np.array(x)), tail_by_quadrature(x, cells, gamma(cells + 1).pdf), rtol=1e-6)


@pytest.mark.parametrize("scale", ["0.001", "0.05", "0.3", "0.8"])
@widths
def test_the_mean_of_the_exponential_is_what_quadrature_finds(cells: int, scale: str) -> None:
    noise = BoxLaplace(scale=Fraction(scale), cells=cells)
    b = float(scale)
    by_parts = quad(lambda x: float(noise.one_cell.at(np.array(x))) * np.sinh(b * x), 0, 400, limit=400)[0]
    assert np.isclose(noise.growth, 1 + b * by_parts, rtol=1e-7)


def test_in_one_cell_the_exponential_is_that_of_the_laplace_distribution() -> None:
    assert np.isclose(BoxLaplace(scale=Fraction(1, 4), cells=1).growth, 1 / (1 - 1 / 16))


@pytest.mark.parametrize("count", [0, 1, 7, 250, 30_000])
@widths
def test_expected_deviation_is_what_is_drawn_and_what_a_direct_sum_gives(cells: int, count: int) -> None:
    noise = BoxLaplace(scale=Fraction("0.048"), cells=cells)
    unit, offset = Fraction(f"{1 / noise.growth:.12g}"), Fraction(10)
    over, under = expected_deviation(noise, np.array([count]), np.array([count + 10]), unit=unit, offset=offset)
    levels = np.log((np.arange(-9, 60 * (count + 40)) - 0.5 + 10) / ((count + 10) * float(unit)))
    half = noise.one_cell.at(np.abs(levels) / 0.048) / 2
    reached = np.where(levels >= 0, half, 1 - half)  # P(V ≥ v) for v from −9 on
    mean = -10 + reached.sum()
    error = (1 - reached[: count + 10]).sum() + reached[count + 10 :].sum()
    assert np.isclose(over[0] + under[0], error, rtol=1e-5)
    assert np.isclose(over[0] - under[0], mean - count, atol=1e-5 * (count + 10))
    drawn = noise.sample(np.full((BLOCKS, cells), count + 10), Seeded(3), unit=unit, offset=offset) - count
    assert abs(np.abs(drawn).mean() - error) < 4 * np.abs(drawn).mean(axis=1).std() / np.sqrt(BLOCKS)


@widths
def test_relative_deviation_is_the_error_of_a_large_count(cells: int) -> None:
    noise = BoxLaplace(scale=Fraction("0.048"), cells=cells)
    unit = Fraction(f"{1 / noise.growth:.12g}")
    over, under = expected_deviation(noise, np.array([10**8]), np.array([10**8]), unit=unit, offset=Fraction(0))
    assert np.isclose((over + under)[0] / 10**8, relative_deviation(noise), rtol=1e-6)


tails = st.fractions(min_value=Fraction(1, 2), max_value=200, max_denominator=10**9)
scales = st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(99, 100), max_denominator=10**9)


def known(data: st.DataObject, cells: int) -> tuple[NDArray[np.int64], HullPoints]:
    bits = data.draw(st.integers(2, 53))
    both = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=2 * cells + 2, max_size=2 * cells + 2))
    zero = data.draw(st.integers(0, cells))
    points = HullPoints(heads=np.array([both[cells + 1 :]]), zero=np.array([zero]), bits=bits)
    return np.array([both[: cells + 1]]), points


@given(tail=tails, cells=st.integers(1, 4), multiple=st.integers(1, 10**9), data=st.data())
def test_first_pass_of_pareto_noise_agrees_with_many_digits(
    tail: Fraction, cells: int, multiple: int, data: st.DataObject
) -> None:
    noise = BoxPareto(unit=Fraction(1, 7), tail=tail, cells=cells)
    heads, points = known(data, cells)
    found, certain = noise.first_pass(np.full((1, cells), multiple), heads, points)
    both = [*heads[0].tolist(), *points.heads[0].tolist()]
    bounds = noise.noise_bounds([Fraction(multiple, 7)] * cells, int(points.zero[0]), both, points.bits)
    for j, sure, (low, high) in zip(found[0], certain[0], bounds, strict=True):
        assert low <= high
        assert (low, high) == (j, j) if sure else j == 0


@given(scale=scales, cells=st.integers(1, 4), base=st.integers(1, 10**9), data=st.data())
def test_first_pass_of_logarithmic_noise_agrees_with_many_digits(
    scale: Fraction, cells: int, base: int, data: st.DataObject
) -> None:
    noise, unit, offset = BoxLaplace(scale=scale, cells=cells), Fraction(3, 7), Fraction(10)
    heads, points = known(data, cells)
    found, certain = noise.first_pass(np.full((1, cells), base), heads, points, unit=unit, offset=offset)
    both = [*heads[0].tolist(), *points.heads[0].tolist()]
    bounds = noise.value_bounds([unit * base] * cells, offset, int(points.zero[0]), both, points.bits)
    for value, sure, (low, high) in zip(found[0], certain[0], bounds, strict=True):
        assert low <= high
        assert (low, high) == (value, value) if sure else value == 0


@pytest.mark.parametrize("cells", [1, 2, 3])
def test_forced_refining_gives_the_same_distributions(cells: int) -> None:
    pareto = BoxPareto(unit=Fraction(1), tail=Fraction(9), cells=cells)
    laplace = BoxLaplace(scale=Fraction(1, 5), cells=cells)
    forms = {"unit": Fraction(1), "offset": Fraction(10)}
    for sample in (
        lambda n, seed, bits: pareto.sample(np.full((n, cells), 12), Seeded(seed), first_bits=bits),
        lambda n, seed, bits: laplace.sample(np.full((n, cells), 60), Seeded(seed), first_bits=bits, **forms),
    ):
        few, many = sample(600, 40, 9), sample(BLOCKS, 41, 53)
        edges = np.unique(np.quantile(many, np.linspace(0, 1, 11)[1:-1]))
        counts = [np.bincount(np.searchsorted(edges, x[:, -1]), minlength=len(edges) + 1) for x in (few, many)]
        assert chisquare(counts[0], counts[1] * (counts[0].sum() / counts[1].sum())).pvalue > ACCEPTED


@pytest.mark.parametrize(
    "refused",
    [
        lambda: BoxPareto(unit=Fraction(0), tail=Fraction(2), cells=2),
        lambda: BoxPareto(unit=Fraction(1), tail=Fraction(2), cells=0),
        lambda: BoxPareto(unit=Fraction(1), tail=Fraction(2), cells=2).sample(np.array([[1, 0]]), Seeded(1)),
        lambda: BoxPareto(unit=Fraction(1), tail=Fraction(2), cells=2).sample(np.array([1, 1]), Seeded(1)),
        lambda: BoxPareto(unit=Fraction(1), tail=Fraction(2), cells=2).quantile(1.0),
        lambda: BoxLaplace(scale=Fraction(1), cells=2),
        lambda: BoxLaplace(scale=Fraction(1, 2), cells=129),
    ],
)
def test_parameters_without_a_meaning_are_refused(refused: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        refused()
