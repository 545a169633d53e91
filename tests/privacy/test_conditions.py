"""Guarantees on a condition: how they add up, what the ledger keeps, and who may spend a budget on them."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import BudgetError
from sfumato.privacy.account import Account, Charge, Cost, balance, parallel, sequential
from sfumato.privacy.entries import digest, guarantee_columns
from sfumato.privacy.guarantee import CONDITIONAL, EmployerEmployee
from sfumato.privacy.ledger import Ledger
from sfumato.sections import Budget
from sfumato.statistics.registry import requirements

PEOPLE = Account(population="people", period="2025")
FORMAL = EmployerEmployee(definition="individuals", alpha=Fraction(1, 10), epsilon=Fraction(5, 2))
GIVEN_CHI = replace(FORMAL, condition="given χ")
BUDGET = replace(FORMAL, epsilon=Fraction(10))


def costs(*guarantees: EmployerEmployee) -> list[Cost]:
    return [Cost(guarantee=guarantee) for guarantee in guarantees]


def test_a_formal_guarantee_stays_formal_and_one_condition_makes_all_conditional() -> None:
    for compose in (sequential, parallel):
        assert compose([FORMAL, FORMAL]).condition == ""
        assert compose([FORMAL, GIVEN_CHI, GIVEN_CHI]).condition == "given χ"
        assert compose([GIVEN_CHI, replace(FORMAL, condition="given ψ")]).condition == "given χ; given ψ"
    assert sequential([FORMAL, GIVEN_CHI]).epsilon == 5


def test_a_condition_goes_wherever_the_guarantee_goes() -> None:
    assert GIVEN_CHI.within(BUDGET).condition == "given χ"
    assert GIVEN_CHI.at(Fraction(1)).condition == "given χ"
    assert str(GIVEN_CHI).endswith("; given χ")
    assert GIVEN_CHI.described()["condition"] == "given χ"
    assert "condition" not in FORMAL.described()


def test_what_holds_on_a_condition_protects_nothing_provably() -> None:
    assert str(requirements(FORMAL)) == "persons only"
    assert str(requirements(GIVEN_CHI)) == "nothing provably"


def test_a_budget_refuses_conditions_unless_the_officer_allowed_them() -> None:
    with pytest.raises(BudgetError, match="given χ") as refusal:
        balance(PEOPLE, BUDGET, costs(FORMAL, GIVEN_CHI))
    assert "conditional = true" in refusal.value.do
    allowed = balance(PEOPLE, replace(BUDGET, condition=CONDITIONAL), costs(FORMAL, GIVEN_CHI))
    assert (allowed.spent_epsilon, allowed.condition) == (5, "given χ")
    assert balance(PEOPLE, replace(BUDGET, condition=CONDITIONAL), costs(FORMAL)).condition == ""


def test_a_ledger_keeps_the_condition_of_a_charge_and_of_a_budget(path: Path) -> None:
    allowing = replace(BUDGET, condition=CONDITIONAL)
    ledger = Ledger.open(path, create=True)
    ledger.set_budget(PEOPLE, allowing)
    ledger.charge(PEOPLE, [Charge(question="ab", table="t", guarantee=GIVEN_CHI, data="da7a")], "release")
    again = Ledger.open(path)
    again.verify()
    assert [entry.guarantee for entry in again.history()] == [allowing, GIVEN_CHI]


def test_a_refused_condition_charges_nothing(path: Path) -> None:
    ledger = Ledger.open(path, create=True)
    charge = Charge(question="ab", table="t", guarantee=GIVEN_CHI, data="da7a")
    with pytest.raises(BudgetError, match="given χ"):
        ledger.charge(PEOPLE, [charge], "release", budget=BUDGET)
    assert ledger.history() == ()


def test_entries_without_a_condition_hash_as_they_did_before_there_were_conditions() -> None:
    row = {
        "sequence": 1,
        "identifier": "0" * 32,
        "kind": "charge",
        "population": "jobs",
        "period": "2025",
        "release": "r",
        "table": "t",
        "question": "ab",
        "data": "da7a",
        **guarantee_columns(FORMAL),
        "answer": "",
        "note": "",
        "time": "2025-01-01T00:00:00+00:00",
        "previous": "0" * 64,
    }
    # Computed by the version that knew no conditions.
    assert digest(row) == "6cd933f73411fd3a0db07029c7c9e7e1616eb2b0b7aaec25ad22ee2c490fe6dc"


def test_a_budget_for_individuals_needs_no_alpha_and_others_do() -> None:
    assert Budget.model_validate({"epsilon": 3, "definition": "individuals"}).guarantee().alpha == 1
    assert Budget.model_validate({"epsilon": 3, "alpha": "1/10", "definition": "individuals"}).alpha == Fraction(1, 10)
    with pytest.raises(ValueError, match="alpha"):
        Budget.model_validate({"epsilon": 3})


def test_a_budget_says_whether_it_allows_conditions() -> None:
    stated = {"epsilon": 3, "definition": "individuals"}
    assert Budget.model_validate(stated).guarantee().condition == ""
    assert Budget.model_validate({**stated, "conditional": True}).guarantee().condition == CONDITIONAL
