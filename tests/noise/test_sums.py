"""Sums of independent noise: what they are off by follows from the laws of their parts."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.noise.geometric import Geometric
from sfumato.noise.pareto import DoublePareto, SimplexPareto
from sfumato.noise.quartic import Quartic
from sfumato.noise.randomness import Seeded
from sfumato.noise.sums import Law, NoiseParts, spread, symmetric
from sfumato.statistics.jobs.logarithms import LogLaplace
from sfumato.statistics.jobs.smooth import SmoothGamma, SmoothPareto
from sfumato.statistics.jobs.vector import VectorPareto

ALPHA = Fraction("0.1")
PARETO = SmoothPareto(alpha=ALPHA, epsilon=Fraction(1))
LAPLACE = symmetric(lambda x: np.exp(-x), 1.0)


def one_sum(law: Law, scales: list[float]) -> NoiseParts:
    return NoiseParts.of_cells(law, np.zeros(len(scales), dtype=np.int64), np.array(scales))


def test_one_piece_is_off_by_what_its_noise_is_off_by() -> None:
    for law, scale, expected in (
        (PARETO.law, 1.0, PARETO.noise.expected_magnitude(np.array([10]))[0]),
        (PARETO.law, 40.0, PARETO.noise.expected_magnitude(np.array([400]))[0]),
        (symmetric(lambda x: Geometric(epsilon=Fraction(1, 3)).survival(np.floor(x) + 1), 3.0), 1.0, None),
    ):
        found = spread(one_sum(law, [scale]), 1, 0.9)
        exact = Geometric(epsilon=Fraction(1, 3)).expected_magnitude if expected is None else expected
        assert found.error[0] == pytest.approx(exact, rel=0.012)  # scales are rounded up by a hundredth
        assert found.error[0] >= exact * (1 - 1e-6)


def test_two_laplace_variables_are_convolved() -> None:
    """|X + Y| of two of scale s exceeds t with probability (1 + t/2s)·e^(−t/s), and is 1.5·s on average."""
    found = spread(one_sum(LAPLACE, [1_000.0, 1_000.0]), 1, 0.9)
    assert found.error[0] == pytest.approx(1_500, rel=0.015)
    t = found.below[0] / 1_000
    assert (1 + t / 2) * np.exp(-t) == pytest.approx(0.1, rel=0.05)
    assert found.above[0] == pytest.approx(found.below[0])  # of a scale that follows nothing


@pytest.mark.parametrize("number", [1_000, 100_000])
def test_sums_of_many_are_normal_however_small_each_is_beside_the_whole(number: int) -> None:
    found = spread(one_sum(LAPLACE, [30.0] * number), 1, 0.9)
    deviation = 30 * np.sqrt(2 * number)
    assert found.error[0] == pytest.approx(np.sqrt(2 / np.pi) * deviation, rel=0.04)
    assert found.below[0] == pytest.approx(1.645 * deviation, rel=0.04)


def test_small_pieces_are_not_lost_beside_a_large_one() -> None:
    many = [1.0] * 40_000
    alone, beside = (spread(one_sum(LAPLACE, [400.0, *small]), 1, 0.9).error[0] for small in ([], many))
    assert beside > 1.05 * alone


def test_heavy_tails_count_beyond_the_lattice() -> None:
    law = symmetric(lambda x: (1 + x) ** -1.5, 2.0)
    assert spread(one_sum(law, [1_000.0]), 1, 0.9).error[0] == pytest.approx(2_000, rel=0.02)


def test_sums_without_any_noise_are_exact() -> None:
    parts = NoiseParts.of_cells(LAPLACE, np.array([2, -1]), np.array([5.0, 5.0]))
    found = spread(parts, 4, 0.9)
    assert (found.error == 0).tolist() == [True, True, False, True]
    assert (found.above == 0).tolist() == [True, True, False, True]


@pytest.mark.parametrize("method", [PARETO, SmoothGamma(alpha=ALPHA, epsilon=Fraction(2), tight=True)])
@pytest.mark.parametrize("sizes", [(1,) * 3, (4, 30), (50, 7, 7, 7, 7, 7)])
def test_figures_are_those_of_draws_and_a_scale_that_is_off_would_be_seen(
    method: SmoothPareto | SmoothGamma, sizes: tuple[int, ...]
) -> None:
    draws = 100_000
    multiples = np.tile(np.array(sizes) * 10, draws)
    off = np.abs(method.noise.sample(multiples, Seeded(5)).reshape(draws, -1).sum(axis=1))
    found = spread(one_sum(method.law, [float(size) for size in sizes]), 1, 0.9)
    assert found.error[0] == pytest.approx(off.mean(), rel=0.025)
    assert (off <= found.below[0]).mean() + 0.003 >= 0.9
    assert (off < found.below[0] / 1.04 - 1).mean() < 0.9


def test_cells_of_one_workplace_cell_are_added_up_as_they_were_drawn() -> None:
    """Noise that is drawn together is not independent: it is large in all cells at once."""
    method = VectorPareto(alpha=ALPHA, epsilon=Fraction("0.7"), worker_cells=4)
    drawn = SimplexPareto(unit=method.noise.unit, tail=method.noise.tail, cells=4).sample(
        np.full(100_000, 300), Seeded(6)
    )
    for cells in (1, 3, 4):
        law = method.noise_law(cells)
        found = spread(one_sum(law, [30.0]), 1, 0.9)
        off = np.abs(drawn[:, :cells].sum(axis=1))
        assert found.error[0] == pytest.approx(off.mean(), rel=0.03)
        assert (off <= found.below[0]).mean() == pytest.approx(0.9, abs=0.005)


def test_the_closed_form_of_quartic_noise_is_its_tail() -> None:
    at = np.array([0.0, 0.3, 1.0, 2.5, 40.0])
    noise = SmoothGamma(alpha=ALPHA, epsilon=Fraction(2), tight=True).noise
    exact = noise.survival(at * 1e6 + 0.5, np.array([1e6 / float(noise.unit)]))  # type: ignore[arg-type]
    assert Quartic.exceeded(at) == pytest.approx(exact, abs=1e-12)


def test_noise_on_logarithms_reaches_further_up_than_down() -> None:
    method = LogLaplace(alpha=ALPHA, epsilon=Fraction(1), debias=True)
    parts = method.noise_parts(None, np.array([0, 0]), np.array([100.0, 100.0]))  # type: ignore[arg-type]
    found = spread(parts, 1, 0.9)
    assert found.below[0] > found.above[0] * (1 - parts.laws[0].mean)


def test_scales_that_follow_counts_are_made_up_for_above() -> None:
    """One large cell: |y − n| ≤ w·α·n is n ≤ y/(1 − αw), and there is no limit from αw = 1 on."""
    noise = DoublePareto(unit=Fraction(1), tail=Fraction(3))
    for slope in (0.1, 0.3, 0.5):
        law = symmetric(lambda x: noise.survival(x + 0.5, np.array([1])), 0.5, slope)
        found = spread(one_sum(law, [5_000.0]), 1, 0.9)
        w = noise.quantile(0.9)
        if slope * w < 1:
            assert found.above[0] == pytest.approx(5_000 * w / (1 - slope * w), rel=0.05)
        else:
            assert np.isnan(found.above[0])
    many = spread(one_sum(symmetric(lambda x: np.exp(-x), 1.0, 0.3), [50.0] * 400), 1, 0.9)
    assert many.above[0] == pytest.approx(many.below[0], rel=0.04)
