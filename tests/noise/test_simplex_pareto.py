"""The noise of a block has exactly the joint distribution that is stated, and each cell the double Pareto one."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import betaprime, binomtest, chisquare, kstest

from sfumato.noise.pareto import SimplexPareto
from sfumato.noise.passes import Uniforms
from sfumato.noise.randomness import Seeded
from sfumato.noise.refinement import SATURATION

ACCEPTED, REJECTED = 1e-3, 1e-6
BLOCKS = 60_000
# A scale so large that rounding to whole numbers does not show in a test of the continuous distribution.
FINE = 10**7

tails = pytest.mark.parametrize("tail", [Fraction("20.984117374"), Fraction(5, 2), Fraction("1.01")])
widths = pytest.mark.parametrize("cells", [1, 2, 3, 8])


class Stuck:
    """A source that gives the same word for ever."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, n: int, /) -> NDArray[np.uint64]:
        return np.full(n, self.word, dtype=np.uint64)


def drawn(tail: Fraction, cells: int, multiple: int = FINE, **options: int) -> NDArray[np.int64]:
    noise = SimplexPareto(unit=Fraction(1), tail=tail, cells=cells)
    return noise.sample(np.full(BLOCKS, multiple), Seeded(20), **options)


@tails
@widths
class TestFrequencies:
    def test_every_cell_by_itself_has_double_pareto_noise(self, tail: Fraction, cells: int) -> None:
        z = np.abs(drawn(tail, cells)) / FINE
        for c in range(cells):
            assert kstest(1 - (1 + z[:, c]) ** -float(tail), "uniform").pvalue > ACCEPTED

    def test_the_sum_of_magnitudes_is_a_ratio_of_gamma_variables(self, tail: Fraction, cells: int) -> None:
        norm = np.abs(drawn(tail, cells)).sum(axis=1) / FINE
        assert kstest(norm, betaprime(cells, float(tail)).cdf).pvalue > ACCEPTED

    @pytest.mark.parametrize("factor", [0.9, 1.1])
    def test_a_scale_ten_percent_off_is_rejected(self, tail: Fraction, cells: int, factor: float) -> None:
        norm = np.abs(drawn(tail, cells)).sum(axis=1) / FINE
        assert kstest(norm * factor, betaprime(cells, float(tail)).cdf).pvalue < REJECTED

    def test_a_tail_ten_percent_off_is_rejected(self, tail: Fraction, cells: int) -> None:
        norm = np.abs(drawn(tail, cells)).sum(axis=1) / FINE
        assert kstest(norm, betaprime(cells, 1.1 * float(tail)).cdf).pvalue < REJECTED

    def test_given_the_sum_the_magnitudes_are_uniform_on_the_simplex(self, tail: Fraction, cells: int) -> None:
        z = np.abs(drawn(tail, cells)).astype(np.float64)
        share = z[:, -1] / z.sum(axis=1)
        if cells > 1:  # the share of one of d is beta with parameters 1 and d − 1, whatever the sum
            for half in (z.sum(axis=1) < np.median(z.sum(axis=1)), z.sum(axis=1) >= np.median(z.sum(axis=1))):
                assert kstest(1 - (1 - share[half]) ** (cells - 1), "uniform").pvalue > ACCEPTED

    def test_all_combinations_of_signs_are_equally_likely(self, tail: Fraction, cells: int) -> None:
        positive = drawn(tail, cells) > 0
        seen = np.bincount(positive @ (1 << np.arange(cells)), minlength=1 << cells)
        assert chisquare(seen).pvalue > ACCEPTED

    def test_forced_refining_gives_the_same_distribution(self, tail: Fraction, cells: int) -> None:
        noise = SimplexPareto(unit=Fraction(1), tail=tail, cells=cells)
        few = noise.sample(np.full(600, 40), Seeded(21), first_bits=9)
        many = drawn(tail, cells, multiple=40)
        edges = np.unique(np.quantile(np.abs(many), np.linspace(0, 1, 13)[1:-1]))
        for c in range(cells):
            counts = [
                np.bincount(np.searchsorted(edges, np.abs(x[:, c])), minlength=len(edges) + 1) for x in (few, many)
            ]
            assert chisquare(counts[0], counts[1] * (counts[0].sum() / counts[1].sum())).pvalue > ACCEPTED


