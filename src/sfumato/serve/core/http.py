"""What every response shares: headers of security, problems (RFC 7807), HEAD, slashes, sizes of requests."""

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import numpy as np
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.errors import DiskError, SfumatoError
from sfumato.serve.core.access import PRIVATE, Access
from sfumato.serve.core.errors import RefusedError, server_fault, shortened

# Headers that every response has: browsers run and load nothing but what this server sends.
#
# Other sites may show public tables, so that what programs ask for may be read from anywhere. Whatever needs a token is
# for nobody else: it is neither kept on the way nor shown to other sites, whatever its route says.

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
PUBLIC = ("/api", "/sdmx", "/catalog", "/openapi.json")
"""What pages of other sites may ask for."""
Raw = list[tuple[bytes, bytes]]
_DAY = 24 * 60 * 60


def _raw(headers: Mapping[str, str]) -> Raw:
    """Headers as they are sent: they are written for every response, so once is enough."""
    return [(name.lower().encode(), text.encode()) for name, text in headers.items()]


_OWN = _raw({**HEADERS, "Cross-Origin-Resource-Policy": "same-origin"})
_SHARED = _raw(
    {
        **HEADERS,
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "Content-Disposition, ETag, Retry-After",
    }
)
_HTTPS = (b"strict-transport-security", f"max-age={365 * _DAY}".encode())


class SecurityHeaders:
    """An application whose responses have the headers."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and put the headers on what comes back."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = self._guarded(scope, list(message.get("headers", ())))
            await send(message)

        await self._app(scope, receive, guarded if scope["type"] == "http" else send)

    def _guarded(self, scope: Scope, headers: Raw) -> Raw:
        if scope.get(PRIVATE):
            own = MutableHeaders(raw=headers)
            own["Cache-Control"] = "private, no-store"
            own.add_vary_header("Authorization, Cookie")
            del own["Access-Control-Allow-Origin"]
            headers = own.raw
        more = _OWN if scope.get(PRIVATE) or not is_public(scope) else _SHARED
        present = {name for name, _ in headers}
        headers.extend(header for header in more if header[0] not in present)
        if self._access.secure(scope):
            headers.append(_HTTPS)
        return headers


class Preflight:
    """An application that tells browsers what other sites may ask for: public tables, without a token."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a browser that asks whether another site's page may ask."""
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and is_public(scope):
            asked = Headers(scope=scope)
            if "origin" in asked and "access-control-request-method" in asked:
                await _ALLOWED(scope, receive, send)
                return
        await self._app(scope, receive, send)


_ALLOWED = Response(
    status_code=204,
    headers={
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Accept, Content-Type, If-None-Match",
        "Access-Control-Max-Age": str(_DAY),
    },
)


def is_public(scope: Scope) -> bool:
    """Whether a path belongs to the interfaces for programs."""
    path: str = scope["path"]
    return any(path == public or path.startswith(f"{public}/") for public in PUBLIC)


