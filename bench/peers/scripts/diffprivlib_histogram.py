"""diffprivlib's histogramdd: every job is a point, every combination of codes a bin; counts are cut at zero."""

from functools import reduce

import numpy as np
import pandas as pd
from diffprivlib.tools import histogramdd
from job import Job, work


def publish(job: Job) -> None:
    jobs = pd.read_parquet(job.file("jobs"), columns=["worker", "workplace"])
    jobs = jobs.merge(
        pd.read_parquet(job.file("workplaces"), columns=["workplace", *job.of_workplaces]), on="workplace"
    )
    if job.of_workers:
        jobs = jobs.merge(pd.read_parquet(job.file("workers"), columns=["worker", *job.of_workers]), on="worker")
    codes = {name: pd.read_csv(job.data / "codelists" / f"{name}.csv", dtype=str)["code"] for name in job.by}
    numbers = [pd.Categorical(jobs[name], categories=codes[name]).codes for name in job.by]
    bins = [np.arange(len(codes[name]) + 1) for name in job.by]
    noisy, _ = histogramdd(np.column_stack(numbers), epsilon=job.epsilon, bins=bins)
    cells = pd.read_parquet(job.keys)
    places = [pd.Categorical(cells[name], categories=codes[name]).codes.astype(np.int64) for name in job.by]
    flat = reduce(lambda left, right: left * len(codes[right[0]]) + right[1], zip(job.by, places, strict=True), 0)
    cells["value"] = noisy.reshape(-1)[flat]
    cells.to_parquet(job.out)


if __name__ == "__main__":
    work(publish)
