"""Steps between workforces against a search over all paths, and the loss of several steps against their definition."""

from collections import deque
from fractions import Fraction
from itertools import product
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.privacy.guarantee import (
    ANOTHER_JOB,
    ONE_JOB,
    Definition,
    EmployerEmployee,
    largest_step,
    loss,
    workforce_steps,
)

DEFINITIONS: tuple[Definition, ...] = ("strong", "weak", "individuals")


def guarantee(
    definition: Definition = "strong", *, alpha: str = "1/10", epsilon: str = "1", delta: str = "0"
) -> EmployerEmployee:
    return EmployerEmployee(
        definition=definition, alpha=Fraction(alpha), epsilon=Fraction(epsilon), delta=Fraction(delta)
    )


def is_step(definition: Definition, alpha: Fraction, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether workforces, given as the number of workers of each kind, are neighbours: straight from the definition."""
    if not all(a <= b for a, b in zip(one, other, strict=True)) or one == other:
        return False
    if definition == "individuals":
        return sum(other) == sum(one) + 1
    groups = [(1,) * len(one)] if definition == "strong" else list(product((0, 1), repeat=len(one)))
    return all(
        sum(x * y for x, y in zip(group, other, strict=True))
        <= max((1 + alpha) * (n := sum(x * y for x, y in zip(group, one, strict=True))), n + 1)
        for group in groups
    )


def shortest(
    definition: Definition, alpha: Fraction, one: tuple[int, ...], other: tuple[int, ...], *, most: int
) -> int:
    """The fewest steps from one workforce to another, over all paths with at most so many workers of a kind."""
    states = list(product(range(most + 1), repeat=len(one)))
    seen, waiting = {one: 0}, deque([one])
    while waiting:
        here = waiting.popleft()
        if here == other:
            return seen[here]
        for there in states:
            if there not in seen and (
                is_step(definition, alpha, here, there) or is_step(definition, alpha, there, here)
            ):
                seen[there] = seen[here] + 1
                waiting.append(there)
    raise AssertionError("no path")


@pytest.mark.parametrize("alpha", ["1/10", "1/4", "1/2"])
@pytest.mark.parametrize(
    ("one", "other"), [((3, 3), (4, 2)), ((4, 4), (6, 2)), ((4, 4), (6, 4)), ((5, 1), (1, 5)), ((2, 5), (5, 3))]
)
def test_no_path_between_two_workforces_is_shorter_than_the_steps_that_are_counted(
    alpha: str, one: tuple[int, int], other: tuple[int, int]
) -> None:
    added = sum(max(after - before, 0) for before, after in zip(one, other, strict=True))
    removed = sum(one) + added - sum(other)
    found = {
        definition: workforce_steps(guarantee(definition, alpha=alpha), size=sum(one), added=added, removed=removed)
        for definition in DEFINITIONS
    }
    searched = {d: shortest(d, Fraction(alpha), one, other, most=10) for d in DEFINITIONS}
    assert searched["strong"] == found["strong"]
    assert searched["individuals"] == found["individuals"]
    # With kinds as large as these some weak steps take several workers; never are more steps needed than are counted.
    assert searched["strong"] <= searched["weak"] <= found["weak"]


def test_under_the_weak_definition_workers_of_kinds_without_any_take_a_step_each() -> None:
    """Four kinds of workers, of which the establishment has none: each step adds one worker."""
    assert shortest("weak", Fraction(1, 2), (0, 0, 0, 0), (1, 1, 1, 0), most=1) == 3
    assert workforce_steps(guarantee("weak", alpha="1/2"), size=0, added=3) == 3


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("size", [1, 2, 9, 100, 5_000])
def test_a_job_more_is_one_step_and_another_worker_in_a_job_is_two_whatever_the_size(
    definition: Definition, size: int
) -> None:
    promised = guarantee(definition)
    assert workforce_steps(promised, size=size, added=1) == ONE_JOB
    assert workforce_steps(promised, size=size, removed=1) == ONE_JOB
    assert workforce_steps(promised, size=size, added=1, removed=1) == ANOTHER_JOB


@given(
    alpha=st.builds(Fraction, st.integers(1, 30), st.integers(1, 30)),
    size=st.integers(1, 3_000),
)
@settings(deadline=None, max_examples=60)
def test_two_shares_at_one_size_are_two_steps_up_to_the_workers_of_one_step_and_then_more(
    alpha: Fraction, size: int
) -> None:
    promised = guarantee(alpha=str(alpha))
    most = largest_step(size, alpha) - size
    moved = min(most, size)
    assert workforce_steps(promised, size=size, added=moved, removed=moved) == 2
    if most < size:
        assert workforce_steps(promised, size=size, added=most + 1, removed=most + 1) == 4


def test_only_those_who_are_there_can_be_removed() -> None:
    with pytest.raises(ValueError, match="only those who are there"):
        workforce_steps(guarantee(), size=3, removed=4)


def composed(epsilon: float, delta: float, steps: int) -> float:
    """P ≤ e^ε·P′ + δ, put into itself again and again: by how much the last P′ is missed."""
    missed = 0.0
    for _ in range(steps):
        missed = exp(epsilon) * missed + delta
    return missed


@given(
    epsilon=st.fractions(Fraction(1, 1000), 4, max_denominator=1000),
    delta=st.fractions(Fraction(1, 10**9), Fraction(1, 100), max_denominator=10**9),
    steps=st.integers(1, 40),
)
@settings(deadline=None)
def test_several_steps_cost_as_many_epsilons_and_the_delta_of_the_definition_put_into_itself(
    epsilon: Fraction, delta: Fraction, steps: int
) -> None:
    found = loss(guarantee(epsilon=str(epsilon), delta=str(delta)), steps)
    assert (found.steps, found.epsilon) == (steps, steps * epsilon)
    assert float(found.delta) == pytest.approx(min(1.0, composed(float(epsilon), float(delta), steps)), rel=1e-9)


def test_two_steps_of_a_mechanism_that_fails_as_often_as_it_may_fail_more_than_twice_as_often() -> None:
    """Of three states in a row each answers "yes" as often as (ε, δ) allows beside the next one."""
    epsilon, delta = 1.0, 0.01
    last = 0.05
    middle = exp(epsilon) * last + delta
    first = exp(epsilon) * middle + delta
    for yes, next_yes in ((first, middle), (middle, last)):
        for one, other in ((yes, next_yes), (next_yes, yes), (1 - yes, 1 - next_yes), (1 - next_yes, 1 - yes)):
            assert one <= exp(epsilon) * other + delta + 1e-15
    missed = first - exp(2 * epsilon) * last
    assert missed == pytest.approx(float(loss(guarantee(delta="0.01"), 2).delta), rel=1e-12)
    assert missed > 2 * delta


def test_delta_is_never_rounded_down_and_never_above_one() -> None:
    promised = guarantee(epsilon="1/3", delta="1/1000000")
    tenth = Fraction(1, 10)
    exact_enough = sum(Fraction(exp(float(Fraction(k, 3)))) for k in range(7)) / 10**6
    assert exact_enough * (1 - tenth**12) < loss(promised, 7).delta < exact_enough * (1 + tenth**12)
    assert loss(promised, 10**9).delta == 1
    assert loss(promised, 1).delta == promised.delta  # one step is the guarantee itself, to the last digit
    assert loss(guarantee(epsilon="0", delta="1/10"), 3).delta == Fraction(3, 10)
    assert loss(guarantee(), 10**6).delta == 0
