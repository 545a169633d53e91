"""A register with many workplace cells, and releases of a table that is larger than the memory it is made in."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.shared.release import codelists, listed
from sfumato.keys import new_key

CELLS = 200_000_000
"""The size that the target is about."""
MEMORY = 2
"""GB that DuckDB may use; the rest of the four is for the parts that are protected meanwhile."""
TABLE = "jobs_by_workplace_worker"
PUBLIC = ("place", "industry", "ownership", "founded")
WORKERS = ("age", "sex", "ethnicity", "education")
BY = (*PUBLIC, *WORKERS)
METHODS = {"formal": 'method = "smooth-pareto", epsilon = 2', "keyed": 'method = "noise-infusion"'}
"""Two releases of the same table: noise of the operating system, and factors of a key."""
WORKER_CELLS = 8 * 2 * 2 * 4
CODES = tuple(f"F{number:02d}" for number in range(25))
"""Of the period in which an establishment was founded."""

_RELEASE = """\
[release]
title = "Jobs by workplace and worker"
period = "2025"
{paid}
ledger = "{name}.sqlite"
bundle = "{name}.bundle"

[data]
memory = {memory}
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "register.parquet", key = "workplace" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = {public}

[data.attributes]
founded = {{ codes = {founded} }}
{attributes}

[[table]]
name = "{table}"
count = "jobs"
by = {by}
structural_zeros = "implied"
protect = {{ {protect} }}
"""


@dataclass(frozen=True, kw_only=True)
class Large:
    """The files of an economy with a larger register, and the releases of it."""

    folder: Path
    cells: int
    """Cells that are listed: all worker cells of every workplace cell with an establishment."""


def write_large(folder: Path, *, cells: int) -> Large:
    """Add establishments without jobs to the register, such as one-person firms, until the table has so many cells."""
    register = _register(pq.read_table(folder / "workplaces.parquet"), cells // WORKER_CELLS)
    pq.write_table(register, folder / "register.parquet", compression="zstd")
    listed = register.group_by(list(PUBLIC)).aggregate([]).num_rows
    new_key(folder / "sfumato.key")
    for name, protect in METHODS.items():
        _write(folder, name, protect)
    return Large(folder=folder, cells=listed * WORKER_CELLS)


def _register(workplaces: pa.Table, blocks: int) -> pa.Table:
    """The establishments that have jobs, and one without any in each of so many workplace cells, drawn at random."""
    rng = np.random.default_rng(9)
    codes = {name: workplaces[name].cast(pa.string()).unique().sort() for name in PUBLIC[:-1]}
    codes["founded"] = pa.array(CODES)
    shape = tuple(map(len, codes.values()))
    if blocks > np.prod(shape):
        raise ValueError(f"there are {np.prod(shape):,} workplace cells in this economy, not {blocks:,}")
    drawn = np.unravel_index(np.sort(rng.choice(np.prod(shape), blocks, replace=False)), shape)
    first = pc.max(workplaces["workplace"]).as_py() + 1
    made = {name: codes[name].take(pa.array(place)) for name, place in zip(codes, drawn, strict=True)}
    founded = codes["founded"].take(pa.array(rng.integers(len(CODES), size=len(workplaces))))
    known = {name: workplaces[name].cast(pa.string()) for name in PUBLIC[:-1]}
    return pa.concat_tables(
        [
            pa.table({"workplace": workplaces["workplace"], **known, "founded": founded}),
            pa.table({"workplace": np.arange(first, first + blocks), **made}),
        ]
    )


def _write(folder: Path, name: str, protect: str) -> None:
    described = [attribute for attribute in BY if attribute != "founded"]
    paid = 'key = "sfumato.key"' if name == "keyed" else "budget = { alpha = 0.01, epsilon = 2 }"
    text = _RELEASE.format(
        name=name,
        paid=paid,
        memory=MEMORY,
        public=listed(PUBLIC),
        founded=listed(CODES),
        attributes=codelists(described),
        table=TABLE,
        by=listed(BY),
        protect=protect,
    )
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
