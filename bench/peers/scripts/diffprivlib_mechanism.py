"""diffprivlib's geometric mechanism on counts by DuckDB: it takes one number at a time."""

import pyarrow.parquet as pq
from diffprivlib.mechanisms import Geometric
from duckdb_counts import counts, with_values
from job import Job, work


def publish(job: Job) -> None:
    cells = counts(job)
    mechanism = Geometric(epsilon=job.epsilon, sensitivity=1)
    noisy = [mechanism.randomise(count) for count in cells["value"].to_pylist()]
    pq.write_table(with_values(cells, noisy), job.out)


if __name__ == "__main__":
    work(publish)
