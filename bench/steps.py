"""Where a run spends its time: every step of three releases, here and in an earlier checkout."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from claims import Claim, Results, Section
from foundation import Tell
from nation import MEMORY
from nation_gate import check_release
from nation_releases import RELEASES, Nation
from processes import make_economy, output_of

from sfumato.release import load

_HERE = Path(__file__).parent
_NAMES = {"workplace": "place × industry × ownership", "worker": "… × sex × education", "seven": "seven tables"}


def measure_steps(folder: Path, *, jobs: int, before: Path | None, repeat: int, tell: Tell) -> dict[str, Any]:
    """Run each release by both checkouts in turn, files validated before; a first round warms and does not count."""
    tell("making an economy")
    make_economy(folder, jobs=jobs)
    nation = Nation(folder=folder)
    nation.write()
    tell("the true tables")
    output_of(sys.executable, _HERE / "nation_run.py", "floor", folder, "seven", MEMORY)
    checkouts = {"after": _HERE.parent, **({} if before is None else {"before": before})}
    measured: dict[str, Any] = {which: {release: [] for release in RELEASES} for which in checkouts}
    for number in range(repeat + 1):
        for release in RELEASES:
            for which, checkout in checkouts.items():
                tell(f"{release}, {which}, round {number} of {repeat}")
                steps = _run(nation, release, checkout)
                check_release(nation, release, jobs=jobs)
                if number:
                    measured[which][release].append(steps)
    return {"jobs": jobs, **measured}


def _run(nation: Nation, release: str, checkout: Path) -> dict[str, Any]:
    described = load(nation.file(release))
    for path in described.ledger.parent.glob(f"{described.ledger.name}*"):
        path.unlink()
    for left in (described.store / "answers", described.bundle):
        shutil.rmtree(left, ignore_errors=True)
    subprocess.run(["sync"], check=True)
    done = subprocess.run(
        [sys.executable, str(_HERE / "steps_run.py"), str(nation.file(release))],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def steps_section(results: Results) -> Section:
    """A line for every step that takes a hundredth of a second or more."""
    lines = []
    for release, name in _NAMES.items():
        after = _medians(results["after"][release])
        before = _medians(results["before"][release]) if "before" in results else {}
        for step in after:
            if max(after[step], before.get(step, 0.0)) >= 0.01:
                gained = f"{before[step]:.2f} s → " if before else ""
                lines.append(Claim(what=f"{name}: {step}", figure=f"{gained}{after[step]:.2f} s"))
    return Section(
        name="steps",
        heading=f"{results['jobs']:,} jobs, files validated before, by step",
        lines=tuple(lines),
        notes=(
            "Medians; each run in a fresh process, imports not counted. Where two figures stand, the first is that of "
            "an earlier version on the same data in the same run.",
            f"Measured {results['about']}",
        ),
    )


def _medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    steps = {step: median(run["steps"][step]["seconds"] for run in runs) for step in runs[0]["steps"]}
    return {**steps, "all": sum(steps.values())}
