"""What every router works with: the catalogue, the settings, and finished answers in any format."""

import re
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TypeVar

from fastapi import Request
from starlette.responses import Response
from starlette.types import Scope

from sfumato.serve.core.access import Access, Settings
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.editions import Editions
from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.core.figures import BoundedCache
from sfumato.serve.core.http import method_sent
from sfumato.serve.core.model import Selection, ServedTable
from sfumato.serve.core.rate_limit import client_of
from sfumato.serve.core.selection import part_note
from sfumato.serve.core.stream import MOST, StreamedResponse, Streams, in_parts
from sfumato.serve.core.worker_queue import WorkerQueue
from sfumato.serve.formats import FORMATS
from sfumato.serve.formats.layout import Options

QUICK = 2_000
"""Answers of more figures are made in another thread, and nobody else waits for them."""
CACHE = "public, max-age=300"
T = TypeVar("T")
_OVERHEAD = 1_000
_HOST = re.compile(r"[A-Za-z0-9.\-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")
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
            "Cache-Control": CACHE,
        }
        if disposition:
            headers["Content-Disposition"] = disposition
        return cls(body=body, headers=headers, query=query)

    def respond(self, request: Request) -> Response:
        """The response; nothing but the headers to a client that has these bytes already."""
        if self.query is not None:
            self.query.attach(request.scope)
        return unchanged(request, self.headers) or Response(self.body, headers=self.headers)

    def keep(self, cache: "BoundedCache[Rendered]", key: Hashable, more: int) -> None:
        """Keep it under a key, which takes some bytes more."""
        cache.put(key, self, size=len(self.body) + more)


@dataclass(frozen=True, kw_only=True, eq=False)
class Streamed:
    """An answer that is written while the client reads it."""

    parts: AsyncGenerator[bytes, None] = field(repr=False)
    headers: dict[str, str]
    query: AuditedQuery

    def respond(self, request: Request) -> Response:
        """The response; nothing but the headers to a client that has these bytes already, or wants no more."""
        self.query.attach(request.scope)
        if method_sent(request.scope) == "HEAD":
            response = Response(headers=self.headers)
            del response.headers["content-length"]  # it is not known, and not 0
            return response
        return unchanged(request, self.headers) or StreamedResponse(self.parts, self.headers)

    def keep(self, _cache: "BoundedCache[Rendered]", _key: Hashable, _more: int) -> None:
        """It is nowhere as a whole, and so not kept."""


Answered = Rendered | Streamed


