"""Open the engine a frame asks for and hand out its tables, within limits of time and memory."""

import atexit
import fcntl
import os
import re
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING

from sfumato.engine.data_files import DataFile, arrow_dataset, data_files
from sfumato.engine.query import DuckDB, Engine, Rows, Spark
from sfumato.errors import DataError, EngineError
from sfumato.frame import Data, Frame

if TYPE_CHECKING:  # only names for types
    from pyspark.sql import SparkSession

Reader = Callable[[str, list[DataFile]], Rows]

# The folder for what does not fit into memory: only its owner can read it, and it does not outlive a killed run.

_NAME = re.compile(r"sfumato-(\d+)-\w+")
_LOCK = "in-use"
"""A file in the folder that its process holds locked: the number of a process says nothing to other machines."""


@contextmanager
def spill_folder() -> Iterator[str]:
    """A folder of this process in the system's temporary folder; those that killed runs left there are removed."""
    _remove_left_over()
    # What another program still writes there while it is removed is left to the next run.
    with TemporaryDirectory(prefix=f"sfumato-{os.getpid()}-", ignore_cleanup_errors=True) as folder:
        early = Path(folder) / f".{_LOCK}"
        descriptor = os.open(early, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            early.rename(early.with_name(_LOCK))  # under this name nobody ever finds it without its lock
            yield folder
        finally:
            os.close(descriptor)


@cache
def spill_folder_of_process() -> str:
    """The folder of an engine that cannot change it once it has started: one for the process, removed at its end."""
    held = ExitStack()
    folder = held.enter_context(spill_folder())
    atexit.register(held.close)
    return folder


def _remove_left_over() -> None:
    """Remove the folders of this user that no process holds."""
    for folder in Path(gettempdir()).glob("sfumato-*"):
        named = _NAME.fullmatch(folder.name)
        if named and _is_own(folder) and not _is_in_use(folder, int(named[1])):
            shutil.rmtree(folder, ignore_errors=True)  # another run may be removing it too


def _is_in_use(folder: Path, process: int) -> bool:
    """Whether the lock is held, or a process of this number runs where there is no lock yet.

    Numbers of processes come again, in containers at every start: where there is a lock, it alone decides.
    """
    held = _is_held(folder / _LOCK)
    return _runs(process) if held is None else held


def _is_own(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks, and sends nothing
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it runs, for someone else
    return True


def _is_held(lock: Path) -> bool | None:
    """Whether a process, of this machine or of another that shares the folder, holds the lock; None without a lock."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


# The Spark session of a release: on this machine, or on the cluster that the release file or spark-submit names.

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
    "spark.sql.variable.substitute": "false",  # a code may look like ${…}
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


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of a frame on an open engine."""

    engine: Engine
    jobs: Rows
    workplaces: Rows | None
    workers: Rows | None


@contextmanager
def connect(frame: Frame) -> Iterator[Tables]:
    """Open the engine of a frame with its tables; everything temporary is dropped on leaving."""
    with open_tables(frame) as (engine, opened):
        yield Tables(
            engine=engine, jobs=opened["jobs"], workplaces=opened.get("workplaces"), workers=opened.get("workers")
        )


@contextmanager
def open_tables(data: Data) -> Iterator[tuple[Engine, dict[str, Rows]]]:
    """Open the engine that data of any kind ask for, with its tables by name."""
    paths = data_files(data)
    with ExitStack() as stack:
        engine, read = _duckdb(stack) if data.engine == "duckdb" else _spark(stack, data.spark)
        engine.limit_memory(data.memory)
        yield engine, {name: _readable(name, listed, read) for name, listed in paths.items()}


def _readable(name: str, listed: list[DataFile], read: Reader) -> Rows:
    try:
        return read(name, listed)
    except Exception as error:  # the engines raise their own kinds for a damaged file
        raise DataError(
            f"data file of {name}: {listed[0].name}",
            expected="a readable Parquet file",
            found=str(error).strip().splitlines()[0],
            do="write the file again",
        ) from error


def _duckdb(stack: ExitStack) -> tuple[Engine, Reader]:
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        # Extensions are never fetched at run time: confidential data belong on machines without a way out.
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        # What does not fit in memory goes to a folder that only its owner can read, removed at the end.
        "temp_directory": stack.enter_context(spill_folder()),
    }
    engine = DuckDB(stack.enter_context(duckdb.connect(config=settings)))
    # Where there is no script, as in `python -c` and notebooks, DuckDB draws bars among what commands print.
    engine.con.execute("SET enable_progress_bar = false")

    def read(name: str, listed: list[DataFile]) -> Rows:
        view = f"sfumato_{name}"
        if all(file.storage is None for file in listed):
            files = ", ".join(engine.literal(str(file.path)) for file in listed)
            engine.con.execute(f"CREATE VIEW {view} AS FROM read_parquet([{files}], hive_partitioning = false)")
        else:
            # DuckDB would need an extension for object storage; Arrow reads it, and hands over what a query asks for.
            engine.con.register(view, arrow_dataset(listed))
        return engine.table(view)

    return engine, read


def _spark(stack: ExitStack, settings: Mapping[str, str]) -> tuple[Engine, Reader]:
    try:
        import pyspark.sql  # noqa: F401 (to say at once that it is not installed)
    except ImportError as error:
        raise EngineError(
            'engine = "spark"',
            expected="PySpark",
            found=str(error),
            do="pip install 'sfumato[spark]', or use engine = \"duckdb\"",
        ) from error
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise EngineError(
            'engine = "spark"',
            expected="Java 17 or 21 on the PATH or in JAVA_HOME",
            found="none",
            do='install a Java runtime, or use engine = "duckdb"',
        )
    session = spark_session(settings)
    engine = Spark(session)
    stack.callback(engine.close)

    def read(name: str, listed: list[DataFile]) -> Rows:
        # Columns come from the files, never from the names of their folders.
        reader = session.read.option("recursiveFileLookup", "true")
        return engine.view(reader.parquet(*(file.address for file in listed)), name)

    return engine, read
