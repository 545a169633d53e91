"""The addresses of the page, its templates, and the files that pages need."""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeVar

from fastapi import APIRouter, Request
from jinja2 import Environment
from starlette.responses import RedirectResponse, Response

from sfumato.charts.svg import by_itself
from sfumato.serve.context import CACHE, Rendered, ServerContext, unchanged, write_answer
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.errors import RefusedError, not_found, refusing, said
from sfumato.serve.core.http import HEADERS, method_sent
from sfumato.serve.core.model import grouped
from sfumato.serve.core.published_files import file_named
from sfumato.serve.core.selection import valueset
from sfumato.serve.core.stream import file_response
from sfumato.serve.formats import FORMATS, media_type_of
from sfumato.serve.formats.layout import Options
from sfumato.serve.page.assets import HTML, Assets, make_templates
from sfumato.serve.page.charts import chart_of
from sfumato.serve.page.language import Language, language_of
from sfumato.serve.page.question import ReaderQuestion
from sfumato.serve.page.reading import no_choice, read
from sfumato.serve.page.search import index_of_tables, matching
from sfumato.serve.page.site import Site, for_everybody, in_language, reader, role_of, site
from sfumato.serve.page.table_page import (
    FILTERS,
    MOST_LISTED,
    Listing,
    TablePage,
    files_to_take,
    listing,
    page_title,
)
from sfumato.serve.page.view import view_of

