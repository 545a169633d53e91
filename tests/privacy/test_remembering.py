"""A ledger that remembers what it verified, for servers; and charges within a part of a budget."""

import sqlite3
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest

from sfumato.content import Content
from sfumato.errors import LedgerError
from sfumato.privacy.account import Account, Charge, Overdraft
from sfumato.privacy.book import old_names
from sfumato.privacy.entries import store_of
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger

JOBS = Account(population="jobs", period="2025")
BUDGET = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(4))


def charge(name: str, epsilon: str = "1/10") -> Charge:
    guarantee = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(epsilon))
    return Charge(question=sha256(name.encode()).hexdigest(), table="t", guarantee=guarantee, data="da7a")


def test_it_sees_what_others_charge_and_goes_on_from_there(path: Path) -> None:
    ours, theirs = Ledger.open(path, create=True, remembers=True), Ledger.open(path)
    ours.charge(JOBS, [charge("a")], "ours", budget=BUDGET)
    theirs.charge(JOBS, [charge("b")], "theirs")
    assert [entry.release for entry in ours.history() if entry.kind == "charge"] == ["ours", "theirs"]
    ours.charge(JOBS, [charge("b"), charge("c")], "ours")
    assert ours.balance(JOBS) == theirs.balance(JOBS)
    assert ours.verify() == Ledger.open(path).verify()


def test_a_charge_that_was_refused_is_not_remembered(path: Path) -> None:
    ledger = Ledger.open(path, create=True, remembers=True)
    ledger.charge(JOBS, [charge("a")], "r", budget=BUDGET)
    with pytest.raises(Overdraft):
        ledger.charge(JOBS, [charge("b", "5")], "r")
    assert ledger.history() == Ledger.open(path).history()


def altered(path: Path, sequence: int) -> None:
    with sqlite3.connect(path) as file:
        file.execute("DROP TRIGGER entries_never_change")
        file.execute("UPDATE entries SET hash = ?, note = 'altered' WHERE sequence = ?", ("0" * 64, sequence))
    file.close()


def test_a_new_entry_that_does_not_follow_is_refused(path: Path) -> None:
    ledger, other = Ledger.open(path, create=True, remembers=True), Ledger.open(path)
    ledger.charge(JOBS, [charge("a")], "r", budget=BUDGET)
    ledger.history()
    other.charge(JOBS, [charge("b")], "r")
    altered(path, 3)
    with pytest.raises(LedgerError, match="entry 3"):
        ledger.charge(JOBS, [charge("c")], "r")


def test_a_ledger_that_was_replaced_is_verified_from_the_beginning(path: Path) -> None:
    ledger = Ledger.open(path, create=True, remembers=True)
    ledger.charge(JOBS, [charge("a")], "r", budget=BUDGET)
    last = len(ledger.history())
    altered(path, last)
    with pytest.raises(LedgerError, match=f"entry {last}"):
        ledger.balance(JOBS)


def test_a_part_of_a_budget_is_never_exceeded(ledger: Ledger) -> None:
    most = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1))
    ledger.charge(JOBS, [charge("published", "2")], "release", budget=BUDGET)
    ledger.charge(JOBS, [charge("a", "3/4")], "live", most=most)
    with pytest.raises(Overdraft) as refused:
        ledger.charge(JOBS, [charge("b", "1/2")], "live", most=most)
    assert (refused.value.remaining, refused.value.requested) == (Fraction(1, 4), Fraction(1, 2))
    assert ledger.refusal(JOBS, [charge("b", "1/2")], BUDGET, release="live", most=most) is not None
    ledger.charge(JOBS, [charge("published", "2"), charge("a", "3/4"), charge("c", "1/4")], "live", most=most)
    assert ledger.balance_of(JOBS, "live", most).remaining_epsilon == 0
    assert ledger.balance(JOBS).spent_epsilon == 3


def test_the_whole_budget_binds_a_part_of_it(ledger: Ledger) -> None:
    most = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(3))
    ledger.charge(JOBS, [charge("published", "2")], "release", budget=BUDGET)
    with pytest.raises(Overdraft):
        ledger.charge(JOBS, [charge("a", "5/2")], "live", most=most)


def test_old_names_of_data_are_those_of_charges_without_content(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, BUDGET)
    ledger.charge(JOBS, [charge("a")], "before data were known by content")
    known = replace(charge("b"), data="c0de")
    ledger.charge(JOBS, [known], "since", content=Content(tables={}))
    ledger.record_lost(JOBS, BUDGET, "stands for others and names no data", [])
    assert old_names(ledger.history()) == {"da7a"}


@pytest.mark.parametrize("noted", ["", "{}", '{"sequence": "first", "hash": ""}', "[1]"])
def test_a_note_of_how_far_the_ledger_went_that_says_nothing_is_refused(path: Path, noted: str) -> None:
    Ledger.open(path, create=True).set_budget(JOBS, BUDGET)
    (store_of(path) / "mark.json").write_text(noted, encoding="utf-8")
    with pytest.raises(LedgerError, match=r"mark\.json"):
        Ledger.open(path).history()
