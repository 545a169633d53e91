"""Queries in plain SQL, the same for DuckDB and Spark: rows are described step by step, and worked out when fetched."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pyarrow as pa

if TYPE_CHECKING:  # only names for types
    import duckdb
    from pyspark.sql import DataFrame, SparkSession

Join = Literal["inner", "left", "semi", "anti", "cross"]
Made = Mapping[str, str]
"""SQL expressions by the names of the columns that they make."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that an engine can work out: a table of its own, or a query.

    Expressions are SQL of what both engines understand. Columns of our own begin with an underscore and stand in them
    as they are; any other name is quoted by `Engine.q`, or by `text` where its code is meant.
    """

    engine: "Engine"
    source: str
    """What stands behind FROM: the name of a table, or a query in brackets."""
    columns: tuple[str, ...]
    in_files: tuple[str, ...] = ()
    """Of a table of files, all its columns as they are called there, those that were not read too."""

    def select(self, /, *names: str, **made: str) -> "Rows":
        """Some columns as they are, and others made by expressions."""
        return self._from(self._listed(names, made), "", (*names, *made))

    def with_columns(self, /, **made: str) -> "Rows":
        """All columns, and others made by expressions."""
        return self.select(*(name for name in self.columns if name not in made), **made)

    def without(self, *names: str) -> "Rows":
        """All columns but some."""
        return self.select(*(name for name in self.columns if name not in names))

    def where(self, *conditions: str) -> "Rows":
        """The rows that meet all conditions."""
        if not conditions:
            return self
        met = " AND ".join(f"({condition})" for condition in conditions)
        # Rows without a name would be called WHERE by Spark if a condition is a column.
        return self._from("*", f" AS _rows WHERE {met}", self.columns)

    def distinct(self) -> "Rows":
        """Every row once."""
        return self._from("DISTINCT *", "", self.columns)

    def limit(self, rows: int) -> "Rows":
        """No more rows than so many."""
        return self._from("*", f" LIMIT {rows}", self.columns)

    def in_order_of(self, *names: str) -> "Rows":
        """The rows sorted; what is made from them may come in another order."""
        return self._from("*", f" ORDER BY {self._listed(names, {})}", self.columns)

    def group(self, by: Sequence[str], /, **made: str) -> "Rows":
        """One row for every combination of some columns, with aggregates; without any column a single row."""
        ending = f" GROUP BY {self._listed(by, {})}" if by else ""
        return self._from(self._listed(by, made), ending, (*by, *made))

    def join(self, other: "Rows", on: Sequence[str], how: Join = "inner") -> "Rows":
        """Rows beside those of another table with equal values in some columns; a semi or anti join only chooses.

        A cross join has each row beside every row of the other table, on no columns.
        """
        added = () if how in ("semi", "anti") else tuple(name for name in other.columns if name not in on)
        if both := set(added) & set(self.columns):
            raise ValueError(f"columns of both tables: {sorted(both)}")
        columns = (*self.columns, *added)
        beside = f"{self.source} AS _l {self.engine.joins[how]} JOIN {other.source} AS _r"
        using = f" USING ({self._listed(on, {})})" if how != "cross" else ""
        query = f"(SELECT {self._listed(columns, {})} FROM {beside}{using})"
        return Rows(self.engine, query, columns)

    def union(self, other: "Rows") -> "Rows":
        """The rows of both tables, which have the same columns."""
        chosen = self._listed(self.columns, {})
        query = f"(SELECT {chosen} FROM {self.source} UNION ALL SELECT {chosen} FROM {other.source})"
        return Rows(self.engine, query, self.columns)

    def fetch(self) -> pa.Table:
        """Work the rows out."""
        return self.engine.fetch(self)

    def row(self, /, **made: str) -> dict[str, Any]:
        """Some aggregates of all rows."""
        row: dict[str, Any] = self.group((), **made).fetch().to_pylist()[0]
        return row

    def number(self, aggregate: str = "count(*)") -> int:
        """One aggregate of all rows, a whole number; 0 where it has no value."""
        return int(self.row(_number=aggregate)["_number"] or 0)

    def kept(self) -> AbstractContextManager["Rows"]:
        """The same rows worked out once, and held by the engine for a while."""
        return self.engine.kept(self)

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types of the columns."""
        return self.engine.types(self)

    def _listed(self, names: Iterable[str], made: Made) -> str:
        q = self.engine.q
        return ", ".join([*map(q, names), *(f"{expression} AS {q(name)}" for name, expression in made.items())])

    def _from(self, chosen: str, ending: str, columns: tuple[str, ...]) -> "Rows":
        return Rows(self.engine, f"(SELECT {chosen} FROM {self.source}{ending})", columns)


