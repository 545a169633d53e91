"""The tables that are contested: what is asked for, and the truth that answers are checked against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench.jobs.floor import BY

LIMIT = 100
"""Rows of one establishment that are kept, where a contestant hides whole establishments."""
SHARE = 0.15
"""A total is withheld when the others than its two largest are less than this share of the largest: the p% rule."""
_WORKERS = ("sex", "education")
KEYS = 256
"""Record keys are from 0 to one less, as in the table that comes with the ONS package."""

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Contested:
    """A table, its floor, and its true cells in a file and in memory, in one order."""

    name: str
    label: str
    by: tuple[str, ...]
    query: str = field(repr=False)
    """The floor: DuckDB's bare aggregate, whose column `value` is what is published."""
    keys: Path
    truth: Path
    cells: Columns = field(repr=False)

    @classmethod
    def of(cls, folder: Path, name: str, label: str, by: Sequence[str], *, query: str, truth: str) -> "Contested":
        """Find the true cells, and write their keys for those who want them from a file."""
        keys, file = folder / f"{name}.keys.parquet", folder / f"{name}.truth.parquet"
        codes = ", ".join(by)
        with duckdb.connect() as connection:
            true = connection.execute(
                f"select row_number() over (order by {codes}) - 1 as cell, "
                f"dense_rank() over (order by {', '.join(BY)}) - 1 as block, * from ({truth}) order by cell"
            ).to_arrow_table()
        pq.write_table(true, file)
        pq.write_table(true.select(list(by)), keys)
        columns = {n: true[n].to_numpy() for n in true.column_names if not pa.types.is_string(true[n].type)}
        return cls(name=name, label=label, by=tuple(by), query=query, keys=keys, truth=file, cells=columns)

    @property
    def block(self) -> int:
        """The worker cells of a workplace cell, which are neighbours."""
        return len(self) // int(self.cells["block"].max() + 1)

    def __len__(self) -> int:
        return len(self.cells["cell"])


def contested(folder: Path) -> tuple[Contested, ...]:
    """Every table that can be made of an economy, for each kind of protection."""
    read = {
        name: f"read_parquet('{folder / name}.parquet') as {name}"
        for name in ("jobs", "workplaces", "workers", "records")
    }
    _write_records(folder, read)
    workplace = Contested.of(
        folder,
        "workplace",
        "Jobs by place, industry and ownership",
        BY,
        query=_floor(read, workers=False),
        truth=_truth(read, workers=False),
    )
    worker = Contested.of(
        folder,
        "worker",
        "Jobs by place, industry, ownership, sex and education",
        (*BY, *_WORKERS),
        query=_floor(read, workers=True),
        truth=_truth(read, workers=True),
    )
    keyed = Contested.of(
        folder,
        "keyed",
        "Keyed counts of jobs by place, industry and ownership",
        BY,
        query=f"select {', '.join(BY)}, count(*) as value, sum(record_key) % {KEYS} as cell_key "
        f"from {read['records']} group by all",
        truth=f"select {', '.join(BY)}, count(*) as value from {read['records']} group by all",
    )
    infused = Contested.of(
        folder,
        "infusion",
        "Noise infusion: jobs by place, industry and ownership, a factor for every establishment",
        BY,
        query=_floor(read, workers=False),
        truth=_truth(read, workers=False),
    )
    largest = (
        f"select {', '.join(BY)}, count(*) as records, sum(earnings)::bigint as value, max(earnings, 3) as largest "
        f"from {read['records']} group by all"
    )
    totals = Contested.of(
        folder,
        "totals",
        "Total earnings by place, industry and ownership, protected by the largest contributors",
        BY,
        query=largest,
        truth=f"select * exclude largest, largest[1] as first, coalesce(largest[2], 0) as second, "
        f"coalesce(largest[3], 0) as third from ({largest})",
    )
    return workplace, worker, keyed, infused, totals


def establishments(folder: Path, table: Contested) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The cell and the workers of every establishment, for what is done to establishments."""
    with duckdb.connect() as connection:
        found = connection.execute(
            f"select cell, n from (select workplace, count(*) as n from read_parquet('{folder}/jobs.parquet') "
            f"group by all) join read_parquet('{folder}/workplaces.parquet') as workplaces using (workplace) "
            f"join read_parquet('{table.truth}') as truth using ({', '.join(table.by)})"
        ).fetchnumpy()
    return found["cell"].astype(np.int64), found["n"].astype(np.float64)


def _write_records(folder: Path, read: Mapping[str, str]) -> None:
    """The jobs as one table of records, as tools for microdata want them, each with a key of its own."""
    with duckdb.connect() as connection:
        connection.execute(
            f"copy (select row_number() over () as job, {', '.join(BY)}, earnings, "
            f"(hash(worker, workplace) % {KEYS})::integer as record_key from {read['jobs']} "
            f"join {read['workplaces']} using (workplace)) to '{folder}/records.parquet' (compression zstd)"
        )


def _sizes(read: Mapping[str, str], *, workers: bool) -> str:
    """The jobs of every establishment, in all or by the attributes of workers."""
    if not workers:
        return f"select workplace, count(*) as n from {read['jobs']} group by all"
    return (
        f"select workplace, {', '.join(_WORKERS)}, count(*) as n from {read['jobs']} "
        f"join {read['workers']} using (worker) group by all"
    )


def _floor(read: Mapping[str, str], *, workers: bool) -> str:
    by = ", ".join((*BY, *_WORKERS) if workers else BY)
    return (
        f"select {by}, sum(n)::bigint as value, max(n) as largest from ({_sizes(read, workers=workers)}) "
        f"join {read['workplaces']} using (workplace) group by all"
    )


def _truth(read: Mapping[str, str], *, workers: bool) -> str:
    """Every cell that has an establishment, with what any noise depends on.

    `kept` is what is left of the count, on average, when at most `LIMIT` rows of each establishment are kept; `below`
    when establishments of that size and more are left out.
    """
    by = ", ".join((*BY, *_WORKERS) if workers else BY)
    codes = "".join(f" cross join (select distinct {name} from {read['workers']})" for name in _WORKERS)
    return f"""
        select {by}, coalesce(value, 0)::bigint as value, coalesce(largest, 0)::bigint as largest,
               coalesce(kept, 0)::double as kept, coalesce(below, 0)::bigint as below,
               coalesce(largest_employer, 0)::bigint as largest_employer
        from (from (select distinct {", ".join(BY)} from {read["workplaces"]}){codes if workers else ""})
        left join (
            select {by}, sum(n) as value, max(n) as largest, sum(n * least(1, {LIMIT} / total)) as kept,
                   sum(n) filter (total < {LIMIT}) as below
            from ({_sizes(read, workers=workers)}) join ({_sizes(read, workers=False).replace("as n", "as total")})
            using (workplace) join {read["workplaces"]} using (workplace) group by all
        ) using ({by})
        left join (
            select {", ".join(BY)}, max(n) as largest_employer from ({_sizes(read, workers=False)})
            join {read["workplaces"]} using (workplace) group by all
        ) using ({", ".join(BY)})
    """
