"""A table larger than memory: made in parts in a fresh process, checked, with its steps, its pace and its peak."""

import json
import sys
from pathlib import Path
from typing import Any

import duckdb
from foundation import Tell
from gate import WrongResultError
from large_data import BY, METHODS, PUBLIC, TABLE, Large, write_large
from processes import make_economy, output_of

from sfumato.check import check
from sfumato.manifest import read_manifest
from sfumato.methods.vector_pareto import VectorPareto
from sfumato.privacy.ledger import Ledger
from sfumato.release_file import load

_HERE = Path(__file__).parent
_SHOWN = 8  # parts that are compared with the true table, cell by cell
_TOLERANCE = 0.02

_SAMPLE = """
WITH published AS (SELECT * FROM read_parquet($files)),
     places AS (SELECT DISTINCT place FROM published),
     chosen AS (SELECT workplace, {public} FROM read_parquet($register) SEMI JOIN places USING (place)),
     counted AS (
         SELECT {by}, count(*) AS jobs
         FROM read_parquet($jobs) JOIN chosen USING (workplace) JOIN read_parquet($workers) USING (worker)
         GROUP BY ALL
     ),
     blocks AS (SELECT {public}, sum(jobs) AS in_all FROM counted GROUP BY ALL),
     compared AS (
         SELECT value, coalesce(jobs, 0) AS jobs, coalesce(in_all, 0) AS in_all
         FROM published LEFT JOIN counted USING ({by}) LEFT JOIN blocks USING ({public})
     )
SELECT
    count(*),
    (SELECT count(*) FROM (SELECT DISTINCT {by} FROM published)),
    avg(abs(value)) FILTER (in_all = 0),
    sum(jobs),
    sum(value) FILTER (in_all > 0)
FROM compared
"""


def measure_large(folder: Path, *, jobs: int, cells: int, tell: Tell) -> dict[str, Any]:
    """Make the economy and its register, and publish the table once with each method."""
    tell("making an economy")
    make_economy(folder, jobs=jobs)
    tell("making the register")
    large = write_large(folder, cells=cells)
    runs = {}
    for name in METHODS:
        tell(f"the table in parts: {name}")
        runs[name] = json.loads(output_of(sys.executable, _HERE / "large_run.py", folder / f"{name}.toml"))
        tell(f"checking: {name}")
        runs[name] |= _check(large, name)
    return {"jobs": jobs, "cells": large.cells, "runs": runs}


def _check(large: Large, name: str) -> dict[str, Any]:
    """Refuse a bundle that is not whole, was not charged once, or whose cells are not the true ones with noise."""
    release = load(large.folder / f"{name}.toml")
    listed = read_manifest(release.bundle)["files"]
    files = sorted(str(release.bundle / file) for file in listed if file.startswith("tables/"))
    history = Ledger.open(release.ledger).history(release.account)
    if [entry.table for entry in history if entry.kind == "charge"] != [TABLE]:
        raise WrongResultError(f"the run should have charged '{TABLE}' once")
    with duckdb.connect() as connection:
        (rows,) = connection.execute("SELECT count(*) FROM read_parquet($1)", [files]).fetchone() or (0,)
        if rows != large.cells:
            raise WrongResultError(f"{rows:,} cells were published; the register has {large.cells:,}")
        parameters = {
            "files": files[:: max(1, len(files) // _SHOWN)],
            **{name: str(large.folder / f"{name}.parquet") for name in ("register", "jobs", "workers")},
        }
        query = _SAMPLE.format(public=", ".join(PUBLIC), by=", ".join(BY))
        found = connection.execute(query, parameters).fetchone()
    assert found is not None
    compared, distinct, error, jobs, values = found
    if distinct != compared:
        raise WrongResultError(f"{compared - distinct:,} cells were published twice")
    (planned,) = check(release).plan.tables
    expected = planned.method.planned_error().floor if isinstance(planned.method, VectorPareto) else 0.0
    if abs(error - expected) > _TOLERANCE * expected:
        raise WrongResultError(f"cells without jobs are {error:.3f} from zero on average; {expected:.3f} was expected")
    if not 0.5 < values / jobs < 1.5:
        raise WrongResultError(
            f"the published jobs of {len(parameters['files'])} parts are {values / jobs:.2f}× the true"
        )
    size = sum(entry["bytes"] for file, entry in listed.items() if file.startswith("tables/"))
    return {"parts": len(files), "bytes": size, "compared": compared, "error": error, "expected_error": expected}
