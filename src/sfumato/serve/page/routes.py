"""The addresses of the page, its templates, and the files that pages need."""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from jinja2 import Environment
from starlette.responses import RedirectResponse, Response

from sfumato.serve.context import Rendered, ServerContext
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.errors import RefusedError, not_found, refusing
from sfumato.serve.core.model import grouped
from sfumato.serve.core.selection import valueset
from sfumato.serve.core.users import User
from sfumato.serve.page.assets import HTML, Assets, make_templates
from sfumato.serve.page.charts import chart_of
from sfumato.serve.page.question import ReaderQuestion, read
from sfumato.serve.page.site import for_everybody, reader, role_of, site
from sfumato.serve.page.table_page import FILTERS, MOST_LISTED, TablePage, listing, matching, page_title
from sfumato.serve.page.view import view_of

T = TypeVar("T")
_HOST = re.compile(r"[A-Za-z0-9.\-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")


def router(context: ServerContext) -> APIRouter:
    """The routes of the page; they are for people, so the OpenAPI document leaves them out."""
    api = APIRouter(include_in_schema=False)
    assets = Assets.read()
    pages = Pages(context=context, assets=assets, templates=make_templates(assets, context.settings))
    for path, handler in (
        ("/", pages.start),
        ("/tables/{id}", pages.table),
        ("/tables/{id}/chart.svg", pages.chart),
        ("/tables/{id}/codes", pages.codes),
        ("/static/{version}/{name}", pages.static),
    ):
        api.add_api_route(path, handler, response_class=Response)
    return api


@dataclass(frozen=True, kw_only=True, eq=False)
class Pages:
    """What the addresses of the page answer with."""

    context: ServerContext
    assets: Assets
    templates: Environment

    async def start(self, request: Request) -> Response:
        """The list of tables."""
        user = reader(self.context, request)
        key = ("start", role_of(user), request.scope["query_string"])
        kept = self.context.cache.get(key)
        if kept is None:
            found = listing(self.context.catalogue, dict(request.query_params))
            total = len(self.context.catalogue)
            kept = self._render("start.html", user, found=found, filters=FILTERS, total=total)
            self.context.keep(key, kept, len(request.scope["query_string"]))
        return kept.respond(request)

    async def table(self, id: str, request: Request) -> Response:  # noqa: A002
        """A table; a form that was sent is answered with the address of what it asks for."""
        base, user = _base(self.context, request), reader(self.context, request)
        key = ("page", id, base, role_of(user), request.scope["query_string"])
        kept = self.context.cache.get(key)
        if kept is not None:
            return kept.respond(request)
        asked = request.query_params.multi_items()
        pages = TablePage(context=self.context, templates=self.templates, site=site(self.context, user))
        sent = "form" in request.query_params

        def write() -> Rendered | Response:
            question = read(self.context.catalogue[id], asked)
            try:
                if sent and not question.finds:
                    question.selection()
                    return RedirectResponse(f"/tables/{question.table.id}?{question.query()}", status_code=303)
                with refusing():
                    page = pages.write(question, base)
            except RefusedError as error:
                return _unkept(pages.refuse(question, error, asked, base), error.status)
            self.context.keep(key, page, len(request.scope["query_string"]))
            return page

        try:
            found = await self._in_turn(write, request, key)
        except RefusedError as error:
            page: Response = request.app.state.error_page(request, error.status, str(error), {}, error)
            return page
        return found.respond(request) if isinstance(found, Rendered) else found

    async def chart(self, id: str, request: Request) -> Response:  # noqa: A002
        """The chart of a question by itself, to be kept or put into a report."""
        table, asked = self.context.catalogue[id], request.query_params.multi_items()
        key = ("chart", table.id, request.scope["query_string"])
        return (await self._in_turn(lambda: _chart(self.context, read(table, asked)), request, key)).respond(request)

    async def codes(self, id: str, request: Request) -> Response:  # noqa: A002
        """Boxes for the codes of a variable that have some words, for lists too long to be written out."""
        table = self.context.catalogue[id]
        name = request.query_params.get("variable", "")
        axis = table.by_name.get(name.lower(), len(table.dimensions))
        if axis == len(table.dimensions):
            raise not_found("variable", name, "choose one of the table")
        dimension, listed = table.dimensions[axis], request.query_params.get("codelist", "")
        if listed not in ("", valueset(table, dimension)):
            dimension = grouped(dimension, listed)
        places = matching(dimension, request.query_params.get("find", ""))
        given = {"dimension": dimension, "places": places[:MOST_LISTED], "found": len(places)}
        return Rendered.of(self.templates.get_template("codes.html").render(given).encode(), media_type=HTML).respond(
            request
        )

    async def static(self, version: str, name: str, request: Request) -> Response:
        """A file that pages need."""
        found = self.assets.files.get(name) if version == self.assets.version else None
        if found is None:
            raise not_found("file", name, "load the page again")
        return found.respond(request)

    async def _in_turn(self, write: Callable[[], T], request: Request, key: Hashable) -> T:
        """Written in a thread, once for all who ask for the same; also the first look at a table may need figures."""
        client, question = self.context.client(request.scope), self.context.question(key)
        return await self.context.worker_queue.page(write, client=client, question=question)

    def _render(self, template: str, user: User | None, **given: Any) -> Rendered:
        content = self.templates.get_template(template).render(given, site=site(self.context, user)).encode()
        return for_everybody(self.context, Rendered.of(content, media_type=HTML))


def _unkept(page: Rendered, status: int) -> Response:
    """A page that says what went wrong."""
    return Response(page.body, status_code=status, media_type=HTML, headers={"Cache-Control": "no-store"})


def _chart(context: ServerContext, question: ReaderQuestion) -> Rendered:
    selection = question.selection()
    context.refuse_large(selection)
    view = view_of(question, selection)
    drawn = chart_of(view, question, name=page_title(view, question), linked=False)
    if drawn is None:
        raise not_found("chart", "a question without one", "choose another chart")
    disposition = f'attachment; filename="{question.table.id}.svg"'
    about = AuditedQuery.of(question.table, selection)
    return Rendered.of(drawn.svg.encode(), media_type="image/svg+xml", disposition=disposition, query=about)


def _base(context: ServerContext, request: Request) -> str:
    """The address of the server as readers write it: what the office set, or else what the browser asked for."""
    if context.settings.url:
        return context.settings.url
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}" if _HOST.fullmatch(host) else ""
