"""A report, a log or a chart takes the place of nothing else, and never lies in a bundle."""

from pathlib import Path

import pytest

from tests.cli.call import call
from tests.release.test_release_file import GOOD, written


@pytest.mark.slow
def test_nothing_that_commands_write_beside_takes_the_place_of_ledger_data_or_bundle(tiny: Path) -> None:
    file = written(tiny, GOOD)
    call("run", file)
    before = {path: path.read_bytes() for path in tiny.rglob("*") if path.is_file()}
    for command, option, name in (
        ("preview", "--report", "ledger.sqlite"),
        ("assess", "--report", "ledger.sqlite"),
        ("assess", "--report", "bundle/report.html"),
        ("preview", "--report", "jobs.parquet"),
        ("run", "--log", "ledger.sqlite"),
        ("run", "--log", "bundle/log.txt"),
    ):
        call(command, file, option, tiny / name, refused=True)
    assert before == {path: path.read_bytes() for path in tiny.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_report_and_a_log_are_written_again(tiny: Path) -> None:
    file, log = written(tiny, GOOD), tiny / "run.log"
    for _ in range(2):
        call("run", file, "--log", log)
        call("assess", file, "--report", tiny / "other.html")
    assert log.read_text().count("ends") == 2
