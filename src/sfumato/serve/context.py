"""What every router works with: the catalogue, the settings, and finished answers in any format."""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TypeVar

from fastapi import Request
from starlette.responses import Response
from starlette.types import Scope

from sfumato.serve.core.access import Access, Settings
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.editions import Editions
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.figures import BoundedCache
from sfumato.serve.core.model import Selection, ServedTable
from sfumato.serve.core.rate_limit import client_of
from sfumato.serve.core.worker_queue import WorkerQueue
from sfumato.serve.formats import FORMATS
from sfumato.serve.formats.layout import Options

QUICK = 2_000
"""Answers of more figures are made in another thread, and nobody else waits for them."""
T = TypeVar("T")
_OVERHEAD = 1_000
_TAGS = re.compile(r'"[^"]*"')


@dataclass(frozen=True, kw_only=True, eq=False)
class Rendered:
    """A finished answer: its bytes, and what the headers say of them."""

    body: bytes
    headers: dict[str, str]
    query: AuditedQuery | None = None
    """What it answers, for the log of questions."""
    status: int = 200

    @classmethod
    def of(
        cls, body: bytes, *, media_type: str, disposition: str | None = None, query: AuditedQuery | None = None
    ) -> "Rendered":
        """Bytes with the headers that let clients keep and recognise them."""
        headers = {
            "Content-Type": media_type,
            "ETag": f'"{blake2b(body, digest_size=16).hexdigest()}"',
            "Cache-Control": "public, max-age=300",
        }
        if disposition:
            headers["Content-Disposition"] = disposition
        return cls(body=body, headers=headers, query=query)

    def respond(self, request: Request) -> Response:
        """The response; nothing but the headers to a client that has these bytes already."""
        if self.query is not None:
            self.query.attach(request.scope)
        if _has(request, self.headers["ETag"]):
            kept = {name: text for name, text in self.headers.items() if name in ("ETag", "Cache-Control", "Vary")}
            return Response(status_code=304, headers=kept)
        return Response(self.body, headers=self.headers)


@dataclass(frozen=True, kw_only=True, eq=False)
class ServerContext:
    """Everything a router needs."""

    editions: Editions
    settings: Settings
    access: Access = field(repr=False)
    worker_queue: WorkerQueue = field(repr=False)
    live: bool = False
    """Whether ad-hoc questions are answered, and so people may sign in."""

    @classmethod
    def of(cls, catalogue: Catalogue, settings: Settings, *, live: bool = False) -> "ServerContext":
        """A server's state, with an empty cache."""
        editions = Editions(catalogue, cache_bytes=settings.cache_bytes)
        worker_queue = WorkerQueue.of(
            pages=settings.threads,
            downloads=settings.downloads,
            most=settings.most_waiting,
            in_all=settings.most_lined_up,
        )
        access = Access(settings)
        return cls(editions=editions, settings=settings, access=access, worker_queue=worker_queue, live=live)

    @property
    def catalogue(self) -> Catalogue:
        """The tables, the same ones throughout a request."""
        return self.editions.current.catalogue

    @property
    def cache(self) -> BoundedCache[Rendered]:
        """Finished answers from these tables."""
        return self.editions.current.cache

    async def render(
        self, table: ServedTable, selection: Selection, *, name: str, options: Options, scope: Scope
    ) -> Rendered:
        """The answer to a selection in a format, from the cache if it was asked for before."""
        self.refuse_large(selection, table)
        key = (table.id, selection, name, options)
        found = self.cache.get(key)
        if found is not None:
            return found
        if is_quick(table, selection, selection.cells) and not FORMATS[name].slow:
            answer = write_answer(table, selection, name, options)
        else:
            AuditedQuery.of(table, selection).attach(scope)  # before it waits, perhaps in vain
            answer = await self.work(lambda: write_answer(table, selection, name, options), scope)
        self.keep(key, answer, len(selection.metrics) + sum(len(places or ()) for places in selection.places))
        return answer

    async def work(self, work: Callable[[], T], scope: Scope) -> T:
        """Do what takes long in a thread, in turn with other clients."""
        return await self.worker_queue.download(work, client=self.client(scope))

    def client(self, scope: Scope) -> str:
        """Who counts as one client, for rates and for turns in the queue."""
        return client_of(self.access, scope)

    def keep(self, key: Hashable, rendered: Rendered, length: int) -> None:
        """Keep a finished answer under a key of some length."""
        self.cache.put(key, rendered, size=len(rendered.body) + 8 * length + _OVERHEAD)

    def refuse_large(self, selection: Selection, table: ServedTable | None = None) -> None:
        """Refuse a selection with more figures than the server gives at once, and say where all of the table is."""
        if selection.cells > self.settings.most_cells:
            files = f", or take the whole table from {self.settings.url}/tables/{table.id}/files" if table else ""
            raise RefusedError(
                "selection",
                expected=f"at most {self.settings.most_cells:,} cells",
                found=f"{selection.cells:,}",
                do=f"choose fewer codes, or ask in several parts{files if table and table.files else ''}",
                status=403,
            )


def write_answer(table: ServedTable, selection: Selection, name: str, options: Options) -> Rendered:
    """The answer to a selection in a format."""
    written = FORMATS[name]
    body = written.write(table.answer(selection), options)
    place = "attachment" if written.download else "inline"
    disposition = f'{place}; filename="{table.id}.{written.extension}"'
    query = AuditedQuery.of(table, selection)
    return Rendered.of(body, media_type=written.media_type, disposition=disposition, query=query)


def is_quick(table: ServedTable, selection: Selection, cells: int) -> bool:
    """Whether an answer of so many figures is made at once; other work goes to another thread."""
    return cells <= QUICK and table.source_of(selection).is_quick(selection)


def _has(request: Request, tag: str) -> bool:
    """Whether a client has these bytes: it may name any, or several, and a proxy may have made them weak."""
    said = ",".join(request.headers.getlist("if-none-match")).strip()
    return said == "*" or tag in _TAGS.findall(said)
