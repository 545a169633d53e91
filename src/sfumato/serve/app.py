"""The application: routers put together, errors as problems, and a complete OpenAPI document.

To add a router: write `router(context: ServerContext) -> APIRouter` in a module of its own, work with
`context.catalogue`, `context.settings` and `context.rendered`, raise `RefusedError` for what is refused, and name it in
`ROUTERS` with the path it is mounted at.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.telemetry import TelemetryConfig
from pydantic import BaseModel, Field
from starlette.responses import Response

from sfumato import __version__
from sfumato.serve.context import ServerContext
from sfumato.serve.core.access import Settings
from sfumato.serve.core.audit import Audit
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.compress import Compression
from sfumato.serve.core.editions import OneEdition
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
from sfumato.serve.core.metrics import MEDIA_TYPE as TEXT
from sfumato.serve.core.metrics import PATH as METRICS
from sfumato.serve.core.metrics import Measured, Metrics
from sfumato.serve.core.prefix import Prefix
from sfumato.serve.core.rate_limit import RateLimit
from sfumato.serve.core.traces import Traced
from sfumato.serve.core.worker_queue import WorkLimits
from sfumato.serve.dcat import routes as dcat
from sfumato.serve.dcat.catalogue import CATALOG
from sfumato.serve.formats.json_stat import BASE, LANGUAGE
from sfumato.serve.live import routes as live
from sfumato.serve.live.queue import LiveQueue
from sfumato.serve.page import reference, site
from sfumato.serve.page import routes as page
from sfumato.serve.pxweb import v1, v2
from sfumato.serve.sdmx import rest3
from sfumato.serve.sdmx import routes as sdmx
from sfumato.serve.steward import routes as steward

if TYPE_CHECKING:  # only names for types
    from opentelemetry.trace import TracerProvider

    from sfumato.serve.mcp.server import OverHttp

HEALTH = "/health"
_OK = b'{"status":"ok"}'  # nothing is worked out: what is left is what every answer costs


class Health(BaseModel):
    """That the server answers."""

    status: str = Field(description="always ok: a server that is not does not answer")


def health(_context: ServerContext) -> APIRouter:
    """An address that does nothing, for those who watch the server and those who measure it."""
    api = APIRouter(tags=["Server"])

    @api.get(HEALTH, response_model=Health)
    async def answers() -> Response:
        """That the server answers."""
        return Response(_OK, media_type="application/json")

    return api


ROUTERS: tuple[tuple[str, Callable[[ServerContext], APIRouter]], ...] = (
    (BASE, v2.router),
    ("/api", v1.router),
    (sdmx.BASE, sdmx.router),
    (sdmx.BASE_3, rest3.router),
    ("", dcat.router),
    ("", health),
    ("", site.router),
    ("", reference.router),
    ("", page.router),
)
"""Where each interface is mounted."""


def addresses(catalogue: Catalogue, address: str, queue: LiveQueue | None, *, mcp: bool = False) -> Iterator[str]:
    """Lines that say what can be opened where; the first has the address itself."""
    first = next(iter(catalogue))
    yield f"Serving {len(catalogue)} tables at {address} — stop with Ctrl+C."
    yield f"  page for people  {address}/"
    yield f'  PxWebApi 2       {address}{BASE}/tables   Python: PxApi("{address}{BASE}")'
    old = f"{address}/api/v1/{LANGUAGE}"
    yield f'  PxWebApi 1       {old}   R: pxweb_interactive("{old}")'
    yield f"  SDMX 2.1, 3.0    {address}{sdmx.BASE}/dataflow   {address}{sdmx.BASE_3}/structure/dataflow"
    yield f"  DCAT-AP          {address}{CATALOG}"
    yield f"  Excel            {address}{BASE}/tables/{first.id}/data?outputFormat=xlsx"
    if mcp:
        yield f"  language models  {address}/mcp"
    if queue is not None:
        yield f"  ad-hoc tables    {address}{site.LIVE}   with a token"
        yield f"  steward          {address}{site.STEWARD}   with the token of a steward"


class _Application(FastAPI):
    """The application, whose document says problems in place of FastAPI's own description of errors."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        if self.openapi_schema is None:
            document = get_openapi(
                title=self.title,
                version=self.version,
                summary=_SUMMARY,
                routes=self.routes,
                servers=self.servers or None,
            )
            for operations in document["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
                    known = _ANYWHERE | (_OF_BODIES if "requestBody" in operation else {})
                    operation["responses"] |= {str(status): said for status, said in known.items()}
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            schemas["Problem"] = Problem.model_json_schema()
            self.openapi_schema = document
        return self.openapi_schema


def make_app(
    catalogue: Catalogue,
    settings: Settings | None = None,
    *,
    queue: LiveQueue | None = None,
    traces: "TracerProvider | None" = None,
) -> FastAPI:
    """The application that serves a catalogue, and if there is a queue for them, ad-hoc questions."""
    context = ServerContext.of(catalogue, settings or Settings(), live=queue is not None)
    agents = _agents(context) if context.settings.mcp else None
    # The pages of documentation that come with FastAPI load scripts from elsewhere; the document itself does not.
    app = _Application(
        title="sfumato",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        lifespan=None if agents is None else agents.running,
        telemetry=_SILENT,
        servers=[{"url": context.settings.url}] if context.settings.url else None,
    )
    app.state.context = context
    app.state.error_page = site.error_page(context)
    _guard(app, context, traces)
    handle_errors(app)
    redirect_slashes(app)
    for path, router in ROUTERS:
        app.include_router(router(context), prefix=path)
    if queue is not None:
        app.include_router(live.router(context, queue))
        app.include_router(steward.router(context, queue))
    if agents is not None:
        app.router.routes.append(agents.route)
    return app


def _agents(context: ServerContext) -> "OverHttp":
    """What answers language models; it is an extra, so it is imported only where it was asked for."""
    from sfumato.serve.mcp.server import OverHttp  # noqa: PLC0415

    return OverHttp(context)


def _measured(app: FastAPI, context: ServerContext) -> None:
    """Count answers, and show the numbers."""
    queue, editions = context.worker_queue, context.editions
    metrics = Metrics(
        lambda: {
            "sfumato_answers_waiting": ("Pages and downloads that are written or wait", queue.counts.total),
            "sfumato_answers_shared": ("Requests that wait for what another one asked", queue.sharing.total),
            "sfumato_answers_kept_bytes": ("Memory of finished answers", editions.current.cache.held),
            "sfumato_tables": ("Tables that are served", len(editions.current.catalogue)),
            "sfumato_tables_opened_seconds": ("When the tables were opened, in Unix time", editions.current.opened),
        }
    )
    app.add_middleware(Measured, metrics=metrics)

    @app.get(METRICS, include_in_schema=False)
    async def shown() -> Response:
        """Numbers for those who watch the server."""
        return Response(metrics.text(), media_type=TEXT, headers={"Cache-Control": "no-store"})


def _guard(app: FastAPI, context: ServerContext, traces: "TracerProvider | None") -> None:
    """Put the guards before the application, from the innermost to the outermost."""
    settings, access = context.settings, context.access
    app.add_middleware(OneEdition, editions=context.editions)
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
    if settings.prefix:
        app.add_middleware(Prefix, prefix=settings.prefix)
    app.add_middleware(Compression, cache_bytes=settings.cache_bytes // 4)
    app.add_middleware(SecurityHeaders, access=access)
    if settings.metrics:
        _measured(app, context)
    if traces is not None:
        app.add_middleware(Traced, provider=traces)
    app.add_middleware(HeadAsGet)


_SILENT: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""What FastAPI would tell by itself: whole questions, who asked, and texts of errors. `--traces` tells less."""
_ANYWHERE = responses(414, 429, 431, 503)
"""Problems that any request may meet, before it reaches its route."""
_OF_BODIES = responses(413, 415)
"""Those of a request with a body: it is too long, or compressed."""
_SUMMARY = "Protected tables, with error figures and guarantees, for the tools statisticians use"
