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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial, reduce
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.engine.columns import FileRows
from sfumato.engine.data_files import DataFile, data_files
from sfumato.engine.formats import read_into_parquet
from sfumato.engine.guesses import Guess, Wanted
from sfumato.engine.headcounts import jobs_of_register
from sfumato.engine.lacking import no_heading
from sfumato.engine.one_period import rows_of_period
from sfumato.engine.one_table import OneTable, Part, one_table
from sfumato.engine.query import DuckDB, Engine, Rows, Spark, is_text, text
from sfumato.errors import DataError, EngineError
from sfumato.frame.data import Data, Frame
from sfumato.frame.sources import Role, Source, format_of

if TYPE_CHECKING:  # only names for types
    import duckdb
    from pyspark.sql import DataFrame, SparkSession

Reader = Callable[[str, OneTable], FileRows]
_SEALED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
"""Extensions are never fetched at run time: confidential data belong on machines without a way out."""

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
    "spark.sql.caseSensitive": "true",  # a file may have columns that differ in case only
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
    register: Rows | None
    """Where there are headcounts: one row for each establishment, of which the jobs are made."""
    sources: "Sources"


@contextmanager
def connect(frame: Frame) -> Iterator[Tables]:
    """Open the engine of a frame with its tables; everything temporary is dropped on leaving."""
    with open_tables(frame) as (engine, opened, sources):
        linked = _linked(frame, opened)
        yield Tables(
            engine=engine,
            jobs=linked["jobs"] if frame.jobs.employees is None else jobs_of_register(frame, linked["jobs"]),
            workplaces=linked.get("workplaces"),
            workers=linked.get("workers"),
            register=None if frame.jobs.employees is None else linked["jobs"],
            sources=sources,
        )


