"""Answers compressed for clients that take them so, once for all who ask for the same."""

import asyncio
import re
import zlib
from functools import lru_cache
from http import HTTPStatus

import pyarrow as pa
from anyio import to_thread
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.serve.core.access import PRIVATE
from sfumato.serve.core.figures import BoundedCache
from sfumato.serve.core.http import Raw

SMALL = 1_000
"""Bytes of an answer that is sent as it is: less would not be saved in one packet."""
LONG = 50_000
"""Bytes from which on an answer is compressed in a thread."""
_LEVELS = {"zstd": 3, "gzip": 5}
"""Codings, the one we like best first."""
_TEXT = re.compile(
    rb"(text/(?!event-stream)|application/(octet-stream|(\S+\+)?json|javascript|(\S+\+)?xml|\S*sdmx)|image/svg)"
)
"""What becomes shorter; workbooks and Parquet files are compressed by themselves."""
_QUALITY = re.compile(r"q\s*=\s*([01](?:\.[0-9]{0,3})?)")
_TAGGED = re.compile(rb'"([0-9a-f]+)-(zstd|gzip)"')


@lru_cache(maxsize=1_000)
def coding(accept: str, offered: tuple[str, ...] = tuple(_LEVELS)) -> str | None:
    """The coding that a client gets of those offered, by what it accepts; None if it wants the answer as it is.

    >>> coding("gzip, deflate, br, zstd"), coding("gzip;q=0.5, *;q=0"), coding("identity, gzip;q=0.5"), coding("")
    ('zstd', 'gzip', None, None)
    """
    wished: dict[str, float] = {}
    for part in accept.lower()[:1_000].split(","):
        name, _, more = part.partition(";")
        found = _QUALITY.search(more)
        wished[name.strip()] = float(found[1]) if found else 1.0
    plain = wished.get("identity", 0.0)
    for name in offered:
        quality = wished.get(name, wished.get("*", 0.0) if name == "gzip" else 0.0)
        if quality > 0 and quality >= plain:
            return name
    return None


def compressed(body: bytes, name: str) -> bytes:
    """A body in a coding; the same body always gives the same bytes."""
    if name == "zstd":
        found: bytes = pa.Codec("zstd", compression_level=_LEVELS[name]).compress(body, asbytes=True)
        return found
    return zlib.compress(body, _LEVELS[name], wbits=_GZIP)


_GZIP = 16 + zlib.MAX_WBITS


