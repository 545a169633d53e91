"""The Spark session of a release: on this machine, or on the cluster that the release file or spark-submit names."""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING

from sfumato.engine.spill_folder import spill_folder_of_process
from sfumato.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENCRYPTED = {"spark.io.encryption.enabled": "true"}
"""What Spark puts on disks holds true cells and records, and outlives a killed run: a session without this is refused.

Only the release file can ask for another. It covers what is sorted, joined and cached, and the work that is sent.
"""

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
    asked = {"spark.master" if name == "master" else name: value for name, value in settings.items()}
    # Executors run the Python that PySpark finds in the environment, which without this is any python3.
    os.environ["PYSPARK_PYTHON"] = asked.get("spark.pyspark.python", os.environ.get("PYSPARK_PYTHON", sys.executable))
    try:
        with _own_interruption():
            session = _made({**_OURS, **_ENCRYPTED, **asked})
    except Exception as error:
        raise EngineError(
            'engine = "spark"',
            expected=f"a Spark that can be reached{' at ' + asked['spark.master'] if 'spark.master' in asked else ''}",
            found=f"an error of type {type(error).__name__}: {str(error).strip().splitlines()[0]}",
            do="check `master` and the settings under [data.spark]; see docs/cluster.md",
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    _refuse_other(session, asked)
    return session


def _made(settings: Mapping[str, str]) -> "SparkSession":
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    # Started with the settings, Java tells them together with those of spark-submit and spark-defaults.conf.
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(settings.items())))
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    placed = "SPARK_LOCAL_DIRS" in os.environ or SparkConf().contains("spark.local.dir")
    if not placed and SparkContext._active_spark_context is None:
        # Where Spark sorts and keeps what it sends; executors on other machines have their own places.
        builder = builder.config("spark.local.dir", spill_folder_of_process())
        _stop_before_folder_is_removed()
    return builder.getOrCreate()


@cache
def _stop_before_folder_is_removed() -> None:
    """Let Spark end with this process, before the folder goes: what is registered last comes first."""

    def stop() -> None:
        from pyspark import SparkContext

        with suppress(Exception):  # Java may have ended before
            if SparkContext._active_spark_context is not None:
                SparkContext._active_spark_context.stop()

    atexit.register(stop)


@contextmanager
def _own_interruption() -> Iterator[None]:
    """Keep what a program does when it is interrupted: PySpark would put its own in the place of it."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread() and handler is not signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)


def _refuse_other(session: "SparkSession", asked: Mapping[str, str]) -> None:
    needed = {**_ENCRYPTED, **asked}
    # Settings of queries can be changed in a session; the others are those its context was made with.
    made = session.sparkContext.getConf()
    running = {n: session.conf.get(n, None) if n.startswith("spark.sql.") else made.get(n) for n in needed}
    other = next((name for name, value in needed.items() if running[name] != value), None)
    if other is not None:
        raise EngineError(
            f"[data.spark], {other}",
            expected=f"'{needed[other]}', {'as' if other in asked else 'unless'} the release file says"
            + ("" if other in asked else " otherwise"),
            found=f"a session of this process that was made with {running[other]!r}",
            do="run this release in a process of its own, or let the setting be what the session was made with",
        )
