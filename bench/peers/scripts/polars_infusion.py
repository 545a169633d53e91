"""What a user would write in Polars: a factor for every establishment, multiplied and summed, rounded."""

import polars as pl
from infusion_factors import drawn
from job import Job, work


def publish(job: Job) -> None:
    sizes = pl.scan_parquet(job.file("jobs")).group_by("workplace").agg(pl.len().alias("n"))
    places = pl.scan_parquet(job.file("workplaces")).select("workplace", *job.by)
    places = places.join(sizes, on="workplace", how="left").collect()
    factors = pl.Series(drawn(len(places), least=job.asked["least"], most=job.asked["most"]))
    distorted = places.with_columns(value=pl.col("n").fill_null(0) * factors)
    distorted.group_by(job.by).agg(pl.col("value").sum().round()).write_parquet(job.out)


if __name__ == "__main__":
    work(publish)
