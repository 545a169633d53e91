"""The privacy loss of the vector mechanisms, found by search over neighbours and outcomes and not by their formulas.

Neighbours are random and extreme: shifts within the simplex (strong) or the box (weak), all of one sign, with scales
that move together or one at a time. Outcomes are at the count, between the counts, along axes, in corners and far out.
"""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import log

import numpy as np
import pytest

from sfumato.arrays import Floats
from sfumato.noise.box_laplace import BoxLaplace
from sfumato.noise.box_pareto import BoxPareto
from sfumato.noise.pareto import SimplexPareto
from sfumato.statistics.jobs.calibration import Calibration, block_loss
from sfumato.statistics.jobs.logarithms import LogBox
from sfumato.statistics.jobs.smooth import SmoothPareto
from sfumato.statistics.jobs.vector import SmoothBox, VectorPareto

WIDTHS = [1, 2, 3, 4, 8]
PARAMETERS = [("0.1", "2"), ("0.05", "2"), ("0.01", "0.5"), ("0.2", "4"), ("1", "8"), ("0.1", "30")]
GRID = [
    (Fraction(a), Fraction(e), d) for a, e in PARAMETERS for d in WIDTHS if float(e) > d * log(1 + Fraction(a)) * 1.0001
]
# The full cross of sex, age, education, race and ethnicity has 768 worker cells; 4,096 are the most there may be.
WIDE = [
    (Fraction(a), Fraction(e), d)
    for a, e, d in (
        ("0.001", "2", 768),
        ("0.0001", "2", 768),
        ("0.01", "8", 768),
        ("0.1", "80", 768),
        ("0.001", "2", 1_024),
    )
]
WIDEST = pytest.param(Fraction("0.0001"), Fraction(2), 4_096, marks=pytest.mark.slow)
on_grid = pytest.mark.parametrize(("alpha", "epsilon", "cells"), GRID)
on_wide_grid = pytest.mark.parametrize(("alpha", "epsilon", "cells"), [*GRID, *WIDE, WIDEST])


def outcomes(shift: Floats, scale: Floats, rng: np.random.Generator) -> Floats:
    """Outcomes, as distances from the smaller count, at which a loss may be greatest."""
    d = len(shift)
    axes, signs = np.eye(min(d, 8), d), rng.choice([-1.0, 1.0], (6, d))  # of many axes each is like any other
    directions = np.concatenate([axes, -axes, np.ones((1, d)), -np.ones((1, d)), signs, rng.normal(size=(6, d))])
    lengths = np.concatenate([np.geomspace(1e-3, 1e3, 10), [1e9, 1e14]])
    spread = (directions[:, None, :] * lengths[None, :, None]).reshape(-1, d) * scale
    between = np.linspace(-1, 2, 7)[:, None] * shift
    return np.concatenate([np.zeros((1, d)), between, spread, spread + shift])


def strong_loss(noise: SimplexPareto, alpha: Fraction, k: float) -> float:
    """The greatest |log density ratio| over shifts of total at most S = 1 and scale ratios up to 1+α."""
    rng, d, worst = np.random.default_rng(7), noise.cells, 0.0
    shifts = [np.eye(d)[0], np.full(d, 1 / d), np.zeros(d), *(rng.dirichlet(np.ones(d), 4) * rng.random((4, 1)))]
    for ratio in (1.0, 1 + float(alpha), *(1 + float(alpha) * rng.random(3))):
        for shift in shifts:
            z = outcomes(shift, np.full(d, k), rng)
            ratios = noise.log_density(z, k) - noise.log_density(z - shift, k * ratio)
            worst = max(worst, float(np.abs(ratios).max()))
    return worst


