"""A server that readers find below a path of another one: https://example.org/statistics, say.

Within, addresses begin at the root, and nobody has to think of it. Here, at the border, the path is taken off what
comes in, whether the proxy did so before or not, and put before every address of this server in what goes out.
Interfaces for programs write whole addresses, which begin with what `--url` says.
"""

import re

from starlette.datastructures import MutableHeaders
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ADDRESS = re.compile(rb'(\s(?:href|action|formaction|src|data-[a-z-]+)=")(?=/(?!/))')
"""In a page, where an address of this server begins. No text of a page can look so: its quotes are escaped."""


OURS = (
    *("api", "catalog", "embed", "health", "live", "mcp", "metrics", "openapi.json", "reference", "sdmx"),
    *("sign-in", "sign-out", "static", "steward", "tables"),
)
"""How addresses of this server begin."""


class Prefix:
    """An application below a path."""

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self._app, self._prefix = app, prefix
        self._like_ours = prefix.split("/")[1] in OURS
        """Then a path may begin so although the proxy took the prefix off: what leads somewhere is meant."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on without the path, and put it into what comes back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if path == self._prefix or path.startswith(f"{self._prefix}/"):
            within = path[len(self._prefix) :] or "/"
            if not self._like_ours or _leads_somewhere(scope, within) or not _leads_somewhere(scope, path):
                scope["path"] = within
        begin: Message | None = None

        async def prefixed(message: Message) -> None:
            nonlocal begin
            if message["type"] == "http.response.start":
                begin = {**message, "headers": list(message.get("headers", ()))}
                return
            if begin is not None:
                start, begin = begin, None
                headers = MutableHeaders(raw=start["headers"])
                there = headers.get("location", "")
                if there.startswith("/") and not there.startswith("//"):
                    headers["Location"] = f"{self._prefix}{there}"
                if headers.get("content-type", "").startswith("text/html") and not message.get("more_body"):
                    body = _ADDRESS.sub(rb"\1" + self._prefix.encode(), message.get("body", b""))
                    message = {**message, "body": body}
                    if "content-length" in headers:
                        headers["Content-Length"] = str(len(body))
                await send(start)
            await send(message)

        await self._app(scope, receive, prefixed)


def _leads_somewhere(scope: Scope, path: str) -> bool:
    """Whether the application has a route for a path."""
    there = {**scope, "path": path}
    return any(route.matches(there)[0] is not Match.NONE for route in scope["app"].router.routes)