class TestWideBlocks:
    """As many cells as the full cross of worker attributes has, and as many as are allowed."""

    tail = Fraction("2000.999916675")

    @pytest.mark.parametrize(("cells", "blocks"), [(768, 4_000), (1_024, 4_000), (4_096, 1_000)])
    def test_the_sum_of_magnitudes_is_a_ratio_of_gamma_variables_and_a_scale_ten_percent_off_is_rejected(
        self, cells: int, blocks: int
    ) -> None:
        noise = SimplexPareto(unit=Fraction(1), tail=self.tail, cells=cells)
        norm = np.abs(noise.sample(np.full(blocks, FINE), Seeded(20))).sum(axis=1) / FINE
        expected = betaprime(cells, float(self.tail)).cdf
        assert kstest(norm, expected).pvalue > ACCEPTED
        for factor in (0.9, 1.1):
            assert kstest(norm * factor, expected).pvalue < REJECTED

    def test_every_cell_has_double_pareto_noise_whether_it_is_drawn_first_or_last(self) -> None:
        noise = SimplexPareto(unit=Fraction(1), tail=self.tail, cells=768)
        z = np.abs(noise.sample(np.full(12_000, FINE), Seeded(22)))[:, [0, 1, 383, 766, 767]] / FINE
        for c in range(z.shape[1]):
            assert kstest(1 - (1 + z[:, c]) ** -float(self.tail), "uniform").pvalue > ACCEPTED
            assert kstest(1 - (1 + 1.1 * z[:, c]) ** -float(self.tail), "uniform").pvalue < REJECTED

    @pytest.mark.parametrize("tail", [Fraction("2000.999916675"), Fraction(3)])
    @pytest.mark.parametrize(("cells", "bits"), [(768, 53), (768, 34), pytest.param(4_096, 53, marks=pytest.mark.slow)])
    def test_passes_agree_with_many_digits_wherever_they_claim_certainty(
        self, cells: int, bits: int, tail: Fraction
    ) -> None:
        noise, words = SimplexPareto(unit=Fraction(3, 7), tail=tail, cells=cells), Seeded(23).words(2 * cells)
        heads, multiple = (words[:cells] >> np.uint64(64 - bits)).astype(np.int64), 10**8
        magnitudes, certain = noise.first_pass(np.array([multiple]), heads[None], bits)
        bounds = noise.magnitude_bounds(noise.unit * multiple, heads.tolist(), bits)
        for magnitude, sure, (low, high) in zip(magnitudes[0], certain[0], bounds, strict=True):
            assert low <= high
            assert (low, high) == (magnitude, magnitude) if sure else magnitude == 0
        uniforms = Uniforms.of(heads[None], words[None, cells:], first_bits=bits)
        magnitudes, certain = noise.second_pass(np.array([multiple]), uniforms)
        longer = [head << 64 | word for head, word in zip(heads.tolist(), words[cells:].tolist(), strict=True)]
        bounds = noise.magnitude_bounds(noise.unit * multiple, longer, bits + 64)
        assert certain.all()
        assert [(m, m) for m in magnitudes[0].tolist()] == bounds


def test_whole_numbers_are_drawn_as_often_as_the_marginal_says() -> None:
    noise = SimplexPareto(unit=Fraction(1, 10), tail=Fraction(21), cells=3)
    j = noise.sample(np.full(200_000, 95), Seeded(3))
    for c in range(3):
        for magnitude in range(5):
            inside = noise.marginal.survival(np.array([magnitude]), np.array([95])) - noise.marginal.survival(
                np.array([magnitude + 1]), np.array([95])
            )
            assert binomtest(int((np.abs(j[:, c]) == magnitude).sum()), len(j), inside[0]).pvalue > ACCEPTED


def test_every_block_has_the_scale_of_its_own_multiple() -> None:
    noise = SimplexPareto(unit=Fraction(1), tail=Fraction(6), cells=2)
    multiples = np.tile([300_000, 70_000_000], 40_000)
    z = np.abs(noise.sample(multiples, Seeded(4))).sum(axis=1) / multiples
    for multiple in (300_000, 70_000_000):
        assert kstest(z[multiples == multiple], betaprime(2, 6).cdf).pvalue > ACCEPTED


