"""Addresses with a slash too many or too few: clients are sent to the right one on whatever host they asked."""

from urllib.parse import quote

from fastapi import FastAPI
from starlette.responses import RedirectResponse
from starlette.routing import Match
from starlette.types import Receive, Scope, Send


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