# Every error as problem+json (RFC 7807), or as a page for people: what was expected, what was found, what to do.

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """What went wrong."""

    type: str = Field(description="kind of problem; about:blank where the title says it all")
    title: str = Field(description="the kind of problem in words")
    status: int = Field(description="the HTTP status")
    detail: str = Field(description="what was expected, what was found, and what to do")
    instance: str = Field(description="the path that was asked for")


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route documents the problems it may answer with."""
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": _REFERENCE}}}
        for status in statuses
    }


FAILED = "The server failed to answer. This is a fault of the server, not of the request."
_LONGEST = 1_000
_QUALITY = re.compile(r"[01](\.[0-9]{0,3})?")
_REFERENCE = {"$ref": "#/components/schemas/Problem"}


def problem(
    request: Request,
    status: int,
    detail: str,
    headers: dict[str, str] | None = None,
    *,
    error: SfumatoError | None = None,
) -> Response:
    """A response that says what went wrong: a page to those who read pages, problem+json to everybody else."""
    if wants_page(request):
        page: Response = request.app.state.error_page(request, status, detail, headers or {}, error)
        return page
    content = Problem(
        type="about:blank",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        instance=shortened(request.url.path),
    )
    return Response(
        json.dumps(content.model_dump(), ensure_ascii=False).encode("utf-8", "replace"),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def wants_page(request: Request) -> bool:
    """Whether a client is a browser that opens a page: it would rather have HTML than anything else."""
    if is_public(request.scope) or "app" not in request.scope:
        return False  # addresses of programs alone say the same to everybody
    return preferred(",".join(request.headers.getlist("accept"))) in ("text/html", "application/xhtml+xml")


def preferred(accept: str) -> str:
    """The media type that a client would like best, of several that it likes alike the first.

    >>> preferred("text/html,application/xml;q=0.9,*/*;q=0.8"), preferred("text/html;q=0.5, application/json")
    ('text/html', 'application/json')
    """
    best, most = "*/*", 0.0
    for part in accept[:_LONGEST].split(","):
        name, *parameters = (text.strip().lower() for text in part.split(";"))
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        number = float(quality) if _QUALITY.fullmatch(quality) else 0.0
        if name and number > most:
            best, most = name, number
    return best


def _methods(app: FastAPI, path: str) -> set[str]:
    """The methods of a path; several routes may have it, and each knows only its own."""
    known = {
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in operations
    }
    return known | ({"HEAD"} if "GET" in known else set())


def one_line(error: SfumatoError) -> str:
    """An error of sfumato in one line."""
    return f"{error.where}: expected {error.expected}; found {error.found}. To do: {error.do}."


def handle_errors(app: FastAPI) -> None:
    """Make an application answer with problems, whatever goes wrong."""

    @app.exception_handler(RefusedError)
    async def refused(request: Request, error: RefusedError) -> Response:
        return problem(request, error.status, one_line(error), error=error)

    @app.exception_handler(DiskError)
    async def full(request: Request, error: DiskError) -> Response:
        return await refused(request, server_fault(error))

    @app.exception_handler(SfumatoError)
    async def wrong(request: Request, error: SfumatoError) -> Response:
        return problem(request, 400, one_line(error), error=error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first.get("loc", ()))
        return problem(request, 400, shortened(f"{where}: {first.get('msg', 'the request is not valid')}"))

    @app.exception_handler(HTTPException)
    async def raised(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            own = {method.strip() for method in headers.get("Allow", "").split(",") if method.strip()}
            headers["Allow"] = ", ".join(sorted(own | _methods(app, request.url.path)))
        return problem(request, error.status_code, shortened(str(error.detail)), headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, _error: Exception) -> Response:
        # The text of a foreign error may quote anything: it goes to the log of the server only.
        return problem(request, 500, FAILED)


# HEAD: what GET would answer, without the body.

_SENT = "sfumato.method"


class HeadAsGet:
    """An application that answers HEAD wherever it answers GET.

    It stands before everything else: the request goes on as a GET of its own, and what others note in it stays theirs.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and keep back the body of an answer to HEAD."""

        async def without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET", _SENT: "HEAD"}, receive, without_body)
        else:
            await self._app(scope, receive, send)


def method_sent(scope: Scope) -> str:
    """The method that the client sent, whatever it goes on as."""
    method: str = scope.get(_SENT, scope["method"])
    return method


# Addresses with a slash too many or too few: clients are sent to the right one on whatever host they asked.


def redirect_slashes(app: FastAPI) -> None:
    """Send clients to the path that exists; the address has no host, which the client could have made up."""
    app.router.redirect_slashes = False
    otherwise = app.router.default

    async def redirected(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path: str = scope["path"]
            other = path.rstrip("/") if path.endswith("/") else f"{path}/"
            there = {**scope, "path": other}
            if any(route.matches(there)[0] is not Match.NONE for route in app.router.routes):
                query = scope["query_string"].decode("latin-1")
                # Two slashes at the beginning would be the name of another host.
                place = "/" + quote(other.lstrip("/")) + (f"?{query}" if query else "")
                await RedirectResponse(place)(scope, receive, send)
                return
        await otherwise(scope, receive, send)

    app.router.default = redirected


# Requests of a bounded size, read before anybody works on them.
#
# Bodies are small, so each is read to its end first: whoever sends one slowly keeps nobody else waiting.

MOST_ADDRESS = 16_000
"""Bytes that the address of a request may have."""
MOST_HEADERS = 32_000
"""Bytes that its headers may have."""
MOST_DEPTH = 20
"""How deep lists and objects may be inside one another."""
MOST_PARTS = 1_000
"""How many lists and objects a body may have: many tiny ones take long to read."""
_WITHOUT_BODY = ("GET", "HEAD", "OPTIONS")
_OTHERS = bytes(set(range(256)) - set(b'[]{}"'))


class RequestLimits:
    """An application that refuses requests that are too long or too deep."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app, self._most = app, most

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
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":  # what came so far may look whole, but nobody waits for an answer
                return problem(Request(scope), 400, "The body ended too early. To do: send all of it.")
            part, more = message.get("body", b""), message.get("more_body", False)
            parts.append(part)
            read += len(part)
            if read > self._most:
                return self._too_long(scope)
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
