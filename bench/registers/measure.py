"""Two tables of a register: sfumato on files never seen beside the script of a careful user, in fresh processes."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.registers.data import KINDS, TABLES, write_registers
from bench.registers.floor import floor
from bench.shared.gate import WrongResultError, check_counts, manifest_of, sorted_positions, table_file
from bench.shared.processes import Tell, in_turn, told_by
from bench.shared.release import forget
from bench.shared.report import Results
from sfumato.cells import Cells
from sfumato.checking import checked
from sfumato.release import load
from sfumato.statistics.published import PublishedTable

_CLOCKS = ("seconds", "processor")
_Truth = dict[str, tuple[PublishedTable, Cells]]
"""Every table with its true cells."""


def measure_registers(folder: Path, *, establishments: int, repeat: int, tell: Tell) -> Results:
    """Everything about registers; a wrong result ends it."""
    tell("making a register")
    releases = write_registers(folder, establishments=establishments)
    found: dict[str, Any] = {"seconds": {}, "processor": {}, "peak_bytes": {}, "bytes": {}}
    jobs = 0
    for kind, file in releases.items():
        data = folder / load(file).data.sources()["jobs"].path
        tell(f"{KINDS[kind]}: the true tables")
        truth = _truth(file, data)
        jobs = int(truth["by_industry"][1]["count"].sum())
        turns = {"floor": partial(_floor, data), "run": partial(_run, file, truth)}
        rounds = in_turn(turns, repeat=repeat, tell=tell, what=KINDS[kind])
        found["bytes"][kind] = data.stat().st_size
        for name, told in rounds.items():
            for clock in _CLOCKS:
                found[clock][f"{kind} {name}"] = [one[clock] for one in told]
            found["peak_bytes"][f"{kind} {name}"] = max(one["peak_bytes"] for one in told)
    return {"establishments": establishments, "jobs": jobs, **found}


def _floor(data: Path) -> dict[str, Any]:
    return told_by("registers.floor", data)


def _run(file: Path, truth: _Truth) -> dict[str, Any]:
    """One run on files as if they had never been seen, which is refused if a table is not what it should be."""
    release = load(file)
    forget(release)
    told = told_by("shared.child", "release", file)
    manifest_of(release, TABLES)
    for name, (planned, cells) in truth.items():
        check_counts(table_file(release, name), planned, cells)
    steps = told.pop("steps").values()
    return {**told, **{clock: sum(step[clock] for step in steps) for clock in _CLOCKS}}


def _truth(file: Path, data: Path) -> _Truth:
    """The true cells of both tables, which must be those of the floor number for number."""
    with checked(load(file)) as ready:
        planned = {table.name: table for table in ready.plan.tables}
        cells = ready.count(planned)
    counted = floor(data)
    found = {"by_industry": counted["by_industry"], "by_sex": _in_rows(counted["by_sex"])}
    for name, true in cells.items():
        order, positions = sorted_positions(found[name], true.dimensions)
        same = [np.array_equal(found[name][column].to_numpy()[order], true[column]) for column in ("count", "largest")]
        if not (all(same) and np.array_equal(positions, true.positions)):
            raise WrongResultError(f"{name}: the floor and sfumato do not count the same cells")
    return {name: (planned[name], cells[name]) for name in TABLES}


def _in_rows(found: pa.Table) -> pa.Table:
    """Women and men of a county in two rows, as tables have them."""
    parts = [
        pa.table(
            {
                "county": found["county"],
                "sex": pa.array([code] * len(found)),
                "count": found[column],
                "largest": found[f"largest_{column}"],
            }
        )
        for code, column in {"F": "women", "M": "men"}.items()
    ]
    return pa.concat_tables(parts)
