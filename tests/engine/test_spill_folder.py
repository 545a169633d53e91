"""What does not fit into memory goes to a folder of the run, which the next one removes if the run was killed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sfumato.engine.connect import connect, spill_folder
from tests.conftest import tiny_frame

HOLDS = """
import sys
from pathlib import Path
from sfumato.engine.connect import spill_folder

with spill_folder() as folder:
    (Path(folder) / "records").write_text("of someone")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of this process and of those it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@contextmanager
def holding() -> "Iterator[tuple[subprocess.Popen[str], Path]]":
    """Another process with a folder of its own."""
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        yield other, Path(other.stdout.readline().strip())
        other.kill()


def test_the_folder_is_its_owners_alone_and_gone_at_the_end(tiny: Path, temporary: Path) -> None:
    with connect(tiny_frame(tiny)):
        (folder,) = temporary.iterdir()
        assert folder.name.startswith(f"sfumato-{os.getpid()}-")
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(temporary.iterdir()) == []


def test_a_killed_process_leaves_its_folder_and_the_next_run_removes_it(tiny: Path, temporary: Path) -> None:
    with holding() as (other, folder):
        other.kill()
    assert (folder / "records").exists()
    with connect(tiny_frame(tiny)):
        assert not folder.exists()
    assert list(temporary.iterdir()) == []


def test_a_killed_process_whose_number_another_one_has_now_leaves_nothing_either(temporary: Path) -> None:
    with holding() as (other, folder):
        other.kill()
    again = folder.rename(temporary / f"sfumato-{os.getpid()}-container")  # there numbers come again at every start
    with spill_folder():
        assert not again.exists()


def test_a_folder_whose_lock_is_still_to_come_stays_while_its_process_runs(temporary: Path) -> None:
    early = temporary / f"sfumato-{os.getpid()}-early"
    early.mkdir()
    with spill_folder():
        assert early.exists()


@pytest.mark.usefixtures("temporary")
def test_the_folder_of_a_process_that_runs_is_left_alone() -> None:
    with holding() as (_, folder), spill_folder():
        assert (folder / "records").exists()


def test_a_folder_that_is_held_stays_though_no_process_here_has_its_number(temporary: Path) -> None:
    with holding() as (other, folder):
        elsewhere = folder.rename(temporary / f"sfumato-{_number_of_none()}-elsewhere")
        with spill_folder():
            assert (elsewhere / "records").exists(), "another container may share the temporary folder"
        other.kill()
    with spill_folder():
        assert not elsewhere.exists()


def test_what_only_looks_like_such_a_folder_stays(temporary: Path) -> None:
    other = temporary / "other"
    other.mkdir()
    number = _number_of_none()
    (temporary / f"sfumato-{number}-link").symlink_to(other)
    (temporary / f"sfumato-{number}-file").touch()
    (temporary / "sfumato-notes").mkdir()
    before = set(temporary.iterdir())
    with spill_folder():
        assert before < set(temporary.iterdir())


def _number_of_none() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    return ended.pid
