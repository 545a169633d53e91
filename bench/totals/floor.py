"""The floor of perturbed totals: DuckDB alone, in memory, with what the perturbation has to know of every cell.

As a script, `python -m bench.totals.floor FILE KIND` does that once and nothing else, on a `view` of the Parquet file
or on a `table` in memory.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from bench.shared.child import say

if TYPE_CHECKING:
    import pyarrow as pa

_BY = "region, industry, product"
BARE = f"select {_BY}, sum(turnover) as total from records group by all"
SAME = f"""
    select {_BY}, count(*) as records, sum(turnover) as total, sum(key) as cell_key,
           max_by(unit, turnover, 3) as largest
    from records group by all
"""
# The same with value and unit packed into one number, which is how sfumato asks DuckDB; often the faster way.
PACKED = f"""
    select {_BY}, count(*) as records, sum(turnover) as total, sum(key) as cell_key,
           max(turnover * 16777216 + 16777215 - unit, 3) as largest
    from records group by all
"""
WEIGHTED = f"""
    select {_BY}, count(*) as records, sum(turnover * weight) as total, sum(weight) as weights, sum(key) as cell_key,
           max_by(unit, turnover, 3) as largest
    from records group by all
"""
# As narrow as numbers can be, so that grouping is as quick as it can be; weights are whole millionths.
_READ = """
    create {kind} records as
    select right(region, 2)::smallint as region, right(industry, 2)::smallint as industry,
           right(product, 2)::smallint as product, turnover, business::integer as unit,
           (hash(business) % 4294967296)::bigint as key, floor(weight * 1e6 + 0.5)::bigint as weight
    from read_parquet('{path}')
"""


class Floor:
    """The records in DuckDB's memory, to be asked as often as one likes."""

    def __init__(self, path: Path, *, kind: str = "table") -> None:
        self._connection = duckdb.connect()
        self._connection.execute(_READ.format(kind=kind, path=path))

    def answer(self, query: str) -> "pa.Table":
        """One of the queries of this module."""
        return self._connection.execute(query).to_arrow_table()

    def close(self) -> None:
        """Forget the records."""
        self._connection.close()


if __name__ == "__main__":
    say(cells=Floor(Path(sys.argv[1]), kind=sys.argv[2]).answer(SAME).num_rows)
