"""A nation on one machine: growth from a million jobs to the whole register, ours and that of DuckDB alone."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foundation import Tell
from nation_gate import check_release
from nation_releases import RELEASES, Nation
from processes import output_of

from sfumato.release import load

SIZES = (1_000_000, 10_000_000, 50_000_000, 150_000_000)
"""Jobs of the economies."""
JOBS_EACH = 150 / 8
"""…and those of an establishment: the largest economy has 8 million establishments with jobs."""
MEMORY = 6
"""GB that DuckDB may use, alone or within sfumato; the rest of the machine is for everything else."""
_LARGE = 20_000_000  # above this a run takes long enough for few rounds
_HERE = Path(__file__).parent


def measure_nation(folder: Path, *, sizes: Sequence[int], repeat: int, tell: Tell) -> dict[str, Any]:
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
    economy = _child("economy", folder, str(jobs), str(establishments))
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
    measured["floor"]["seven"].append(_child("floor", folder, "seven", str(MEMORY)))
    tell(f"{label}: seven tables, first validation")
    measured["first"] = _published(nation, "seven")
    measured["errors"] = check_release(nation, "seven", jobs=jobs)
    _remember_files(nation)
    tell(f"{label}: seven tables, round 1")
    measured["seen"]["seven"].append(_published(nation, "seven"))
    check_release(nation, "seven", jobs=jobs)
    for number in range(1, rounds + 1):
        for release in RELEASES:
            if release == "seven" and (jobs > _LARGE or number == 1):
                continue
            tell(f"{label}: {release}, round {number} of {rounds}")
            measured["floor"][release].append(_child("floor", folder, release, str(MEMORY)))
            measured["seen"][release].append(_published(nation, release))
            check_release(nation, release, jobs=jobs)
    measured["bytes"] = sum((folder / f"{name}.parquet").stat().st_size for name in ("jobs", "workplaces", "workers"))
    shutil.rmtree(folder)
    return measured


def _published(nation: Nation, release: str) -> dict[str, float]:
    """Publish a release anew: charged, tabulated, protected and written."""
    described = load(nation.file(release))
    for path in described.ledger.parent.glob(f"{described.ledger.name}*"):
        path.unlink()
    for left in (described.store / "answers", described.bundle):
        shutil.rmtree(left, ignore_errors=True)
    return _child("release", nation.folder, release)


def _remember_files(nation: Nation) -> None:
    """Let the other releases know that these very files were validated: their frames are the same."""
    memory = load(nation.file("seven")).store / "memory.json"
    for release in RELEASES:
        store = load(nation.file(release)).store
        store.mkdir(exist_ok=True)
        if not (store / "memory.json").exists():
            shutil.copy(memory, store / "memory.json")


def _child(*command: object) -> dict[str, float]:
    subprocess.run(["sync"], check=True)
    found: dict[str, float] = json.loads(output_of(sys.executable, _HERE / "nation_run.py", *command))
    return found
