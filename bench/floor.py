"""The floor: DuckDB alone, on the same files; the least that any tool on this engine has to do.

As a script, `python floor.py FOLDER` does that and nothing else, with the interpreter's start.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    import pyarrow as pa

QUERY = """
    select place, industry, ownership, sum(n)::bigint as count, max(n) as largest
    from (select workplace, count(*) as n from read_parquet($jobs) group by 1)
    join read_parquet($workplaces) using (workplace)
    group by 1, 2, 3
"""


def floor(folder: Path) -> "pa.Table":
    """The count of jobs and the largest establishment of every cell that has jobs; connecting and closing included."""
    files = {name: str(folder / f"{name}.parquet") for name in ("jobs", "workplaces")}
    with duckdb.connect() as connection:
        return connection.execute(QUERY, files).to_arrow_table()


if __name__ == "__main__":
    print(f"{floor(Path(sys.argv[1])).num_rows:,} cells")
