"""How far a run is, on a terminal: steps by their number, and those that take long in per cent."""

import io
from importlib import import_module
from pathlib import Path

import pytest
from rich.console import Console

from sfumato.checking import Step, check
from sfumato.cli.release import steps
from sfumato.release import load
from sfumato.report.preview import preview
from sfumato.running import run
from tests.statistics.exact.records import release_file, write_records

TABLES = [
    'number; count = "records"; by = ["place", "sector"]; totals = true',
    'turnover; total = "turnover"; by = ["place", "sector"]; totals = true',
]
METHODS = {
    "suppression": ("proving", 'method = "suppression", minimum_units = 3'),
    "rounding": ("rounding", 'method = "rounding", base = 3'),
    "ranges": ("making ranges", 'method = "ranges", classes = [1, 5, 10], minimum_units = 3'),
    "coarsening": ("merging", 'method = "coarsening", minimum_units = 3'),
}


def test_a_step_of_which_a_share_is_done_is_shown_in_per_cent(monkeypatch: pytest.MonkeyPatch) -> None:
    written, screen = io.StringIO(), import_module("sfumato.cli.screen")
    terminal = Console(file=written, force_terminal=True, width=100)
    monkeypatch.setattr(screen, "messages", terminal)
    with screen.progress(hidden=False) as update:
        tell = steps(update)
        tell("charge")
        tell(Step("rounding", 0.4))
        update("rounding", 40, 100)
    assert "rounding" in written.getvalue()
    assert "40 %" in written.getvalue()


@pytest.mark.parametrize("method", METHODS)
def test_deciding_tells_which_share_is_done(tmp_path: Path, method: str) -> None:
    write_records(tmp_path)
    words, rules = METHODS[method]
    tables = [table.removesuffix("; totals = true") for table in TABLES] if method == "coarsening" else TABLES
    release = load(release_file(tmp_path, tables, rules=rules))
    told: dict[str, list[str]] = {"check": [], "preview": [], "run": []}
    check(release, progress=told["check"].append)
    preview(release, progress=told["preview"].append)
    run(release, progress=told["run"].append)
    for name, found in told.items():
        shares = [step.share for step in found if isinstance(step, Step) and step == words]
        assert shares, name
        assert name == "preview" or shares == sorted(shares), name  # which decides, and foresees
        assert "charge" in found or name != "run"