_NUMBERS = count()
"""Of all tables that were ever named in this process, whose engines may share a session."""


class Engine(ABC):
    """An open engine: tables of its own, queries, and tables of ours that are lent to it."""

    is_distributed: ClassVar[bool]
    """Whether records live on other machines, from where they are not fetched to be looked at."""
    joins: ClassVar[Mapping[str, str]]
    """How it calls the kinds of joins."""

    def __init__(self) -> None:
        self._lent: list[Rows] = []

    @abstractmethod
    def q(self, name: str) -> str:
        """The name of a column, quoted where it must be."""

    @abstractmethod
    def literal(self, words: str) -> str:
        """A text as a constant."""

    @abstractmethod
    def quotient(self, above: str, below: int) -> str:
        """A whole number that is not negative, divided and rounded down."""

    @abstractmethod
    def hashed(self, names: Iterable[str]) -> str:
        """A number of 64 bits that is the same for the same values in some columns, and hardly ever for others."""

    @abstractmethod
    def table(self, name: str) -> Rows:
        """One of its tables or views."""

    @abstractmethod
    def lend(self, table: pa.Table) -> Rows:
        """Make an Arrow table one of the engine's, in memory, for as long as the engine or a `lending` is open."""

    @contextmanager
    def lending(self) -> Iterator[None]:
        """Forget at the end what is lent in here; rows that were fetched stay."""
        before = list(self._lent)
        try:
            yield
        finally:
            for rows in [rows for rows in self._lent if rows not in before]:
                self.take_back(rows)

    def take_back(self, rows: Rows) -> None:
        """Forget a table that was lent; what was made from it stays."""
        self._lent.remove(rows)
        self._forget(rows)

    @abstractmethod
    def _forget(self, rows: Rows) -> None:
        """Forget a table that was lent."""

    @abstractmethod
    def fetch(self, rows: Rows) -> pa.Table:
        """Work rows out."""

    @abstractmethod
    def batches(self, rows: Rows, size: int) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        """Work rows out, so many at a time."""

    @abstractmethod
    def kept(self, rows: Rows) -> AbstractContextManager[Rows]:
        """Rows worked out once, and held for a while."""

    @abstractmethod
    def types(self, rows: Rows) -> Mapping[str, pa.DataType]:
        """The types of columns."""

    @abstractmethod
    def limit_memory(self, gigabytes: int | None) -> None:
        """Use no more than so much memory, if the engine has no limit of its own."""

    @abstractmethod
    def group_in_arrays(self, bits: int) -> None:
        """Find groups by their places as in an array where there are up to 2 to so many, if the engine can."""

    @abstractmethod
    def interrupt(self) -> None:
        """Stop the query that runs, if the engine can."""

    def among(self, column: str, codes: Iterable[str | int]) -> str:
        """The condition that a column has one of these values."""
        listed = ", ".join(self.literal(code) if isinstance(code, str) else str(code) for code in codes)
        return f"{column} IN ({listed})" if listed else "false"

    def _fresh(self, what: str) -> str:
        return f"sfumato_{what}_{next(_NUMBERS)}"


