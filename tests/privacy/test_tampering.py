"""What shows when someone edits the file of the ledger."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.errors import LedgerError
from sfumato.privacy.account import Account, Charge
from sfumato.privacy.entries import COLUMNS
from sfumato.privacy.guarantee import EmployerEmployee, NoFormalGuarantee
from sfumato.privacy.ledger import Ledger

JOBS = Account(population="jobs", period="2025")
TRIGGERS = ("entries_never_change", "entries_never_leave", "entries_follow")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with entries of every kind."""
    ledger = Ledger.open(tmp_path_factory.mktemp("written") / "ledger.sqlite", create=True)
    one = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(1))
    ledger.set_budget(JOBS, one, note="first")
    ledger.charge(JOBS, [Charge(question="ab", table="a", guarantee=one, data="da7a")], "release")
    legacy = NoFormalGuarantee(statement="a secret factor")
    ledger.charge(JOBS, [Charge(question="cd", table="b", guarantee=legacy, data="da7a")], "release")
    ledger.record_answer(JOBS, "ab", "a", "0" * 64)
    return ledger.path


def edited(written: Path, copy: Path, statement: str, *values: object) -> Ledger:
    """A copy of the ledger after someone with the right to write it ran one statement, past the triggers."""
    shutil.copy(written, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        for trigger in TRIGGERS:
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(statement, values)
    return Ledger.open(copy)


def test_an_unchanged_copy_verifies(written: Path, path: Path) -> None:
    assert edited(written, path, "SELECT 1").verify() == Ledger.open(written).history()[-1].hash


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET epsilon = '0'",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE sequence = 2",
    ],
)
def test_the_file_itself_refuses_to_change_or_drop_entries(written: Path, path: Path, statement: str) -> None:
    shutil.copy(written, path)
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute(statement)
    Ledger.open(path).verify()


@given(
    entry=st.integers(1, 4),
    column=st.sampled_from(COLUMNS),
    value=st.one_of(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.binary(),
        st.sampled_from(["0", "10/10", "1.0", "strong", "weak", "none", "budget", "charge", "answer"]),
    ),
)
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_change_of_any_field_names_the_entry(
    written: Path, path: Path, entry: int, column: str, value: str | bytes
) -> None:
    [before] = _select(written, f'SELECT "{column}" FROM entries WHERE sequence = {entry}')
    if value == before:
        return
    ledger = edited(written, path, f'UPDATE entries SET "{column}" = ? WHERE sequence = {entry}', value)
    with pytest.raises(LedgerError, match=f", entry {entry}\n"):
        ledger.verify()
    with pytest.raises(LedgerError, match=f", entry {entry}\n"):
        ledger.charge(JOBS, [], "release")


@pytest.mark.parametrize("entry", [1, 2, 3, 4])
def test_a_missing_entry_shows_also_at_the_end(written: Path, path: Path, entry: int) -> None:
    ledger = edited(written, path, "DELETE FROM entries WHERE sequence = ?", entry)
    with pytest.raises(LedgerError, match=f", entry {entry}\n"):
        ledger.verify()


def test_an_emptied_ledger_shows(written: Path, path: Path) -> None:
    with pytest.raises(LedgerError, match="0 entries where the file counts 4 written"):
        edited(written, path, "DELETE FROM entries").balance(JOBS)


def test_a_renumbered_entry_shows(written: Path, path: Path) -> None:
    with pytest.raises(LedgerError, match=r"(?s)entry 3\n.*missing"):
        edited(written, path, "UPDATE entries SET sequence = 9 WHERE sequence = 3").verify()


def test_an_older_copy_shows_against_a_noted_hash(written: Path, path: Path) -> None:
    shutil.copy(written, path)
    ledger = Ledger.open(path)
    ledger.charge(
        JOBS,
        [Charge(question="ef", table="c", guarantee=NoFormalGuarantee(statement="none"), data="da7a")],
        "release",
    )
    noted = ledger.verify()
    assert ledger.verify(noted) == noted
    with pytest.raises(LedgerError, match="replaced by an older copy"):
        Ledger.open(written).verify(noted)


READERS: list[Callable[[Ledger], object]] = [
    Ledger.verify,
    Ledger.history,
    Ledger.accounts,
    lambda ledger: ledger.balance(JOBS),
    lambda ledger: ledger.answer("ab"),
]


@pytest.mark.parametrize("read", READERS)
def test_nothing_is_read_from_a_broken_chain(written: Path, path: Path, read: Callable[[Ledger], object]) -> None:
    ledger = edited(written, path, "UPDATE entries SET epsilon = '1/2' WHERE kind = 'charge'")
    with pytest.raises(LedgerError, match="do not match its hash"):
        read(ledger)


def _select(path: Path, statement: str) -> tuple[object, ...]:
    with closing(sqlite3.connect(path)) as connection:
        return tuple(connection.execute(statement).fetchone())
