"""Who asked what: an entry for every request, without any figure and without any token.

Entries of users are on the disk before the answer goes out, and are never removed. Entries of the public are kept in
files of their own, a bounded number of them: whoever asks a lot cannot push out the traces of the users.
"""

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.serve.access import Access
from sfumato.serve.audit_asked import noted_in
from sfumato.serve.audit_log import AuditLog
from sfumato.serve.errors import shortened
from sfumato.serve.head import method_sent
from sfumato.serve.problems import problem
from sfumato.serve.rate import UNKNOWN, address, network
from sfumato.users import PUBLIC

KEPT = 20
"""Full files of the public's entries that are kept."""
_NO_ANSWER = 499
_SOON = 1.0
_THREADS = 4
_LONGEST = 2_000
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
        if scope["type"] != "http" or scope["path"].startswith(("/static/", "/health")):
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
            **_asked(scope),
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


def _asked(scope: Scope) -> dict[str, Any]:
    found = noted_in(scope)
    if found is not None:
        return {"table": found.table, "asked": found.asked, "cells": found.cells}
    query = scope["query_string"].decode("latin-1")
    return {"query": query[:_LONGEST]} if query else {}
