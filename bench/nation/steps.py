"""Where a run spends its time: every step of three releases, here and in an earlier checkout."""

from pathlib import Path
from statistics import median
from typing import Any

from bench.nation.measure import check_release, published
from bench.nation.releases import NAMES, RELEASES, Nation
from bench.shared.processes import ROOT, Tell, make_economy, module, output_of
from bench.shared.report import Claim, Results, Section


def measure_steps(folder: Path, *, jobs: int, before: Path | None, repeat: int, tell: Tell) -> Results:
    """Run each release by both checkouts in turn, files validated before; a first round warms and does not count."""
    tell("making an economy")
    make_economy(folder, jobs=jobs)
    nation = Nation(folder=folder)
    nation.write()
    tell("the true tables")
    output_of(*module("nation.child", "floor", folder, "seven"))
    checkouts = {"after": ROOT, **({} if before is None else {"before": before})}
    measured: dict[str, Any] = {which: {release: [] for release in RELEASES} for which in checkouts}
    for number in range(repeat + 1):
        for release in RELEASES:
            for which, checkout in checkouts.items():
                tell(f"{release}, {which}, round {number} of {repeat}")
                run = published(nation, release, checkout)
                check_release(nation, release, jobs=jobs)
                if number:
                    measured[which][release].append({"steps": run["steps"], "peak": run["peak_bytes"]})
    return {"jobs": jobs, **measured}


def steps_section(results: Results) -> Section:
    """A line for every step that takes a hundredth of a second or more."""
    lines = []
    for release, name in NAMES.items():
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
        ),
    )


def _medians(runs: list[dict[str, Any]]) -> dict[str, float]:
    steps = {step: median(run["steps"][step]["seconds"] for run in runs) for step in runs[0]["steps"]}
    return {**steps, "all": sum(steps.values())}
