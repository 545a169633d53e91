"""Headers that every response has: browsers run and load nothing but what this server sends.

Other sites may show public tables, so that what programs ask for may be read from anywhere. Whatever needs a token is
for nobody else: it is neither kept on the way nor shown to other sites, whatever its route says.
"""

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.serve.access import PRIVATE, Access

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
PUBLIC = ("/api", "/sdmx", "/openapi.json")
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
