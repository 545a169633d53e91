"""The file of the ledger: one SQLite table that only grows, written durably and by one process at a time."""

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    NullPool,
    Table,
    Text,
    create_engine,
    event,
    exc,
    insert,
    select,
)

from sfumato.durable import room_for
from sfumato.errors import DiskError, LedgerError
from sfumato.paths import described, is_ledger, meant
from sfumato.privacy.entries import COLUMNS, Row, refuse_charged

_LOCK_TIMEOUT = 60  # seconds to wait for another process that is charging
_APPLICATION = 0x5346554D  # "SFUM", SQLite's mark of whose file this is
_FORMAT = 1

_entries = Table(
    "entries",
    MetaData(),
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    *(Column(name, Text, nullable=False) for name in COLUMNS),
    sqlite_autoincrement=True,  # SQLite then counts every entry ever written in sqlite_sequence
)

_APPEND_ONLY = (
    "CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    "CREATE TRIGGER entries_never_leave BEFORE DELETE ON entries"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
    # INSERT OR REPLACE deletes without firing the trigger above.
    "CREATE TRIGGER entries_follow BEFORE INSERT ON entries"
    " WHEN NEW.sequence IS NOT (SELECT COALESCE(MAX(sequence), 0) + 1 FROM entries)"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END",
)


class Store:
    """Rows in the file at `path`, read and appended within transactions."""

    def __init__(self, path: Path, *, create: bool, lost: bool = False) -> None:
        self.path = path.absolute()
        if create:
            if not self._is_there():
                if not lost:
                    refuse_charged(self.path)
                self._create()
            self._sweep()
        if not self._is_there():
            raise LedgerError(
                self.name,
                expected="an existing ledger",
                found=described(self.path),
                do=meant(self.path, is_ledger, "run a release, or open the first account with `sfumato budget set`"),
            )
        self._engine = _engine(self.path)
        with self.reading() as connection:
            self._recognise(connection)

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"ledger {self.path}"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the file."""
        with self._explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The same, with the only right to write; all that is appended becomes durable, or nothing."""
        engine = self._engine.execution_options(sfumato_writes=True)
        with self._explained(), engine.begin() as connection:
            yield connection

    def rows(self, connection: Connection, *, after: int = 0) -> list[Row]:
        """All entries in order, as the file holds them, or those after the first few."""
        asked = select(_entries).where(_entries.c.sequence > after).order_by("sequence")
        return [dict(row) for row in connection.execute(asked).mappings()]

    def written(self, connection: Connection) -> int:
        """How many entries SQLite counted as they were written, whether or not they are still there."""
        count = connection.exec_driver_sql("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").scalar()
        return count or 0

    def append(self, connection: Connection, row: Row) -> None:
        """Write one entry at the end."""
        connection.execute(insert(_entries), row)

    def _is_there(self) -> bool:
        try:
            return self.path.is_file()
        except OSError as error:
            raise LedgerError(
                self.name,
                expected="a folder that can be entered",
                found=error.strerror or str(error),
                do="make the folder readable and writable by you, or name another ledger",
            ) from error

    def _create(self) -> None:
        """Build the file under another name and give it its own only when complete.

        So an empty or half-written file is never taken for a new ledger with nothing spent, and of two
        processes that start at once one creates it and the other opens what the first created.
        """
        draft = self.path.with_name(f".{self.path.name}.{uuid4().hex}")
        try:
            with room_for(self.path), _holding(self.path.parent, fcntl.LOCK_SH):
                os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                try:
                    engine = _engine(draft).execution_options(sfumato_writes=True)
                    with self._explained(), engine.begin() as connection:
                        _entries.create(connection)
                        for trigger in _APPEND_ONLY:
                            connection.exec_driver_sql(trigger)
                        connection.exec_driver_sql(f"PRAGMA application_id = {_APPLICATION}")
                        connection.exec_driver_sql(f"PRAGMA user_version = {_FORMAT}")
                    _link(draft, self.path)
                finally:
                    draft.unlink()
        except OSError as error:
            raise LedgerError(
                self.name,
                expected="a folder in which the ledger can be created",
                found=error.strerror or str(error),
                do="create the folder, or make it writable, or name another ledger",
            ) from error

    def _sweep(self) -> None:
        """Remove the drafts of processes that were killed while they created the ledger; live ones hold the folder."""
        named = re.compile(re.escape(f".{self.path.name}.") + r"[0-9a-f]{32}(-journal)?")
        with suppress(OSError):  # they are only in the way
            left = [path for path in self.path.parent.iterdir() if named.fullmatch(path.name)]
            if left:
                with _holding(self.path.parent, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    for path in left:
                        path.unlink(missing_ok=True)

    def _recognise(self, connection: Connection) -> None:
        application = connection.exec_driver_sql("PRAGMA application_id").scalar()
        version = connection.exec_driver_sql("PRAGMA user_version").scalar()
        if (application, version) != (_APPLICATION, _FORMAT):
            raise LedgerError(
                self.name,
                expected=f"a ledger of sfumato, format {_FORMAT}",
                found="an empty file" if not self.path.stat().st_size else "another kind of database",
                do="check the path, or restore the ledger from a backup",
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (exc.SQLAlchemyError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig else error
            no_room = getattr(cause, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
            raise (DiskError if no_room else LedgerError)(
                self.name,
                expected="a ledger that can be read and written",
                found=str(cause),
                do=_advice(cause),
            ) from error


def _advice(cause: BaseException) -> str:
    match getattr(cause, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY:
            return "wait until the release that is charging has finished, then run again"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return "make the file and its folder readable and writable by you"
        case sqlite3.SQLITE_IOERR:  # what is said of a quota that is used up, too
            return (
                "free space on the disk, or have the quota raised, or make the file and its folder readable and "
                "writable by you; nothing was written"
            )
        case sqlite3.SQLITE_FULL:
            return "free space on the disk; nothing was written"
        case _:
            return "check the path, or restore the ledger from a backup"


def _engine(path: Path) -> Engine:
    def connect() -> sqlite3.Connection:
        # mode=rw: never create a file by looking at it. isolation_level=None: the driver must not begin
        # transactions of its own, which would be deferred and let two processes read the same balance before
        # either writes.
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw", uri=True, timeout=_LOCK_TIMEOUT, isolation_level=None
        )
        try:
            # EXTRA also syncs the folder after each commit: a charge that returned outlives a power cut.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's own cache as well
        except BaseException:
            connection.close()
            raise
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("sfumato_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _holding(folder: Path, how: int) -> Iterator[None]:
    """Hold a lock on a folder: not on the draft, which becomes the ledger, whose locks SQLite would lose with it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def _link(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        return  # another process was first, and its file is as good
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