units = st.fractions(min_value=Fraction(1, 100), max_value=50, max_denominator=10**9)
shapes = st.fractions(min_value=Fraction(1, 2), max_value=200, max_denominator=10**9)


@given(unit=units, tail=shapes, cells=st.integers(1, 5), multiple=st.integers(1, 10**9), data=st.data())
def test_first_pass_agrees_with_many_digits_wherever_it_claims_certainty(
    unit: Fraction, tail: Fraction, cells: int, multiple: int, data: st.DataObject
) -> None:
    noise = SimplexPareto(unit=unit, tail=tail, cells=cells)
    bits = data.draw(st.integers(2, 53))
    heads = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=cells, max_size=cells))
    magnitudes, certain = noise.first_pass(np.array([multiple]), np.array([heads]), bits)
    bounds = noise.magnitude_bounds(unit * multiple, heads, bits)
    for magnitude, sure, (low, high) in zip(magnitudes[0], certain[0], bounds, strict=True):
        assert low <= high
        assert (low, high) == (magnitude, magnitude) if sure else magnitude == 0


@given(unit=units, tail=shapes, cells=st.integers(1, 4), multiple=st.integers(1, 10**6), data=st.data())
def test_more_bits_never_leave_the_bounds(
    unit: Fraction, tail: Fraction, cells: int, multiple: int, data: st.DataObject
) -> None:
    noise = SimplexPareto(unit=unit, tail=tail, cells=cells)
    bits = data.draw(st.integers(2, 53))
    heads = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=cells, max_size=cells))
    more = data.draw(st.lists(st.integers(0, 2**20 - 1), min_size=cells, max_size=cells))
    outer = noise.magnitude_bounds(unit * multiple, heads, bits)
    inner = noise.magnitude_bounds(unit * multiple, [h << 20 | m for h, m in zip(heads, more, strict=True)], bits + 20)
    assert all(a <= b <= c <= d for (a, d), (b, c) in zip(outer, inner, strict=True))


def test_first_pass_is_certain_of_almost_every_ordinary_draw() -> None:
    heads = (Seeded(3).words(800_000) >> np.uint64(11)).astype(np.int64).reshape(-1, 8)
    noise = SimplexPareto(unit=Fraction(1), tail=Fraction(21), cells=8)
    assert noise.first_pass(np.full(len(heads), 2_000), heads, 53)[1].mean() > 0.9999


def test_words_of_zeros_saturate_upwards_and_words_of_ones_give_no_noise() -> None:
    noise = SimplexPareto(unit=Fraction(1), tail=Fraction(10), cells=3)
    assert (noise.sample(np.array([1, 50]), Stuck(0)) == SATURATION).all()
    assert (noise.sample(np.array([1, 10**9]), Stuck(2**64 - 1)) == 0).all()


def test_the_density_integrates_to_one() -> None:
    noise = SimplexPareto(unit=Fraction(1), tail=Fraction(6), cells=2)
    x = np.sinh(np.linspace(-6, 6, 1201))
    grid = np.stack(np.meshgrid(x, x), axis=-1)
    inner = np.trapezoid(np.exp(noise.log_density(grid, 2.0)), x, axis=1)
    assert np.isclose(np.trapezoid(inner, x), 1, rtol=1e-3)


def test_no_blocks_need_no_words() -> None:
    noise = SimplexPareto(unit=Fraction(1), tail=Fraction(2), cells=3)
    assert noise.sample(np.array([], dtype=np.int64), Seeded(1)).shape == (0, 3)


@pytest.mark.parametrize(
    "refused",
    [
        lambda noise: replace(noise, unit=Fraction(0)),
        lambda noise: replace(noise, tail=Fraction(-2)),
        lambda noise: replace(noise, cells=0),
        lambda noise: replace(noise, cells=4_097),
        lambda noise: noise.sample(np.array([0]), Seeded(1)),
        lambda noise: noise.sample(np.array([1]), Seeded(1), first_bits=54),
    ],
)
def test_parameters_without_a_meaning_are_refused(refused: Callable[[SimplexPareto], object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        refused(SimplexPareto(unit=Fraction(1), tail=Fraction(2), cells=2))
