"""Totals in a budget: who are neighbours with them, what adds up, and what the ledger keeps."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import BudgetError, MethodError
from sfumato.frame.measured import measured, read_measured
from sfumato.privacy.account import Account, Charge, Cost, balance, parallel, sequential
from sfumato.privacy.guarantee import EmployerEmployee, loss, read_described, workforce_steps
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.meaning import comparisons, establishment
from sfumato.privacy.windows import Window
from sfumato.sections import Budget
from sfumato.statistics.registry import requirements

JOBS = Account(population="jobs", period="2025")
COUNT = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(2))
PAY = replace(COUNT, caps=(("earnings", 120_000),))
HOURS = replace(COUNT, caps=(("hours", 3_000),))
BUDGET = replace(PAY, epsilon=Fraction(10))


def costs(*guarantees: EmployerEmployee) -> list[Cost]:
    return [Cost(guarantee=guarantee) for guarantee in guarantees]


def test_neighbours_of_all_tables_together_keep_to_the_limits_of_each() -> None:
    for compose in (sequential, parallel):
        assert compose([COUNT, PAY]).caps == PAY.caps
        assert compose([HOURS, PAY, COUNT]).caps == (("earnings", 120_000), ("hours", 3_000))
    assert sequential([COUNT, PAY]).epsilon == 4
    assert sequential([PAY, replace(COUNT, definition="weak")]).definition == "weak"


def test_counts_and_totals_spend_one_budget_that_says_so() -> None:
    spent = balance(JOBS, BUDGET, costs(COUNT, PAY))
    assert (spent.spent_epsilon, spent.definition, spent.caps) == (4, "strong", PAY.caps)
    assert balance(JOBS, BUDGET, costs(COUNT)).caps == ()


@pytest.mark.parametrize(
    "refused", [HOURS, replace(PAY, caps=(("earnings", 130_000),))], ids=["another measure", "another cap"]
)
def test_a_budget_refuses_totals_that_its_definition_does_not_name(refused: EmployerEmployee) -> None:
    for budget in (BUDGET, replace(BUDGET, caps=())):
        with pytest.raises(BudgetError, match="a total of") as refusal:
            balance(JOBS, budget, costs(refused))
        assert "totals = [" in refusal.value.do


def test_for_single_persons_a_total_is_a_table_like_others() -> None:
    persons = EmployerEmployee(definition="individuals", alpha=Fraction(1), epsilon=Fraction(9))
    spent = balance(JOBS, persons, costs(COUNT, PAY))
    assert (spent.spent_epsilon, spent.caps) == (4, ())


def test_what_a_budget_for_single_persons_spent_is_said_of_single_persons(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    persons = EmployerEmployee(definition="individuals", alpha=Fraction(1, 2), epsilon=Fraction(9))
    ledger.set_budget(JOBS, persons)
    charges = [Charge(question=q, table=q, guarantee=g, data="da7a") for q, g in (("ab", COUNT), ("cd", PAY))]
    ledger.charge(JOBS, charges, "release")
    together = replace(persons, epsilon=Fraction(4))
    assert ledger.over_periods("jobs").together() == together, "at alpha = 0.5 no size is protected with epsilon = 4"

    later = replace(JOBS, period="2026")
    ledger.set_budget(later, BUDGET)
    ledger.charge(later, [Charge(question="ef", table="ef", guarantee=PAY, data="da7a")], "release")
    both = ledger.over_periods("jobs").together()
    assert both is not None
    assert (both.definition, both.epsilon, both.caps) == ("individuals", 6, ())


def test_a_total_costs_the_same_at_a_narrower_alpha_and_has_no_price_at_a_wider_one() -> None:
    assert PAY.at(Fraction(1, 20)).epsilon == 2
    with pytest.raises(MethodError, match=r"alpha ≥ 0\.5"):
        PAY.at(Fraction(1, 2))
    with pytest.raises(BudgetError, match=r"alpha = 0\.5"):
        balance(JOBS, replace(BUDGET, alpha=Fraction(1, 2)), costs(PAY))


def test_a_ledger_keeps_the_caps_and_hashes_all_else_as_before(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(JOBS, BUDGET)
    charges = [Charge(question=q, table=q, guarantee=g, data="da7a") for q, g in (("ab", COUNT), ("cd", PAY))]
    ledger.charge(JOBS, charges, "release")
    again = Ledger.open(path)
    again.verify()
    assert [entry.guarantee for entry in again.history()] == [BUDGET, COUNT, PAY]
    with pytest.raises(BudgetError, match="a total of"):
        again.set_budget(JOBS, replace(BUDGET, caps=()))


def test_a_bundle_tells_the_caps_and_they_are_read_again() -> None:
    assert read_described(PAY.described()) == PAY
    assert "caps" not in COUNT.described()
    assert str(PAY).endswith("; with totals of earnings (at most 120,000 a job)")


def test_a_budget_of_a_release_file_has_the_caps_of_its_measures() -> None:
    stated = Budget(alpha=Fraction(1, 10), epsilon=Fraction(10), totals=("earnings",))
    assert stated.guarantee({"earnings": ("earnings", 120_000), "hours": ("hours", 3_000)}) == BUDGET
    cents = {"earnings": ("earnings[factor=100]", 120_000)}
    assert stated.guarantee(cents).caps == (("earnings[factor=100]", 120_000),)


# What a cap is about: a name, and what makes its values.

OTHER = replace(COUNT, caps=(("earnings[column=pay2, factor=100]", 120_000),))


def test_two_meanings_of_one_name_are_two_measures() -> None:
    for compose in (sequential, parallel):
        assert compose([PAY, OTHER]).caps == (*PAY.caps, *OTHER.caps)
    for budget, refused in ((BUDGET, OTHER), (replace(OTHER, epsilon=Fraction(10)), PAY)):
        with pytest.raises(BudgetError) as refusal:
            balance(JOBS, budget, costs(refused))
        assert "earnings[column=pay2, factor=100] (at most 120,000 a job)" in str(refusal.value)
        assert "as the budget has it, its cap, column and factor too" in refusal.value.do


def test_a_ledger_keeps_what_a_cap_is_about(path: Path) -> None:
    ledger, budget = Ledger.open(path, create=True), replace(OTHER, epsilon=Fraction(10))
    ledger.set_budget(JOBS, budget)
    ledger.charge(JOBS, [Charge(question="ab", table="pay", guarantee=OTHER, data="da7a")], "release")
    with pytest.raises(BudgetError, match="a total of earnings \\(at most"):
        ledger.charge(JOBS, [Charge(question="cd", table="pay", guarantee=PAY, data="da7a")], "release")
    again = Ledger.open(path)
    again.verify()
    assert [entry.guarantee for entry in again.history()] == [budget, OTHER]
    assert read_described(OTHER.described()) == OTHER


def test_a_window_refuses_a_total_of_another_meaning(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    ledger.set_window("jobs", Window(periods=2, length="year", most=replace(PAY, epsilon=Fraction(20))))
    ledger.set_budget(JOBS, replace(OTHER, epsilon=Fraction(10)))
    with pytest.raises(BudgetError, match="earnings\\[column=pay2, factor=100\\]"):
        ledger.charge(JOBS, [Charge(question="ab", table="pay", guarantee=OTHER, data="da7a")], "release")
    both = replace(PAY, epsilon=Fraction(20), caps=(*PAY.caps, *OTHER.caps))
    ledger.set_window("jobs", Window(periods=2, length="year", most=both))
    ledger.charge(JOBS, [Charge(question="ab", table="pay", guarantee=OTHER, data="da7a")], "release")


def test_a_budget_of_a_period_has_each_measure_once(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    for caps in ((("earnings", 10), ("earnings", 20)), (*PAY.caps, *OTHER.caps)):
        with pytest.raises(BudgetError, match="each measure once") as refusal:
            ledger.set_budget(JOBS, replace(BUDGET, caps=caps))
        assert "earnings" in refusal.value.found
    assert not ledger.history()


def test_readers_are_told_names_unless_one_has_several_meanings() -> None:
    assert "who all have earnings of 120,000 or more" in " ".join(establishment(OTHER))
    both = " ".join(establishment(sequential([PAY, OTHER])))
    assert "earnings[column=pay2, factor=100] of 120,000" in both


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"column": "pay2"},
        {"column": 'a "b", c=1] \\ ä', "empty": -1},
        {"column": " pay"},
        {"column": "100", "factor": 100, "fractions": "round", "empty": 0},
    ],
)
def test_a_measure_is_read_as_it_is_written(rule: dict[str, Any]) -> None:
    assert read_measured(measured("earnings", rule)) == measured("earnings", rule)


NO_MEASURES = (
    *("", "[factor=2]", "a=b", "a[factor=2", "a[factor]", "a[b=1]", "a[column=]", "a[fractions=cut]"),
    *("a[factor=0]", "a[factor=x]", "a[factor=2, factor=3]", 'a[column="b]', 'a[column="\\q"]'),
)


@pytest.mark.parametrize("typed", NO_MEASURES)
def test_what_is_no_measure_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_measured(typed)


# What is said: no more than steps between neighbours bound.


def test_many_workers_more_who_earn_the_cap_are_said_to_be_many_steps() -> None:
    assert workforce_steps(COUNT, size=100, added=10) == 1
    assert workforce_steps(PAY, size=100, added=10) == 10
    found = {(one.about, one.pair): one.loss for one in comparisons(PAY)}
    assert found["size, pay alike", (100, 110)] == loss(PAY, 1)
    assert found["size", (100, 110)] == loss(PAY, 10)
    assert found["share, pay alike", (50, 60)] == loss(PAY, 2)
    assert found["share", (50, 60)] == loss(PAY, 20)
    assert found["job", None] == loss(PAY, 1)
    text = " ".join(establishment(PAY))
    assert "if what they have of earnings in all is larger by at most 10 % or by 120,000" in text
    assert "10 % more workers who all have earnings of 120,000 or more are no single step" in text
    assert "what they have of earnings" in " ".join(establishment(replace(PAY, definition="weak")))
    assert "earnings" not in " ".join(establishment(COUNT))


def test_what_a_total_protects_is_told_apart_from_what_a_count_protects() -> None:
    assert str(requirements(COUNT)) == "persons, size, shape"
    assert str(requirements(PAY)) == "persons, size and shape (where what is added up grows alike)"


def test_caps_are_in_one_order_and_above_zero() -> None:
    for caps in ((("b", 1), ("a", 1)), (("a", 1), ("a", 1)), (("a", 0),)):
        with pytest.raises(ValueError, match="caps"):
            replace(COUNT, caps=caps)
