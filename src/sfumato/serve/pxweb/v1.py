"""PxWebApi version 1, cut to what R's pxweb calls: folders, the variables of a table, and its figures.

R sends the body of a question without a content type. Nothing in it is ignored: what is not known is refused.
"""

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response
from starlette.types import Scope

from sfumato.serve.context import Answered, Rendered, ServerContext
from sfumato.serve.core.errors import RefusedError, not_found
from sfumato.serve.core.http import responses
from sfumato.serve.core.model import Selection, ServedTable
from sfumato.serve.core.selection import select
from sfumato.serve.formats.json_stat import LANGUAGE
from sfumato.serve.pxweb.request import JSON, UNLIMITED, DataRequest, first_fault, openapi_body, understood
from sfumato.serve.pxweb.schemas import MOST_DIMENSIONS

FORMATS = {"json": "json-px", "json-stat": "json-stat2", "px": "px", "csv": "csv"}
"""The formats of this version, each with the one that it is made of."""
_LISTS = ("agg", "vs")
MOST_VALUES = 1_000_000
"""How many values clients are told to ask for at a time, so that they split larger questions: as `json` and `csv`,
which are written while they are read, they get as many; other formats refuse more than the cap of all."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QuerySelection(_Part):
    """The codes of a variable: these, all, the latest, or those of a code list."""

    filter: str = Field("item", description="item, all, top, agg:… or vs:…")
    values: Annotated[tuple[str, ...], Field(fail_fast=True)] = ()


class QueryVariable(_Part):
    """A variable and its codes."""

    code: str
    selection: QuerySelection


class ResponseFormat(_Part):
    """How the answer is to be written."""

    format: Literal["json", "json-stat", "px", "csv"] = "json"


class TableQuery(_Part):
    """The body of a question."""

    query: Annotated[tuple[QueryVariable, ...], Field(fail_fast=True, max_length=MOST_DIMENSIONS)] = ()
    response: Annotated[ResponseFormat, Field(default_factory=ResponseFormat)]

    @classmethod
    def read(cls, body: bytes) -> "TableQuery":
        """Read a body, whatever its content type says."""
        try:
            return cls.model_validate_json(body)
        except ValidationError as error:
            first = first_fault(error)
        if first["type"] == "json_invalid":
            raise _wrong("a body that is no JSON")
        place = ".".join(map(str, first["loc"]))
        if not place:
            raise _wrong("JSON that is no object")
        unknown = first["type"] == "extra_forbidden"
        raise _wrong(f"{place}, which is unknown" if unknown else f"{place}: {first['msg']}")

    def selected(self, table: ServedTable) -> Selection:
        """The selection of a table; a variable that is not named is left out, or whole where it cannot be."""
        asked: dict[str, tuple[str, ...]] = {}
        codelists: dict[str, str] = {}
        for one in self.query:
            name = one.code.lower()
            if name in asked:
                raise RefusedError(
                    "query", expected="every variable once", found=one.code, do="put its values together"
                )
            kind, _, listed = one.selection.filter.partition(":")
            if kind.lower() in _LISTS and listed:
                codelists[name] = listed
            asked[name] = _codes(one.selection, kind.lower(), listed)
        for axis in table.dimensions:
            if axis.name.lower() not in asked and not axis.eliminable:
                asked[axis.name] = ("*",)
        return select(table, {name: codes for name, codes in asked.items() if codes}, codelists=codelists)


def _codes(chosen: QuerySelection, kind: str, listed: str) -> tuple[str, ...]:
    if kind == "top":
        if len(chosen.values) != 1:
            found = ", ".join(chosen.values) or "none"
            raise RefusedError("values of top", expected="one number, as a text", found=found, do="correct it")
        return (f"top({chosen.values[0]})",)
    if kind == "all" and not listed and not chosen.values:
        return ("*",)
    if bool(listed) == (kind in _LISTS) and kind in ("item", "all", *_LISTS):
        return chosen.values
    raise RefusedError("filter", expected="item, all, top, agg:… or vs:…", found=chosen.filter, do="choose one of them")


def _wrong(found: str) -> RefusedError:
    return RefusedError(
        "question",
        expected='{"query": [{"code": …, "selection": {"filter": "item", "values": […]}}], "response": {"format": …}}',
        found=found,
        do="correct the body",
    )


async def render_v1(
    context: ServerContext, table: ServedTable, selection: Selection, name: str, scope: Scope
) -> Answered:
    """The finished answer to a question, in a format of this version."""
    options = DataRequest().options(context.settings)
    if name != "json-stat":
        return await context.answer(table, selection, name=FORMATS[name], options=options, scope=scope)
    made = await context.render(table, selection, name=FORMATS[name], options=options, scope=scope)
    key = ("v1", table.id, selection)
    kept = context.cache.get(key)
    if kept is None:
        content = await context.worker_queue.page(
            lambda: _first_version(made.body), client=context.client(scope), question=context.question(key)
        )
        kept = Rendered.of(content, media_type=JSON, query=made.query)
        context.keep(key, kept, len(selection.places))
    return kept


def _first_version(content: bytes) -> bytes:
    """A dataset of JSON-stat 2 as one of version 1: sizes and roles belong to the dimension there."""
    made = json.loads(content)
    dimension = {**made["dimension"], "id": made["id"], "size": made["size"], "role": made["role"]}
    names = ("label", "source", "updated", "value", "status", "extension")
    dataset = {"dimension": dimension, **{name: made[name] for name in names if name in made}}
    return json.dumps({"dataset": dataset}, ensure_ascii=False).encode()


Language = Annotated[str, Path(description="language; there is one", json_schema_extra={"enum": [LANGUAGE]})]
OpenApiResponses = dict[int | str, dict[str, Any]]
DATABASE = "tables"
"""The one database."""


def router(context: ServerContext) -> APIRouter:
    """The routes of PxWebApi version 1; mounted at /api, because clients look for a configuration at every level."""
    api = APIRouter(tags=["PxWebApi v1"])
    settings = context.settings
    some: dict[str, Any] = {"description": "The configuration where `?config` is asked for, otherwise a list"}
    listed: OpenApiResponses = {200: {**some, "content": {JSON: {"schema": {}}}}}
    written = {JSON: {"schema": {"type": "object"}}, "text/csv": {"schema": {"type": "string"}}}
    written |= {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    figures: OpenApiResponses = {
        200: {"description": "The figures, in the format that was asked for", "content": written}
    }
    configuration = {
        "maxValues": max(settings.most_cells, MOST_VALUES),
        "maxCells": max(settings.most_cells, MOST_VALUES),
        "maxCalls": settings.calls or UNLIMITED,
        "timeWindow": max(settings.window, 1),
        "CORS": True,
    }

    @api.get("", responses=listed | responses(404))
    async def root(request: Request) -> Any:
        """The configuration: clients ask for it at any level."""
        return configuration if "config" in request.query_params else [{"id": "v1", "text": "PxWebApi v1"}]

    @api.get("/v1", responses=listed)
    async def version(request: Request) -> Any:
        """The languages, or the configuration."""
        return configuration if "config" in request.query_params else [{"id": LANGUAGE, "text": "English"}]

    @api.get("/v1/{language}", responses=listed | responses(400))
    async def databases(language: Language, request: Request) -> Any:
        """The databases: there is one."""
        if "config" in request.query_params:
            return configuration
        _refuse_language(language)
        return [{"dbid": DATABASE, "text": "Tables"}]

    @api.get("/v1/{language}/{database}", responses=listed | responses(400, 404))
    async def database(language: Language, database: str, request: Request) -> Any:
        """The tables of the database."""
        if "config" in request.query_params:
            return configuration
        _refuse_language(language)
        _refuse_database(database)
        return [
            {"id": table.id, "type": "t", "text": table.title, "updated": table.updated.strftime("%Y-%m-%dT%H:%M:%S")}
            for table in context.catalogue
        ]

    @api.get("/v1/{language}/{database}/{id}", responses=listed | responses(400, 404))
    async def variables(language: Language, database: str, id: str, request: Request) -> Any:  # noqa: A002
        """The variables of a table with all codes."""
        if "config" in request.query_params:
            return configuration
        _refuse_language(language)
        _refuse_database(database)
        return _variables(context.catalogue[id])

    @api.post(
        "/v1/{language}/{database}/{id}",
        responses=figures | responses(400, 403, 404, 413),
        openapi_extra=openapi_body(TableQuery),
    )
    async def data(language: Language, database: str, id: str, request: Request) -> Response:  # noqa: A002
        """Figures of a table; the body is JSON, whatever its content type says."""
        _refuse_language(language)
        _refuse_database(database)
        table = context.catalogue[id]

        def understand(body: bytes) -> tuple[str, Selection]:
            question = TableQuery.read(body)
            return question.response.format, question.selected(table)

        name, selection = await understood(context, request, understand)
        return (await render_v1(context, table, selection, name, request.scope)).respond(request)

    return api


def _refuse_language(language: str) -> None:
    """Refuse a folder of a language that the server does not speak."""
    if language.lower() != LANGUAGE:
        raise RefusedError("language", expected=LANGUAGE, found=language, do=f"ask for /api/v1/{LANGUAGE}")


def _refuse_database(database: str) -> None:
    if database.lower() != DATABASE:
        raise not_found("database", database, f"choose {DATABASE}")


def _variables(table: ServedTable) -> dict[str, Any]:
    return {
        "title": f"{table.title}, {table.period}",
        "variables": [
            {
                "code": axis.name,
                "text": axis.label,
                "values": list(axis.codes),
                "valueTexts": list(axis.labels),
                # R's pxweb splits what is too large along these; one that has no total and is left out is whole.
                **({} if axis.role == "metric" else {"elimination": True}),
                **({"time": True} if axis.role == "time" else {}),
            }
            for axis in table.axes
        ],
    }
