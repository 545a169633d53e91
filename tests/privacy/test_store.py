"""The file of the ledger: created with care, shared between processes, and never half written."""

import fcntl
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sfumato.errors import LedgerError
from sfumato.privacy.account import Account
from sfumato.privacy.entries import store_of
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.ledger import Ledger

JOBS = Account(population="jobs", period="2025")
CHARGING = Path(__file__).with_name("charging.py")


def budget(epsilon: int) -> EmployerEmployee:
    return EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(epsilon))


def charging(ledger: Ledger, name: str, count: int, *code: str) -> subprocess.Popen[str]:
    """A process that stands ready to charge 1/10 `count` times, for establishments with a code or for all."""
    process = subprocess.Popen(
        [sys.executable, str(CHARGING), str(ledger.path), name, str(count), *code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_only_its_owner_can_read_a_new_ledger(path: Path) -> None:
    loose = os.umask(0)
    try:
        Ledger.open(path, create=True).set_budget(JOBS, budget(1))
    finally:
        os.umask(loose)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store_of(path).stat().st_mode) == 0o700
    assert set(path.parent.iterdir()) == {path, store_of(path)}


def test_looking_does_not_create_a_ledger(path: Path) -> None:
    with pytest.raises(LedgerError, match=str(path)):
        Ledger.open(path)
    assert not path.exists()


def test_a_ledger_that_was_moved_away_is_not_created_anew(ledger: Ledger) -> None:
    ledger.path.rename(ledger.path.with_name("moved"))
    with pytest.raises(LedgerError, match="unable to open"):
        ledger.set_budget(JOBS, budget(1))
    assert not ledger.path.exists()


def test_opening_with_create_keeps_an_existing_ledger(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, budget(1))
    assert Ledger.open(ledger.path, create=True).accounts() == (JOBS,)


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 4096, b""])
@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(path: Path, content: bytes, create: bool) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="backup"):
        Ledger.open(path, create=create)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE entries (sequence INTEGER)")
    with pytest.raises(LedgerError, match="another kind of database"):
        Ledger.open(path)


def test_damage_in_the_middle_of_the_file_is_a_ledger_error(ledger: Ledger) -> None:
    for epsilon in range(1, 60):
        ledger.set_budget(JOBS, budget(epsilon))
    content = bytearray(ledger.path.read_bytes())
    content[4096:-4096] = b"\xff" * (len(content) - 8192)
    ledger.path.write_bytes(content)
    with pytest.raises(LedgerError):
        ledger.history()


def test_a_missing_folder_is_a_ledger_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="create the folder"):
        Ledger.open(tmp_path / "missing" / "ledger.sqlite", create=True)


