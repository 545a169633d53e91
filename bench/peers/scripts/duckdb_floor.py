"""DuckDB alone: the aggregate of the same shape, nothing protected. Writing the answer down is not timed."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from job import Job, work


def publish(job: Job) -> None:
    with duckdb.connect() as connection:
        answer: pa.Table = connection.execute(job.asked["query"]).to_arrow_table()
    job.end()
    pq.write_table(answer, job.out)


if __name__ == "__main__":
    work(publish)
