"""The addresses of ad-hoc tables: what can be asked, what it would cost, and the answer."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response
from starlette.types import Scope

from sfumato.serve.context import Rendered, ServerContext, T, write_answer
from sfumato.serve.core.access import require
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.editions import Editions
from sfumato.serve.core.errors import refusing
from sfumato.serve.core.http import responses
from sfumato.serve.core.selection import everything
from sfumato.serve.core.users import Role, User
from sfumato.serve.formats.json_stat import BASE
from sfumato.serve.formats.layout import Options
from sfumato.serve.live import page
from sfumato.serve.live import question as schemas
from sfumato.serve.live.answer_table import live_tables
from sfumato.serve.live.question import LiveQuestion, in_words, price_of
from sfumato.serve.live.queue import LiveQueue, quota_of
from sfumato.serve.page.site import LIVE
from sfumato.serve.pxweb import v2
from sfumato.serve.pxweb.request import data_responses, openapi_body, read_json
from sfumato.statistics.published import PublishedTable

Written = Literal["json-stat2", "csv", "xlsx", "html", "px", "json-px", "parquet"]
Word = Literal[
    "UseCodes", "UseTexts", "UseCodesAndTexts", "IncludeTitle", "SeparatorTab", "SeparatorSpace",
    "SeparatorSemicolon", "ByteOrderMark",
]  # fmt: skip
Analyst = require(Role.analyst)
Asker = Annotated[User, Analyst]


def router(context: ServerContext, queue: LiveQueue) -> APIRouter:
    """The routes of ad-hoc tables, for analysts."""
    api = APIRouter()
    programs = APIRouter(prefix=LIVE, tags=["Live tables"], dependencies=[Analyst])
    live = queue.live

    @programs.get("/config", response_model=schemas.LiveConfig, responses=responses(401, 403))
    async def config(request: Request, user: Asker) -> Any:
        """What can be asked: attributes, measures, limits, and what is left of the budget."""
        if live.most is None:
            return queue.config(user)
        with refusing():  # in threads of pages: long questions keep nobody from it
            return await context.worker_queue.page(lambda: queue.config(user), client=context.client(request.scope))

    async def statistic_of(request: Request) -> PublishedTable:
        """What is asked; the log has it also of those who wait for their turn in vain."""
        body = await request.body()

        def plan() -> PublishedTable:
            return read_json(LiveQuestion, body, request).plan(live)

        with refusing():
            statistic = await context.worker_queue.page(plan, client=context.client(request.scope))
        AuditedQuery(table=statistic.table.name, asked=in_words(statistic), cells=statistic.cells).attach(request.scope)
        return statistic

    @programs.post(
        "/prices",
        response_model=schemas.Price,
        responses=responses(400, 401, 403, 413),
        openapi_extra=openapi_body(LiveQuestion),
    )
    async def price(request: Request, user: Asker) -> Any:
        """What a question would cost and how far its answer would be off; nothing is charged and nothing is read."""
        statistic = await statistic_of(request)
        return await queue.work(
            lambda: price_of(live, statistic, analyst=quota_of(user)), client=context.client(request.scope)
        )

    @programs.post("/tables", responses=data_responses(400, 401, 403, 413), openapi_extra=openapi_body(LiveQuestion))
    async def table(
        request: Request,
        user: Asker,
        written: Annotated[Written, Query(alias="outputFormat", description="the format")] = "json-stat2",
        words: Annotated[list[Word] | None, Query(alias="outputFormatParams", description="how it is written")] = None,
    ) -> Response:
        """The protected table; a new question about jobs is charged first, a repeated one gets the stored answer."""
        settings = context.settings
        options = replace(
            Options.read(list(words or ()), source=settings.source, license=settings.license), linked=False
        )
        statistic = await statistic_of(request)

        def work() -> Rendered:
            table = queue.answer(statistic, user)
            return replace(write_answer(table, everything(table), written, options), query=None)  # logged above

        return (await queue.work(work, client=context.client(request.scope))).respond(request)

    if live.most is None:
        tables = Catalogue(tables={table.id: table for table in live_tables(live)})
        settings = replace(context.settings, state=context.settings.state / "live", url=f"{context.settings.url}{LIVE}")
        # With a cache of its own, which no public route can reach.
        editions = Editions(tables, cache_bytes=settings.cache_bytes)
        asking = LiveContext(
            editions=editions,
            settings=settings,
            access=context.access,
            worker_queue=context.worker_queue,
            streams=context.streams,
            queue=queue,
        )
        api.include_router(
            v2.router(asking), prefix=f"{LIVE}{BASE}", dependencies=[Analyst], responses=responses(401, 403)
        )
    api.include_router(programs)
    api.include_router(page.router(context, queue))
    return api


@dataclass(frozen=True, kw_only=True, eq=False)
class LiveContext(ServerContext):
    """The tables of any attributes as PxWebApi serves them: every answer waits for its turn in the queue."""

    queue: LiveQueue

    def in_parts(self, name: str) -> bool:  # noqa: ARG002
        """Never: each part would be a question of its own to confidential data."""
        return False

    async def work(self, work: Callable[[], T], scope: Scope, _key: Hashable) -> T:
        """Count and protect in a thread of the queue, in turn with other analysts; everybody's question is his own."""
        return await self.queue.work(work, client=self.client(scope))
