"""Open the engine a frame asks for and hand out its tables as Ibis expressions."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol

from sfumato.engine.data_files import DataFile, arrow_dataset, data_files
from sfumato.engine.limits import limit_memory
from sfumato.engine.spark_session import spark_session
from sfumato.engine.spill_folder import spill_folder
from sfumato.errors import DataError, EngineError
from sfumato.frame import Data, Frame

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

    Reader = Callable[[str, list[DataFile]], ir.Table]
    Lender = Callable[[pa.Table], ir.Table]


class Lends(Protocol):
    """An open engine that takes tables of ours; `Tables` and `RecordTables` satisfy it."""

    @property
    def lend(self) -> "Lender":
        """Make an Arrow table one of the engine's, in memory, for as long as the engine is open."""
        ...


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of a frame on an open engine."""

    backend: "BaseBackend"
    jobs: "ir.Table"
    workplaces: "ir.Table | None"
    workers: "ir.Table | None"
    lend: "Lender"
    """Make an Arrow table one of the engine's, in memory, for as long as the engine is open."""


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
        backend, read, lend = _duckdb(stack) if data.engine == "duckdb" else _spark(stack, data.spark)
        limit_memory(backend, data.memory)
        yield backend, {name: _readable(name, listed, read) for name, listed in paths.items()}, lend


def _readable(name: str, listed: list[DataFile], read: "Reader") -> "ir.Table":
    try:
        return read(name, listed)
    except Exception as error:  # the engines raise their own kinds for a damaged file
        raise DataError(
            f"data file of {name}: {listed[0].name}",
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
        "temp_directory": stack.enter_context(spill_folder()),
    }
    backend = ibis.duckdb.from_connection(duckdb.connect(config=settings))
    stack.callback(backend.disconnect)
    lent = count()

    def lend(table: "pa.Table") -> "ir.Table":
        name = f"sfumato_lent_{next(lent)}"
        backend.con.register(name, table)
        return backend.table(name)

    def read(name: str, listed: list[DataFile]) -> "ir.Table":
        if all(file.storage is None for file in listed):
            return backend.read_parquet([file.path for file in listed], hive_partitioning=False)
        # DuckDB would need an extension for object storage; Arrow reads it, and hands over what a query asks for.
        view = f"sfumato_{name}"
        backend.con.register(view, arrow_dataset(listed))
        return backend.table(view)

    return backend, read, lend


def _spark(stack: ExitStack, settings: Mapping[str, str]) -> "tuple[BaseBackend, Reader, Lender]":
    try:
        import ibis
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
    backend = ibis.pyspark.connect(session)

    def read(name: str, listed: list[DataFile]) -> "ir.Table":
        view = f"sfumato_{name}"
        # Ibis itself takes one path only. Columns come from the files, never from the names of their folders.
        reader = session.read.option("recursiveFileLookup", "true")
        reader.parquet(*(file.address for file in listed)).createOrReplaceTempView(view)
        return backend.table(view)

    lent = count()

    def lend(table: "pa.Table") -> "ir.Table":
        view = f"sfumato_lent_{next(lent)}"
        session.createDataFrame(table).createOrReplaceTempView(view)
        stack.callback(session.catalog.dropTempView, view)
        return backend.table(view)

    return backend, read, lend
