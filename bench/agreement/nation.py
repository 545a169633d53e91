"""A nation whose tables agree: python -m bench.agreement.nation FOLDER [--jobs 150000000] [--rounds 3].

Seven tables of four levels of places and two of industries, published with and without agreement in turn, each run in a
process of its own. What is told is the processor time and the peak of memory of every run, and their ratio.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

from bench.nation.measure import JOBS_EACH
from bench.nation.releases import MEMORY
from bench.shared.processes import told_by
from bench.shared.release import forget
from sfumato.release import load

JOBS = 150_000_000
TABLES = {
    "place_industry": '["place", "industry"]',
    "place_sector": '["place", "sector"]',
    "place": '["place"]',
    "district_industry": '["district", "industry"]',
    "county_industry": '["county", "industry"]',
    "county_sector": '["county", "sector"]',
    "state_sector": '["state", "sector"]',
}
"""Each with its dimensions: districts, counties and states are the first characters of places."""
_RELEASE = """\
[release]
title = "Jobs of a nation"
period = "2025"
budget = {{ alpha = 0.1, epsilon = 14 }}
reconcile = {reconcile}
ledger = "{name}.sqlite"
bundle = "{name}.bundle"

[data]
memory = {memory}
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "workplaces.parquet", key = "workplace" }}
public = ["place", "district", "county", "state", "industry", "sector"]

[data.attributes]
place = {{ codelist = "codelists/place.csv" }}
district = {{ column = "place", digits = 5 }}
county = {{ column = "place", digits = 4 }}
state = {{ column = "place", digits = 3 }}
industry = {{ codelist = "codelists/industry.csv" }}
sector = {{ column = "industry", digits = 1 }}
"""
_TABLE = """
[[table]]
name = "{name}"
count = "jobs"
by = {by}
protect = {{ method = "smooth-pareto", epsilon = 2 }}
"""


def main() -> None:
    """Make the economy if it is not there, and publish it again and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    if not (asked.folder / "jobs.parquet").exists():
        told_by("nation.child", "economy", asked.folder, asked.jobs, round(asked.jobs / JOBS_EACH))
    files = {name: _written(asked.folder, name) for name in ("apart", "together")}
    for file in files.values():  # files are validated once for each, which is no part of the comparison
        published(file, validated=False)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in files}
    for _ in range(asked.rounds):
        for name, file in files.items():
            runs[name].append(published(file))
    print(json.dumps(runs, indent=1))
    for name, some in runs.items():
        seconds, processor = (median(one[what] for one in some) for what in ("seconds", "processor"))
        print(
            f"{name}: {seconds:.1f} s, {processor:.1f} s of processor, {max(one['peak'] for one in some) / 1e9:.2f} GB"
        )
    middle = {name: median(one["processor"] for one in some) for name, some in runs.items()}
    print(f"with agreement over without: {middle['together'] / middle['apart']:.2f} of processor time")


def release_text(name: str) -> str:
    """A release of the nation, with tables that agree (`together`) or do not."""
    told = {"name": name, "reconcile": str(name == "together").lower(), "memory": MEMORY}
    return _RELEASE.format(**told) + "".join(_TABLE.format(name=table, by=by) for table, by in TABLES.items())


def _written(folder: Path, name: str) -> Path:
    """The file of such a release."""
    path = folder / f"{name}.toml"
    path.write_text(release_text(name), encoding="utf-8")
    return path


def published(file: Path, *, validated: bool = True) -> dict[str, Any]:
    """Publish a release anew: its time, and its peak of memory."""
    forget(load(file), validated=validated)
    run = told_by("shared.child", "release", file)
    steps = run["steps"].values()
    return {
        "seconds": sum(step["seconds"] for step in steps),
        "processor": sum(step["processor"] for step in steps),
        "peak": run["peak_bytes"],
    }


if __name__ == "__main__":
    main()
