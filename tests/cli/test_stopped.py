"""A command that is told to stop leaves no folder with records, whoever tells it."""

import signal
from pathlib import Path

import pytest

from tests.cli.holding import holding

FOLDER = "with spill_folder():"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_stop_says_so_and_leaves_no_records(number: signal.Signals, tmp_path: Path) -> None:
    child = holding(FOLDER, temporary=tmp_path)
    child.send_signal(number)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 128 + number
    assert "Stopped. Nothing was half-written" in said
    assert list(tmp_path.iterdir()) == []


def test_what_a_command_was_started_to_ignore_does_not_stop_it(tmp_path: Path) -> None:
    child = holding(FOLDER, temporary=tmp_path, ignored=(int(signal.SIGHUP),))
    child.send_signal(signal.SIGHUP)
    _, said = child.communicate(timeout=120)  # its input ends
    assert child.returncode == 0
    assert not said


WHILE = """with spill_folder():
        try:
            print("held", flush=True)
            sys.stdin.read()
        except SystemExit as stop:
            {library}
        from sfumato.cli.screen import progress
        with progress(hidden=True) as update:
            update("count", 0, 1)
        print("went on", flush=True)"""


@pytest.mark.parametrize("library", ['raise RuntimeError("Query interrupted") from stop', "pass"])
def test_a_library_that_turns_a_signal_into_an_error_or_loses_it_does_not_keep_a_command_going(
    library: str, tmp_path: Path
) -> None:
    child = holding(WHILE.format(library=library), temporary=tmp_path)
    child.send_signal(signal.SIGINT)
    told, said = child.communicate(timeout=120)
    assert child.returncode == 128 + signal.SIGINT
    assert "Stopped." in said
    assert "this never to happen" not in said
    assert "went on" not in told
    assert list(tmp_path.iterdir()) == []
