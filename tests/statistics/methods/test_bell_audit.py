"""The privacy loss of bell noise and of Sinh Box, found by search over neighbours and outcomes, not by formulas."""

from decimal import localcontext
from fractions import Fraction
from math import log

import numpy as np
import pytest

from sfumato.arrays import Floats
from sfumato.method import PRECISE, decimal, log_growth
from sfumato.statistics.jobs.bell import BoxBell, VectorBell, smallest_workforce
from sfumato.statistics.jobs.sinh_box import SinhBox
from tests.statistics.methods.test_vector_audit import outcomes, weak_steps

PARAMETERS = [("0.1", "2"), ("0.05", "2"), ("0.01", "0.5"), ("0.2", "4"), ("1", "8"), ("0.1", "30")]
GRID = [
    (Fraction(a), Fraction(e), d)
    for a, e in PARAMETERS
    for d in (1, 2, 3, 8, 20)
    if float(e) > d * log(1 + Fraction(a)) * 1.0001
]
WIDE = [
    (Fraction("0.001"), Fraction(2), 768),
    pytest.param(Fraction("0.0001"), Fraction(2), 4_096, marks=pytest.mark.slow),
]
on_grid = pytest.mark.parametrize(("alpha", "epsilon", "cells"), GRID)
on_wide_grid = pytest.mark.parametrize(("alpha", "epsilon", "cells"), [*GRID, *WIDE])
SIZES = (0, 1, 3, 8, 9, 10, 11, 20, 21, 100, 101, 12_345, 10**6)
TENTH = Fraction(9, 10)


def rays(shift: Floats, scale: float) -> Floats:
    """Outcomes on the line through both counts, about them, between them and far out: there the loss is greatest."""
    lengths = np.concatenate([np.linspace(0, 3, 121), np.geomspace(3, 1e9, 40)])[:, None] * scale
    axis = np.eye(1, len(shift))
    return np.concatenate([lengths * axis, -lengths * axis, shift + lengths * axis, shift - lengths * axis])