class DuckDB(Engine):
    """DuckDB, in this process."""

    is_distributed = False
    joins: ClassVar[Mapping[str, str]] = {"inner": "", "left": "LEFT", "semi": "SEMI", "anti": "ANTI", "cross": "CROSS"}

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        super().__init__()
        self.con = connection
        self._streams = False
        """Whether rows are being fetched bit by bit: another query would end that without a word."""

    def limit_memory(self, gigabytes: int | None) -> None:
        """Put on the disk what does not fit."""
        if gigabytes is not None:
            self.con.execute(f"SET memory_limit = '{gigabytes}GB'")

    def group_in_arrays(self, bits: int) -> None:
        """Do so for larger tables than DuckDB does by itself."""
        self.con.execute(f"SET perfect_ht_threshold = {bits}")

    def interrupt(self) -> None:
        """Stop the query that runs."""
        self.con.interrupt()

    def q(self, name: str) -> str:
        """The name of a column, in double quotes unless it is one of ours."""
        return name if _is_ours(name) else '"' + name.replace('"', '""') + '"'

    def literal(self, words: str) -> str:
        """A text as a constant."""
        return "'" + words.replace("'", "''") + "'"

    def quotient(self, above: str, below: int) -> str:
        """DuckDB's own whole division."""
        return f"({above} // {below})"

    def hashed(self, names: Iterable[str]) -> str:
        """DuckDB's own hash."""
        return f"hash({', '.join(map(self.q, names))})"

    def table(self, name: str) -> Rows:
        """One of its tables or views."""
        return Rows(self, name, tuple(column[0] for column in self.con.execute(f"DESCRIBE {name}").fetchall()))

    def lend(self, table: pa.Table) -> Rows:
        """Let queries read an Arrow table."""
        self._refuse_overlap()
        name = self._fresh("lent")
        self.con.register(name, table)
        self._lent.append(Rows(self, name, tuple(table.column_names)))
        return self._lent[-1]

    def _forget(self, rows: Rows) -> None:
        self.con.unregister(rows.source)

    def fetch(self, rows: Rows) -> pa.Table:
        """Work rows out as an Arrow table."""
        return self._relation(rows).to_arrow_table()

    @contextmanager
    def batches(self, rows: Rows, size: int) -> Iterator[Iterator[pa.RecordBatch]]:
        """Work rows out as they are asked for; no other query may run meanwhile."""
        with self._relation(rows).to_arrow_reader(size) as reader:
            self._streams = True
            try:
                yield reader
            finally:
                self._streams = False

    @contextmanager
    def kept(self, rows: Rows) -> Iterator[Rows]:
        """A temporary table, in memory or, where it does not fit, in the folder for that."""
        name = self._fresh("kept")
        self._refuse_overlap()
        self.con.execute(f"CREATE TEMP TABLE {name} AS FROM {rows.source}")
        try:
            yield Rows(self, name, rows.columns)
        finally:
            self.con.execute(f"DROP TABLE {name}")

    def types(self, rows: Rows) -> Mapping[str, pa.DataType]:
        """The types that columns have in Arrow."""
        found = self._relation(rows.limit(0))
        kinds = zip(found.columns, found.types, found.to_arrow_table().schema.types, strict=True)
        return {name: pa.uuid() if str(own) == "UUID" else kind for name, own, kind in kinds}  # to Arrow it is a text

    def _relation(self, rows: Rows) -> "duckdb.DuckDBPyRelation":
        self._refuse_overlap()
        return self.con.sql(f"FROM {rows.source}")

    def _refuse_overlap(self) -> None:
        if self._streams:
            raise RuntimeError("rows are still being fetched, and another query would end that without a word")


