"""The catalogue as its bundles are now: opened again when one is published anew, and the same throughout a request."""

import ctypes
import gc
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event, Thread
from time import time
from typing import Any

import pyarrow as pa
from starlette.types import ASGIApp, Receive, Scope, Send

from sfumato.serve.core.catalogue import BundleSource, Catalogue, Stamp
from sfumato.serve.core.figures import BoundedCache

_log = logging.getLogger("uvicorn.error")
SECONDS = 2.0
"""How often somebody looks whether a bundle was published anew."""
TRIMMED = 15
"""After so many looks, memory that is free goes back to the system."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Edition:
    """A catalogue, and finished answers from it."""

    catalogue: Catalogue
    cache: BoundedCache[Any] = field(repr=False)
    opened: float = field(default_factory=time)
    """When, in seconds of Unix time."""
    made: dict[str, Any] = field(default_factory=dict, repr=False)
    """What routers make of the catalogue once, by their names."""


class Editions:
    """The newest edition; a request that began with an earlier one ends with it."""

    def __init__(self, catalogue: Catalogue, *, cache_bytes: int) -> None:
        self._bytes = cache_bytes
        self._newest = self._edition(catalogue)
        self._of_request: ContextVar[Edition | None] = ContextVar("edition", default=None)
        self._refused: dict[BundleSource, Stamp] = {}

    def _edition(self, catalogue: Catalogue) -> Edition:
        return Edition(catalogue=catalogue, cache=BoundedCache(self._bytes))

    @property
    def current(self) -> Edition:
        """The edition of the request that is worked on; outside of requests the newest."""
        return self._of_request.get() or self._newest

    @contextmanager
    def one(self) -> Iterator[None]:
        """What is inside sees one edition, whatever is published meanwhile."""
        token = self._of_request.set(self._newest)
        try:
            yield
        finally:
            self._of_request.reset(token)

    def renew(self) -> bool:
        """Open what was published anew, and only that; what cannot be read leaves its tables as they are."""
        before = self._newest.catalogue
        found = before.opened_again(self._refused)
        if found is before:
            return False
        self.replace(found)
        return True

    def replace(self, catalogue: Catalogue) -> None:
        """Serve other tables from now on, in one step."""
        self._newest = self._edition(catalogue)

    @contextmanager
    def watched(self, renewed: Callable[[Catalogue], None]) -> Iterator[None]:
        """Look for what is published anew from time to time, in a thread of its own; `renewed` is told."""
        end = Event()

        def watch() -> None:
            looks = 0
            while not end.wait(SECONDS):
                try:
                    if self.renew():
                        renewed(self._newest.catalogue)
                        gc.collect()  # parts of the tables of before name each other
                    looks += 1
                    if looks % TRIMMED == 0:
                        give_back()
                except Exception as error:  # whatever it is, the next look may find it mended
                    _log.error("Could not look for what was published anew", exc_info=error)

        Thread(target=watch, name="editions", daemon=True).start()
        try:
            yield
        finally:
            end.set()


class OneEdition:
    """An application in which every request sees one edition."""

    def __init__(self, app: ASGIApp, *, editions: Editions) -> None:
        self._app, self._editions = app, editions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; the life of the server, which is passed on too, has no edition of its own."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._editions.one():
            await self._app(scope, receive, send)


def give_back() -> None:
    """Give memory that is free back to the system.

    Every thread that writes answers has room of its own, which the C library keeps at the size of the largest that it
    ever wrote; other libraries than that of GNU do not, and have no function for it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
    pa.default_memory_pool().release_unused()
