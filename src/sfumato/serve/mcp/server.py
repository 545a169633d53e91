"""The protocol: tools over a catalogue, spoken over HTTP at `/mcp` or over standard input and output.

The SDK is an extra: this file, and nothing else, imports it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import HTTPException
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import Field
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sfumato import __version__
from sfumato.errors import SfumatoError
from sfumato.serve.context import ServerContext
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.http import one_line
from sfumato.serve.mcp.answers import DATA, MOST_CELLS, READING, cells_of, describe_table, search_tables, select_cells

PATH = "/mcp"
INSTRUCTIONS = (
    "Published statistical tables of an office, protected for privacy. First search_tables, then describe_table for "
    f"dimensions, codes and what is promised, then get_data. {READING} {DATA}"
)
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_TABLE = Field(description="identifier of a table, as search_tables lists it", max_length=400)
_MOST_CODES = 1_000
T = TypeVar("T")


class Worker(Protocol):
    """Who works out an answer for a request, if there is one; `ServerContext` and a plain thread are two."""

    def __call__(self, work: Callable[[], T], request: Request | None) -> Awaitable[T]:
        """Work in a thread."""
        ...


def make_server(catalogue: Callable[[], Catalogue], work: Worker, *, url: str = "") -> MCPServer[Any]:
    """The tools; `catalogue` gives the tables as they are now."""
    server: MCPServer[Any] = MCPServer(
        "sfumato",
        title="Protected statistical tables",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="ERROR",
        subscriptions=False,
    )

    async def told(answer: Callable[[], T], ctx: Context[Any, Any]) -> T:
        """The answer, or in words why there is none."""
        try:
            return await work(answer, _request(ctx))
        except SfumatoError as error:
            raise ToolError(one_line(error)) from None
        except HTTPException as error:  # too much is waited for, or nobody waits any more
            raise ToolError(str(error.detail)) from None

    @server.tool(name="search_tables", title="Search tables", annotations=_READ_ONLY)
    async def search(
        ctx: Context[Any, Any],
        query: Annotated[str, Field(description="words that a table has to have; none lists all", max_length=500)] = "",
        page: Annotated[int, Field(description="which page, from 1", ge=1)] = 1,
    ) -> dict[str, Any]:
        """Find tables by words of their titles, dimensions, populations and periods."""
        tables = catalogue()
        return await told(lambda: search_tables(tables, query, page), ctx)

    @server.tool(name="describe_table", title="Describe a table", annotations=_READ_ONLY)
    async def describe(
        ctx: Context[Any, Any],
        table: Annotated[str, _TABLE],
        dimension: Annotated[str, Field(description="a dimension to see alone", max_length=400)] = "",
        find: Annotated[str, Field(description="words that codes of that dimension have", max_length=400)] = "",
    ) -> dict[str, Any]:
        """Say what a table has: dimensions with codes, kinds of figure, method, privacy guarantee and notes."""
        tables = catalogue()
        return await told(lambda: describe_table(tables[table], dimension, find, url), ctx)

    @server.tool(
        name="get_data",
        title="Get figures",
        description=f"Figures of a table, up to {MOST_CELLS}: each with its error or interval and its status in words, "
        "all with a note on privacy.",
        annotations=_READ_ONLY,
    )
    async def data(
        ctx: Context[Any, Any],
        table: Annotated[str, _TABLE],
        codes: Annotated[
            dict[str, Annotated[list[str], Field(max_length=_MOST_CODES)]],
            Field(description="by dimension its codes, or *, top(n), bottom(n), range(a,b), from(a), to(b)"),
        ],
        figures: Annotated[list[str], Field(description="kinds of figure; none is all", max_length=_MOST_CODES)] = [],  # noqa: B006 — the SDK copies it
    ) -> dict[str, Any]:
        tables = catalogue()

        def answer() -> dict[str, Any]:
            found = tables[table]
            selection = select_cells(found, codes, figures)
            request = _request(ctx)
            if request is not None:
                AuditedQuery.of(found, selection).attach(request.scope)
            return cells_of(found.answer(selection), url)

        return await told(answer, ctx)

    return server


def _request(ctx: Context[Any, Any]) -> Request | None:
    """The HTTP request that a call came with; none where it came over standard input."""
    found: Request | None = ctx.request_context.request
    return found


class OverHttp:
    """The tools at an address of the server, under all its limits: no session is kept, and every call is whole."""

    def __init__(self, context: ServerContext) -> None:
        def work(work: Callable[[], T], request: Request | None) -> Awaitable[T]:
            client = "mcp" if request is None else context.client(request.scope)
            return context.worker_queue.download(work, client=client)

        server = make_server(lambda: context.catalogue, work, url=context.settings.url)
        # Published tables are for everybody, whatever the host is called; there is nothing a stranger's page could do.
        server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=context.settings.most_body,
        )
        self._sessions = server.session_manager
        self.route = Route(PATH, endpoint=self, methods=["POST"], include_in_schema=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call."""
        scope["route"] = self.route  # what numbers and traces know it by, as that of every other interface
        await self._sessions.handle_request(scope, receive, send)

    @asynccontextmanager
    async def running(self, _app: object) -> AsyncIterator[None]:
        """Answer for as long as the server runs."""
        async with self._sessions.run():
            yield
