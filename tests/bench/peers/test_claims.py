"""No ratio is printed for a run that did not finish or was wrong, and processes beyond a limit are ended."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.peers.claims import draw_peers, peers_section
from bench.peers.environments import reason_of
from bench.peers.gate import Run, ratio, refused
from bench.peers.watch import Limits, Watched, watch
from bench.shared.gate import Errors
from bench.shared.report import Section

TIMES = {"floor": 1.0, "seen": 1.4, "first": 2.0, "opendp-context": 10.0, "tumult": 60.0}
FOREVER = "import threading; threading.Event().wait()"
ROOMY = Limits(seconds=60, peak_bytes=10**10)


def right(seconds: float, rounds: int = 3) -> Run:
    return Run(
        seconds=(seconds,) * rounds,
        inner_seconds=(seconds,) * rounds,
        peak_bytes=int(seconds * 1e9),
        errors=Errors(observed=1, expected=1),
    )


def section(**changed: Run) -> Section:
    runs = {name: right(seconds) for name, seconds in TIMES.items()} | changed
    table = {
        "label": "Jobs",
        "by": ["place"],
        "cells": 3,
        "contestants": {
            name: {"label": name, "guarantee": "one job", "environment": "any", "ours": name in {"seen", "first"}}
            | run.told()
            for name, run in runs.items()
        },
    }
    return peers_section(
        {
            "jobs": 100,
            "limits": {"seconds": 900, "peak_bytes": 16 * 10**9},
            "environments": {},
            "tables": {"workplace": table, "worker": table},
        }
    )


def test_ratios_are_printed_when_every_run_was_right() -> None:
    lines = section().lines
    assert [line.figure for line in lines[:3]] == [
        "1.40× (1.40 s, 1.40–1.40 beside 1.00 s, 1.00–1.00; 3 rounds)",
        "42.9× (1.40 s, 1.40–1.40 beside 60.00 s, 60.00–60.00; 3 rounds)",
        "30.0× (2.00 s, 2.00–2.00 beside 60.00 s, 60.00–60.00; 3 rounds)",
    ]
    assert all(line.met for line in lines)


@pytest.mark.parametrize("failure", ["ended after 900 s, the limit", "wrong result: 3 cells are missing"])
def test_a_peer_that_did_not_finish_or_was_wrong_has_no_ratio_and_no_figures(failure: str) -> None:
    told = section(tumult=refused(right(60.0), failure))
    about = [line for line in told.lines if "tumult" in line.what]
    assert len(about) == 6
    assert all(line.met is None and line.figure == f"no ratio: tumult: {failure}" for line in about)
    for grid in told.grids:
        (row,) = (row for row in grid.rows if row[0] == "tumult")
        assert row == ("tumult", failure, "—", "—", "—", "—", "one job")


def test_a_target_is_missed_when_sfumato_itself_was_wrong() -> None:
    lines = section(first=refused(right(2.0), "wrong result"), seen=refused(right(1.4), "wrong result")).lines
    assert all(line.met is False and "no ratio" in line.figure for line in lines)


def test_a_target_is_missed_by_a_peer_that_is_too_fast() -> None:
    lines = [line for line in section(tumult=right(13.0)).lines if "how much faster than tumult" in line.what]
    assert len(lines) == 4
    assert all(line.met is False and line.target == "≥ 10×" for line in lines)


def test_the_work_alone_and_the_whole_process_have_a_verdict_each() -> None:
    # 10× the work of 1.4 s, but not 10× the whole process of 2 s with its first validation.
    lines = [line for line in section(tumult=right(19.0)).lines if "how much faster than tumult" in line.what]
    verdicts = {line.what.split(", ")[1]: line.met for line in lines}
    assert verdicts == {"without imports and session start": True, "whole process": False}


def test_two_rounds_have_no_verdict() -> None:
    lines = [line for line in section(tumult=right(60.0, rounds=2)).lines if "tumult" in line.what]
    assert len(lines) == 6
    assert all(line.met is None and line.target != "—" for line in lines)


def test_a_ratio_needs_two_times() -> None:
    assert ratio([2.0], [1.0]) == 2.0
    assert ratio([2.0], []) is None
    assert ratio([], [1.0]) is None


def test_a_failure_after_good_rounds_leaves_nothing_of_them() -> None:
    found = refused(right(3.0), "out of memory")
    assert not found.right
    assert found.seconds == ()
    assert found.errors is None


def test_the_chart_names_who_did_not_finish() -> None:
    runs = {"floor": right(1.0), "seen": right(2.0), "slow": refused(right(3.0), "too slow")}
    contestants = {
        name: {"label": f"contestant {name}", "ours": name == "seen", **run.told()} for name, run in runs.items()
    }
    table: dict[str, Any] = {"label": "Jobs", "contestants": contestants}
    chart = draw_peers({"jobs": 100, "tables": {"workplace": table, "worker": table}})
    assert chart.count("contestant slow") >= 2


def watched(code: str, folder: Path, limits: Limits = ROOMY) -> Watched:
    return watch([sys.executable, "-c", code], variables=os.environ, folder=folder, limits=limits)


def test_the_memory_of_children_counts(tmp_path: Path) -> None:
    hold = "kept = b'x' * 150_000_000; sum(range(90_000_000))"  # for many looks, also on a busy machine
    alone = watched(hold, tmp_path)
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}], check=True)"
    assert not alone.failure
    assert alone.peak_bytes > 150_000_000
    assert watched(parent, tmp_path).peak_bytes > 150_000_000


def test_a_process_beyond_its_time_is_ended(tmp_path: Path) -> None:
    assert "the limit" in watched(FOREVER, tmp_path, Limits(seconds=1, peak_bytes=10**10)).failure


def test_a_process_beyond_its_memory_is_ended_with_its_children(tmp_path: Path) -> None:
    parent = (
        "import pathlib, subprocess, sys; "
        f"child = subprocess.Popen([sys.executable, '-c', {FOREVER!r}], start_new_session=True); "
        "pathlib.Path('child').write_text(str(child.pid)); "
        f"kept = b'x' * 300_000_000; {FOREVER}"
    )
    found = watched(parent, tmp_path, Limits(seconds=50, peak_bytes=200_000_000))
    assert "of memory, the limit" in found.failure
    gone = Path(f"/proc/{(tmp_path / 'child').read_text()}/cmdline")
    assert not gone.exists() or not gone.read_bytes()


def test_the_reason_of_a_failure_names_no_path_and_no_address() -> None:
    text = "Traceback\n  File x\nValueError: https://example.org/simple is not at '/home/somebody/file'\nbye"
    assert reason_of(text) == "ValueError: … is not at '…'"


def test_a_failing_process_tells_why(tmp_path: Path) -> None:
    assert watched("raise ValueError('no such thing')", tmp_path).failure == "ValueError: no such thing"
    assert watched("import os; os.abort()", tmp_path).failure == "ended by SIGABRT"


def test_the_reason_of_a_failure_in_r_is_what_it_says_on_the_next_line() -> None:
    text = "Warning\nError in c_hitas(x = x) : \n  No solution can be computed.\nCalls: c_hitas\n"
    assert reason_of(text) == "Error in c_hitas(x = x): No solution can be computed."
