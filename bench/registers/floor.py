"""The floor of a register: the DuckDB script of a careful user, who checks the keys and the numbers before counting.

As a script, `python -m bench.registers.floor FILE` does that and nothing else, with a clock that starts after imports.
"""

import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import duckdb

from bench.shared.child import say

if TYPE_CHECKING:
    import pyarrow as pa

_CHECKED = """
    select count(*) - count(distinct id) as repeated,
           count(*) * 5 - count(id) - count(county) - count(industry) - count(women) - count(men) as missing,
           count(*) filter (women < 0 or men < 0) as negative
    from register
"""
_COUNTED = {
    "by_industry": """
        select county, industry, count(*) as establishments, sum(women + men)::bigint as count,
               max(women + men) as largest
        from register group by all
    """,
    "by_sex": """
        select county, count(*) as establishments, max(women + men) as largest_employer,
               sum(women)::bigint as women, max(women) as largest_women,
               sum(men)::bigint as men, max(men) as largest_men
        from register group by all
    """,
}
"""The counts, and the largest establishment of every cell, as the noise needs it."""


def floor(file: Path) -> "dict[str, pa.Table]":
    """Both tables of a register; connecting, checking and closing included. A text is read once, into memory."""
    kind = "table" if file.suffix == ".csv" else "view"
    with duckdb.connect() as connection:
        connection.execute(f"create {kind} register as from '{file}'")
        found = connection.execute(_CHECKED).fetchone()
        if found != (0, 0, 0):
            raise ValueError(f"repeated keys, missing and negative values: {found}")
        return {name: connection.execute(query).to_arrow_table() for name, query in _COUNTED.items()}


if __name__ == "__main__":
    clock, processor = perf_counter(), process_time()
    cells = floor(Path(sys.argv[1]))
    say(
        seconds=perf_counter() - clock,
        processor=process_time() - processor,
        cells={name: table.num_rows for name, table in cells.items()},
    )
