"""The true count of every cell that is to be published, by DuckDB: where tools begin that only add noise."""

import duckdb
import pyarrow as pa
from job import Job


def counts(job: Job) -> pa.Table:
    """The cells with their count in the column `value`."""
    by, workers = ", ".join(job.by), ", ".join(job.of_workers)
    inner = (
        f"select workplace, {workers}, count(*) as n from read_parquet('{job.file('jobs')}') as jobs "
        f"join read_parquet('{job.file('workers')}') as workers using (worker) group by all"
        if workers
        else f"select workplace, count(*) as n from read_parquet('{job.file('jobs')}') group by all"
    )
    query = f"""
        select {by}, coalesce(n, 0)::bigint as value from read_parquet('{job.keys}') left join (
            select {by}, sum(n) as n from ({inner}) join read_parquet('{job.file("workplaces")}') using (workplace)
            group by all
        ) using ({by})
    """
    with duckdb.connect() as connection:
        return connection.execute(query).to_arrow_table()


def with_values(cells: pa.Table, values: object) -> pa.Table:
    """The cells with other values."""
    return cells.set_column(cells.column_names.index("value"), "value", pa.array(values))
