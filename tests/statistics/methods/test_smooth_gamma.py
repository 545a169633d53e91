"""Smooth Gamma: the published scale, the least scale that passes the audit, and what is refused."""

from dataclasses import replace
from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.noise.quartic import Quartic
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.smooth import SmoothGamma, least_scale
from tests.statistics.methods.audit import SIZES, density_loss, integer_loss
from tests.statistics.methods.cells import cells_of

EPSILONS = [Fraction(e) for e in ("0.25", "0.5", "0.67", "1", "2", "4")]
ALPHAS = [Fraction(a) for a in ("0.01", "0.05", "0.1", "0.15", "0.2")]
GRID = [(a, e) for a in ALPHAS for e in EPSILONS]
PUBLISHED = [(a, e) for a, e in GRID if e >= 4 * log(1 + a)]
TIGHT = [(a, e) for a, e in GRID if e > 3 * log(1 + a)]


def method_at(alpha: Fraction, epsilon: Fraction, worker_cells: int = 0, tight: bool = False) -> SmoothGamma:
    return SmoothGamma(alpha=alpha, epsilon=epsilon, worker_cells=worker_cells, tight=tight)


def in_units_of_s(method: SmoothGamma) -> Quartic:
    return Quartic(unit=method.scale)


@pytest.mark.parametrize(("alpha", "epsilon"), PUBLISHED)
def test_the_published_scale_is_private_over_densities_and_over_whole_numbers(
    alpha: Fraction, epsilon: Fraction
) -> None:
    method = method_at(alpha, epsilon)
    assert method.scale == 16 / epsilon
    assert density_loss(in_units_of_s(method), alpha) <= epsilon + 1e-9
    assert integer_loss(method.noise, alpha, SIZES) <= epsilon + 1e-9


@pytest.mark.parametrize(("alpha", "epsilon"), TIGHT)
def test_the_tight_scale_loses_epsilon_and_no_more(alpha: Fraction, epsilon: Fraction) -> None:
    method = method_at(alpha, epsilon, tight=True)
    assert 0.97 * epsilon < density_loss(in_units_of_s(method), alpha) <= epsilon + 1e-9
    assert integer_loss(method.noise, alpha, SIZES) <= epsilon + 1e-9


@pytest.mark.parametrize(("alpha", "epsilon"), [(a, e) for a, e in TIGHT if e > 3.5 * log(1 + a)])
def test_a_scale_ten_percent_below_the_tight_one_fails_the_audit(alpha: Fraction, epsilon: Fraction) -> None:
    noise = in_units_of_s(method_at(alpha, epsilon, tight=True))
    assert density_loss(replace(noise, unit=noise.unit * Fraction(9, 10)), alpha) > epsilon * Fraction(1001, 1000)


@pytest.mark.parametrize(("alpha", "epsilon"), [(Fraction("0.1"), Fraction(1)), (Fraction("0.2"), Fraction(2))])
def test_the_audit_of_whole_numbers_can_fail_too(alpha: Fraction, epsilon: Fraction) -> None:
    noise = method_at(alpha, epsilon, tight=True).noise
    assert integer_loss(replace(noise, unit=noise.unit * Fraction(9, 10)), alpha, SIZES) > float(epsilon) * 1.001


@given(
    alpha=st.fractions(min_value=Fraction(1, 100), max_value=5, max_denominator=100),
    epsilon=st.fractions(min_value=Fraction(1, 10), max_value=20, max_denominator=10),
)
def test_tight_needs_one_step_to_cost_a_third_of_epsilon_and_never_more_noise(
    alpha: Fraction, epsilon: Fraction
) -> None:
    assume(abs(float(epsilon) - 3 * log(1 + alpha)) > 1e-6)
    if epsilon > 3 * log(1 + alpha):
        scale = least_scale(alpha=alpha, epsilon=epsilon)
        if epsilon >= 4 * log(1 + alpha):
            assert scale <= 16 / epsilon
    else:
        with pytest.raises(MethodError, match="epsilon >"):
            method_at(alpha, epsilon, tight=True)


def test_tight_has_a_sixth_of_the_error_at_the_setting_the_paper_recommends() -> None:
    published, tight = (method_at(Fraction("0.1"), Fraction(1), tight=tight) for tight in (False, True))
    assert round(published.error_in_scales, 2) == 11.31
    assert round(tight.error_in_scales, 2) == 1.91


def test_worker_cells_share_epsilon_and_make_the_guarantee_weak() -> None:
    method = method_at(Fraction("0.01"), Fraction(2), worker_cells=8)
    assert method.scale == 16 / Fraction(1, 4)
    assert method.guarantee() == EmployerEmployee(definition="weak", alpha=Fraction("0.01"), epsilon=Fraction(2))
    assert method_at(Fraction("0.1"), Fraction(2)).guarantee().definition == "strong"


def test_an_inadmissible_setting_names_the_inequality_and_the_ways_out() -> None:
    with pytest.raises(MethodError) as refusal:
        method_at(Fraction("0.1"), Fraction(2), worker_cells=6)
    assert refusal.value.expected == "epsilon ≥ 24 · ln(1 + alpha) = 24 · ln(1.1) = 2.287"
    assert refusal.value.do == (
        "choose epsilon = 2.3 or more, or alpha = 0.086 or less, or at most 5 worker cells, or tight = true"
    )
    method_at(Fraction("0.1"), Fraction("2.3"), worker_cells=6)
    method_at(Fraction("0.086"), Fraction(2), worker_cells=6)
    method_at(Fraction("0.1"), Fraction(2), worker_cells=5)
    method_at(Fraction("0.1"), Fraction(2), worker_cells=6, tight=True)


def test_error_figures_are_those_of_small_and_of_large_cells() -> None:
    method = method_at(Fraction("0.1"), Fraction(2))
    planned = method.planned_error()
    errors = method.expected_error(cells_of(count=[10, 10**7], largest=[10, 10**7]))
    assert np.isclose(errors[0], planned.floor)
    assert planned.share is not None
    assert np.isclose(errors[1], planned.share * 10**7)
    assert np.isclose(method.published_error(np.array([10**7]))[0], errors[1])
