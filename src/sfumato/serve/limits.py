"""Requests of a bounded size that are read in a bounded time, before anybody works on them.

Bodies are small, so each is read to its end first: whoever sends one slowly keeps nobody else waiting.
"""

import asyncio

import numpy as np
from starlette.datastructures import Headers
from fastapi import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.serve.problems import problem

MOST_ADDRESS = 16_000
"""Bytes that the address of a request may have."""
MOST_HEADERS = 32_000
"""Bytes that its headers may have."""
MOST_HELD = 100_000_000
"""Bytes of bodies that have not come to their end yet, of all clients together."""
MOST_DEPTH = 20
"""How deep lists and objects may be inside one another."""
MOST_PARTS = 1_000
"""How many lists and objects a body may have: many tiny ones take long to read."""
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")
_OTHERS = bytes(set(range(256)) - set(b'[]{}"'))


class RequestLimits:
    """An application that refuses requests that are too long, too deep or too slow."""

    def __init__(self, app: ASGIApp, *, most: int, patience: float) -> None:
        self._app, self._most, self._patience = app, most, patience
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, once its body is there."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._lengths(scope)
        if refusal is None and scope["method"] not in _WITHOUT_BODY:
            body = await self._body(scope, receive)
            if isinstance(body, bytes):
                receive = _replayed(body, receive)
            else:
                refusal = body
        await (refusal or self._app)(scope, receive, send)

    def _lengths(self, scope: Scope) -> Response | None:
        """What refuses a request by its first lines."""
        request, headers = Request(scope), Headers(scope=scope)
        if len(scope["raw_path"]) + len(scope["query_string"]) > MOST_ADDRESS:
            words = f"The address has more than {MOST_ADDRESS:,} bytes. To do: ask with POST, or in several parts."
            return problem(request, 414, words)
        if sum(len(name) + len(text) for name, text in scope["headers"]) > MOST_HEADERS:
            return problem(request, 431, f"The headers have more than {MOST_HEADERS:,} bytes. To do: send fewer.")
        if scope["method"] in _WITHOUT_BODY:
            return None
        codings = {one.strip().lower() for text in headers.getlist("content-encoding") for one in text.split(",")}
        if codings - {"", "identity"}:
            return problem(request, 415, "The body is compressed. To do: send it as it is.")
        said = headers.get("content-length", "0")
        return self._too_long(scope) if said.isdecimal() and int(said[:20]) > self._most else None

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response:
        """The body, or what refuses it."""
        parts, read, more = [], 0, True
        try:
            async with asyncio.timeout(self._patience):
                while more:
                    message = await receive()
                    part, more = message.get("body", b""), message.get("more_body", False)
                    parts.append(part)
                    read += len(part)
                    self._held += len(part)
                    if read > self._most:
                        return self._too_long(scope)
                    if self._held > MOST_HELD:
                        words = "The server reads as much as it can. To do: ask again in a few seconds."
                        return problem(Request(scope), 503, words, {"Retry-After": "5"})
        except TimeoutError:
            words = f"The body took more than {self._patience:g} s to come. To do: send it faster, or in parts."
            return problem(Request(scope), 408, words)
        finally:
            self._held -= read
        body = b"".join(parts)
        parts_of_it, deepest = nested(body)
        if deepest > MOST_DEPTH:
            words = f"The body has lists or objects more than {MOST_DEPTH} deep. To do: correct the body."
            return problem(Request(scope), 400, words)
        if parts_of_it > MOST_PARTS:
            words = f"The body has more than {MOST_PARTS:,} lists and objects. To do: ask in several parts."
            return problem(Request(scope), 400, words)
        return body

    def _too_long(self, scope: Scope) -> Response:
        words = f"The body has more than {self._most:,} bytes. To do: ask in several parts."
        return problem(Request(scope), 413, words)


def nested(body: bytes) -> tuple[int, int]:
    """How many lists and objects a JSON text has, and how deep they are inside one another.

    Brackets inside texts do not count. It is asked of every body before anything else, so it is quick.

    >>> nested(b'{"a": [[1], "[[[["]}'), nested(b'"{'), nested(b"")
    ((3, 3), (0, 0), (0, 0))
    """
    # Without the backslashes and quotes that a backslash is before, every quote begins or ends a text.
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = np.frombuffer(plain.translate(None, _OTHERS), dtype=np.uint8)
    quotes = marks == ord('"')
    brackets = marks[~(np.logical_xor.accumulate(quotes) | quotes)]
    opening = (brackets == ord("[")) | (brackets == ord("{"))
    steps = np.where(opening, np.int32(1), np.int32(-1))
    return int(opening.sum()), int(np.cumsum(steps).max(initial=0))


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Receive a body that was read already; what comes after it is the end of the connection."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
