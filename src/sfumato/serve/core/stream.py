"""Answers that are too long to be made whole: written part by part while the client reads, and no further than that."""

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from anyio import to_thread
from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from sfumato.serve.core.model import Selection
from sfumato.serve.core.published_files import OpenFile
from sfumato.serve.core.worker_queue import PRESENCE, Counts, FairThreads

PART = 10_000
"""About how many figures are written at a time: what a stream holds in memory, and how long it keeps a thread."""
MOST = 50_000_000
"""Figures that one answer may have at the most: most of a larger one would be cells that nobody lists."""
OF_ONE, IN_ALL = 8, 40
"""Such answers that one client, and all together, may read at a time."""


def in_parts(selection: Selection, order: Sequence[int], most: int = PART) -> Iterator[Selection]:
    """The selection in parts of about so many figures, which one after the other have the figures of the whole.

    They are cut along the axes in `order`, the one that changes slowest first; the metrics are the last axis.
    """
    every = [*selection.places, selection.metrics]
    lengths = [1 if places is None else len(places) for places in every]
    cut = [axis for axis in order if every[axis] is not None]
    inside = [prod(lengths) // prod(lengths[axis] for axis in cut[: at + 1]) for at in range(len(cut))]
    at = next((at for at, figures in enumerate(inside) if figures <= most), len(cut) - 1)
    if not cut or prod(lengths) <= most:
        yield selection
        return
    length = max(most // max(inside[at], 1), 1)
    last = every[cut[at]] or ()
    slices = [last[start : start + length] for start in range(0, len(last), length)]
    for *before, some in product(*([(place,) for place in every[axis] or ()] for axis in cut[:at]), slices):
        places = list(every)
        for axis, chosen in zip(cut, (*before, some), strict=False):
            places[axis] = chosen
        *dimensions, metrics = places
        yield replace(selection, places=tuple(dimensions), metrics=metrics or ())


class Streams:
    """Who reads such answers, and in which threads their parts are written, each part in turn with other work."""

    def __init__(self, threads: FairThreads) -> None:
        self._threads, self._counts = threads, Counts(OF_ONE, IN_ALL)

    @property
    def under_way(self) -> int:
        """How many are read."""
        return self._counts.total

    async def begin(self, parts: Callable[[], Iterator[bytes]], *, client: str) -> AsyncGenerator[bytes, None]:
        """The parts of an answer; the first is there when this returns, so that what is refused is refused in words."""
        written = self._written(parts, client)
        return _rejoined(await anext(written), written)

    async def _written(self, parts: Callable[[], Iterator[bytes]], client: str) -> AsyncGenerator[bytes, None]:
        with self._counts.one_more(client):
            left = parts()
            begun = False
            while True:
                try:
                    part = await self._threads.work(lambda: next(left, None), client=client)
                except HTTPException:
                    presence = PRESENCE.get()
                    if begun and presence is not None and presence.gone:
                        return  # nobody hears any more why it ends
                    raise
                if part is None:
                    return
                begun = True
                yield part


async def _rejoined(first: bytes, others: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for part in others:
            yield part
    finally:
        await others.aclose()


class StreamedResponse(StreamingResponse):
    """A response whose parts are no longer written once the client has left."""

    def __init__(self, parts: AsyncGenerator[bytes, None], headers: dict[str, str], status_code: int = 200) -> None:
        super().__init__(parts, status_code, headers)
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send part after part; each is written when the one before it is on its way."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._parts.aclose()


# Files that were published: the same to whoever reads them, all or a part.

_READ = 64 * 1024
_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))", re.IGNORECASE)


def file_response(opened: OpenFile, asked: Headers, headers: Mapping[str, str], *, body: bool = True) -> Response:
    """All of a file, or the one part that was asked for; it is read while the client reads, and closed then.

    HEAD, which wants no body, is told of all of it, as the standard has it, and nothing is read.
    """
    length = opened.published.bytes
    own = {**headers, "Accept-Ranges": "bytes"}
    part = _part(asked, length, own["ETag"]) if body else None
    if part is None:
        return FileResponse(opened, 0, length if body else 0, {**own, "Content-Length": str(length)})
    first, end = part
    if first >= end:
        words = f"Range: expected bytes of a file that has {length:,}. To do: correct it, or ask for all of the file."
        raise HTTPException(416, words, {"Content-Range": f"bytes */{length}"})
    own |= {"Content-Length": str(end - first), "Content-Range": f"bytes {first}-{end - 1}/{length}"}
    return FileResponse(opened, first, end, own, status_code=206)


class FileResponse(StreamedResponse):
    """Some bytes of an open file, which is closed also where the client leaves before the first of them."""

    def __init__(self, opened: OpenFile, first: int, end: int, headers: dict[str, str], status_code: int = 200) -> None:
        super().__init__(_read(opened, first, end), headers, status_code)
        self._file = opened.file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, and close the file whatever happens."""
        with self._file:
            await super().__call__(scope, receive, send)


async def _read(opened: OpenFile, first: int, end: int) -> AsyncGenerator[bytes, None]:
    yield b""  # the headers of a body, also where nothing is read
    opened.file.seek(first)
    while first < end and (part := await to_thread.run_sync(opened.file.read, min(_READ, end - first))):
        first += len(part)
        yield part


def _part(asked: Headers, length: int, tag: str) -> tuple[int, int] | None:
    """The part of a file that a client asks for, by its first byte and the one after its last; None for all of it.

    A range that is not understood, or one of several, is answered with all of the file, as the standard has it.
    """
    found = _RANGE.fullmatch(asked.get("range", "").replace(" ", ""))
    if found is None or asked.get("if-range", tag) != tag:
        return None
    first, last, final = found.groups()
    if final is not None:
        return max(length - int(final), 0), length
    end = min(int(last) + 1, length) if last else length
    return None if last and int(last) < int(first) else (int(first), end)
