"""OpenDP, the fast way: discrete Laplace noise on a vector of counts by DuckDB. That a job counts once is on trust."""

import opendp.prelude as dp
import pyarrow.parquet as pq
from duckdb_counts import counts, with_values
from job import Job, work

dp.enable_features("contrib")


def publish(job: Job) -> None:
    cells = counts(job)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    noise = dp.m.make_laplace(*space, scale=1 / job.epsilon)
    if noise.map(1) > job.epsilon:
        raise ValueError("the noise is too small for this epsilon")
    pq.write_table(with_values(cells, noise(cells["value"].to_pylist())), job.out)


if __name__ == "__main__":
    work(publish)
