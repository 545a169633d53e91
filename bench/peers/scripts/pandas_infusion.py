"""What a user would write in pandas: a factor for every establishment, multiplied and summed, rounded."""

import pandas as pd
from infusion_factors import drawn
from job import Job, work


def publish(job: Job) -> None:
    sizes = pd.read_parquet(job.file("jobs"), columns=["workplace"]).groupby("workplace").size().rename("n")
    places = pd.read_parquet(job.file("workplaces"), columns=["workplace", *job.by])
    places = places.merge(sizes, left_on="workplace", right_index=True, how="left")
    factors = drawn(len(places), least=job.asked["least"], most=job.asked["most"])
    places["value"] = places["n"].fillna(0) * factors
    places.groupby(job.by, observed=True)["value"].sum().round().reset_index().to_parquet(job.out)


if __name__ == "__main__":
    work(publish)
