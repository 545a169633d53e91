"""OpenDP's Context API over Polars, the cells given by a file of keys; with `limit`, whole establishments are hidden.

Codes are read as text: OpenDP refuses to group by Polars' categories, and asks for that.
"""

import opendp.prelude as dp
import polars as pl
from job import Job, work

dp.enable_features("contrib")


def publish(job: Job) -> None:
    limit = job.asked["limit"]
    unit = ["workplace"] if limit else []
    data = pl.scan_parquet(job.file("jobs")).select("worker", "workplace").join(
        pl.scan_parquet(job.file("workplaces")).select("workplace", pl.col(job.of_workplaces).cast(pl.String)),
        on="workplace",
    )  # fmt: skip
    if job.of_workers:
        workers = pl.scan_parquet(job.file("workers")).select("worker", pl.col(job.of_workers).cast(pl.String))
        data = data.join(workers, on="worker")
    context = dp.Context.compositor(
        data=data.select(*job.by, *unit),
        privacy_unit=dp.unit_of(contributions=1, identifier="workplace" if limit else None),
        privacy_loss=dp.loss_of(epsilon=job.epsilon),
        split_evenly_over=1,
    )
    query = context.query().truncate_per_group(limit) if limit else context.query()
    keys = pl.scan_parquet(job.keys).cast(pl.String)
    answer = query.group_by(job.by).agg(dp.len(signed=True)).with_keys(keys).release().collect()
    answer.rename({"len": "value"}).write_parquet(job.out)


if __name__ == "__main__":
    work(publish)
