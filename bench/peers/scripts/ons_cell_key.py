"""The ONS package for cell-key perturbation: counts from pandas, moved as a table of perturbations says."""

import pandas as pd
from cell_key_perturbation.create_perturbed_table import create_perturbed_table
from job import Job, work


def publish(job: Job) -> None:
    table = create_perturbed_table(
        data=pd.read_parquet(job.file("records"), columns=[*job.by, "record_key"]),
        ptable=pd.read_parquet(job.asked["perturbations"]),
        geog=job.by[:1],
        tab_vars=job.by[1:],
        record_key="record_key",
        threshold=0,
    )
    table[table["pre_sdc_count"] > 0][[*job.by, "count"]].rename(columns={"count": "value"}).to_parquet(job.out)


if __name__ == "__main__":
    work(publish)