T = TypeVar("T")
MOST_FIND = 200
"""Letters of a search among codes."""


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
        ("/tables/{id}/data", pages.data),
        ("/tables/{id}/version", pages.version),
        ("/embed/{id}", pages.embed),
        ("/tables/{id}/files", pages.files),
        ("/tables/{id}/files/{name:path}", pages.file),
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
        shown = site(self.context, user, request)
        key = ("start", role_of(user), shown.say.code, request.scope["query_string"])

        def write() -> Rendered:
            found, total = self._listing(request, shown), len(self.context.catalogue)
            content = self.templates.get_template("start.html").render(
                found=found, filters=FILTERS, total=total, site=shown
            )
            return for_everybody(self.context, Rendered.of(content.encode(), media_type=HTML))

        return (await self._kept(write, request, key)).respond(request)

    async def table(self, id: str, request: Request) -> Response:  # noqa: A002
        """A table; a form that was sent is answered with the address of what it asks for."""
        base, user = self.context.address(request), reader(self.context, request)
        shown = site(self.context, user, request)
        pages = TablePage(context=self.context, templates=self.templates, site=shown)
        asked = [pair for pair in request.query_params.multi_items() if pair[0] != "lang"]
        sent = "form" in request.query_params

        def write() -> Rendered | Response:
            question = self._question(id, asked, shown.say)
            try:
                if sent and not question.finds:
                    question.selection()
                    return RedirectResponse(shown.to(f"/tables/{question.table.id}", question.query()), status_code=303)
                with refusing():
                    return pages.write(question, base)
            except RefusedError as error:
                return _unkept(pages.refuse(question, error, asked, base), error.status)

        try:
            key = ("page", id, base, role_of(user), shown.say.code, request.scope["query_string"])
            found = await self._kept(write, request, key)
        except RefusedError as error:
            page: Response = request.app.state.error_page(request, error.status, str(error), {}, error)
            return page
        return found.respond(request) if isinstance(found, Rendered) else found

    async def chart(self, id: str, request: Request) -> Response:  # noqa: A002
        """The chart of a question by itself, to be kept or put into a report."""
        asked, say = request.query_params.multi_items(), language_of(request)

        def write() -> Rendered:
            return in_language(drawn_chart(self.context, self._question(id, asked, say)))

        return (await self._in_turn(write, request, _key("chart", id, say, request))).respond(request)

    async def codes(self, id: str, request: Request) -> Response:  # noqa: A002
        """Boxes for the codes of a variable that have some words, for lists too long to be written out."""
        say = language_of(request)
        table = self.context.catalogue[id].in_language(say.code)
        name = request.query_params.get("variable", "")
        axis = table.by_name.get(name.lower(), len(table.dimensions))
        if axis == len(table.dimensions):
            known = ", ".join(dimension.name for dimension in table.dimensions)
            raise not_found(
                "variable",
                name,
                "choose one of the table",
                said("This table has no variable “{name}”. It has: {known}.", name=name, known=known),
            )
        dimension, listed = table.dimensions[axis], request.query_params.get("codelist", "")
        if listed not in ("", valueset(table, dimension)):
            dimension = grouped(dimension, listed)
        find = request.query_params.get("find", "")[:MOST_FIND]

        def write() -> Rendered:
            found, near = matching(dimension, find)
            places = [place for place in found if dimension.codes[place] != dimension.total]
            given = {"dimension": dimension, "places": places[:MOST_LISTED], "found": len(places), "near": near}
            content = self.templates.get_template("codes.html").render(given, say=say).encode()
            return in_language(Rendered.of(content, media_type=HTML))

        return (await self._in_turn(write, request, _key("codes", id, say, request))).respond(request)

    async def data(self, id: str, request: Request) -> Response:  # noqa: A002
        """The figures of a question in a format, where programs cannot ask for them: with groups of a reader."""
        asked, say = request.query_params.multi_items(), language_of(request)

        def write() -> Rendered:
            question = self._question(id, [pair for pair in asked if pair[0] not in OF_FORMAT], say)
            return in_language(written_data(self.context, question, dict(asked)))

        return (await self.context.work(write, request.scope, _key("data", id, say, request))).respond(request)

    async def embed(self, id: str, request: Request) -> Response:  # noqa: A002
        """A table for a frame of a site that the office has named."""
        sites = self.context.settings.embed
        if not sites:
            raise not_found(
                "frame",
                "none",
                "ask the office to name your site with `sfumato serve --embed`",
                said("No site may show these tables in a frame. Ask the office to allow it to yours."),
            )
        asked, base = request.query_params.multi_items(), self.context.address(request)
        shown = site(self.context, None, request)
        pages = TablePage(context=self.context, templates=self.templates, site=shown)
        policy = HEADERS["Content-Security-Policy"].replace(
            "frame-ancestors 'none'", f"frame-ancestors {' '.join(sites)}"
        )

        def write() -> Rendered:
            page = in_language(pages.embed(self._question(id, asked, shown.say), base))
            return replace(page, headers={**page.headers, "Content-Security-Policy": policy})

        key = (base, *_key("embed", id, shown.say, request))
        return (await self._kept(write, request, key)).respond(request)

    async def version(self, id: str, request: Request) -> Response:  # noqa: A002
        """Which version of a table is served now: open pages ask, and say when they are out of date."""
        body = json.dumps({"version": self.context.catalogue[id].digest[:16]}).encode()
        kept = Rendered.of(body, media_type="application/json")
        return Rendered(body=body, headers={**kept.headers, "Cache-Control": "no-cache"}).respond(request)

    async def files(self, id: str, request: Request) -> Response:  # noqa: A002
        """The published files that have all of a table: for programs a list with sizes and digests."""
        url = self.context.settings.url
        listed = [
            {"name": one.name, "address": f"{url}{one.address}", "bytes": one.bytes, "sha256": one.digest}
            for one in files_to_take(self.context.catalogue[id])
        ]
        return Rendered.of(json.dumps({"files": listed}).encode(), media_type="application/json").respond(request)

    async def file(self, id: str, name: str, request: Request) -> Response:  # noqa: A002
        """One of them, checked against the manifest before it is sent."""
        table = self.context.catalogue[id]
        found = file_named(table.files, name)
        headers = {
            "Cache-Control": CACHE,
            "Content-Disposition": f'attachment; filename="{table.id}-{PurePosixPath(found.name).name}"',
            "Content-Type": media_type_of(found.name),
            "ETag": f'"{found.digest}"',
        }
        if (known := unchanged(request, headers)) is not None:
            return known
        opened = found.open()
        try:
            await self._in_turn(opened.check, request, ("file", id, name, opened.identity))
            return file_response(opened, request.headers, headers, body=method_sent(request.scope) != "HEAD")
        except BaseException:
            opened.file.close()
            raise

    async def static(self, version: str, name: str, request: Request) -> Response:
        """A file that pages need."""
        found = self.assets.files.get(name) if version == self.assets.version else None
        if found is None:
            raise not_found("file", name, "load the page again")
        return found.respond(request)

    def _question(self, id: str, asked: Sequence[tuple[str, str]], say: Language) -> ReaderQuestion:  # noqa: A002
        """What an address asks for; the first look at a table may need figures of it."""
        return read(self.context.catalogue[id].in_language(say.code), asked, say)

    async def _kept(self, write: Callable[[], T], request: Request, key: Hashable) -> T | Rendered:
        """The page that was kept under a key, which names all that it depends on; else it is written, and kept."""
        kept = self.context.cache.get(key)
        if kept is not None:
            return kept

        def write_and_keep() -> T:
            page = write()
            if isinstance(page, Rendered):
                self.context.keep(key, page, len(request.scope["query_string"]))
            return page

        return await self._in_turn(write_and_keep, request, key)

    async def _in_turn(self, write: Callable[[], T], request: Request, key: Hashable) -> T:
        """Written in a thread, once for all who ask for the same."""
        client, question = self.context.client(request.scope), self.context.question(key)
        return await self.context.worker_queue.page(write, client=client, question=question)

    def _listing(self, request: Request, shown: Site) -> Listing:
        """The tables that were asked for; the words of all are looked up once for an edition."""
        edition = self.context.editions.current
        index = edition.made.get("words")
        if index is None:
            index = edition.made["words"] = index_of_tables(edition.catalogue)
        return listing(edition.catalogue, dict(request.query_params), index, shown.say)