class Compression:
    """An application whose answers are compressed.

    What is not for everybody is sent as it is: the length of an answer that holds a secret beside what a client wrote
    could tell of the secret.
    """

    def __init__(self, app: ASGIApp, *, cache_bytes: int) -> None:
        self._app = app
        self._cache = BoundedCache[bytes](cache_bytes)
        self._under_way: dict[tuple[bytes, str], asyncio.Task[bytes]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and compress what comes back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = [text for name, text in scope["headers"] if name == b"accept-encoding"]
        accepted = b",".join(said).decode("latin-1")
        known = _plain_tags(scope)
        begin: Message | None = None
        stream: zlib._Compress | None = None

        async def written(message: Message) -> None:
            nonlocal begin, stream
            if message["type"] == "http.response.start":
                begin = message
                return
            if message["type"] != "http.response.body":
                await send(message)
                return
            body, more = message.get("body", b""), message.get("more_body", False)
            if begin is not None:
                raw = list(begin.get("headers", ()))
                start, begin = {**begin, "headers": raw}, None
                headers, tag = MutableHeaders(raw=raw), _header(raw, b"etag")
                if start["status"] == 304:
                    self._unchanged(scope, headers, known, coding(accepted))
                elif self._may(scope, start["status"], raw, body, more=more):
                    headers.add_vary_header("Accept-Encoding")
                    in_parts = more or "content-length" not in headers
                    wanted = coding(accepted, ("gzip",)) if in_parts else coding(accepted)
                    if wanted:
                        del headers["Accept-Ranges"]  # of other bytes
                    if wanted and in_parts:
                        stream = zlib.compressobj(_LEVELS["gzip"], wbits=_GZIP)
                        _say(headers, wanted)
                        del headers["Content-Length"]
                    elif wanted:
                        body = await self._whole(body, wanted, tag)
                        _say(headers, wanted)
                        headers["Content-Length"] = str(len(body))
                await send(start)
            if stream is not None:
                # What is there so far is sent, however little it is: it may have taken long.
                body = stream.compress(body) + stream.flush(zlib.Z_SYNC_FLUSH if more else zlib.Z_FINISH)
            await send({**message, "body": body})

        await self._app(scope, receive, written)

    def _unchanged(self, scope: Scope, headers: MutableHeaders, known: dict[bytes, bytes], name: str | None) -> None:
        """Say to a client that has an answer which one it has.

        A proxy puts these headers in place of those that it keeps: they have to say that others get another coding.
        """
        if not scope.get(PRIVATE):
            headers.add_vary_header("Accept-Encoding")
        tag = headers.get("etag", "").encode("latin-1")
        if tag in known:  # the answer that the client has, as it has it
            headers["ETag"] = known[tag].decode()
        elif name and (b"if-none-match", b"*") in scope["headers"] and self._cache.get((tag, name)) is not None:
            headers["ETag"] = _tagged(tag.decode(), name)  # it has any: the one that it would get

    @staticmethod
    def _may(scope: Scope, status: int, headers: Raw, body: bytes, *, more: bool) -> bool:
        """Whether an answer is for everybody, becomes shorter, and is worth it; one of unknown length is long.

        HEAD of such an answer has no body, and the headers that GET has. A part of a file stays a part of that file.
        """
        long = more or len(body) >= SMALL or not _header(headers, b"content-length")
        if not long or status == HTTPStatus.PARTIAL_CONTENT:
            return False
        text = _TEXT.match(_header(headers, b"content-type")) is not None
        return text and not scope.get(PRIVATE) and not _header(headers, b"content-encoding")

    async def _whole(self, body: bytes, name: str, tag: bytes) -> bytes:
        """A body in a coding: one with a tag is compressed once, however many ask for it."""
        if not tag:
            return await _in_thread(body, name)
        key = (tag, name)
        kept = self._cache.get(key)
        if kept is None:
            task = self._under_way.get(key)
            if task is None:
                task = self._under_way[key] = asyncio.ensure_future(_in_thread(body, name))
                task.add_done_callback(lambda _: self._under_way.pop(key, None))
            kept = await asyncio.shield(task)  # who leaves takes nothing from the others
            self._cache.put(key, kept, size=len(kept))
        return kept


def _header(headers: Raw, name: bytes) -> bytes:
    return next((text for key, text in headers if key == name), b"")


async def _in_thread(body: bytes, name: str) -> bytes:
    return compressed(body, name) if len(body) < LONG else await to_thread.run_sync(compressed, body, name)


def _say(headers: MutableHeaders, name: str) -> None:
    """Name the coding, also in the tag: other bytes have another tag."""
    headers["Content-Encoding"] = name
    tag = headers.get("etag", "")
    if tag.endswith('"'):
        headers["ETag"] = _tagged(tag, name)


def _tagged(tag: str, name: str) -> str:
    """The tag of an answer in a coding."""
    return f'{tag[:-1]}-{name}"'


def _plain_tags(scope: Scope) -> dict[bytes, bytes]:
    """The tags of compressed answers that a client has, by the tags that the application knows and is shown."""
    found: dict[bytes, bytes] = {}

    def plain(match: "re.Match[bytes]") -> bytes:
        found[b'"' + match[1] + b'"'] = match[0]
        return b'"' + match[1] + b'"'

    if any(name == b"if-none-match" for name, _ in scope["headers"]):
        scope["headers"] = [
            (name, _TAGGED.sub(plain, text) if name == b"if-none-match" else text) for name, text in scope["headers"]
        ]
    return found
