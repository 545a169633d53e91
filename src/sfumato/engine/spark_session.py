"""The Spark session of a release: on this machine, or on the cluster that the release file or spark-submit names."""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OURS = {
    "spark.app.name": "sfumato",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    "spark.sql.session.timeZone": "UTC",
}
"""What we ask for unless the release file asks for something else."""


def spark_session(settings: Mapping[str, str]) -> "SparkSession":
    """Make the session, or take the one that this process has; a session with other settings than asked is refused."""
    from pyspark.sql import SparkSession

    asked = {"spark.master" if name == "master" else name: value for name, value in settings.items()}
    # Executors run the Python that PySpark finds in the environment, which without this is any python3.
    os.environ["PYSPARK_PYTHON"] = asked.get("spark.pyspark.python", os.environ.get("PYSPARK_PYTHON", sys.executable))
    builder = SparkSession.builder
    for name, value in {**_OURS, **asked}.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise EngineError(
            'engine = "spark"',
            expected=f"a Spark that can be reached{' at ' + asked['spark.master'] if 'spark.master' in asked else ''}",
            found=f"an error of type {type(error).__name__}: {str(error).strip().splitlines()[0]}",
            do="check `master` and the settings under [data.spark]; see docs/cluster.md",
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    # Settings of queries can be changed in a session; the others are those its context was made with.
    made = session.sparkContext.getConf()
    running = {n: session.conf.get(n, None) if n.startswith("spark.sql.") else made.get(n) for n in asked}
    other = next((name for name, value in asked.items() if running[name] != value), None)
    if other is not None:
        raise EngineError(
            f"[data.spark], {other}",
            expected=f"'{asked[other]}', as the release file says",
            found=f"a session of this process that was made with {running[other]!r}",
            do="run this release in a process of its own, or leave the setting to who makes the session",
        )
    return session