def _key(what: str, id: str, say: Language, request: Request) -> tuple[Hashable, ...]:  # noqa: A002
    """What an answer about a table depends on that is in the language of the reader, whoever that is."""
    return (what, id, say.code, request.scope["query_string"])


OF_FORMAT = ("outputFormat", "outputFormatParams")


def written_data(context: ServerContext, question: ReaderQuestion, asked: Mapping[str, str]) -> Rendered:
    """The figures of a question in the format that an address names, laid out as the page is."""
    selection, name = question.selection(), asked.get("outputFormat", "csv")
    context.refuse_large(selection, question.table)
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise RefusedError(
            "outputFormat",
            expected=f"one of {known}",
            found=name,
            do="choose one of them",
            said=no_choice("outputFormat", name, FORMATS),
        )
    words = [word for word in asked.get("outputFormatParams", "").split(",") if word]
    options = Options.read(words, source=context.settings.source, license=context.settings.license)
    return write_answer(question.table, selection, name, replace(options, linked=False))


def _unkept(page: Rendered, status: int) -> Response:
    """A page that says what went wrong."""
    return Response(page.body, status_code=status, media_type=HTML, headers={"Cache-Control": "no-store"})


def drawn_chart(context: ServerContext, question: ReaderQuestion) -> Rendered:
    """The chart of a question as a file."""
    selection = question.selection()
    context.refuse_large(selection, question.table)
    view = view_of(question, selection)
    table, say, title = question.table, question.say, page_title(view, question)
    drawn = chart_of(view, question, name=title, linked=False)
    if drawn is None:
        raise not_found(
            "chart",
            "a question without one",
            "choose another chart",
            said("This question has no chart. Choose another."),
        )
    named = say("Source: {source}.", source=context.settings.source) if context.settings.source else ""
    made = say("Updated {date}, version {version}.", date=f"{table.updated:%Y-%m-%d}", version=table.digest[:16])
    content = by_itself(drawn.svg, title=title, source=" ".join(filter(None, (named, made)))).encode()
    disposition = f'attachment; filename="{table.id}.svg"'
    about = AuditedQuery.of(table, selection)
    return Rendered.of(content, media_type="image/svg+xml", disposition=disposition, query=about)
