"""What a user would write in pandas: totals, withheld where the second largest could estimate the largest too well."""

import pandas as pd
from job import Job, work


def publish(job: Job) -> None:
    records = pd.read_parquet(job.file("records"), columns=[*job.by, "earnings"])
    groups = records.groupby(job.by, observed=True)["earnings"]
    cells = groups.sum().rename("value").reset_index()
    two = records.sort_values("earnings", ascending=False).groupby(job.by, observed=True)["earnings"].head(2)
    largest = records.loc[two.index].groupby(job.by, observed=True)["earnings"].agg(first="max", both="sum")
    cells = cells.merge(largest.reset_index(), on=job.by)
    safe = cells["value"] - cells["both"] >= job.asked["share"] * cells["first"]
    cells["value"] = cells["value"].where(safe)
    cells[[*job.by, "value"]].to_parquet(job.out)


if __name__ == "__main__":
    work(publish)
