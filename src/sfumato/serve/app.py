"""The application: routers put together, errors as problems, and a complete OpenAPI document.

To add a router: write `router(served: Served) -> APIRouter` in a module of its own, work with `served.catalogue`,
`served.settings` and `served.rendered`, raise `RefusedError` for what is refused, and name it in `ROUTERS` with the
path it is mounted at.
"""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

from sfumato import __version__
from sfumato.serve import context as health
from sfumato.serve import reference_page
from sfumato.serve.context import Served
from sfumato.serve.core.access import Settings
from sfumato.serve.core.audit import Audit
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.http import (
    HeadAsGet,
    Preflight,
    Problem,
    RequestLimits,
    SecurityHeaders,
    handle_errors,
    redirect_slashes,
    responses,
)
from sfumato.serve.core.worker_queue import RateLimit, WorkLimits
from sfumato.serve.live import routes as live
from sfumato.serve.live.queue import Desk
from sfumato.serve.page import heads as access_pages
from sfumato.serve.page import heads as error_page
from sfumato.serve.page import routes as page
from sfumato.serve.pxweb import v1, v2
from sfumato.serve.sdmx import routes as sdmx
from sfumato.serve.steward import routes as steward

ROUTERS: tuple[tuple[str, Callable[[Served], APIRouter]], ...] = (
    ("/api/v2", v2.router),
    ("/api", v1.router),
    (sdmx.BASE, sdmx.router),
    ("", health.router),
    ("", access_pages.router),
    ("", reference_page.router),
    ("", page.router),
)
"""Where each interface is mounted."""


def make_app(catalogue: Catalogue, settings: Settings | None = None, *, desk: Desk | None = None) -> FastAPI:
    """The application that serves a catalogue, and at a desk, if there is one, ad-hoc tables."""
    served = Served.of(catalogue, settings or Settings(), live=desk is not None)
    # The pages of documentation that come with FastAPI load scripts from elsewhere; the document itself does not.
    app = FastAPI(title="sfumato", version=__version__, docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    app.state.served = served
    app.state.error_page = error_page.writer(served)
    _guard(app, served)
    handle_errors(app)
    redirect_slashes(app)
    for path, router in ROUTERS:
        app.include_router(router(served), prefix=path)
    if desk is not None:
        app.include_router(live.router(served, desk))
        app.include_router(steward.router(served, desk))
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


def _guard(app: FastAPI, served: Served) -> None:
    """Put the guards before the application, from the innermost to the outermost."""
    settings, access = served.settings, served.access
    app.add_middleware(
        WorkLimits,
        most=settings.most_running,
        of_one=settings.most_of_one,
        threads=settings.threads,
        seconds=settings.seconds,
    )
    app.add_middleware(RequestLimits, most=settings.most_body)
    app.add_middleware(Preflight)
    if settings.calls > 0:
        app.add_middleware(RateLimit, access=access, calls=settings.calls, window=settings.window)
    if settings.audit is not None:
        app.add_middleware(Audit, access=access, folder=settings.audit, addresses=settings.addresses)
    app.add_middleware(SecurityHeaders, access=access)
    app.add_middleware(HeadAsGet)


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with problems in place of FastAPI's own description of errors."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, summary=_SUMMARY, routes=app.routes)
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                known = _ANYWHERE | (_OF_BODIES if "requestBody" in operation else {})
                operation["responses"] |= {str(status): said for status, said in known.items()}
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Problem"] = Problem.model_json_schema()
        app.openapi_schema = document
    return app.openapi_schema


_ANYWHERE = responses(414, 429, 431, 503)
"""Problems that any request may meet, before it reaches its route."""
_OF_BODIES = responses(413, 415)
"""Those of a request with a body: it is too long, or compressed."""
_SUMMARY = "Protected tables, with error figures and guarantees, for the tools statisticians use"
