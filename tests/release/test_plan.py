"""The plan tells the guarantee and the charge of every table from the release alone."""

from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.check import check
from sfumato.errors import BudgetError, MethodError
from sfumato.plan import Plan
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.release_file import load
from tests.release.test_release_file import GOOD, written


def plan(folder: Path, *changes: tuple[str, str]) -> Plan:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return check(load(written(folder, text))).plan


def test_workplace_attributes_are_strong_and_cost_epsilon_once(tiny: Path) -> None:
    first = plan(tiny).tables[0]
    assert first.guarantee == EmployerEmployee(definition="strong", alpha=Fraction("0.1"), epsilon=Fraction(2))


def test_tables_add_up_at_the_alpha_of_the_budget(tiny: Path) -> None:
    # The second table is protected at alpha = .2, which covers .1 at the same epsilon.
    assert plan(tiny).guarantee.epsilon == 2 + Fraction(1, 3)


def test_a_narrower_alpha_costs_as_many_steps_as_it_takes_to_reach_the_budgets(tiny: Path) -> None:
    narrow = plan(tiny, ("epsilon = 2.0 }", "epsilon = 0.5, alpha = 0.01 }"))
    assert narrow.tables[0].guarantee.epsilon == Fraction(1, 2)
    steps = (narrow.guarantee.epsilon - Fraction(1, 3)) / Fraction(1, 2)
    assert steps >= 10  # ln 1.1 / ln 1.01 is 9.6, and whole workers add steps
    assert steps.denominator == 1


WEAK = ("epsilon = 4.0 }", 'epsilon = 4.0, definition = "weak" }')


@pytest.mark.parametrize(
    ("by", "cells"),
    [
        ('by = ["place", "sex"]', 2),
        ('by = ["place"]\nwhere = { sex = ["F"] }', 1),
        ('by = ["sex"]\nwhere = { sex = "F" }', 1),
    ],
)
def test_worker_attributes_are_weak_and_share_the_epsilon_of_the_table(tiny: Path, by: str, cells: int) -> None:
    table = plan(tiny, WEAK, ('by = ["place"]', by)).tables[0]
    assert table.guarantee == EmployerEmployee(definition="weak", alpha=Fraction("0.1"), epsilon=Fraction(2))
    alone = plan(tiny, WEAK, ('by = ["place"]', by), ("epsilon = 2.0", f"epsilon = {2 * cells}.0")).tables[0]
    strong = plan(tiny).tables[0]
    assert alone.method.planned_error() == strong.method.planned_error()


def test_a_weak_table_is_refused_by_a_strong_budget_before_data_are_read(tiny: Path) -> None:
    with pytest.raises(BudgetError, match='definition = "weak"'):
        plan(tiny, ('by = ["place"]', 'by = ["place", "sex"]'))


def test_a_weak_table_at_a_narrower_alpha_than_the_budgets_is_refused(tiny: Path) -> None:
    with pytest.raises(BudgetError, match="implies no guarantee"):
        plan(tiny, WEAK, ('by = ["place"]', 'by = ["place", "sex"]'), ("epsilon = 2.0", "alpha = 0.05, epsilon = 2.0"))


def test_too_small_an_epsilon_names_the_inequality_and_the_nearest_parameters(tiny: Path) -> None:
    with pytest.raises(MethodError) as error:
        plan(tiny, ("epsilon = 2.0", "epsilon = 0.05"))
    assert "ln(1" in str(error.value)
    assert "0.0" in error.value.do


def test_a_question_asked_twice_is_paid_once(tiny: Path) -> None:
    from sfumato.run import run

    twin = (
        ('by = ["industry"]', 'by = ["place"]'),
        ('method = "smooth-pareto", epsilon = "1/3", alpha = 0.2', "epsilon = 2.0"),
    )
    planned = plan(tiny, *twin)
    assert planned.guarantee.epsilon == 2
    published = run(planned.release)
    assert published.charged == ("by_place",)
    assert published.balance.spent_epsilon == 2
    tables = [(published.bundle / "tables" / f"{name}.csv").read_bytes() for name in ("by_place", "by_industry")]
    assert tables[0] == tables[1]
