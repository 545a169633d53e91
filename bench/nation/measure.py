"""A nation on one machine: growth from a million jobs to the whole register, ours and that of DuckDB alone.

Every published table is compared with what DuckDB alone counted.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.nation.releases import MEMORY, RELEASES, Nation
from bench.shared.gate import WrongResultError, check_counts, manifest_of, sorted_positions, table_file
from bench.shared.processes import ROOT, Tell, told_by
from bench.shared.release import forget
from bench.shared.report import Results
from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.checking import checked
from sfumato.release import load
from sfumato.statistics.published import PublishedTable

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


def check_release(nation: Nation, release: str, *, jobs: int) -> dict[str, tuple[float, float]]:
    """Refuse a bundle that is not whole, not charged once, or whose errors are not those of the noise.

    The floor, which is the truth here, must have counted every job in every table.
    Returns the observed and the expected mean error of every table.
    """
    described = load(nation.file(release))
    manifest_of(described, RELEASES[release])
    with checked(described) as ready:
        plan = ready.plan
    return {
        planned.name: _check_table(nation.folder, planned, table_file(described, planned.name), jobs=jobs)
        for planned in plan.tables
    }


def _check_table(folder: Path, planned: PublishedTable, file: Path, *, jobs: int) -> tuple[float, float]:
    listed = _listed(folder, planned)
    cells = Cells(dimensions=planned.question.by, positions=listed, columns=_true_columns(folder, planned, listed))
    if (counted := int(cells["count"].sum())) != jobs:
        raise WrongResultError(f"{planned.name}: the floor counted {counted:,} jobs; the economy has {jobs:,}")
    errors = check_counts(file, planned, cells)
    return errors.observed, errors.expected


def _true_columns(folder: Path, planned: PublishedTable, positions: Integers) -> Mapping[str, Integers]:
    """What the floor counted, laid over the published cells; the largest employer is that of the workplace cell."""
    by = planned.question.by
    columns = _laid_over(folder / f"{planned.name}.true.parquet", by, positions, ("count", "largest"))
    public = tuple(dimension for dimension in by if dimension.public)
    if len(public) < len(by):
        names = tuple(dimension.name for dimension in public)
        source = next(table for table, found in RELEASES["seven"].items() if found == names)
        cells = Cells(dimensions=by, positions=positions)
        blocks = np.ravel_multi_index(tuple(cells.codes(name) for name in names), tuple(map(len, public)))
        unique, inverse = np.unique(blocks, return_inverse=True)
        employers = _laid_over(folder / f"{source}.true.parquet", public, unique, ("largest",))
        columns["largest_employer"] = employers["largest"][inverse]
    return columns


def _laid_over(
    path: Path, by: tuple[Dimension, ...], positions: Integers, names: tuple[str, ...]
) -> dict[str, Integers]:
    table = pq.read_table(path)
    order, found = sorted_positions(table, by)
    at = np.searchsorted(positions, found)
    if not np.array_equal(positions[np.minimum(at, len(positions) - 1)], found):
        raise WrongResultError(f"{path.name}: the floor counted cells that have no establishment")
    columns = {name: np.zeros(len(positions), dtype=np.int64) for name in names}
    for name, column in columns.items():
        column[at] = table[name].to_numpy()[order]
    return columns


def _listed(folder: Path, planned: PublishedTable) -> Integers:
    """The cells that ought to be published: all combinations of worker codes wherever an establishment is."""
    by = planned.question.by
    public = [dimension.name for dimension in by if dimension.public]
    source = duckdb.read_parquet(str(folder / "workplaces.parquet"))
    found = source.project(", ".join(public)).distinct().to_arrow_table()
    for dimension in by:
        if not dimension.public:
            codes = pa.table({dimension.name: pa.array(dimension.codes)})
            rows, repeats = found.num_rows, len(dimension)
            found = found.take(np.repeat(np.arange(rows), repeats))
            found = found.append_column(dimension.name, codes.take(np.tile(np.arange(repeats), rows))[dimension.name])
    return sorted_positions(found, by)[1]
