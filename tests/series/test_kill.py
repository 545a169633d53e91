"""Killed at any moment, a run leaves the earlier series or the new one, whole, and the next run finishes it once."""

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.bundle.read import open_bundle
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import STEPS, run
from tests.series.office import drop_jobs, make_office

pytestmark = pytest.mark.slow
CHILD = """
import sys
from sfumato.release import load
from sfumato.running import run
reason = sys.argv[3] or None
run(load(sys.argv[1], sys.argv[2]), progress=lambda step: print(step, flush=True), revise=reason)
"""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A series with two quarters, and the data of a third."""
    file = make_office(tmp_path_factory.mktemp("office") / "o")
    for quarter in ("2026-Q1", "2026-Q2"):
        run(load(file, quarter))
    return file.parent


def kill_during(step: str, delay: float, file: Path, quarter: str, reason: str) -> None:
    """Run a quarter in another process and kill it a moment after a step began."""
    words = [sys.executable, "-c", CHILD, str(file), quarter, reason]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while child.stdout.readline().strip() not in (step, ""):
            pass
        try:
            child.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()


def versions(folder: Path) -> tuple[str, ...]:
    """The versions of a series that is whole: every file is what the manifest says, of every version."""
    read_manifest(folder)
    bundle = open_bundle(folder)
    for name in bundle.versions:
        read_manifest(folder / "periods" / name)
    assert set(bundle.rows("jobs_by_place")["quarter"].to_pylist()) == {name[:7] for name in bundle.versions}
    return bundle.versions


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("quarter", "reason"), [("2026-Q3", ""), ("2026-Q2", "late reports")])
def test_a_killed_run_leaves_the_earlier_series_or_the_new_one(
    office: Path, tmp_path: Path, quarter: str, reason: str, seed: int
) -> None:
    folder = Path(shutil.copytree(office, tmp_path / "o"))
    file, draw = folder / "release.toml", random.Random(seed)
    if reason:
        drop_jobs(folder / f"jobs_{quarter}.csv")
    before = versions(folder / "bundle")
    after = (*before, f"{quarter}-v{2 if reason else 1}")
    for _ in range(2):
        kill_during(draw.choice([*STEPS[3:], "publish"]), draw.uniform(0, 0.08), file, quarter, reason)
        assert versions(folder / "bundle") in (before, after)
    if versions(folder / "bundle") == before:
        run(load(file, quarter), revise=reason or None)
    assert versions(folder / "bundle") == after
    assert run(load(file, quarter)).unchanged
    over = Ledger.open(folder / "ledger.sqlite").over_periods("jobs")
    charged = {each.period: each.guarantee.epsilon for each in over.periods if each.guarantee}
    assert charged[quarter] == (4 if reason else 2), "charged once for each version"
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".bundle.draft")]


def test_a_series_that_was_moved_aside_is_put_back(office: Path, tmp_path: Path) -> None:
    """Where the system cannot exchange two folders, a run may be killed between two renames."""
    folder = Path(shutil.copytree(office, tmp_path / "o"))
    (folder / "bundle").rename(folder / ".bundle.draft-killed-old")
    run(load(folder / "release.toml", "2026-Q3"))
    assert versions(folder / "bundle") == ("2026-Q1-v1", "2026-Q2-v1", "2026-Q3-v1")


def test_what_a_run_left_after_the_exchange_is_cleared_by_a_run_that_changes_nothing(
    office: Path, tmp_path: Path
) -> None:
    """Killed after the new bundle took its place, the earlier one lies beside it until the next run of any kind."""
    folder = Path(shutil.copytree(office, tmp_path / "o"))
    shutil.copytree(folder / "bundle", folder / ".bundle.draft-killed")
    assert run(load(folder / "release.toml", "2026-Q2")).unchanged
    assert not (folder / ".bundle.draft-killed").exists()
