"""What a guarantee at one α says at another."""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest

from sfumato.errors import MethodError
from sfumato.privacy.guarantee import Definition, EmployerEmployee, plain, weakest

TENTH, HALF = Fraction(1, 10), Fraction(1, 2)
Groups = tuple[int, ...]


def strong(epsilon: int = 2, delta: Fraction = Fraction(0)) -> EmployerEmployee:
    return EmployerEmployee(definition="strong", alpha=TENTH, epsilon=Fraction(epsilon), delta=delta)


def weak(epsilon: int = 2) -> EmployerEmployee:
    return EmployerEmployee(definition="weak", alpha=TENTH, epsilon=Fraction(epsilon))


def test_a_narrower_alpha_costs_no_more() -> None:
    assert strong().at(Fraction(1, 20)).epsilon == 2
    assert weak().at(Fraction(1, 20)).epsilon == 2


def test_a_wider_alpha_costs_one_epsilon_a_step() -> None:
    assert strong().at(HALF).epsilon == 7 * 2


def test_a_wider_alpha_is_refused_under_the_weak_definition_and_with_delta() -> None:
    with pytest.raises(MethodError, match="implies no guarantee"):
        weak().at(HALF)
    with pytest.raises(MethodError, match="delta = 0"):
        strong(delta=Fraction(1, 1000)).at(HALF)


def individuals(epsilon: int = 2) -> EmployerEmployee:
    return EmployerEmployee(definition="individuals", alpha=TENTH, epsilon=Fraction(epsilon))


def test_for_individuals_alpha_changes_nothing() -> None:
    assert individuals().at(HALF) == replace(individuals(), alpha=HALF)
    assert individuals().at(Fraction(1, 20)).epsilon == 2


def test_a_weak_neighbour_may_be_one_worker_more_of_any_kind_so_weak_covers_individuals() -> None:
    for before in product(range(4), repeat=2):
        for kind in range(2):
            after = tuple(number + (kind == i) for i, number in enumerate(before))
            assert weak_neighbours(before, after, Fraction(1, 1000))


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        (["strong", "strong"], "strong"),
        (["strong", "weak"], "weak"),
        (["individuals", "weak", "strong"], "individuals"),
        ([], "strong"),
    ],
)
def test_together_they_hold_under_the_weakest(definitions: list[Definition], expected: Definition) -> None:
    assert weakest(definitions) == expected


def test_a_budget_for_individuals_counts_every_table_at_its_epsilon_whatever_its_alpha() -> None:
    budget = EmployerEmployee(definition="individuals", alpha=HALF, epsilon=Fraction(9))
    for table in (strong(), weak(), individuals()):
        cost = table.within(budget)
        assert (cost.definition, cost.alpha, cost.epsilon) == ("individuals", HALF, 2)
    assert strong().within(replace(budget, definition="strong")).epsilon == 14


@pytest.mark.parametrize(
    "wrong",
    [{"alpha": Fraction(0)}, {"epsilon": Fraction(-1)}, {"delta": Fraction(1)}, {"delta": Fraction(-1)}],
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, Fraction]) -> None:
    parameters = {"alpha": TENTH, "epsilon": Fraction(1), "delta": Fraction(0)} | wrong
    with pytest.raises(MethodError, match="0 < alpha"):
        EmployerEmployee(definition="strong", **parameters)


def test_floating_point_parameters_are_refused() -> None:
    with pytest.raises(TypeError, match="exact"):
        EmployerEmployee(definition="strong", alpha=0.1, epsilon=Fraction(1))


def test_numbers_are_written_exactly() -> None:
    assert [plain(Fraction(text)) for text in ("0.1", "2", "1/3", "1e-9")] == ["0.1", "2", "1/3", "1e-09"]


# A workforce of T kinds of workers is the number of each; a property of workers is any set of kinds.


def weak_neighbours(before: Groups, after: Groups, alpha: Fraction) -> bool:
    """Whether each of the 2^T properties grows by at most the factor 1+α or by one worker."""
    return all(
        0 <= grown - held <= max(alpha * held, Fraction(1))
        for kinds in product((False, True), repeat=len(before))
        for held, grown in [(_count(before, kinds), _count(after, kinds))]
    )


def _count(groups: Groups, kinds: Iterable[bool]) -> int:
    return sum(number for number, has in zip(groups, kinds, strict=True) if has)


def weak_distance(before: Groups, after: Groups, alpha: Fraction) -> int:
    """The least number of weak steps from one workforce to a larger one, searching all workforces between."""
    between = list(product(*(range(low, high + 1) for low, high in zip(before, after, strict=True))))
    reached, distance = {before}, 0
    while after not in reached:
        reached |= {new for new in between for old in reached if weak_neighbours(old, new, alpha)}
        distance += 1
    return distance


@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_weak_steps_to_a_wider_alpha_grow_with_the_kinds_of_workers(kinds: int) -> None:
    """T kinds of four workers grow to six each: one weak step at α = 1/2, but 2T at α = 1/10.

    So no number of steps covers all workforces, and a weak guarantee at 1/10 says nothing at 1/2.
    """
    four, six = (4,) * kinds, (6,) * kinds
    assert weak_neighbours(four, six, HALF)
    assert weak_distance(four, six, TENTH) == 2 * kinds


@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_a_weak_step_at_a_tenth_adds_at_most_one_worker_to_kinds_of_five_or_less(kinds: int) -> None:
    """Hence 2T steps for every T and on every path: Σ min(size, 6) must rise by 2T, and rises by one a step."""
    for sizes in product(range(6), repeat=kinds):
        for grown in product(range(3), repeat=kinds):
            after = tuple(size + more for size, more in zip(sizes, grown, strict=True))
            assert weak_neighbours(sizes, after, TENTH) == (sum(grown) <= 1)
