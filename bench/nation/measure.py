"""A nation on one machine: growth from a million jobs to the whole register, ours and that of DuckDB alone."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.nation.gate import check_release
from bench.nation.releases import MEMORY, RELEASES, Nation
from bench.shared.processes import ROOT, Tell, told_by
from bench.shared.release import forget
from bench.shared.report import Results
from sfumato.release import load

SIZES = (1_000_000, 10_000_000, 50_000_000, 150_000_000)
"""Jobs of the economies."""
JOBS_EACH = 150 / 8
"""…and those of an establishment: the largest economy has 8 million establishments with jobs."""
_LARGE = 20_000_000  # above this a run takes long enough for few rounds


def measure_nation(folder: Path, *, sizes: Sequence[int], repeat: int, tell: Tell) -> Results:
    """Every size by itself; its data are deleted before the next is made."""
    return {
        "memory": MEMORY,
        "tables": {release: len(tables) for release, tables in RELEASES.items()},
        "sizes": [_measure_size(folder / str(jobs), jobs, repeat=repeat, tell=tell) for jobs in sizes],
    }


def _measure_size(folder: Path, jobs: int, *, repeat: int, tell: Tell) -> dict[str, Any]:
    label = f"{jobs / 1e6:g} million jobs"
    tell(f"{label}: making the economy")
    establishments = round(jobs / JOBS_EACH)
    economy = _child("economy", folder, jobs, establishments)
    nation = Nation(folder=folder, memory=MEMORY)
    nation.write()
    rounds = min(repeat, 3) if jobs > _LARGE else repeat
    measured: dict[str, Any] = {
        "jobs": jobs,
        "establishments": establishments,
        "economy": economy,
        "floor": {release: [] for release in RELEASES},
        "seen": {release: [] for release in RELEASES},
    }
    tell(f"{label}: the floor of seven tables")
    measured["floor"]["seven"].append(_child("floor", folder, "seven"))
    tell(f"{label}: seven tables, first validation")
    measured["first"] = _whole(published(nation, "seven"))
    measured["errors"] = check_release(nation, "seven", jobs=jobs)
    _remember_files(nation)
    tell(f"{label}: seven tables, round 1")
    measured["seen"]["seven"].append(_whole(published(nation, "seven")))
    check_release(nation, "seven", jobs=jobs)
    for number in range(1, rounds + 1):
        for release in RELEASES:
            if release == "seven" and (jobs > _LARGE or number == 1):
                continue
            tell(f"{label}: {release}, round {number} of {rounds}")
            measured["floor"][release].append(_child("floor", folder, release))
            measured["seen"][release].append(_whole(published(nation, release)))
            check_release(nation, release, jobs=jobs)
    measured["bytes"] = sum((folder / f"{name}.parquet").stat().st_size for name in ("jobs", "workplaces", "workers"))
    shutil.rmtree(folder)
    return measured


def published(nation: Nation, release: str, checkout: Path = ROOT) -> dict[str, Any]:
    """Publish a release anew, files validated before, by this checkout or another; its steps and its peak."""
    forget(load(nation.file(release)), validated=True)
    os.sync()
    return told_by("shared.child", "release", nation.file(release), variables={"PYTHONPATH": str(checkout / "src")})


def _whole(run: dict[str, Any]) -> dict[str, float]:
    return {"seconds": sum(step["seconds"] for step in run["steps"].values()), "peak": run["peak_bytes"]}


def _remember_files(nation: Nation) -> None:
    """Let the other releases know that these very files were validated: their frames are the same."""
    memory = load(nation.file("seven")).store / "memory.json"
    for release in RELEASES:
        store = load(nation.file(release)).store
        store.mkdir(exist_ok=True)
        if not (store / "memory.json").exists():
            shutil.copy(memory, store / "memory.json")


def _child(*command: object) -> dict[str, float]:
    os.sync()
    run = told_by("nation.child", *command)
    return {"seconds": run["seconds"], "peak": run["peak_bytes"]}
