"""Tumult Analytics on Spark, all cores of this machine; with `limit`, whole establishments are hidden.

The clock of the work begins when Spark's session is open. Its shuffles get a few parts for each core; the 200 that are
Spark's default are meant for clusters.
"""

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers of Spark need this environment too

from job import Job, work
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session


def publish(job: Job) -> None:
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "8g")
        .config("spark.sql.shuffle.partitions", 4 * (os.cpu_count() or 1))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(job.out.parent))
        .getOrCreate()
    )
    job.begin()
    limit = job.asked["limit"]
    unit = ["workplace"] if limit else []
    workplaces = spark.read.parquet(job.file("workplaces")).select("workplace", *job.of_workplaces)
    data = spark.read.parquet(job.file("jobs")).select("worker", "workplace").join(workplaces, "workplace")
    if job.of_workers:
        data = data.join(spark.read.parquet(job.file("workers")).select("worker", *job.of_workers), "worker")
    budget = PureDPBudget(job.epsilon)
    session = Session.from_dataframe(
        privacy_budget=budget,
        source_id="jobs",
        dataframe=data.select(*job.by, *unit),
        protected_change=AddRowsWithID(id_column="workplace") if limit else AddOneRow(),
    )
    query = QueryBuilder("jobs").enforce(MaxRowsPerID(limit)) if limit else QueryBuilder("jobs")
    counted = query.groupby(KeySet.from_dataframe(spark.read.parquet(job.keys))).count(name="value")
    session.evaluate(counted, budget).write.parquet(str(job.out))
    job.end()
    spark.stop()


if __name__ == "__main__":
    work(publish)