def strong_loss(method: VectorBell, smaller: Fraction = Fraction(1)) -> float:
    """The greatest |log density ratio| over strong neighbours: one establishment grows, the largest or not."""
    rng, d, worst = np.random.default_rng(3), method.cells, 0.0
    p, q = method.alpha.numerator, method.alpha.denominator
    sizes = {*SIZES, q, 10 * q}

    def scale(largest: int) -> float:
        return float(smaller * max(Fraction(largest), smallest_workforce(method.alpha)))

    for size in sorted(sizes):
        most = max(p * size // q, 1)
        for other in {0, size, size + most // 2, size + most, 3 * size}:
            for grown in {1, most, max(most // 2, 1)}:
                before, after = scale(max(size, other)), scale(max(size + grown, other))
                spread = rng.multinomial(grown, np.full(d, 1 / d)).astype(float)
                for shift in (grown * np.eye(1, d)[0], spread):
                    z = np.concatenate([rays(shift, before), outcomes(shift, np.full(d, before / 20), rng)])
                    ratio = method.noise.log_density(z, before) - method.noise.log_density(z - shift, after)
                    worst = max(worst, float(np.abs(ratio).max()))
    return worst


def weak_loss(method: BoxBell, smaller: Fraction = Fraction(1)) -> float:
    """The greatest |log density ratio| over weak neighbours, with a scale of its own in every cell."""
    rng, d, worst = np.random.default_rng(8), method.cells, 0.0
    least = float(1 + 1 / method.alpha)
    for shift, x, grown in weak_steps(method.alpha, d, rng):
        before, after = (float(smaller) * np.maximum(size, least) for size in (x, grown))
        z = outcomes(shift, before / 20, rng)
        # Where the norm is that of one cell, whose scale may stay while the others grow.
        corners = np.concatenate([rays(shift, 1.0) * before, shift - rays(shift, 1.0) * before])
        z = np.concatenate([z, corners])
        ratio = method.noise.log_density(z, before) - method.noise.log_density(z - shift, after)
        worst = max(worst, float(np.abs(ratio).max()))
    return worst


def mixed_loss(method: BoxBell, smaller: Fraction = Fraction(1)) -> float:
    """The same where one cell is filled by another establishment, so that its scale stays while the others grow."""
    d, alpha, worst = method.cells, float(method.alpha), 0.0
    p, q = method.alpha.numerator, method.alpha.denominator
    size = 100 * q
    for stays in range(min(d, 2) + 1):  # how many cells keep their scale
        x = np.full(d, float(size))
        x[:stays] *= 1 + alpha
        shift = np.full(d, float(100 * p))
        grown = np.maximum(x, size + shift)
        before, after = float(smaller) * x, float(smaller) * grown
        lengths = np.concatenate([np.linspace(0, 3, 601), np.geomspace(3, 1e9, 60)])[:, None]
        for direction in (np.eye(d)[0], np.eye(d)[-1], np.ones(d)):
            for sign in (1, -1):
                z = np.concatenate([sign * lengths * direction * before, shift + sign * lengths * direction * before])
                ratio = method.noise.log_density(z, before) - method.noise.log_density(z - shift, after)
                worst = max(worst, float(np.abs(ratio).max()))
    return worst


@on_wide_grid
class TestVectorBell:
    def test_loss_is_epsilon_and_no_more(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        method = VectorBell(alpha=alpha, epsilon=epsilon, worker_cells=cells)
        assert 0.95 * epsilon < strong_loss(method) <= epsilon + 1e-6

    def test_a_scale_ten_percent_smaller_fails(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        method = VectorBell(alpha=alpha, epsilon=epsilon, worker_cells=cells)
        assert strong_loss(method, TENTH) > 1.01 * epsilon

    def test_rounded_parameters_keep_the_loss_below_epsilon_exactly(
        self, alpha: Fraction, epsilon: Fraction, cells: int
    ) -> None:
        method = VectorBell(alpha=alpha, epsilon=epsilon, worker_cells=cells)
        with localcontext(PRECISE):
            rate, least = decimal(method.rate), decimal(smallest_workforce(alpha))
            assert rate * log_growth(alpha) <= decimal(epsilon)
            assert rate / least <= decimal(epsilon)
            assert rate > cells


@on_grid
class TestBoxBell:
    def test_loss_is_epsilon_and_no_more(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        method = BoxBell(alpha=alpha, epsilon=epsilon, worker_cells=cells)
        assert 0.95 * epsilon < max(weak_loss(method), mixed_loss(method)) <= epsilon + 1e-6

    def test_a_scale_ten_percent_smaller_fails(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        method = BoxBell(alpha=alpha, epsilon=epsilon, worker_cells=cells)
        assert max(weak_loss(method, TENTH), mixed_loss(method, TENTH)) > 1.005 * epsilon


def test_a_slope_as_steep_as_for_one_scale_fails_where_one_scale_stays_while_the_others_grow() -> None:
    method = BoxBell(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=8)
    object.__setattr__(method, "steepest", method.rate)
    assert mixed_loss(method) > 1.01 * method.epsilon


def sinh_loss(method: SinhBox, smaller: Fraction = Fraction(1)) -> float:
    """The greatest |log density ratio| over weak neighbours, on inverse hyperbolic sines, of small counts too."""
    rng, worst, size = np.random.default_rng(9), 0.0, float(method.size)
    noise = method.sines.logarithm
    noise = type(noise)(scale=noise.scale * smaller, cells=noise.cells)
    steps = [(s, x) for s, x, _ in weak_steps(method.alpha, noise.cells, rng)]
    one = np.eye(1, noise.cells)[0]
    for shift, x in [*steps, *((one, one * n) for n in range(30))]:
        moved = np.arcsinh((x + shift) / size) - np.arcsinh(x / size)
        z = outcomes(moved, np.full(noise.cells, float(noise.scale)), rng)
        ratio = noise.log_density(z) - noise.log_density(z - moved)
        worst = max(worst, float(np.abs(ratio[np.abs(z).max(axis=1) < 1e6]).max()))
    return worst


@pytest.mark.parametrize("cells", [1, 2, 8])
@pytest.mark.parametrize(("alpha", "epsilon"), [("0.1", "2"), ("0.05", "0.5"), ("0.2", "4"), ("1", "8")])
def test_loss_of_sinh_box_is_epsilon_and_no_more_and_a_smaller_scale_fails(
    alpha: str, epsilon: str, cells: int
) -> None:
    method = SinhBox(alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=cells)
    assert 0.95 * float(epsilon) < sinh_loss(method) <= float(epsilon) + 1e-6
    assert sinh_loss(method, TENTH) > 1.01 * float(epsilon)


def test_a_smaller_size_would_let_one_worker_more_cost_more_than_epsilon() -> None:
    method = SinhBox(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=8)
    object.__setattr__(method, "size", method.size * TENTH)
    assert sinh_loss(method) > 1.05 * 2
