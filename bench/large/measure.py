"""A table larger than memory: made in parts in a fresh process, with its steps, its pace and its peak, and checked.

Which cells there are is checked over all parts, one in memory at a time. The values of some parts are compared with
what DuckDB alone counts, cell by cell.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from statistics import fmean
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.large.data import BY, METHODS, PUBLIC, TABLE, WORKERS, Large, write_large
from bench.shared.expected import infused, pareto_of
from bench.shared.gate import Errors, WrongResultError, check_in_place, check_noisy, manifest_of, positions_of
from bench.shared.processes import Tell, make_economy, told_by
from bench.shared.report import Results
from sfumato.arrays import Floats, Integers
from sfumato.cells import Cells, Dimension
from sfumato.checking import check
from sfumato.keys import read_key
from sfumato.release import load
from sfumato.statistics.jobs.noise_infusion import NoiseInfusion
from sfumato.statistics.published import PublishedTable

_SHOWN = 8
"""Parts, or a few more, that are compared with the true table."""
_COUNTED = f"""
SELECT workplace, {", ".join(WORKERS)}, count(*) AS jobs
FROM read_parquet($jobs) JOIN chosen USING (workplace) JOIN read_parquet($workers) USING (worker)
GROUP BY ALL
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class TruePart:
    """The true numbers of a part: the cells, and what each establishment adds to which of them."""

    cells: Cells
    place: Integers
    """Of every row the cell that it belongs to, by its place in the part."""
    jobs: Integers


def measure_large(folder: Path, *, jobs: int, cells: int, tell: Tell) -> Results:
    """Make the economy and its register, and publish the table once with each method."""
    tell("making an economy")
    make_economy(folder, jobs=jobs)
    tell("making the register")
    large = write_large(folder, cells=cells)
    runs = {}
    for name in METHODS:
        tell(f"the table in parts: {name}")
        run = told_by("shared.child", "release", folder / f"{name}.toml")
        seconds = {step: found["seconds"] for step, found in run["steps"].items()}
        tell(f"checking: {name}")
        runs[name] = {"seconds": seconds, "peak_bytes": run["peak_bytes"], **check_large(large, name)}
    return {"jobs": jobs, "cells": large.cells, "runs": runs}


