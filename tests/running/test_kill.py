"""Killed at any moment, a run leaves no charge, or a charge and a release that the next run finishes."""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sfumato.bundle.manifest import read_manifest
from sfumato.privacy.entries import Entry
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release, load
from sfumato.running import STEPS, run
from sfumato.statistics.cube.stored import read_stored
from sfumato_lab.economy.jobs.generate import Economy
from sfumato_lab.economy.requirements.generate import generate_requirements

CHILD = """
import sys
from sfumato.release import load
from sfumato.running import run
run(load(sys.argv[1]), progress=lambda step: print(step, flush=True))
"""


def kill_during(step: str, delay: float, file: Path) -> bool:
    """Run a release in another process and kill it a moment after a step began; say whether it was still alive."""
    with subprocess.Popen([sys.executable, "-c", CHILD, str(file)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while child.stdout.readline().strip() not in (step, ""):
            pass
        try:
            child.wait(timeout=delay)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            return True
        return False


def entries(release: Release) -> tuple[Entry, ...]:
    return Ledger.open(release.ledger).history() if release.ledger.exists() else ()


def parts(release: Release) -> int:
    return len(release.tables) + len(release.cubes)


def check_invariants(release: Release, before: tuple[Entry, ...]) -> tuple[Entry, ...]:
    now = entries(release)
    assert now[: len(before)] == before, "an entry was lost or changed"
    charges = {entry.identifier for entry in now if entry.kind == "charge"}
    charged = {entry.question for entry in now if entry.kind == "charge"}
    assert sum(entry.kind == "charge" for entry in now) in (0, parts(release)), "tables and cubes are charged together"
    if release.bundle.exists():
        assert set(read_manifest(release.bundle)["charges"].values()) <= charges, "a bundle without a charge"
    answers = {path.name.split(".")[0] for path in (release.folder / "ledger.store" / "answers").glob("*.parquet")}
    assert answers <= charged, "an answer without a charge"
    return now


def survive(folder: Path, draw: random.Random, kills: int, *, steps: Sequence[str] = STEPS, spent: int = 4) -> int:
    """Kill a release some times, checking after each, then let it finish."""
    release = load(folder / "release.toml")
    killed, seen = 0, ()
    for _ in range(kills):
        killed += kill_during(draw.choice(steps), draw.uniform(0, 0.05), folder / "release.toml")
        seen = check_invariants(release, seen)
    run(release)
    final = check_invariants(release, seen)
    assert sum(entry.kind == "charge" for entry in final) == parts(release)
    assert Ledger.open(release.ledger).balance(release.account).spent_epsilon == spent
    manifest = read_manifest(release.bundle)
    assert run(release).charged == ()
    assert read_manifest(release.bundle) == manifest
    left = [path.name for path in release.folder.iterdir() if path.name.startswith(".bundle.draft")]
    assert left == []
    return killed


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_run_is_finished_by_the_next(economy: Economy, tmp_path: Path, seed: int) -> None:
    survive(Path(shutil.copytree(economy.folder, tmp_path / "e")), random.Random(seed), kills=2)


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey whose release publishes a cube of 240,000 cells with noisy controls, and without negative cells."""
    made = generate_requirements(tmp_path_factory.mktemp("survey") / "s", quotes=2_000, replicates=False)
    text = made.release.read_text(encoding="utf-8")
    made.release.write_text(text.replace("cap = 7\n", "cap = 7\nnonnegative = true\n"), encoding="utf-8")
    return made.release.parent


@pytest.mark.slow
@pytest.mark.parametrize("step", ["validate", "charge", "tabulate", "protect", "publish"])
def test_a_killed_run_with_a_cube_is_finished_by_the_next_for_one_charge(
    survey: Path, tmp_path: Path, step: str
) -> None:
    folder = Path(shutil.copytree(survey, tmp_path / "s"))
    survive(folder, random.Random(step), kills=2, steps=[step], spent=3)
    cube, figures = read_stored((folder / "bundle/cubes/requirements.parquet").read_bytes())
    assert int(cube["count"].min()) >= 0
    assert figures.calibration is not None
    assert figures.calibration.converged


@pytest.mark.slow
def test_forty_kills_of_a_run_with_a_cube_break_nothing(survey: Path, tmp_path: Path) -> None:
    draw, killed, turn = random.Random(2025), 0, 0
    while killed < 40:
        folder = Path(shutil.copytree(survey, tmp_path / str(turn)))
        killed += survive(folder, draw, kills=draw.randint(1, 4), spent=3)
        turn += 1
    assert turn < 80, "most runs ended before they could be killed"


@pytest.mark.slow
def test_sixty_kills_at_random_moments_break_nothing(economy: Economy, tmp_path: Path) -> None:
    draw, killed, turn = random.Random(2025), 0, 0
    while killed < 60:
        killed += survive(Path(shutil.copytree(economy.folder, tmp_path / str(turn))), draw, kills=draw.randint(1, 4))
        turn += 1
    assert turn < 120, "most runs ended before they could be killed"
