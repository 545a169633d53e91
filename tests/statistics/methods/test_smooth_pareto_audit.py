"""The privacy loss found by search over neighbours and outcomes, not by the formula that calibrates it."""

from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest

from sfumato.errors import MethodError
from sfumato.noise.pareto import DoublePareto
from sfumato.statistics.jobs.calibration import worst_loss
from sfumato.statistics.jobs.smooth import SmoothPareto
from tests.statistics.methods.audit import SIZES, density_loss, integer_loss

EPSILONS = [Fraction(e) for e in ("0.25", "0.5", "0.67", "1", "2", "4")]
ALPHAS = [Fraction(a) for a in ("0.01", "0.05", "0.1", "0.15", "0.2")]
WORKER_CELLS = [0, 8]

GRID = [(a, e, d) for a in ALPHAS for e in EPSILONS for d in WORKER_CELLS]
ADMISSIBLE = [(a, e, d) for a, e, d in GRID if float(e) / max(d, 1) > log(1 + a)]
INADMISSIBLE = [point for point in GRID if point not in ADMISSIBLE]

on_grid = pytest.mark.parametrize(("alpha", "epsilon", "worker_cells"), ADMISSIBLE)


def method_at(alpha: Fraction, epsilon: Fraction, worker_cells: int) -> tuple[SmoothPareto, float]:
    method = SmoothPareto(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells)
    return method, float(epsilon / max(worker_cells, 1))


def in_units_of_s(method: SmoothPareto) -> DoublePareto:
    return DoublePareto(unit=method.calibration.scale, tail=method.calibration.tail)


@on_grid
def test_loss_over_densities_is_epsilon_and_no_more(alpha: Fraction, epsilon: Fraction, worker_cells: int) -> None:
    method, limit = method_at(alpha, epsilon, worker_cells)
    loss = density_loss(in_units_of_s(method), alpha)
    assert 0.95 * limit < loss <= limit + 1e-9


@on_grid
def test_loss_over_whole_numbers_is_at_most_epsilon(alpha: Fraction, epsilon: Fraction, worker_cells: int) -> None:
    method, limit = method_at(alpha, epsilon, worker_cells)
    assert integer_loss(method.noise, alpha, SIZES) <= limit + 1e-9


@on_grid
def test_formula_of_the_worst_loss_is_what_the_search_finds(
    alpha: Fraction, epsilon: Fraction, worker_cells: int
) -> None:
    method, _ = method_at(alpha, epsilon, worker_cells)
    for shrink in (
        Fraction(1, 2),
        Fraction(1),
        Fraction(2),
    ):  # also where the calibration does not balance it
        noise = in_units_of_s(method)
        noise = replace(noise, unit=noise.unit * shrink)
        formula = float(worst_loss(alpha=alpha, tail=noise.tail, scale=noise.unit))
        assert np.isclose(density_loss(noise, alpha), formula, rtol=1e-6)


@on_grid
def test_rounded_parameters_keep_the_loss_below_epsilon_exactly(
    alpha: Fraction, epsilon: Fraction, worker_cells: int
) -> None:
    method, _ = method_at(alpha, epsilon, worker_cells)
    found = worst_loss(alpha=alpha, tail=method.calibration.tail, scale=method.calibration.scale)
    assert Fraction(found) <= epsilon / max(worker_cells, 1)


@on_grid
def test_a_scale_ten_percent_smaller_fails_the_audit(alpha: Fraction, epsilon: Fraction, worker_cells: int) -> None:
    method, limit = method_at(alpha, epsilon, worker_cells)
    noise = in_units_of_s(method)
    assert density_loss(replace(noise, unit=noise.unit * Fraction(9, 10)), alpha) > limit + 1e-3 * limit


@on_grid
def test_a_tail_ten_percent_lighter_fails_the_audit(alpha: Fraction, epsilon: Fraction, worker_cells: int) -> None:
    method, limit = method_at(alpha, epsilon, worker_cells)
    noise = in_units_of_s(method)
    assert density_loss(replace(noise, tail=noise.tail * Fraction(11, 10)), alpha) > limit + 1e-3 * limit


@pytest.mark.parametrize(("alpha", "epsilon"), [(Fraction("0.1"), Fraction(1)), (Fraction("0.2"), Fraction(2))])
def test_the_audit_of_whole_numbers_can_fail_too(alpha: Fraction, epsilon: Fraction) -> None:
    method, limit = method_at(alpha, epsilon, 0)
    smaller = replace(method.noise, unit=method.noise.unit * Fraction(9, 10))
    assert integer_loss(smaller, alpha, SIZES) > limit + 1e-3 * limit


@pytest.mark.parametrize(("alpha", "epsilon", "worker_cells"), INADMISSIBLE)
def test_where_the_mechanism_does_not_exist_it_is_refused(
    alpha: Fraction, epsilon: Fraction, worker_cells: int
) -> None:
    with pytest.raises(MethodError, match=r"ln\(1 \+ alpha\)"):
        SmoothPareto(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells)


def test_the_whole_grid_of_the_paper_exists_on_workplace_attributes_and_part_of_it_on_worker_attributes() -> None:
    assert all(d == 8 for _, _, d in INADMISSIBLE)
    assert INADMISSIBLE