def check_large(large: Large, name: str) -> dict[str, Any]:
    """Refuse a bundle that is not whole, was not charged once, or whose cells are not the true ones with noise."""
    release = load(large.folder / f"{name}.toml")
    listed = manifest_of(release, [TABLE])["files"]
    # A small table is in one part, and has a CSV file too.
    tables = [file for file in sorted(listed) if file.startswith("tables/") and file.endswith(".parquet")]
    files = [release.bundle / file for file in tables]
    (planned,) = check(release).plan.tables
    by = planned.question.by
    register = pq.read_table(large.folder / "register.parquet")
    blocks = positions_of(register, by[: len(PUBLIC)])
    check_cells((_positions(file, by) for file in files), blocks, width=prod(map(len, by[len(PUBLIC) :])))
    shown = [*files[:-1][:: max(1, len(files) // _SHOWN)], files[-1]]
    values = {file: pq.read_table(file, columns=["value"])["value"].to_numpy().astype(np.float64) for file in shown}
    parts = true_parts(large.folder, by, register["workplace"].to_numpy(), blocks, [_positions(f, by) for f in shown])
    errors = [_check_values(large, planned, values[file], part) for file, part in zip(shown, parts, strict=True)]
    return {
        "parts": len(files),
        "bytes": sum(listed[file]["bytes"] for file in tables),
        "compared": sum(map(len, values.values())),
        "error": fmean(error.observed for error in errors),
        "expected_error": fmean(error.expected for error in errors),
    }


def check_cells(parts: Iterable[Integers], blocks: Integers, *, width: int) -> None:
    """Refuse parts that do not list, together, every worker cell of every workplace cell in the register just once.

    A part must list whole workplace cells in ascending order; so it is enough to remember which of them were there.
    """
    wanted = np.unique(blocks)
    seen = np.zeros(len(wanted), dtype=bool)
    for positions in parts:
        first = positions[::width]
        whole = len(positions) % width == 0 and np.array_equal(
            positions.reshape(-1, width), first[:, None] + np.arange(width)
        )
        if not whole or (first % width).any() or not (np.diff(first) > 0).all():
            raise WrongResultError("a part does not list all worker cells of its workplace cells in order")
        at = np.minimum(np.searchsorted(wanted, first // width), len(wanted) - 1)
        if not np.array_equal(wanted[at], first // width):
            raise WrongResultError("cells without an establishment were published")
        if seen[at].any():
            raise WrongResultError(f"{width * int(seen[at].sum()):,} cells were published twice")
        seen[at] = True
    if not seen.all():
        raise WrongResultError(f"{width * int((~seen).sum()):,} cells are missing")


def true_parts(
    folder: Path, by: Sequence[Dimension], workplaces: Integers, blocks: Integers, parts: Sequence[Integers]
) -> list[TruePart]:
    """The true numbers of some parts, as DuckDB alone counts them; `blocks` are the workplace cells of `workplaces`."""
    width = prod(map(len, by[len(PUBLIC) :]))
    chosen = np.isin(blocks, np.concatenate([positions[::width] // width for positions in parts]))
    with duckdb.connect() as connection:
        connection.register("chosen", pa.table({"workplace": workplaces[chosen]}))
        files = {name: str(folder / f"{name}.parquet") for name in ("jobs", "workers")}
        counted = connection.execute(_COUNTED, files).to_arrow_table()
    order = np.argsort(workplaces)
    at = order[np.searchsorted(workplaces, counted["workplace"].to_numpy(), sorter=order)]
    positions = blocks[at] * width + positions_of(counted, by[len(PUBLIC) :])
    jobs = counted["jobs"].to_numpy()
    # What an establishment has in all, beside each of its rows.
    employer = np.bincount(at, jobs, minlength=len(blocks)).astype(np.int64)[at]
    return [_true_part(tuple(by), listed, positions, jobs, employer=employer) for listed in parts]


def _true_part(
    by: tuple[Dimension, ...], listed: Integers, positions: Integers, jobs: Integers, *, employer: Integers
) -> TruePart:
    width = prod(map(len, by[len(PUBLIC) :]))
    place = np.minimum(np.searchsorted(listed, positions), len(listed) - 1)
    inside = listed[place] == positions
    place, jobs = place[inside], jobs[inside]
    largest = np.zeros(len(listed) // width, dtype=np.int64)
    np.maximum.at(largest, place // width, employer[inside])
    count = np.bincount(place, jobs, minlength=len(listed)).astype(np.int64)
    columns = {"count": count, "largest_employer": np.repeat(largest, width)}
    return TruePart(cells=Cells(dimensions=by, positions=listed, columns=columns), place=place, jobs=jobs)


def _check_values(large: Large, planned: PublishedTable, values: Floats, part: TruePart) -> Errors:
    if isinstance(planned.method, NoiseInfusion):
        secret = read_key(large.folder / "sfumato.key")
        return check_infused(values, part, least=secret.a - 1, most=secret.b - 1, base=planned.method.rounding)
    expected, true = pareto_of(planned.method, part.cells), part.cells["count"].astype(np.float64)
    errors = check_noisy(values, true, expected)
    check_in_place(values, true, expected)  # the signs of the noise are independent, also within a block
    return errors


def check_infused(values: Floats, part: TruePart, *, least: Fraction, most: Fraction, base: int) -> Errors:
    """Refuse values that no factors could give, cell by cell, and errors that are not those of factors on average."""
    count = part.cells["count"].astype(np.float64)
    if np.isnan(values).any() or values[count == 0].any():
        raise WrongResultError("cells without jobs were changed, or values are missing")
    if (values % base).any():
        raise WrongResultError(f"values are to be multiples of {base}")
    small = (count > 0) & (count <= 2) & (base == 1)
    if not np.isin(values[small], (1, 2)).all():
        raise WrongResultError("cells of one or two jobs are to be published as 1 or 2")
    away, large = np.abs(values - count), (count > 0) & ~small
    alone = large & (np.bincount(part.place, minlength=len(count)) == 1)
    # Less than one base of rounding on either side.
    if (away > float(most) * count + base)[large].any() or (away < float(least) * count - base)[alone].any():
        raise WrongResultError("values are further from the true ones, or closer to them, than any factors bring them")
    occupied = np.flatnonzero(count)
    expected = infused(
        np.searchsorted(occupied, part.place),
        part.jobs.astype(np.float64),
        count[occupied],
        least=float(least),
        most=float(most),
        base=base,
    )
    # An establishment has one factor for all its worker cells.
    together = np.unique(occupied // part.cells.worker_cells, return_inverse=True)[1]
    return check_noisy(values[occupied], count[occupied], replace(expected, block=together))


def _positions(file: Path, by: Sequence[Dimension]) -> Integers:
    return positions_of(pq.read_table(file, columns=list(BY), read_dictionary=list(BY)), by)
