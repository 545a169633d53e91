"""Files that only ever grow, a line for every entry; full ones get a name of their own and are left alone.

An entry is handed to the operating system at once, so that a server that is killed loses none. What has to outlast a
failure of the power too is waited for.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from sfumato.durable import sync_folder
from sfumato.users import TOKEN, make_folder

LARGEST = 50_000_000
"""Bytes after which a file is full."""
_LONGEST = 8_000


class AuditLog:
    """One file of entries and the full ones beside it; with `keep`, only so many full ones."""

    def __init__(self, path: Path, *, largest: int = LARGEST, keep: int | None = None) -> None:
        self.path, self._largest, self._keep = path, largest, keep
        self._file: int | None = None
        self._size, self._torn = 0, False
        self._lock = Lock()

    def write(self, entry: Mapping[str, Any], *, durably: bool = False) -> None:
        """Add an entry; with `durably` it is on the disk when this returns."""
        line = _line(entry)
        with self._lock:
            if self._file is not None and self._size >= self._largest:
                self._rotate()
            if self._file is None:
                self._file = self._open()
            content = b"\n" + line if self._torn else line
            self._torn = True  # unless all of it is written
            written = os.write(self._file, content)
            self._size += written
            if written < len(content):
                raise OSError(f"{self.path}: only a part of an entry was written")
            self._torn = False
        if durably:
            self.sync()

    def sync(self) -> None:
        """Wait until every entry is on the disk; others may write in the meantime."""
        with self._lock:
            if self._file is None:
                return  # a full file was put on the disk before it was closed
            file = os.dup(self._file)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def close(self) -> None:
        """Put every entry on the disk and close the file."""
        with self._lock:
            if self._file is not None:
                os.fsync(self._file)
                os.close(self._file)
                self._file = None

    def full(self) -> list[Path]:
        """The full files, the oldest first."""
        return sorted(self.path.parent.glob(f"{self.path.stem}-*{self.path.suffix}"))

    def _open(self) -> int:
        make_folder(self.path.parent)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._size = os.fstat(file).st_size
        # A failure of the power may have left a part of a line: the next entry begins on a line of its own.
        self._torn = self._size > 0 and os.pread(file, 1, self._size - 1) != b"\n"
        sync_folder(self.path.parent)
        return file

    def _rotate(self) -> None:
        assert self._file is not None
        os.fsync(self._file)
        os.close(self._file)
        self._file = None
        now = datetime.now(UTC)
        with suppress(FileNotFoundError):  # another server with this folder was quicker
            self.path.rename(self.path.with_name(f"{self.path.stem}-{now:%Y%m%dT%H%M%S.%fZ}{self.path.suffix}"))
        if self._keep is not None:
            for old in self.full()[: -self._keep or None]:
                old.unlink(missing_ok=True)


def _line(entry: Mapping[str, Any]) -> bytes:
    """An entry as one line of ASCII: nothing that a client sends can end it, or looks like a token in it."""
    text = TOKEN.sub("(token)", json.dumps(entry, separators=(",", ":")))
    if len(text) > _LONGEST:
        short = {name: thing for name, thing in entry.items() if name not in ("asked", "query")}
        text = TOKEN.sub("(token)", json.dumps({**short, "asked": "too long to be kept"}, separators=(",", ":")))
    return text.encode() + b"\n"