class Spark(Engine):
    """Spark, in a session of this process."""

    is_distributed = True
    joins: ClassVar[Mapping[str, str]] = {
        "inner": "",
        "left": "LEFT",
        "semi": "LEFT SEMI",
        "anti": "LEFT ANTI",
        "cross": "CROSS",
    }

    def __init__(self, session: "SparkSession") -> None:
        super().__init__()
        self.session = session

    def q(self, name: str) -> str:
        """The name of a column, in backquotes unless it is one of ours."""
        return name if _is_ours(name) else "`" + name.replace("`", "``") + "`"

    def literal(self, words: str) -> str:
        """A text as a constant, in which a backslash is one."""
        return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def quotient(self, above: str, below: int) -> str:
        """Spark's own whole division."""
        return f"({above} div {below})"

    def hashed(self, names: Iterable[str]) -> str:
        """Spark's hash of 64 bits."""
        return f"xxhash64({', '.join(map(self.q, names))})"

    def table(self, name: str) -> Rows:
        """One of its tables or views."""
        return Rows(self, name, tuple(self.session.table(name).columns))

    def view(self, frame: "DataFrame", what: str) -> Rows:
        """A data frame as a table that queries can name, for as long as the engine or a `lending` is open."""
        name = self._fresh(what)
        frame.createOrReplaceTempView(name)
        self._lent.append(Rows(self, name, tuple(frame.columns)))
        return self._lent[-1]

    def lend(self, table: pa.Table) -> Rows:
        """Make a view of an Arrow table."""
        return self.view(self.session.createDataFrame(table), "lent")

    def _forget(self, rows: Rows) -> None:
        self.session.catalog.dropTempView(rows.source)

    def limit_memory(self, gigabytes: int | None) -> None:
        """Nothing: Spark has limits of its own."""

    def group_in_arrays(self, bits: int) -> None:
        """Nothing: Spark groups in its own way."""

    def interrupt(self) -> None:
        """Nothing: what executors do is not stopped."""

    def close(self) -> None:
        """Forget what was lent; the session is the process's own."""
        while self._lent:
            self._forget(self._lent.pop())

    def frame(self, rows: Rows) -> "DataFrame":
        """Rows as a data frame, not worked out."""
        return self.session.sql(f"SELECT * FROM {rows.source}")

    def fetch(self, rows: Rows) -> pa.Table:
        """Work rows out and collect them here."""
        return self.frame(rows).toArrow()

    @contextmanager
    def batches(self, rows: Rows, size: int) -> Iterator[Iterator[pa.RecordBatch]]:
        """Work rows out and collect them here, then give so many at a time."""
        yield iter(self.fetch(rows).to_batches(size))

    @contextmanager
    def kept(self, rows: Rows) -> Iterator[Rows]:
        """Rows that executors keep once they worked them out."""
        held, name = self.frame(rows).persist(), self._fresh("kept")
        held.createOrReplaceTempView(name)
        try:
            yield Rows(self, name, rows.columns)
        finally:
            self.session.catalog.dropTempView(name)
            held.unpersist()

    def types(self, rows: Rows) -> Mapping[str, pa.DataType]:
        """The types that columns have in Arrow; one that Arrow need not know has its name alone."""
        return {name: _arrow_type(kind) for name, kind in self.frame(rows).dtypes}


_TYPES = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}


def _arrow_type(kind: str) -> pa.DataType:
    if decimal := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _TYPES.get(kind, pa.null())


def _is_ours(name: str) -> bool:
    return re.fullmatch(r"_[a-z][a-z0-9_]*", name) is not None


# Expressions that are said in many places.


def text(rows: Rows, name: str) -> str:
    """An attribute or key as the text of its code."""
    column = rows.engine.q(name)
    return column if is_text(rows.types[name]) else f"CAST({column} AS STRING)"


def texts(rows: Rows, names: Iterable[str]) -> dict[str, str]:
    """Attributes as the texts of their codes."""
    return {name: text(rows, name) for name in names}


def total(expression: str) -> str:
    """The sum of whole numbers where it is known to fit 64 bits; DuckDB adds them up in 128. No rows have no sum."""
    return f"CAST(sum({expression}) AS BIGINT)"


def times(condition: str) -> str:
    """In how many rows a condition holds."""
    return f"count(CASE WHEN {condition} THEN 1 END)"


def is_text(kind: pa.DataType) -> bool:
    """Whether a column has texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def is_number(kind: pa.DataType) -> bool:
    """Whether a column has numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_date(kind: pa.DataType) -> bool:
    """Whether a column has dates, with or without a time of the day."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
