"""Log-Laplace: loss, bias, error figures and intervals."""

from fractions import Fraction
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import MethodError
from sfumato.noise.laplace import LogLaplace as Noise
from sfumato.noise.randomness import Seeded
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.statistics.jobs.logarithms import LogLaplace
from tests.statistics.methods.cells import cells_of

GRID = [(Fraction(a), Fraction(e)) for a in ("0.01", "0.05", "0.1", "0.2") for e in ("0.25", "0.5", "1", "2", "4")]
ADMISSIBLE = [(a, e) for a, e in GRID if e > 2 * log(1 + a)]
COUNTS = [*range(25), 66, 99, 100, 101, 500, 5_000]


def method_at(alpha: str = "0.1", epsilon: str = "2", worker_cells: int = 0, **options: bool) -> LogLaplace:
    return LogLaplace(alpha=Fraction(alpha), epsilon=Fraction(epsilon), worker_cells=worker_cells, **options)


def integer_loss(noise: Noise, alpha: Fraction) -> float:
    """The greatest |log probability ratio| over neighbouring counts and published whole numbers.

    A cell that is one establishment moves farthest: from n to at most max((1+α)n, n+1).
    """
    p, q = alpha.numerator, alpha.denominator
    tail = np.unique(np.geomspace(400, 2**55, 60).astype(np.int64))
    published = np.concatenate([np.arange(-int(1 / alpha) - 2, 400), tail])
    worst = 0.0
    for count in COUNTS:
        before = noise.log_mass(published, np.array([p * count + q]))
        possible = np.isfinite(before)
        for grown in {count + 1, max(int((1 + alpha) * count), count + 1)}:
            after = noise.log_mass(published, np.array([p * grown + q]))
            assert np.array_equal(np.isfinite(after), possible)
            worst = max(worst, float(np.abs(before[possible] - after[possible]).max()))
    return worst


@pytest.mark.parametrize(("alpha", "epsilon"), ADMISSIBLE)
@pytest.mark.parametrize("debias", [False, True])
def test_loss_over_whole_numbers_is_at_most_epsilon(alpha: Fraction, epsilon: Fraction, debias: bool) -> None:
    tight = LogLaplace(alpha=alpha, epsilon=epsilon, tight=True, debias=debias)
    published = LogLaplace(alpha=alpha, epsilon=epsilon, debias=debias)
    assert 0.9 * epsilon < integer_loss(tight.noise, alpha) <= epsilon + 1e-9
    assert integer_loss(published.noise, alpha) <= epsilon / 2 + 1e-9


@pytest.mark.parametrize(("alpha", "epsilon"), ADMISSIBLE)
def test_a_spread_ten_percent_below_the_tight_one_fails_the_audit(alpha: Fraction, epsilon: Fraction) -> None:
    noise = LogLaplace(alpha=alpha, epsilon=epsilon, tight=True).noise
    smaller = Noise(unit=noise.unit, spread=noise.spread * Fraction(9, 10), offset=noise.offset)
    assert integer_loss(smaller, alpha) > float(epsilon) * 1.001


@given(
    alpha=st.fractions(min_value=Fraction(1, 1000), max_value=10, max_denominator=1000),
    count=st.integers(0, 10**6),
    share=st.floats(0, 1),
)
def test_one_step_moves_the_logarithm_by_at_most_that_of_one_plus_alpha(
    alpha: Fraction, count: int, share: float
) -> None:
    held = int(share * count)  # by the establishment that grows
    grown = count - held + max(int((1 + alpha) * held), held + 1)
    assert (grown + 1 / alpha) / (count + 1 / alpha) <= 1 + alpha


def test_one_step_from_an_empty_cell_reaches_exactly_one_plus_alpha() -> None:
    assert (1 + 10) / (0 + 10) == 1.1