def weak_steps(alpha: Fraction, d: int, rng: np.random.Generator) -> Iterator[tuple[Floats, Floats, Floats]]:
    """The shift of every cell and the largest contribution to it before and after, for establishments of whole workers.

    Every cell of one establishment grows by at most a share α or by one; the largest contribution to a cell may be
    another establishment's. Sizes include multiples of 1/α, at which a step is exactly α, and few and no workers.
    """
    p, q = alpha.numerator, alpha.denominator
    exact = np.array([0, 1, q, 2 * q, 5 * q, 100 * q])
    for trial in range(60):
        before = rng.choice(exact, d) if trial % 2 else rng.integers(0, 12 * q // p + 12, d)
        if trial < 6:
            before = np.full(d, exact[trial])
        most = np.maximum(p * before // q, 1)
        for moved in (
            most,
            np.where(np.arange(d) == 0, most, 0),
            rng.integers(0, most + 1),
            most * rng.integers(0, 2, d),
        ):
            others = before + rng.integers(0, 3, d) * rng.integers(0, 20 * q, d) * (trial % 3 == 0)
            yield moved.astype(float), others.astype(float), np.maximum(others, before + moved).astype(float)


def weak_loss(noise: BoxPareto, alpha: Fraction, k: float) -> float:
    """The greatest |log density ratio| over weak neighbours, with a scale of its own in every cell."""
    rng, a, worst = np.random.default_rng(8), float(alpha), 0.0
    for shift, x, grown in weak_steps(alpha, noise.cells, rng):
        scale, after = k * np.maximum(a * x, 1 + a), k * np.maximum(a * grown, 1 + a)
        z = outcomes(shift, scale, rng)
        ratios = noise.log_density(z, scale) - noise.log_density(z - shift, after)
        worst = max(worst, float(np.abs(ratios).max()))
    return worst


def log_loss(noise: BoxLaplace, alpha: Fraction) -> float:
    """The greatest |log density ratio| over weak neighbours, on the logarithms of counts plus 1/α."""
    rng, offset, worst = np.random.default_rng(9), float(1 / alpha), 0.0
    for shift, x, _ in weak_steps(alpha, noise.cells, rng):
        moved = np.log1p(shift / (x + offset))
        z = outcomes(moved, np.full(noise.cells, float(noise.scale)), rng)
        ratios = noise.log_density(z) - noise.log_density(z - moved)
        # Far out both densities are of the order of 10^14 and their difference has lost its digits.
        worst = max(worst, float(np.abs(ratios[np.abs(z).max(axis=1) < 1e6]).max()))
    return worst


def simplex_at(calibration: Calibration, cells: int) -> SimplexPareto:
    return SimplexPareto(unit=calibration.scale, tail=calibration.tail, cells=cells)


def box_at(calibration: Calibration, cells: int) -> BoxPareto:
    return BoxPareto(unit=calibration.scale, tail=calibration.tail, cells=cells)


@on_wide_grid
class TestVectorPareto:
    def found(self, alpha: Fraction, epsilon: Fraction, cells: int, **changes: Fraction) -> float:
        calibration = VectorPareto(alpha=alpha, epsilon=epsilon, worker_cells=cells).calibration
        calibration = replace(calibration, **{name: getattr(calibration, name) * by for name, by in changes.items()})
        return strong_loss(simplex_at(calibration, cells), alpha, float(calibration.scale))

    def test_loss_is_epsilon_and_no_more(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        assert 0.95 * epsilon < self.found(alpha, epsilon, cells) <= epsilon + 1e-9

    def test_a_scale_ten_percent_smaller_fails(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        assert self.found(alpha, epsilon, cells, scale=Fraction(9, 10)) > 1.0001 * epsilon

    def test_the_formula_says_the_same(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        found = VectorPareto(alpha=alpha, epsilon=epsilon, worker_cells=cells).calibration
        for scale in (found.scale / 2, found.scale, found.scale * 2):
            formula = block_loss("simplex", alpha=alpha, cells=cells, tail=found.tail, scale=scale)
            noise = simplex_at(replace(found, scale=scale), cells)
            assert np.isclose(strong_loss(noise, alpha, float(scale)), float(formula), rtol=1e-6)

    def test_rounded_parameters_keep_the_loss_below_epsilon_exactly(
        self, alpha: Fraction, epsilon: Fraction, cells: int
    ) -> None:
        found = VectorPareto(alpha=alpha, epsilon=epsilon, worker_cells=cells).calibration
        loss = block_loss("simplex", alpha=alpha, cells=cells, tail=found.tail, scale=found.scale)
        assert Fraction(loss) <= epsilon

    def test_two_hundred_digits_say_the_same(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        found = VectorPareto(alpha=alpha, epsilon=epsilon, worker_cells=cells).calibration
        with localcontext(prec=200):
            growth, tail, scale = (Decimal(f.numerator) / f.denominator for f in (1 + alpha, found.tail, found.scale))
            g, gamma = growth.ln(), tail + cells
            terms = gamma * (1 + 1 / scale).ln(), gamma * (1 + 1 / (scale * growth)).ln() + cells * g, tail * g
            least, limit = Decimal("1e-60"), Decimal(epsilon.numerator) / epsilon.denominator
            assert max(terms) <= limit - least
            # One step of 10^−9 in the scale, or in the tail, is all that is left unused.
            steps = gamma / scale**2, gamma / scale**2, g
            assert any(limit - term < 2 * Decimal("1e-9") * step for term, step in zip(terms, steps, strict=True))
            rounded = block_loss("simplex", alpha=alpha, cells=cells, tail=found.tail, scale=found.scale)
            assert abs(max(terms) - rounded) < Decimal("1e-80")


@on_grid
class TestSmoothBox:
    def found(self, alpha: Fraction, epsilon: Fraction, cells: int, **changes: Fraction) -> float:
        calibration = SmoothBox(alpha=alpha, epsilon=epsilon, worker_cells=cells).calibration
        calibration = replace(calibration, **{name: getattr(calibration, name) * by for name, by in changes.items()})
        return weak_loss(box_at(calibration, cells), alpha, float(calibration.scale))

    def test_loss_is_epsilon_and_no_more(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        assert 0.95 * epsilon < self.found(alpha, epsilon, cells) <= epsilon + 1e-9

    def test_a_scale_ten_percent_smaller_fails(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        assert self.found(alpha, epsilon, cells, scale=Fraction(9, 10)) > 1.0001 * epsilon

    def test_the_formula_says_no_less_than_the_search(self, alpha: Fraction, epsilon: Fraction, cells: int) -> None:
        found = SmoothBox(alpha=alpha, epsilon=epsilon, worker_cells=cells).calibration
        for scale in (found.scale / 2, found.scale, found.scale * 2):
            formula = float(block_loss("box", alpha=alpha, cells=cells, tail=found.tail, scale=scale))
            searched = weak_loss(box_at(replace(found, scale=scale), cells), alpha, float(scale))
            assert searched <= formula * (1 + 1e-9)
            assert searched > 0.95 * formula

    def test_rounded_parameters_keep_the_loss_below_epsilon_exactly(
        self, alpha: Fraction, epsilon: Fraction, cells: int
    ) -> None:
        found = SmoothBox(alpha=alpha, epsilon=epsilon, worker_cells=cells).calibration
        loss = block_loss("box", alpha=alpha, cells=cells, tail=found.tail, scale=found.scale)
        assert Fraction(loss) <= epsilon


@pytest.mark.parametrize("cells", [2, 4, 8])
def test_a_third_condition_with_the_exponent_less_the_cells_fails_by_one_scale_that_moves_alone(cells: int) -> None:
    alpha, epsilon = Fraction("0.1"), Fraction(2)
    g = log(1 + alpha)
    found = SmoothBox(alpha=alpha, epsilon=epsilon, worker_cells=cells).calibration
    mistaken = Calibration(tail=Fraction(float(epsilon) / g).limit_denominator(10**9), scale=4 * found.scale)
    loss = weak_loss(box_at(mistaken, cells), alpha, float(mistaken.scale))
    assert np.isclose(loss, float(epsilon) + (cells - 1) * g, rtol=1e-6)


@pytest.mark.parametrize("cells", WIDTHS)
@pytest.mark.parametrize(("alpha", "epsilon"), [("0.1", "2"), ("0.05", "0.5"), ("0.2", "4"), ("1", "8")])
def test_loss_of_log_box_is_epsilon_and_no_more_and_a_smaller_scale_fails(alpha: str, epsilon: str, cells: int) -> None:
    method = LogBox(alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=cells)
    assert 0.95 * float(epsilon) < log_loss(method.noise, method.alpha) <= float(epsilon) + 1e-6
    smaller = replace(method.noise, scale=method.noise.scale * Fraction(9, 10))
    assert log_loss(smaller, method.alpha) > 1.01 * float(epsilon)


def test_the_scale_of_log_box_is_rounded_to_the_safe_side() -> None:
    method = LogBox(alpha=Fraction("0.1"), epsilon=Fraction(2), worker_cells=8)
    exact = Fraction(Context(prec=60).ln(Decimal("1.1"))) / 2
    assert exact <= method.noise.scale <= exact + Fraction(1, 10**15)


@pytest.mark.parametrize(("alpha", "epsilon"), [("0.1", "2"), ("0.01", "0.25"), ("0.2", "4")])
def test_with_one_cell_vector_pareto_is_smooth_pareto(alpha: str, epsilon: str) -> None:
    parameters = {"alpha": Fraction(alpha), "epsilon": Fraction(epsilon)}
    assert VectorPareto(**parameters, worker_cells=1).calibration == SmoothPareto(**parameters).calibration


class TestTheoremOnParallelCompositionOverWorkers:
    """The paper's Theorem 7.5, and the neighbour that refutes it.

    Of 100 workers one is male. At α = 0.1 a strong neighbour may have ten more, all male: the cell of males goes from 1
    to 11 while its noise was scaled for a change of one.
    """

    epsilon = Fraction(2)
    outcomes = np.concatenate([np.linspace(-50, 50, 2001), np.geomspace(50, 1e12, 50)])

    def test_smooth_pareto_in_each_cell_at_epsilon_loses_seven_times_as_much(self) -> None:
        noise = SmoothPareto(alpha=Fraction("0.1"), epsilon=self.epsilon).noise
        males, more = np.array(max(1, 10)), np.array(max(11, 10))  # max(p·x, q) with α = p/q = 1/10
        loss = np.abs(noise.log_density(self.outcomes, males) - noise.log_density(self.outcomes - 10, more)).max()
        assert 14 < loss < 15

    def test_the_papers_smooth_laplace_in_each_cell_at_epsilon_loses_more_than_four_times_as_much(self) -> None:

        def log_density(z: Floats, scale: float) -> Floats:
            return -np.abs(z) / scale - np.log(2 * scale)

        males, more = (2 / float(self.epsilon) * max(0.1 * x, 1) for x in (1, 11))
        loss = log_density(np.zeros(1), males) - log_density(np.array([-10.0]), more)
        assert loss[0] > 9

    def test_vector_pareto_keeps_epsilon_for_the_same_neighbour(self) -> None:
        method = VectorPareto(alpha=Fraction("0.1"), epsilon=self.epsilon, worker_cells=2)
        k, shift = float(method.calibration.scale), np.array([10.0, 0.0])
        z = np.stack(np.meshgrid(self.outcomes, [-1e3, -1.0, 0.0, 1.0, 1e3]), axis=-1).reshape(-1, 2)
        before, after = 10 * k, 11 * k  # S = α·100, then α·110
        loss = np.abs(method.noise.log_density(z, before) - method.noise.log_density(z - shift, after)).max()
        assert 1.5 < loss <= 2 + 1e-9
