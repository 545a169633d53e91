"""The definition of units: how it composes, what ledgers keep of it, and how far apart values are."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import BudgetError, MethodError
from sfumato.frame.measured import read_measured
from sfumato.privacy.account import Account, Charge, parallel, sequential
from sfumato.privacy.book import OverPeriods, PeriodSpent
from sfumato.privacy.guarantee import EmployerEmployee, largest_value, read_described, weakest
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.steps import steps_between
from sfumato.privacy.units import unit_meaning, value_comparisons, value_loss

TENTH = Fraction(1, 10)
UNITS = EmployerEmployee(
    definition="units", alpha=TENTH, epsilon=Fraction(2), caps=(("turnover[unit=business]", 1_000),)
)
PEOPLE = EmployerEmployee(definition="individuals", alpha=TENTH, epsilon=Fraction(2))
ACCOUNT = Account(population="businesses", period="2025")


def test_guarantees_of_units_add_up_with_one_another_and_with_no_others() -> None:
    profit = replace(UNITS, caps=(("profit[unit=business]", 50),))
    together = sequential([UNITS, profit])
    assert (together.definition, together.epsilon) == ("units", 4)
    assert together.caps == (("profit[unit=business]", 50), ("turnover[unit=business]", 1_000))
    for compose in (sequential, parallel):
        with pytest.raises(MethodError, match="values of units"):
            compose([UNITS, PEOPLE])
    for other in ("strong", "weak", "individuals"):
        with pytest.raises(MethodError, match="values of units"):
            weakest(["units", other])


def test_a_wider_alpha_is_not_reached_and_a_narrower_one_costs_nothing() -> None:
    assert UNITS.at(Fraction(1, 20)).epsilon == 2
    with pytest.raises(MethodError, match="alpha"):
        UNITS.at(Fraction(1, 5))


def test_what_is_described_and_what_a_ledger_keeps_is_read_back(tmp_path: Path) -> None:
    assert read_described(UNITS.described()) == UNITS
    ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True)
    budget = replace(UNITS, epsilon=Fraction(5))
    ledger.set_budget(ACCOUNT, budget, "")
    charge = Charge(question="ab", table="turnover", guarantee=UNITS, data="cd")
    ledger.charge(ACCOUNT, [charge], "release")
    again = Ledger.open(tmp_path / "ledger.sqlite")
    assert [entry.guarantee for entry in again.history()] == [budget, UNITS]
    assert again.balance(ACCOUNT).remaining_epsilon == 3
    for wrong in (PEOPLE, replace(UNITS, caps=(("turnover[unit=enterprise]", 1_000),))):
        with pytest.raises(BudgetError):
            again.charge(ACCOUNT, [replace(charge, question="ef", guarantee=wrong)], "release")


def test_units_are_part_of_what_a_measure_is_typed_as() -> None:
    assert read_measured("turnover[unit=business, factor=100]") == "turnover[factor=100, unit=business]"


def test_periods_of_units_and_of_people_bound_nothing_together() -> None:
    some = [PeriodSpent(period=str(at), guarantee=one) for at, one in enumerate((UNITS, UNITS, PEOPLE))]
    assert OverPeriods(population="businesses", periods=tuple(some[:2])).together().epsilon == 4
    mixed = OverPeriods(population="businesses", periods=tuple(some))
    assert not mixed.composes
    assert mixed.together() is None


def test_steps_are_the_floor_or_a_share_whichever_is_more() -> None:
    assert largest_value(0, TENTH, 1_000) == 1_000
    assert largest_value(10_000, TENTH, 1_000) == 11_000
    assert largest_value(20_000, TENTH, 1_000) == 22_000

    def counted(value: int, larger: int) -> int:
        steps = 0
        while value < larger:
            value, steps = largest_value(value, TENTH, 7), steps + 1
        return steps

    for pair in ((0, 1), (0, 7), (0, 8), (3, 70), (69, 71), (70, 5_000), (0, 123_456)):
        assert steps_between(alpha=TENTH, smaller=pair[0], larger=pair[1], floor=7) == counted(*pair)


def test_what_is_said_of_a_value_is_its_number_of_steps() -> None:
    found = value_comparisons(UNITS)
    assert [(one.pair, one.loss.steps) for one in found] == [
        ((0, 1_000), 1),
        ((100_000, 110_000), 1),
        ((100_000, 121_000), 2),
        ((0, 100_000), 35),
    ]
    assert value_loss(UNITS, 1_000, 121_000, 100_000).epsilon == 4
    (text,) = unit_meaning(UNITS, "business")
    assert "100,000 or 110,000" in text
    assert "hidden whole" in text
