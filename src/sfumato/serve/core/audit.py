"""Who asked what: an entry for every request, in files that only ever grow."""

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.durable import sync_folder
from sfumato.serve.core.access import Access
from sfumato.serve.core.errors import shortened
from sfumato.serve.core.http import method_sent, problem
from sfumato.serve.core.model import Selection, ServedDimension, ServedTable, grouped
from sfumato.serve.core.rate_limit import UNKNOWN, address, network
from sfumato.serve.core.users import PUBLIC, TOKEN, make_folder

# Full files get a name of their own and are left alone. An entry is handed to the operating system at once, so that a
# server that is killed loses none. What has to outlast a failure of the power too is waited for.

LARGEST = 50_000_000
"""Bytes after which a file is full."""
_LONGEST_ENTRY = 8_000


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
    if len(text) > _LONGEST_ENTRY:
        short = {name: thing for name, thing in entry.items() if name not in ("asked", "query")}
        text = TOKEN.sub("(token)", json.dumps({**short, "asked": "too long to be kept"}, separators=(",", ":")))
    return text.encode() + b"\n"


# What a request asked for, in one spelling: codes and names, never a figure.

LISTED = 20
"""Codes of a dimension that are written out; of more, how many there are and a digest that tells them apart."""
_QUERY = "sfumato.asked"


@dataclass(frozen=True, kw_only=True)
class AuditedQuery:
    """A question as the log of questions has it."""

    table: str
    asked: Mapping[str, Any]
    cells: int

    @classmethod
    def of(cls, table: ServedTable, selection: Selection) -> "AuditedQuery":
        """A selection: by dimension the codes, in their order; a star for all of them."""
        groupings = dict(selection.groupings)
        asked: dict[str, Any] = {}
        for at, (axis, places) in enumerate(zip(table.axes, (*selection.places, selection.metrics), strict=True)):
            if places is not None and at in groupings:
                asked[axis.name] = {groupings[at]: codes_for_log(grouped(axis, groupings[at]), places)}
            elif places is not None:
                asked[axis.name] = codes_for_log(axis, places)
        return cls(table=table.id, asked=asked, cells=selection.cells)

    def attach(self, scope: Scope) -> None:
        """Say that a request asks for this; its entry in the log will have it."""
        scope[_QUERY] = self


def audited(scope: Scope) -> AuditedQuery | None:
    """What a request asks for, if that is known."""
    found: AuditedQuery | None = scope.get(_QUERY)
    return found


def codes_for_log(dimension: ServedDimension, places: tuple[int, ...]) -> Any:
    """Codes as the log writes them.

    >>> dimension = ServedDimension(name="place", label="Place", codes=("a", "b"), labels=("A", "B"))
    >>> codes_for_log(dimension, (0, 1)), codes_for_log(dimension, (1,))
    ('*', ['b'])
    """
    if len(places) == len(dimension):
        return "*"
    if len(places) <= LISTED:
        return [dimension.codes[place] for place in places]
    digest = blake2b(repr(places).encode(), digest_size=8).hexdigest()
    return {"from": dimension.codes[places[0]], "number": len(places), "digest": digest}


# Entries of users are on the disk before the answer goes out, and are never removed. Entries of the public are kept in
# files of their own, a bounded number of them: whoever asks a lot cannot push out the traces of the users.

KEPT = 20
"""Full files of the public's entries that are kept."""
_NO_ANSWER = 499
_SOON = 1.0
_THREADS = 4
_LONGEST_QUERY = 2_000
_log = logging.getLogger("uvicorn.error")


class Audit:
    """An application that keeps a log of what it was asked."""

    def __init__(self, app: ASGIApp, *, access: Access, folder: Path, addresses: str) -> None:
        self._app, self._access, self._addresses = app, access, addresses
        self._users = AuditLog(folder / "users.jsonl")
        self._public = AuditLog(folder / "public.jsonl", keep=KEPT)
        self._syncing: asyncio.TimerHandle | None = None
        self._threads = CapacityLimiter(_THREADS)
        self._silent = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and keep an entry of it, unless it asks for nothing but a file that pages are made of."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            self._close()
            return
        if scope["type"] != "http" or scope["path"].startswith(("/static/", "/health", "/metrics")):
            await self._app(scope, receive, send)
            return
        begun, kept, refused = perf_counter(), False, False

        async def watched(message: Message) -> None:
            nonlocal kept, refused
            if not kept:
                kept = True
                refused = not await self._keep(scope, message["status"], perf_counter() - begun)
                if refused:
                    words = "The log of questions cannot be written, so nothing is answered. To do: tell the office."
                    await problem(Request(scope), 503, words, {"Retry-After": "60"})(scope, receive, send)
            if not refused:
                await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            if not kept:
                await self._keep(scope, _NO_ANSWER, perf_counter() - begun)

    async def _keep(self, scope: Scope, status: int, seconds: float) -> bool:
        """Write the entry; False if a user's could not be, who then gets no answer."""
        user = self._access.user(scope)
        entry = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "user": PUBLIC if user is None else user.name,
            "address": self._address(scope),
            "method": shortened(method_sent(scope)),
            "path": shortened(scope["path"]),
            **_query(scope),
            "status": status,
            "milliseconds": round(1_000 * seconds, 1),
        }
        try:
            if user is None:
                self._public.write(entry)
                self._sync_soon()
            else:
                await to_thread.run_sync(lambda: self._users.write(entry, durably=True), limiter=self._threads)
        except Exception as error:  # a full disk, a folder that was removed, and whatever else
            if not self._silent:
                self._silent = True
                _log.error("The log of questions cannot be written: %s", error)
            return user is None
        self._silent = False
        return True

    def _address(self, scope: Scope) -> str:
        if self._addresses == "none":
            return UNKNOWN
        return address(scope) if self._addresses == "full" else network(address(scope), 24, 48)

    def _sync_soon(self) -> None:
        if self._syncing is None:
            self._syncing = asyncio.get_running_loop().call_later(_SOON, self._begin_sync)

    def _begin_sync(self) -> None:
        self._syncing = None
        asyncio.get_running_loop().run_in_executor(None, self._public.sync)

    def _close(self) -> None:
        if self._syncing is not None:
            self._syncing.cancel()
        self._users.close()
        self._public.close()


def _query(scope: Scope) -> dict[str, Any]:
    found = audited(scope)
    if found is not None:
        return {"table": found.table, "asked": found.asked, "cells": found.cells}
    query = scope["query_string"].decode("latin-1")
    return {"query": query[:_LONGEST_QUERY]} if query else {}