@dataclass(frozen=True, kw_only=True, eq=False)
class ServerContext:
    """Everything a router needs."""

    editions: Editions
    settings: Settings
    access: Access = field(repr=False)
    worker_queue: WorkerQueue = field(repr=False)
    streams: Streams = field(repr=False)
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
            sharing=settings.most_sharing,
        )
        access = Access(settings)
        streams = Streams(worker_queue.downloads)
        return cls(
            editions=editions, settings=settings, access=access, worker_queue=worker_queue, streams=streams, live=live
        )

    @property
    def catalogue(self) -> Catalogue:
        """The tables, the same ones throughout a request."""
        return self.editions.current.catalogue

    @property
    def cache(self) -> BoundedCache[Rendered]:
        """Finished answers from these tables."""
        return self.editions.current.cache

    async def answer(
        self, table: ServedTable, selection: Selection, *, name: str, options: Options, scope: Scope
    ) -> Answered:
        """The answer to a selection in a format: whole, or written while it is read where it is long."""
        written = FORMATS[name]
        if selection.cells <= self.settings.most_cells or written.parts is None or not self.in_parts(name):
            return await self.render(table, selection, name=name, options=options, scope=scope)
        self.refuse_large(selection, table, name=name)
        parts, order = written.parts, written.order(table, selection, options)
        headers = {"Content-Type": written.media_type, "Content-Disposition": disposition(table, name, options)}
        return await self.stream(
            table,
            selection,
            lambda: parts((table.answer(part) for part in in_parts(selection, order)), options),
            headers=headers,
            key=(name, options),
            scope=scope,
        )

    async def stream(
        self,
        table: ServedTable,
        selection: Selection,
        parts: Callable[[], Iterator[bytes]],
        *,
        headers: dict[str, str],
        key: Hashable,
        scope: Scope,
    ) -> Streamed:
        """An answer that is written while it is read; the key is what it depends on beside the bundle."""
        same = blake2b(repr((table.digest, table.id, selection, key)).encode(), digest_size=16).hexdigest()
        return Streamed(
            parts=await self.streams.begin(parts, client=self.client(scope)),
            headers={**headers, "ETag": f'"{same}"', "Cache-Control": CACHE},
            query=AuditedQuery.of(table, selection),
        )

    async def render(
        self, table: ServedTable, selection: Selection, *, name: str, options: Options, scope: Scope
    ) -> Rendered:
        """The whole answer to a selection in a format; the same one for all who ask for it, in whatever words."""
        self.refuse_large(selection, table)
        key = (table.id, selection, name, options)
        found = self.cache.get(key)
        if found is not None:
            return found

        def write() -> Rendered:
            answer = write_answer(table, selection, name, options)
            self.keep(key, answer, len(selection.metrics) + sum(len(places or ()) for places in selection.places))
            return answer

        if is_quick(table, selection, selection.cells) and not FORMATS[name].slow:
            return write()
        AuditedQuery.of(table, selection).attach(scope)  # before it waits, perhaps in vain
        return await self.work(write, scope, key)

    async def work(self, work: Callable[[], T], scope: Scope, key: Hashable) -> T:
        """Do what takes long in a thread, in turn with other clients, once for all who ask for the same."""
        return await self.worker_queue.download(work, client=self.client(scope), question=self.question(key))

    def question(self, key: Hashable) -> Hashable:
        """What identical questions at a time have in common: the key of the answer, and the edition it is from."""
        return (self.editions.current, key)

    def client(self, scope: Scope) -> str:
        """Who counts as one client, for rates and for turns in the queue."""
        return client_of(self.access, scope)

    def address(self, request: Request) -> str:
        """The address of the server as readers write it, any path included: what the office set, or what was asked."""
        if self.settings.url:
            return self.settings.url
        host = request.headers.get("host", "")
        return f"{request.url.scheme}://{host}" if _HOST.fullmatch(host) else ""

    def keep(self, key: Hashable, answered: Answered, length: int) -> None:
        """Keep a finished answer under a key of some length; what is written while it is read is not kept."""
        answered.keep(self.cache, key, 8 * length + _OVERHEAD)

    def in_parts(self, name: str) -> bool:
        """Whether long answers in a format are written part by part."""
        return name in FORMATS and FORMATS[name].parts is not None

    def refuse_large(self, selection: Selection, table: ServedTable, *, name: str = "") -> None:
        """Refuse a selection with more figures than the server gives, at once or in a format written in parts.

        Whoever is refused is told where all of the table is.
        """
        most = max(MOST, self.settings.most_cells) if self.in_parts(name) else self.settings.most_cells
        if selection.cells > most:
            others = [one for one in FORMATS if self.in_parts(one)] if name and not self.in_parts(name) else []
            larger = f"; as {' or '.join(others)} it may be larger" if others else ""
            files = f"; the whole table is at {self.settings.url}/tables/{table.id}/files" if table.files else ""
            raise RefusedError(
                "selection",
                expected=f"at most {most:,} cells",
                found=f"{selection.cells:,}",
                do=f"choose fewer codes, or ask in several parts{larger}{files}",
                status=403,
                said=said(
                    "These are {figures} figures, and at most {most} are given at once. Choose fewer codes, or take "
                    "the files of the whole table."
                    if table.files
                    else "These are {figures} figures, and at most {most} are given at once. Choose fewer codes.",
                    figures=selection.cells,
                    most=most,
                ),
            )


def write_answer(table: ServedTable, selection: Selection, name: str, options: Options) -> Rendered:
    """The answer to a selection in a format."""
    written = FORMATS[name]
    answer = table.answer(selection)
    if options.part:
        answer = replace(answer, notes=(part_note(answer), *answer.notes))
    body = written.write(answer, options)
    query = AuditedQuery.of(table, selection)
    return Rendered.of(body, media_type=written.media_type, disposition=disposition(table, name, options), query=query)


def disposition(table: ServedTable, name: str, options: Options) -> str:
    """What browsers do with an answer in a format, and how the file is called that they save."""
    written = FORMATS[name]
    place, part = "attachment" if written.download else "inline", ".part" if options.part else ""
    return f'{place}; filename="{table.id}{part}.{written.extension}"'


def is_quick(table: ServedTable, selection: Selection, cells: int) -> bool:
    """Whether an answer of so many figures is made at once; other work goes to another thread."""
    return cells <= QUICK and table.source_of(selection).is_quick(selection)


def unchanged(request: Request, headers: dict[str, str]) -> Response | None:
    """What a client is told that has these bytes already."""
    if not _has(request, headers["ETag"]):
        return None
    kept = {name: text for name, text in headers.items() if name in ("ETag", "Cache-Control", "Vary")}
    return Response(status_code=304, headers=kept)


def _has(request: Request, tag: str) -> bool:
    """Whether a client has these bytes: it may name any, or several, and a proxy may have made them weak."""
    said = ",".join(request.headers.getlist("if-none-match")).strip()
    return said == "*" or tag in _TAGS.findall(said)
