"""Open the engine a frame asks for and hand out its tables as Ibis expressions."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sfumato.errors import DataError, EngineError
from sfumato.frame import Data, Frame

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

    Reader = Callable[[str, list[str]], ir.Table]
    Lender = Callable[[pa.Table], ir.Table]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of a frame on an open engine."""

    backend: "BaseBackend"
    jobs: "ir.Table"
    workplaces: "ir.Table | None"
    workers: "ir.Table | None"
    lend: "Lender"
    """Make an Arrow table one of the engine's, in memory, for as long as the engine is open."""


def files(frame: Data, path: str) -> list[Path]:
    """The Parquet files behind a path of the release file, which may be one file, a folder or a pattern."""
    whole = (frame.folder / path).absolute()
    if whole.is_dir():
        found = sorted(whole.rglob("*.parquet"))
    elif whole.exists():
        found = [whole]
    else:
        found = sorted(Path(whole.anchor).glob(str(whole.relative_to(whole.anchor))))
    if not found or any(file.suffix != ".parquet" for file in found):
        wrong = next((file.name for file in found if file.suffix != ".parquet"), None)
        raise DataError(
            f"data file {path}",
            expected="a Parquet file, a folder of them, or a pattern such as jobs/*.parquet",
            found=wrong or f"nothing at {whole}",
            do="convert the file to Parquet" if wrong else "check the path; it is relative to the release file",
        )
    odd = next((file for file in found if set(str(file)) & set("*?[]{}")), None)
    if odd is not None:
        raise DataError(
            f"data file {path}",
            expected="a path without the characters * ? [ ] { }, which engines read as patterns",
            found=str(odd),
            do="rename the file or folder",
        )
    return found


def data_files(frame: Data) -> dict[str, list[Path]]:
    """The files of each table of a frame."""
    return {name: files(frame, path) for name, path in frame.sources().items()}


@contextmanager
def connect(frame: Frame) -> Iterator[Tables]:
    """Open the engine of a frame with its tables; everything temporary is dropped on leaving."""
    with open_tables(frame) as (backend, opened, lend):
        yield Tables(
            backend=backend,
            jobs=opened["jobs"],
            workplaces=opened.get("workplaces"),
            workers=opened.get("workers"),
            lend=lend,
        )


@contextmanager
def open_tables(data: Data) -> "Iterator[tuple[BaseBackend, dict[str, ir.Table], Lender]]":
    """Open the engine that data of any kind ask for: the engine, its tables by name, and what lends it more."""
    paths = data_files(data)
    with ExitStack() as stack:
        backend, read, lend = _duckdb(stack) if data.engine == "duckdb" else _spark(stack)
        yield backend, {name: _readable(name, listed, read) for name, listed in paths.items()}, lend


def _readable(name: str, paths: list[Path], read: "Reader") -> "ir.Table":
    try:
        return read(name, [str(path) for path in paths])
    except Exception as error:  # the engines raise their own kinds for a damaged file
        raise DataError(
            f"data file of {name}: {paths[0].name}",
            expected="a readable Parquet file",
            found=str(error).strip().splitlines()[0],
            do="write the file again",
        ) from error


def _duckdb(stack: ExitStack) -> "tuple[BaseBackend, Reader, Lender]":
    import duckdb
    import ibis

    settings: dict[str, str | bool | int | float | list[str]] = {
        # Extensions are never fetched at run time: confidential data belong on machines without a way out.
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        # What does not fit in memory goes to a folder that only its owner can read, removed at the end.
        "temp_directory": stack.enter_context(TemporaryDirectory(prefix="sfumato-")),
    }
    backend = ibis.duckdb.from_connection(duckdb.connect(config=settings))
    stack.callback(backend.disconnect)
    lent = count()

    def lend(table: "pa.Table") -> "ir.Table":
        name = f"sfumato_lent_{next(lent)}"
        backend.con.register(name, table)
        return backend.table(name)

    return backend, lambda _, paths: backend.read_parquet(paths, hive_partitioning=False), lend


def _spark(stack: ExitStack) -> "tuple[BaseBackend, Reader, Lender]":
    try:
        import ibis
        from pyspark.sql import SparkSession
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
    session = (
        SparkSession.builder.appName("sfumato")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.optimizer.canChangeCachedPlanOutputPartitioning", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    backend = ibis.pyspark.connect(session)

    def read(name: str, paths: list[str]) -> "ir.Table":
        view = f"sfumato_{name}"
        # Ibis itself takes one path only. Columns come from the files, never from the names of their folders.
        session.read.option("recursiveFileLookup", "true").parquet(*paths).createOrReplaceTempView(view)
        return backend.table(view)

    lent = count()

    def lend(table: "pa.Table") -> "ir.Table":
        view = f"sfumato_lent_{next(lent)}"
        session.createDataFrame(table).createOrReplaceTempView(view)
        stack.callback(session.catalog.dropTempView, view)
        return backend.table(view)

    return backend, read, lend
