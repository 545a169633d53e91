"""Smooth Laplace: the δ it really has, the δ it states, and what is refused."""

from dataclasses import replace
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.noise.laplace import RoundedLaplace
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.smooth import SmoothLaplace, exact_delta
from tests.statistics.methods.audit import hockey_stick

GRID = [
    (Fraction(a), Fraction(e), Fraction(d))
    for a in ("0.01", "0.05", "0.1", "0.2")
    for e in ("0.5", "1", "2", "4")
    for d in ("0.005", "0.0005", "1e-6")
]
ADMISSIBLE = [(a, e, d) for a, e, d in GRID if e >= 2 * log(1 / d) * log(1 + a)]
INADMISSIBLE = [point for point in GRID if point not in ADMISSIBLE]
SIZES = [0, 1, 5, 9, 10, 11, 19, 20, 21, 60, 100, 200]


def method_at(alpha: Fraction, epsilon: Fraction, delta: Fraction, worker_cells: int = 0) -> SmoothLaplace:
    return SmoothLaplace(alpha=alpha, epsilon=epsilon, delta=delta, worker_cells=worker_cells)


@pytest.mark.parametrize(("alpha", "epsilon", "delta"), ADMISSIBLE)
def test_the_masses_of_neighbours_differ_by_no_more_than_delta(
    alpha: Fraction, epsilon: Fraction, delta: Fraction
) -> None:
    method = method_at(alpha, epsilon, delta)
    assert hockey_stick(method.noise, alpha, float(epsilon), SIZES) <= delta


@pytest.mark.parametrize(("alpha", "epsilon", "delta"), ADMISSIBLE)
def test_half_the_scale_fails_the_audit(alpha: Fraction, epsilon: Fraction, delta: Fraction) -> None:
    noise = method_at(alpha, epsilon, delta).noise
    smaller = replace(noise, unit=noise.unit * Fraction(2, 5))
    assert hockey_stick(smaller, alpha, float(epsilon), SIZES) > delta


def continuous_hockey_stick(alpha: float, epsilon: float, scale: float) -> float:
    """By Riemann sums over outcomes, for shifts up to S = 1 and ratios up to 1 + α, in both directions."""
    one, step = RoundedLaplace(unit=Fraction(scale)), 2e-4
    z = np.arange(-60, 60, step)
    worst = 0.0
    for shift in (0.0, 0.5, 1.0):
        for ratio in (1.0, 1 + alpha / 2, 1 + alpha):
            before = np.exp(one.log_density(z, np.ones(1)))
            after = np.exp(one.log_density(z - shift, np.array([ratio])))
            for a, b in ((before, after), (after, before)):
                worst = max(worst, float(np.maximum(a - exp(epsilon) * b, 0).sum() * step))
    return worst


@pytest.mark.parametrize(("alpha", "epsilon"), [("0.1", "1"), ("0.2", "2"), ("1", "4"), ("3", "6")])
def test_formula_of_the_exact_delta_is_what_the_search_finds_and_a_tenth_less_scale_is_too_little(
    alpha: str, epsilon: str
) -> None:
    a, e = float(alpha), float(epsilon)
    exact = float(exact_delta(alpha=Fraction(alpha), epsilon=Fraction(epsilon)))
    assert np.isclose(continuous_hockey_stick(a, e, 2 / e), exact, rtol=1e-3)
    assert continuous_hockey_stick(a, e, 0.9 * 2 / e) > 1.05 * exact


@pytest.mark.parametrize(("alpha", "epsilon", "delta"), INADMISSIBLE)
def test_where_the_inequality_fails_the_method_is_refused(alpha: Fraction, epsilon: Fraction, delta: Fraction) -> None:
    with pytest.raises(MethodError, match=r"ln\(1/delta\) · ln\(1 \+ alpha\)"):
        method_at(alpha, epsilon, delta)


def test_the_published_inequality_is_not_enough_for_a_large_alpha_and_such_settings_are_refused() -> None:
    alpha, epsilon, delta = Fraction(1), Fraction(20), Fraction(1, 10**6)
    assert epsilon > 2 * log(1 / delta) * log(1 + alpha)
    assert exact_delta(alpha=alpha, epsilon=epsilon) > 5 * delta
    with pytest.raises(MethodError, match="a delta of the noise of at most 1e-06") as refusal:
        method_at(alpha, epsilon, delta)
    assert "epsilon = 24 or more" in refusal.value.do
    method_at(alpha, Fraction(24), delta)


def test_an_inadmissible_setting_names_the_inequality_and_the_ways_out() -> None:
    with pytest.raises(MethodError) as refusal:
        method_at(Fraction("0.1"), Fraction(4), Fraction(1, 2000), worker_cells=4)
    assert refusal.value.expected == "epsilon ≥ 2 · 4 · ln(4/delta) · ln(1 + alpha) = 6.853"
    assert refusal.value.do == (
        "choose epsilon = 6.9 or more, or alpha = 0.057 or less, or at most 2 worker cells, or delta = 0.022 or more"
    )
    method_at(Fraction("0.1"), Fraction("6.9"), Fraction(1, 2000), worker_cells=4)
    method_at(Fraction("0.057"), Fraction(4), Fraction(1, 2000), worker_cells=4)
    method_at(Fraction("0.1"), Fraction(4), Fraction(1, 2000), worker_cells=2)
    method_at(Fraction("0.1"), Fraction(4), Fraction("0.022"), worker_cells=4)


@given(
    alpha=st.fractions(min_value=Fraction(1, 100), max_value=8, max_denominator=100),
    epsilon=st.fractions(min_value=Fraction(1, 10), max_value=40, max_denominator=10),
    delta=st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 10), max_denominator=10**9),
)
def test_whatever_is_admitted_has_at_most_the_stated_delta(alpha: Fraction, epsilon: Fraction, delta: Fraction) -> None:
    try:
        method_at(alpha, epsilon, delta)
    except MethodError:
        return
    assert exact_delta(alpha=alpha, epsilon=epsilon) <= delta
    # From D to D′ the loss itself is bounded: ln r + τ/r at both ends of the ratio.
    assert max(epsilon / 2, log(1 + alpha) + epsilon / 2 / (1 + alpha)) <= epsilon


def test_worker_cells_share_epsilon_and_delta() -> None:
    method = method_at(Fraction("0.01"), Fraction(4), Fraction(1, 1000), worker_cells=4)
    expected = EmployerEmployee(definition="weak", alpha=Fraction("0.01"), epsilon=Fraction(4), delta=Fraction(1, 1000))
    assert method.guarantee() == expected
    assert method.scale == 2
    assert method.cell_guarantee().delta == Fraction(1, 4000)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 5), Fraction(-1), 0.001])
def test_a_delta_that_is_none_or_no_protection_is_refused(delta: Fraction) -> None:
    with pytest.raises(MethodError, match="delta"):
        method_at(Fraction("0.01"), Fraction(4), delta)


def test_the_error_does_not_depend_on_delta() -> None:
    errors = {method_at(Fraction("0.01"), Fraction(4), Fraction(1, 10**n)).error_in_scales for n in (2, 6, 9)}
    assert errors == {0.5}