def _linked(frame: Frame, opened: Mapping[str, Rows]) -> dict[str, Rows]:
    """The tables with keys that can be compared: where one side has whole numbers and the other texts, their texts."""
    linked = dict(opened)
    for name, column, unit in (
        ("workplaces", frame.jobs.workplace, frame.workplaces),
        ("workers", frame.jobs.worker, frame.workers),
    ):
        ends = [("jobs", column), (name, unit.key)] if column and unit is not None else []
        if not ends or any(key not in linked[table].columns for table, key in ends):
            continue
        whole = [(table, key) for table, key in ends if pa.types.is_integer(linked[table].types[key])]
        if len(whole) == 1 and all(end in whole or is_text(linked[end[0]].types[end[1]]) for end in ends):
            ((table, key),) = whole
            rows = linked[table]
            linked[table] = replace(rows.with_columns(**{key: text(rows, key)}), in_files=rows.in_files)
    return linked


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The files of every table as they are read: Parquet, which what is none was read into for this once."""

    files: Mapping[str, list[DataFile]]
    guesses: Mapping[str, Guess]
    """How the tables were read that are no Parquet."""

    def columns(self, table: str) -> tuple[str, ...]:
        """All columns that the files of a table have, where these are no Parquet."""
        return self.guesses[table].columns if table in self.guesses else ()


@contextmanager
def open_tables(data: Data, names: Collection[str] | None = None) -> Iterator[tuple[Engine, dict[str, Rows], Sources]]:
    """Open the engine that data of any kind ask for, with its tables by name, their columns as the data name them.

    Where `names` are given, the files of other tables are not opened, and need not be there.
    """
    with ExitStack() as stack:
        sources = _as_parquet(data, stack, names)
        tables = _as_tables(data, sources.files)
        if data.only is not None:
            chosen = rows_of_period(data, tables, Path(stack.enter_context(spill_folder())))
            sources, tables = replace(sources, files=chosen), _as_tables(data, chosen)
        engine, read = _duckdb(stack) if data.engine == "duckdb" else _spark(stack, data.spark)
        engine.limit_memory(data.memory)
        opened = {name: _readable(name, table, read) for name, table in tables.items()}
        if roles := data.roles():  # a Parquet file, too, may have been made of a text without a heading
            for name, table in opened.items():
                _refuse_no_heading(name, sources.files[name][0].origin[0], table.written, roles, "")
        dated = {name: rows.with_periods(data, name, tables[name].schema) for name, rows in opened.items()}
        marked = {name: replace(rows, marks=_marks(data, name, sources)) for name, rows in dated.items()}
        named = {name: rows.named(data, name) for name, rows in marked.items()}
        read_from = {name: sources.columns(name) or tuple(rows.written) for name, rows in opened.items()}
        yield engine, {name: replace(rows, in_files=read_from[name]) for name, rows in named.items()}, sources


def _marks(data: Data, table: str, sources: "Sources") -> tuple[str, str]:
    """What groups the digits of numbers in texts, and what stands before their decimals."""
    source, guess = data.sources()[table], sources.guesses.get(table)
    if guess is not None and guess.format == "csv":
        return guess.thousands, guess.decimal
    # A workbook has numbers among its texts, which are written with a point: only whole ones are sure.
    return ("", "") if source.thousands or source.decimal == "," else ("", ".")


def _as_parquet(data: Data, stack: ExitStack, names: Collection[str] | None) -> Sources:
    """The files of every table; what is no Parquet is read into a folder of this process."""
    given = data_files(data, names)
    others = {
        name: source
        for name, source in data.sources().items()
        if name in given and (source.format or format_of(given[name][0].path)) != "parquet"
    }
    if not others:
        return Sources(files=given, guesses={})
    if data.engine == "spark" and not data.spark.get("master", "local").startswith("local"):
        raise _only_parquet(next(iter(others)), data.spark["master"])
    folder, files = Path(stack.enter_context(spill_folder())), dict(given)
    guesses: dict[str, Guess] = {}
    read: dict[tuple[object, ...], str] = {}
    with _reading_connection(data, folder) as con:
        for name, source in others.items():
            options = tuple(getattr(source, option) for option in Source.model_fields)
            if (same := read.setdefault(options, name)) != name:  # a register is jobs and workplaces
                files[name], guesses[name] = files[same], guesses[same]
                continue
            target = folder / f"{name}.parquet"
            wanted = Wanted(
                named=name,
                roles=data.roles(),
                patterns=data.patterns(),
                dated=data.dated(),
                classed=data.classed(),
                heads=frozenset(data.headcounts().values()),
            )
            local = [_on_this_machine(file, folder / f"{name}-{place}") for place, file in enumerate(given[name])]
            guesses[name] = read_into_parquet(con, wanted, source, local, target)
            _refuse_no_heading(name, local[0], guesses[name].columns, wanted.roles, guesses[name].sheet)
            address = " ".join(file.address for file in given[name])
            reading = repr((guesses[name], options, wanted.dated))
            files[name] = [DataFile(address=address, path=str(target), read_from=tuple(given[name]), reading=reading)]
    return Sources(files=files, guesses=guesses)


def _refuse_no_heading(
    name: str, file: DataFile, columns: Sequence[str], roles: Mapping[str, Role], sheet: str
) -> None:
    """Refuse a table with no column that is known by its name: its names may be a record, and are not quoted."""
    if not any(map(roles.get, columns)):
        raise no_heading(f"data file of {name}: {file.name}", list(roles), sheet, Path(file.path))


def _only_parquet(name: str, master: str) -> EngineError:
    return EngineError(
        f"data file of {name}",
        expected="Parquet, which all machines of a cluster can read where it is",
        found=f"another format, and Spark at {master}",
        do="write it as Parquet, or leave `engine` out: DuckDB reads any format, and works on disk beyond its memory",
    )


def _on_this_machine(file: DataFile, folder: Path) -> DataFile:
    """A file on a disk; one of object storage is copied into a folder."""
    if file.storage is None:
        return file
    folder.mkdir()
    copy = folder / file.name
    with file.seekable() as content, copy.open("wb") as out:  # as it is: still compressed
        shutil.copyfileobj(content, out, 1 << 22)
    return DataFile(address=file.address, path=str(copy))


@contextmanager
def _reading_connection(data: Data, folder: Path) -> Iterator["duckdb.DuckDBPyConnection"]:
    import duckdb

    # The order of rows says nothing, and keeping it takes memory.
    settings = {**_SEALED, "temp_directory": str(folder), "preserve_insertion_order": False}
    with duckdb.connect(config=settings) as con:
        con.execute("SET enable_progress_bar = false")
        DuckDB(con).limit_memory(data.memory)
        yield con


def _as_tables(data: Data, files: Mapping[str, Sequence[DataFile]]) -> dict[str, OneTable]:
    """The Parquet files of every table as one; a register, which is jobs and workplaces, has the same twice."""
    return {name: one_table(data, name, listed) for name, listed in files.items()}


def _readable(name: str, table: OneTable, read: Reader) -> FileRows:
    try:
        return read(name, table)
    except (DataError, EngineError):
        raise
    except Exception as error:  # the engines raise their own kinds for a damaged file
        raise DataError(
            f"data file of {name}: {table.files[0].name}",
            expected="a readable Parquet file",
            found=str(error).strip().splitlines()[0],
            do="have its owner give you the permission to read it"
            if "Permission denied" in str(error)
            else "write the file again",
        ) from error


def _duckdb(stack: ExitStack) -> tuple[Engine, Reader]:
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        **_SEALED,
        # What does not fit in memory goes to a folder that only its owner can read, removed at the end.
        "temp_directory": stack.enter_context(spill_folder()),
    }
    engine = DuckDB(stack.enter_context(duckdb.connect(config=settings)))
    # Where there is no script, as in `python -c` and notebooks, DuckDB draws bars among what commands print.
    engine.con.execute("SET enable_progress_bar = false")
    engine.con.execute("SET TimeZone = 'UTC'")  # never that of the machine; Spark has the same

    def rows(part: Part, columns: Sequence[str] | None) -> str:
        chosen = "*" if columns is None else ", ".join(map(partial(_chosen, engine, part), columns))
        files = ", ".join(engine.literal(str(file.path)) for file in part.files)
        return f"FROM read_parquet([{files}], hive_partitioning = false) SELECT {chosen}"

    def read(name: str, table: OneTable) -> FileRows:
        view, columns = f"sfumato_{name}", table.schema.names
        if all(file.storage is None for file in table.files):
            parts = (rows(part, None if table.is_whole else columns) for part in table.parts)
            engine.con.execute(f"CREATE VIEW {view} AS {' UNION ALL '.join(parts)}")
        else:
            # DuckDB would need an extension for object storage; Arrow reads it, and hands over what a query asks for.
            engine.con.register(view, table.dataset())
        return FileRows(engine.table(view), columns)

    return engine, read


def _chosen(engine: Engine, part: Part, column: str) -> str:
    """A column of some files, which takes its type from others where these have none."""
    return f"NULL AS {engine.q(column)}" if column in part.empty else engine.q(column)


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

    def read(name: str, table: OneTable) -> FileRows:
        # Columns come from the files, never from the names of their folders.
        reader = session.read.option("recursiveFileLookup", "true")
        master = str(session.sparkContext.master)
        if any(file.read_from for file in table.files) and not master.startswith("local"):
            raise _only_parquet(name, master)

        def rows(part: Part) -> "DataFrame":
            found = reader.parquet(*(file.path if file.read_from else file.address for file in part.files))
            chosen = [_chosen(engine, part, column) for column in table.schema.names]
            return found if table.is_whole else found.selectExpr(*chosen)

        view = engine.view(reduce(lambda above, below: above.union(below), map(rows, table.parts)), name)
        return FileRows(view, view.columns)

    return engine, read
