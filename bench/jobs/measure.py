"""Counts of jobs: the floor and every case in turn in one warm process, whole commands, peak memory, imports."""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.jobs.cases import Case, write_cases
from bench.jobs.floor import floor
from bench.shared.gate import Errors, WrongResultError, check_counts, manifest_of, sorted_positions, table_file
from bench.shared.processes import (
    SFUMATO,
    T,
    Tell,
    in_turn,
    make_economy,
    module,
    output_of,
    seconds_of,
    timed,
    told_by,
)
from bench.shared.report import Results
from sfumato.cells import Cells
from sfumato.checking import checked
from sfumato.release import Release, load
from sfumato.statistics.published import PublishedTable

_IMPORTS = {
    "sfumato": "import sfumato",
    "what publishing needs": "import sfumato.release, sfumato.running",
}


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The true cells of the table, as sfumato tabulates them."""

    planned: PublishedTable
    cells: Cells

    @classmethod
    def of(cls, file: Path, *, jobs: int) -> "Truth":
        """Tabulate the one table of a release, which must hold every job of the economy."""
        with checked(load(file)) as ready:
            (planned,) = ready.plan.tables
            cells = ready.count({planned.name: planned})[planned.name]
        if (total := int(cells["count"].sum())) != jobs:
            raise WrongResultError(f"the true table holds {total:,} jobs; the economy was asked for {jobs:,}")
        return cls(planned=planned, cells=cells)

    def check_floor(self, found: pa.Table) -> None:
        """Refuse an answer of the floor that is not, number for number, the true table."""
        order, positions = sorted_positions(found, self.cells.dimensions)
        occupied = self.cells["count"] > 0
        if not (
            np.array_equal(positions, self.cells.positions[occupied])
            and np.array_equal(found["count"].to_numpy()[order], self.cells["count"][occupied])
            and np.array_equal(found["largest"].to_numpy()[order], self.cells["largest"][occupied])
        ):
            raise WrongResultError("the floor and sfumato do not count the same cells")

    def check_published(self, release: Release) -> Errors:
        """Refuse a bundle that is not whole, was not charged once, or is further from the truth than it should be."""
        name = self.planned.name
        manifest_of(release, [name])
        return check_counts(table_file(release, name), self.planned, self.cells)


def measure_foundation(folder: Path, *, jobs: int, repeat: int, tell: Tell) -> Results:
    """Make an economy and measure everything about counts of jobs on it; every run is checked."""
    tell("making an economy")
    economy_seconds = make_economy(folder, jobs=jobs)
    cases = write_cases(folder)
    plain = cases[:2]
    tell("the true table")
    truth = Truth.of(plain[0].file, jobs=jobs)
    errors: list[Errors] = []

    def run_floor() -> float:
        taken, table = timed(lambda: floor(folder))
        truth.check_floor(table)
        return taken

    def run(case: Case, work: Callable[[], T]) -> T:
        release = case.prepare()
        taken = work()
        errors.append(truth.check_published(release))
        return taken

    def warm(case: Case) -> float:
        return run(case, lambda: timed(case.publish)[0])

    def whole(case: Case) -> float:
        return run(case, lambda: timed(lambda: output_of(SFUMATO, "run", case.file))[0])

    tell("warming up")  # imports and the page cache; and the files are validated before a case relies on that
    run_floor()
    for case in sorted(cases, key=lambda case: not case.first):
        warm(case)
    turns = {"floor": run_floor} | {case.name: partial(warm, case) for case in cases}
    seconds = in_turn(turns, repeat=repeat, tell=tell, what="in one process")
    turns = {"floor": lambda: seconds_of(*module("jobs.floor", folder))}
    turns |= {case.name: partial(whole, case) for case in plain}
    commands = in_turn(turns, repeat=repeat, tell=tell, what="whole commands")
    tell("peak memory")
    peak = {"floor": told_by("jobs.floor", folder)["peak_bytes"]}
    for case in (case for case in cases if case.first):
        found = run(case, partial(told_by, "shared.child", "release", case.file))
        peak[case.name] = found["peak_bytes"]
    tell("imports")
    imports = _import_seconds()
    tell("the demo")
    return {
        "jobs": jobs,
        "cells": len(truth.cells),
        "labels": {"floor": "DuckDB alone (the floor)", **{case.name: case.label for case in cases}},
        "seconds": seconds,
        "mean_error": asdict(errors[-1]),
        "command_seconds": commands,
        "peak_bytes": peak,
        "economy_seconds": economy_seconds,
        "demo_seconds": _demo_seconds(),
        "import_seconds": imports,
    }


def _demo_seconds() -> float:
    """Seconds of `sfumato demo` in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        return seconds_of(SFUMATO, "demo", "--out", Path(folder) / "demo")


def _import_seconds(*, times: int = 10) -> dict[str, float]:
    """Seconds an import adds to the start of Python: the best of several processes, less the best without it."""
    bare = min(seconds_of(sys.executable, "-c", "pass") for _ in range(times))
    return {
        name: min(seconds_of(sys.executable, "-c", code) for _ in range(times)) - bare
        for name, code in _IMPORTS.items()
    }
