"""The floor of counts of jobs: DuckDB alone, on the same files; the least that any tool on this engine has to do.

As a script, `python -m bench.jobs.floor FOLDER` does that and nothing else, with the interpreter's start.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from bench.shared.child import say

if TYPE_CHECKING:
    import pyarrow as pa

BY = ("place", "industry", "ownership")
"""What most tables of jobs are classified by: attributes of workplaces."""
OF_WORKERS = ("age", "sex", "race", "ethnicity", "education")


def floor(folder: Path, by: Sequence[str] = BY, settings: Mapping[str, str] | None = None) -> "pa.Table":
    """The count of jobs and the largest establishment of every cell that has jobs; connecting and closing included."""
    workers = [attribute for attribute in by if attribute in OF_WORKERS]
    read = ("jobs", "workplaces", "workers") if workers else ("jobs", "workplaces")
    files = {name: str(folder / f"{name}.parquet") for name in read}
    query = f"""
        select {", ".join(by)}, sum(n)::bigint as count, max(n) as largest
        from (
            select {", ".join(("workplace", *workers))}, count(*) as n
            from read_parquet($jobs) {"join read_parquet($workers) using (worker)" if workers else ""} group by all
        )
        join read_parquet($workplaces) using (workplace) group by all
    """
    with duckdb.connect(config=dict(settings or {})) as connection:
        return connection.execute(query, files).to_arrow_table()


if __name__ == "__main__":
    say(cells=floor(Path(sys.argv[1])).num_rows)
