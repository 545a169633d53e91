"""Measures of risk: what neighbour steps prove, and what comparison with the true cells shows."""

from fractions import Fraction
from math import exp, floor, inf, isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.measures.risk import Uniques, ZeroChanges, share_exact, share_within, size_odds, uniques, zero_changes
from sfumato.privacy.guarantee import EmployerEmployee, NoFormalGuarantee, largest_step
from sfumato.privacy.steps import neighbour_steps, steps_between

TENTH = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(2))


def test_an_attackers_estimate_counts_as_close_up_to_v_percent() -> None:
    estimates = np.array([82, 89, 110, 118, 119])
    assert share_within(estimates=estimates, target=np.array(100), percent=18) == 4 / 5
    assert share_within(estimates=estimates, target=np.array(100), percent=11) == 2 / 5
    assert share_within(estimates=np.array([0, 1]), target=np.array(0), percent=50) == 0.5
    assert isnan(share_within(estimates=np.array([]), target=np.array(1), percent=10))


def test_exact_cells_uniques_and_changed_zeros_by_hand() -> None:
    true, protected = np.array([0, 0, 1, 1, 7]), np.array([0, 1, 1, 0, 8])
    assert share_exact(true=true, protected=protected) == 2 / 5
    assert uniques(true=true, protected=protected) == Uniques(true=2, published=2, both=1)
    assert zero_changes(true=true, protected=protected) == ZeroChanges(to_nonzero=1, to_zero=1)
    assert zero_changes(true=true, protected=protected, near=1) == ZeroChanges(to_nonzero=0, to_zero=0)
    assert zero_changes(true=np.array([0.4]), protected=np.array([-3.0]), near=0.5).to_nonzero == 1


@given(st.fractions(Fraction(1, 50), Fraction(3, 2), max_denominator=60), st.integers(0, 400), st.integers(0, 300))
def test_steps_are_those_of_walking_from_neighbour_to_neighbour(alpha: Fraction, size: int, more: int) -> None:
    here, walked = size, 0
    while here < size + more:
        here, walked = largest_step(here, alpha), walked + 1
    assert steps_between(alpha=alpha, smaller=size, larger=size + more) == walked


@pytest.mark.parametrize(("alpha", "wider"), [("1/10", "1/2"), ("1/20", "1/10"), ("1/100", "1/5")])
def test_no_pair_within_a_wider_alpha_needs_more_steps_than_the_ledger_charges(alpha: str, wider: str) -> None:
    narrow, wide = Fraction(alpha), Fraction(wider)
    needed = [steps_between(alpha=narrow, smaller=x, larger=max(floor((1 + wide) * x), x + 1)) for x in range(3_000)]
    assert max(needed) == neighbour_steps(narrow, wide)


def test_each_step_multiplies_the_odds_by_e_to_the_epsilon() -> None:
    assert size_odds(TENTH, smaller=10, larger=10).factor == 1
    once = size_odds(TENTH, smaller=10, larger=11)
    assert (once.steps, once.factor) == (1, pytest.approx(exp(2)))
    assert once.belief == pytest.approx(1 / (1 + exp(-2)))
    assert size_odds(TENTH, smaller=14, larger=21).factor == pytest.approx(exp(14))
    assert size_odds(TENTH, smaller=1, larger=10**9).factor <= inf
    assert size_odds(TENTH, smaller=1, larger=10**40).belief == 1


def test_a_guarantee_for_individuals_counts_every_worker() -> None:
    jobs = EmployerEmployee(definition="individuals", alpha=Fraction(1, 10), epsilon=Fraction(2))
    assert size_odds(jobs, smaller=100, larger=110).steps == 10


def test_delta_grows_with_the_steps_and_never_beyond_one() -> None:
    with_delta = EmployerEmployee(
        definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1), delta=Fraction(1, 10_000)
    )
    assert size_odds(with_delta, smaller=10, larger=11).delta == pytest.approx(1e-4)
    assert size_odds(with_delta, smaller=10, larger=12).delta == pytest.approx(1e-4 * (1 + exp(1)))
    assert size_odds(with_delta, smaller=10, larger=10_000).delta == 1


def test_without_a_guarantee_nothing_is_bounded() -> None:
    found = size_odds(NoFormalGuarantee(statement="none"), smaller=10, larger=11)
    assert (found.steps, found.factor, found.belief) == (None, inf, 1)


def test_sizes_come_in_order() -> None:
    with pytest.raises(ValueError, match="smaller"):
        size_odds(TENTH, smaller=11, larger=10)
