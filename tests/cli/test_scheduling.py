"""Runs that nobody watches: logs with a line for every step, silence under cron, and no harm in running twice."""

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sfumato.errors import BudgetError, BusyError, DataError, ReleaseError
from sfumato.privacy.entries import store_of
from sfumato.privacy.ledger import Ledger
from sfumato.running import STEPS
from tests.cli.call import SFUMATO, call

pytestmark = pytest.mark.slow
LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) sfumato\[\d+\] run \S+: (?P<step>\w+)(?P<figures>( \w+=\S+)*)"
)


def contents(folder: Path) -> dict[str, str]:
    """The digest of every file of a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_log_has_a_line_for_every_step_and_nothing_of_the_data(release_folder: Path) -> None:
    file, log = release_folder / "release.toml", release_folder / "run.log"
    read = json.loads(call("run", file, "--json", "--log", log).stdout)["read"]
    lines = [LINE.fullmatch(line) for line in log.read_text().splitlines()]
    steps = [line["step"] for line in lines if line]
    assert len(steps) == len(lines)
    assert steps == ["begins", *STEPS, "ends"]
    assert all("seconds=" in line["figures"] for line in lines[1:] if line)
    assert lines[-1]
    assert "exit=0" in lines[-1]["figures"]
    assert "charged=3" in lines[-1]["figures"]
    told = re.sub(r"seconds=\S+", "", log.read_text())  # which may be any number
    assert not any(f"={figure}" in told for figure in read.values())
    call("run", file, "--log", log)
    assert log.read_text().count("begins") == 2, "a second run adds its lines"


def test_a_log_tells_how_a_run_failed_and_not_what_it_found(release_folder: Path) -> None:
    file, log = release_folder / "release.toml", release_folder / "run.log"
    good = file.read_text()
    for before, after, kind in (
        ("epsilon = 4.0", "epsilon = 1.0", BudgetError),
        ('"jobs.parquet"', '"workers.parquet"', DataError),
        ("[[table]]", "[[tabel]]", ReleaseError),
    ):
        file.write_text(good.replace(before, after))
        log.unlink(missing_ok=True)
        done = call("run", file, "--log", log, code=kind.exit_code)
        last = log.read_text().splitlines()[-1]
        assert f"exit={kind.exit_code}" in last
        assert "error=" in last
        assert "found:" in done.stderr
        error = json.loads(call("run", file, "--json", code=kind.exit_code).stdout)["error"]
        assert error["exit_code"] == kind.exit_code
    assert call("check", file, "--no-data", code=ReleaseError.exit_code)
    file.write_text(good.replace("epsilon = 4.0", "epsilon = 1.0"))
    assert json.loads(call("check", file, "--json", code=BudgetError.exit_code).stdout)["refusal"]


def test_a_quiet_run_prints_nothing_and_a_verbose_one_its_steps(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    quiet = call("run", file, "--quiet")
    assert quiet.stdout + quiet.stderr == ""
    assert "expected:" in call("run", release_folder / "nowhere.toml", "--quiet", refused=True).stderr
    verbose = call("run", file, "--verbose")
    assert [LINE.fullmatch(line)["step"] for line in verbose.stderr.splitlines()] == ["begins", *STEPS, "ends"]
    assert "Published 3 tables" in verbose.stdout


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who started a process")
def test_cron_gets_nothing_to_mail_unless_a_run_fails(release_folder: Path) -> None:
    cron = release_folder / "cron"  # a process is called as its file is
    shutil.copy(Path("/bin/sh").resolve(), cron)

    def started(name: str) -> subprocess.CompletedProcess[str]:
        line = f"sh -c '{' '.join(SFUMATO)} run {name}; echo ended with $?'; true"
        return subprocess.run([cron, "-c", line], cwd=release_folder, capture_output=True, text=True, check=True)

    done = started("release.toml")
    assert done.stdout == "ended with 0\n"
    assert done.stderr == ""
    failed = started("nowhere.toml")
    assert failed.stdout == f"ended with {ReleaseError.exit_code}\n"
    assert "expected:" in failed.stderr
    assert "Published 3 tables" in call("run", release_folder / "release.toml").stdout


def test_a_second_run_changes_nothing_and_says_so(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    assert "Nothing changed" not in call("run", file).stdout
    before, entries = contents(release_folder / "bundle"), len(Ledger.open(release_folder / "ledger.sqlite").history())
    assert "Nothing changed: the bundle is the one that was there." in call("run", file).stdout
    again = json.loads(call("run", file, "--json").stdout)
    assert again["unchanged"]
    assert again["charged"] == []
    assert contents(release_folder / "bundle") == before
    assert len(Ledger.open(release_folder / "ledger.sqlite").history()) == entries


def test_of_two_runs_at_once_one_charges_and_both_end_well(release_folder: Path) -> None:
    file = release_folder / "release.toml"
    command = [*SFUMATO, "run", str(file), "--json"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [child.communicate(timeout=120)[0] for child in started]
    assert [child.returncode for child in started] == [0, 0]
    assert sorted(len(json.loads(text)["charged"]) for text in said) == [0, 3]
    kinds = [entry.kind for entry in Ledger.open(release_folder / "ledger.sqlite").history()]
    assert kinds.count("charge") == kinds.count("answer") == 3


def test_a_run_that_finds_another_waits_and_says_so_or_ends_with_its_own_exit_code(release_folder: Path) -> None:
    file, lock = release_folder / "release.toml", store_of(release_folder / "ledger.sqlite") / "lock"
    lock.parent.mkdir(mode=0o700)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = call("run", file, "--no-wait", code=BusyError.exit_code)
        assert "nothing was charged" in refused.stderr
        assert not [e for e in Ledger.open(release_folder / "ledger.sqlite").history() if e.kind == "charge"]
        assert not (release_folder / "bundle").exists()
        waiting = subprocess.Popen(
            [*SFUMATO, "run", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert waiting.stderr
        assert "Waiting" in waiting.stderr.readline()
    out, _ = waiting.communicate(timeout=120)
    assert waiting.returncode == 0
    assert "Charged: " in out
