"""What a user would write in Polars: group, count, add NumPy's Laplace noise. Floating-point noise is not safe."""

import numpy as np
import polars as pl
from job import Job, work


def publish(job: Job) -> None:
    jobs = pl.scan_parquet(job.file("jobs")).select("worker", "workplace")
    jobs = jobs.join(pl.scan_parquet(job.file("workplaces")).select("workplace", *job.of_workplaces), on="workplace")
    if job.of_workers:
        jobs = jobs.join(pl.scan_parquet(job.file("workers")).select("worker", *job.of_workers), on="worker")
    counted = jobs.group_by(job.by).agg(pl.len().alias("value")).with_columns(pl.col(job.by).cast(pl.String))
    keys = pl.scan_parquet(job.keys).with_columns(pl.col(job.by).cast(pl.String))
    cells = keys.join(counted, on=job.by, how="left").with_columns(pl.col("value").fill_null(0)).collect()
    noise = np.random.default_rng().laplace(scale=1 / job.epsilon, size=len(cells))
    cells.with_columns(value=pl.col("value") + pl.Series(noise)).write_parquet(job.out)


if __name__ == "__main__":
    work(publish)