@pytest.fixture
def folder_of_another() -> Iterator[Path]:
    """A folder in which others may look but not write, seen as one of these others."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        Ledger.open(folder / "ledger.sqlite", create=True)
        folder.chmod(0o555)
        root = os.geteuid() == 0  # whom no mode stops
        if root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o700)


def test_an_unwritable_folder_is_a_ledger_error(folder_of_another: Path) -> None:
    with pytest.raises(LedgerError, match=r"(?s)Permission denied.*writable"):
        Ledger.open(folder_of_another / "new.sqlite", create=True)
    with pytest.raises(LedgerError, match="writable"):
        Ledger.open(folder_of_another / "ledger.sqlite").set_budget(JOBS, budget(1))


def test_a_charge_takes_the_lock_before_it_reads_the_balance(ledger: Ledger) -> None:
    with (
        ledger._store.writing(),
        closing(sqlite3.connect(ledger.path, timeout=0)) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("BEGIN IMMEDIATE")


def test_every_connection_is_as_durable_as_sqlite_can_be(ledger: Ledger) -> None:
    extra = 3
    with ledger._store.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == extra
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 60_000
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"


@pytest.mark.parametrize(("processes", "each"), [(2, 8), (8, 4)])
def test_processes_charging_at_once_never_overspend_and_lose_no_charge(
    ledger: Ledger, processes: int, each: int
) -> None:
    ledger.set_budget(JOBS, budget(1))  # room for ten of the charges
    running = [charging(ledger, f"process {number}", each) for number in range(processes)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes = [line for process in running for line in process.communicate()[0].split()]
    assert [process.returncode for process in running] == [0] * processes
    charged = [outcome for outcome in outcomes if outcome != "refused"]
    assert len(outcomes) == processes * each
    assert len(charged) == 10
    assert ledger.balance(JOBS).remaining_epsilon == 0
    assert {entry.identifier for entry in ledger.history() if entry.kind == "charge"} == set(charged)


def test_processes_charging_at_once_never_overspend_any_block(ledger: Ledger) -> None:
    ledger.set_budget(JOBS, budget(1))  # room for ten of the charges about every code
    codes = ["private", "state", ""]
    running = [charging(ledger, code or "all", 12, *filter(None, [code])) for code in codes]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes = [process.communicate()[0].split() for process in running]
    private, state, everything = (sum(outcome != "refused" for outcome in each) for each in outcomes)
    assert private + everything == state + everything == 10
    assert ledger.balance(JOBS).spent_epsilon == 1
    assert ledger.balance(JOBS).charged == private + state + everything


def test_processes_that_create_the_ledger_at_once_share_one(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from sfumato.privacy.ledger import Ledger;"
        "from sfumato.privacy.account import Account; from fractions import Fraction;"
        "from sfumato.privacy.guarantee import EmployerEmployee; sys.stdin.readline();"
        "Ledger.open(Path(sys.argv[1]), create=True).set_budget(Account(population=sys.argv[2], period='1'),"
        "EmployerEmployee(definition='strong', alpha=Fraction(1), epsilon=Fraction(1)))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(path), name], stdin=subprocess.PIPE, text=True)
        for name in "abcd"
    ]
    for process in running:
        process.communicate("go\n")
    assert [process.returncode for process in running] == [0] * 4
    assert {account.population for account in Ledger.open(path).accounts()} == set("abcd")
    assert set(path.parent.iterdir()) == {path, store_of(path)}


@pytest.mark.parametrize(("reported", "code"), [(1, ()), (7, ()), (20, ("private",))])
def test_a_killed_process_leaves_a_whole_chain_with_every_charge_it_reported(
    ledger: Ledger, reported: int, code: tuple[str, ...]
) -> None:
    ledger.set_budget(JOBS, budget(1000))
    process = charging(ledger, "doomed", 10_000, *code)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    known = [process.stdout.readline().strip() for _ in range(reported)]
    process.kill()
    known += process.communicate()[0].split()  # what it reported while the signal was on its way
    ledger.verify()
    charges = [entry.identifier for entry in ledger.history() if entry.kind == "charge"]
    assert charges[: len(known)] == known
    assert len(charges) - len(known) <= 1  # committed, and killed before it could say so


def test_drafts_of_killed_processes_are_swept_and_those_of_live_ones_are_not(path: Path) -> None:
    drafts = [path.with_name(f".{path.name}.{digit * 32}") for digit in "ab"]
    for draft in drafts:
        draft.write_bytes(b"half a ledger")
    draft.with_name(f"{draft.name}-journal").write_bytes(b"half a journal")
    other = path.with_name(f".other.sqlite.{'a' * 32}")
    other.write_bytes(b"of another ledger")
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_SH)  # as a process does that is creating a ledger there
        Ledger.open(path, create=True)
        assert all(draft.exists() for draft in drafts)
    finally:
        os.close(folder)
    Ledger.open(path, create=True)
    assert set(path.parent.iterdir()) == {path, other}


def test_a_process_killed_while_it_creates_the_ledger_leaves_nothing_once_it_was_opened(path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from sfumato.privacy.ledger import Ledger;"
        "os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL); Ledger.open(Path(sys.argv[1]), create=True)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == -signal.SIGKILL
    assert [found.name.startswith(f".{path.name}.") for found in path.parent.iterdir()] == [True]
    Ledger.open(path, create=True)
    assert list(path.parent.iterdir()) == [path]
