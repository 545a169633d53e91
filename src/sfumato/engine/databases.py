"""Read tables and queries of databases: what they answer is written as a text, and read as any other text."""

import csv
import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sfumato.engine.guesses import Guess, OnDisk, Wanted
from sfumato.engine.texts import Texts, quoted
from sfumato.errors import DataError
from sfumato.frame.sources import Source, format_of

if TYPE_CHECKING:  # only names for types
    import duckdb


def from_database(
    con: "duckdb.DuckDBPyConnection", source: Source, files: Sequence[OnDisk], wanted: Wanted, target: Path
) -> Guess:
    """Read the columns of what a database answers that are wanted into one Parquet file, and tell how it was read."""
    kind = source.format or format_of(source.path) or "sqlite"
    written, digest = [], hashlib.blake2b(digest_size=16)
    for place, file in enumerate(files):
        copy = OnDisk(named=file.named, path=target.with_name(f"{target.stem}-answer-{place}.csv"))
        with copy.path.open("wb") as out:
            if kind == "postgresql":
                _from_postgresql(source, file, out)
            else:
                _from_sqlite(source, file, wanted, out)
        with copy.path.open("rb") as content:
            digest.update(hashlib.file_digest(content, "blake2b").digest())
        written.append(copy)
    plain = {"delimiter": ",", "encoding": "utf-8", "decimal": ".", "thousands": "", "quote": '"', "skip": 0}
    options = {"path": "answer.csv", "missing": source.missing, "dates": source.dates}
    said = Source.model_validate({**plain, **options})
    guess = Texts(con, said, written, wanted, target, of_database=True).read()
    for copy in written:
        copy.path.unlink()
    return replace(guess, format=kind, guessed=(), content=digest.hexdigest())


def _asked(source: Source, quoting: Callable[[str], str]) -> str:
    return (source.query or f"SELECT * FROM {quoting(source.table or '')}").strip().rstrip(";")


def _from_sqlite(source: Source, file: OnDisk, wanted: Wanted, out: IO[bytes]) -> None:
    import io
    import sqlite3

    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=False)
    asked, encoding = _asked(source, quoted), source.encoding or "utf-8"
    reads = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
    with ExitStack() as stack:
        try:
            database = stack.enter_context(closing(sqlite3.connect(f"{file.path.as_uri()}?mode=ro", uri=True)))
            # Read-only does not keep a query from making another file, or from changing settings.
            database.set_authorizer(lambda does, *_: sqlite3.SQLITE_OK if does in reads else sqlite3.SQLITE_DENY)
            database.execute(f"EXPLAIN {asked}")  # what is wrong with the question itself, before any value is read
        except (sqlite3.Error, sqlite3.Warning) as error:
            said = "a query that does more than read" if "not authorized" in str(error) else str(error)
            if source.table and said.startswith("no such table"):
                said = f"the tables {', '.join(sqlite_tables(database)) or 'of an empty database'}"
            raise _not_answered(source, file.named, "SQLite", said) from error
        database.text_factory = lambda written: written.decode(encoding)
        try:
            answer = database.execute(asked)
            rows, columns = csv.writer(text), [column[0] for column in answer.description or ()]
            rows.writerow(columns)
            asked_for = [wanted.is_known(column.strip()) for column in columns]
            for place, row in enumerate(answer, start=1):
                rows.writerow(map(_plain, row))
                if bytes in map(type, row):
                    _refuse_bytes(file.named, place, zip(columns, row, asked_for, strict=True))
        except UnicodeError as error:
            raise _not_decoded(database, asked, encoding, file.named) from error
        except sqlite3.Error as error:  # its text may quote a value
            said = f"an error of type {error.sqlite_errorname}"
            raise _not_answered(source, file.named, "SQLite", said) from error
    text.flush()
    text.detach()


def _plain(value: Any) -> Any:
    """A value of SQLite as texts have it: a column of type REAL has whole numbers as 17.0, and 17 is meant."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53 else value


def _refuse_bytes(named: str, place: int, row: Iterable[tuple[str, Any, bool]]) -> None:
    """Refuse a row with bytes in a column that is wanted: nothing says what they mean."""
    for column, value, is_wanted in row:
        if is_wanted and isinstance(value, bytes):
            raise DataError(
                f"{named}, column '{column}', row {place:,} of the answer",
                expected="a number or a text",
                found="bytes, of type BLOB",
                do="store them as text or as numbers, or convert them in `query`, such as CAST(… AS TEXT)",
            )


def sqlite_tables(database: Any) -> list[str]:
    """The tables and views of a database of SQLite."""
    asked = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return [str(name) for (name,) in database.execute(asked)]


def _not_decoded(database: Any, asked: str, encoding: str, named: str) -> DataError:
    """Where a text is that is written in another encoding; the text itself is confidential."""
    database.text_factory = bytes
    answer = database.execute(asked)
    for row, values in enumerate(answer, start=1):
        for column, value in zip(answer.description, values, strict=True):
            try:
                value.decode(encoding) if isinstance(value, bytes) else None
            except UnicodeError:
                where = f"another encoding in row {row:,} of the answer, column '{column[0]}'"
                break
        else:
            continue
        break
    else:
        where = "another encoding"
    return DataError(
        named,
        expected=f"texts in {encoding}",
        found=where,
        do='say how texts are written, such as encoding = "latin-1", or correct them in the database',
    )


def _from_postgresql(source: Source, file: OnDisk, out: IO[bytes]) -> None:
    try:
        import psycopg
    except ImportError as error:
        raise DataError(
            file.named,
            expected="psycopg, which speaks to PostgreSQL",
            found=str(error),
            do="pip install 'sfumato[postgres]'",
        ) from error

    def quoting(table: str) -> str:  # of a schema and its table
        return ".".join(map(quoted, table.split(".")))

    try:
        with psycopg.connect(source.path) as database:
            database.read_only = True
            copied: Any = f"COPY ({_asked(source, quoting)}\n) TO STDOUT (FORMAT csv, HEADER, ENCODING 'UTF8')"
            with database.cursor().copy(copied) as pieces:
                for piece in pieces:
                    out.write(piece)
    except psycopg.OperationalError as error:
        raise DataError(
            file.named,
            expected="a database that can be reached",
            found=str(error).splitlines()[0],
            do="check the address; the password is taken from ~/.pgpass, PGPASSWORD or a service",
        ) from error
    except psycopg.Error as error:
        # What is wrong with the question itself is told; any other text may quote a value, or the address.
        understood = (error.sqlstate or "").startswith("42")
        said = str(error).splitlines()[0] if understood else f"an error of type {type(error).__name__}"
        raise _not_answered(source, file.named, "PostgreSQL", said) from error


def _not_answered(source: Source, named: str, system: str, said: str) -> DataError:
    return DataError(
        named,
        expected=f"the table '{source.table}'" if source.table else f"a query that {system} understands",
        found=said,
        do="correct `table` or `query`, which begins with SELECT or WITH",
    )