@pytest.mark.parametrize("count", [0, 3, 100, 10_000])
def test_the_mean_is_too_high_by_the_stated_factor_unless_it_is_put_right(count: int) -> None:
    cells = cells_of(count=[count])
    plain, debiased = method_at("0.2", "1"), method_at("0.2", "1", debias=True)
    spread = float(plain.spread)
    expected = (count + 5) / (1 - spread**2) - 5 - count
    assert np.isclose(plain.expected_bias(cells)[0], expected, atol=0.02)
    assert abs(debiased.expected_bias(cells)[0]) < 0.02
    assert (plain.unbiased, debiased.unbiased) == (False, True)


def test_relative_squared_error_is_the_printed_formula() -> None:
    # About n + γ; the fourth moment of e^L needs λ < 1/2, here λ = 1/5 leaves room for the mean of squares to settle.
    method = LogLaplace(alpha=Fraction("0.1"), epsilon=Fraction("1.9"), tight=False)
    spread = float(method.spread)
    count = 10**9
    drawn = method.protect(cells_of(count=[count] * 1_000_000), Seeded(3))["value"]
    observed = np.mean(((drawn - count) / (count + 10)) ** 2)
    formula = (2 * spread**2 + 4 * spread**4) / ((1 - 4 * spread**2) * (1 - spread**2))
    assert np.isclose(observed, formula, rtol=0.02)


@pytest.mark.parametrize("options", [{}, {"debias": True}])
@pytest.mark.parametrize("count", [0, 5, 60, 3_000])
def test_published_error_is_on_average_not_below_the_true_one(count: int, options: dict[str, bool]) -> None:
    method, cells = method_at(**options), cells_of(count=[count] * 40_000)
    published = method.published_error(method.protect(cells, Seeded(9))["value"])
    assert published.mean() > method.expected_error(cells)[0] * 0.995
    assert published.mean() < method.expected_error(cells)[0] * 1.5


def test_interval_keeps_exactly_the_counts_a_factor_within_the_quantile_leads_to() -> None:
    method = method_at(debias=True)
    factor, shrink = np.exp(method.noise.quantile(0.9)), float(method.shrink)
    n = np.arange(0, 5_000)
    for value in (-9, 0, 4, 25, 300, 1_000):
        reached = shrink * (n + 10)
        # No count is below 0: the upper end of a negative value is that of 0.
        kept = n[(value + 10 - 0.5 <= reached * factor) & (max(value, 0) + 10 + 0.5 >= reached / factor)]
        low, high = method.published_interval(np.array([value]), 0.9)
        assert (low[0], high[0]) == (kept[0], kept[-1])


def test_worker_cells_share_epsilon_and_make_the_guarantee_weak() -> None:
    expected = EmployerEmployee(definition="weak", alpha=Fraction("0.1"), epsilon=Fraction(8))
    assert method_at(epsilon="8", worker_cells=4).guarantee() == expected
    assert method_at(epsilon="8", worker_cells=4).spread == method_at(epsilon="2").spread
    assert method_at().guarantee().definition == "strong"


def test_a_spread_without_a_mean_is_refused_with_the_smallest_epsilon() -> None:
    with pytest.raises(MethodError) as refusal:
        method_at(epsilon="1.5", worker_cells=8)
    assert refusal.value.expected == (
        "epsilon > 2 · 8 · ln(1 + alpha) = 2 · 8 · ln(1.1) = 1.525, or the published value has no mean"
    )
    assert refusal.value.do == (
        "choose epsilon = 1.6 or more, or alpha = 0.098 or less, or at most 7 worker cells, or tight = true"
    )
    for admissible in ({"epsilon": "1.6"}, {"alpha": "0.098"}, {"worker_cells": 7}, {"tight": True}):
        method_at(**({"epsilon": "1.5", "worker_cells": 8} | admissible))


@pytest.mark.parametrize("count", [-1, 2**61])
def test_counts_beyond_the_limits_are_refused_without_naming_a_number(count: int) -> None:
    with pytest.raises(MethodError, match="a cell outside these limits") as refusal:
        method_at().protect(cells_of(count=[count]), Seeded(1))
    assert str(count) not in str(refusal.value)


def test_a_confidence_that_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError, match="confidence"):
        method_at().published_interval(np.array([1]), 95.0)
