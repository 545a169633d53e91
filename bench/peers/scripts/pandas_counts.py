"""What a user would write in pandas: group, count, add NumPy's Laplace noise. Floating-point noise is not safe."""

import numpy as np
import pandas as pd
from job import Job, work


def publish(job: Job) -> None:
    jobs = pd.read_parquet(job.file("jobs"), columns=["worker", "workplace"])
    jobs = jobs.merge(
        pd.read_parquet(job.file("workplaces"), columns=["workplace", *job.of_workplaces]), on="workplace"
    )
    if job.of_workers:
        jobs = jobs.merge(pd.read_parquet(job.file("workers"), columns=["worker", *job.of_workers]), on="worker")
    counted = jobs.groupby(job.by, observed=True).size().rename("value").reset_index()
    cells = pd.read_parquet(job.keys).astype(str).merge(counted.astype(dict.fromkeys(job.by, str)), how="left")
    noise = np.random.default_rng().laplace(scale=1 / job.epsilon, size=len(cells))
    cells["value"] = cells["value"].fillna(0) + noise
    cells.to_parquet(job.out)


if __name__ == "__main__":
    work(publish)
