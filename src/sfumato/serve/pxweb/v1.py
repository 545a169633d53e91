"""PxWebApi version 1, as much as its clients need: folders, the variables of a table, and questions."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from sfumato.serve.errors import RefusedError, not_found
from sfumato.serve.formats.json_stat import LANGUAGE
from sfumato.serve.model import Selection, ServedTable
from sfumato.serve.problems import responses
from sfumato.serve.pxweb.asked import Asked, refuse_language
from sfumato.serve.selection import select
from sfumato.serve.served import Served

Language = Annotated[str, Path(description="language; there is one", json_schema_extra={"enum": [LANGUAGE]})]
Documented = dict[int | str, dict[str, Any]]
DATABASE = "tables"
"""The one database."""
_FORMATS = {
    "json": "json-px",
    "json-stat": "json-stat",
    "json-stat2": "json-stat2",
    "px": "px",
    "csv": "csv",
    "xlsx": "xlsx",
}
_QUESTION = {
    "type": "object",
    "properties": {
        "query": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"code": {"type": "string"}, "selection": {"type": "object"}},
            },
        },
        "response": {"type": "object", "properties": {"format": {"type": "string", "enum": list(_FORMATS)}}},
    },
}


def router(served: Served) -> APIRouter:
    """The routes of PxWebApi version 1; mounted at /api, because clients look for a configuration at every level."""
    api = APIRouter(tags=["PxWebApi v1"])
    settings = served.settings
    some: dict[str, Any] = {"description": "The configuration where `?config` is asked for, otherwise a list"}
    listed: Documented = {200: {**some, "content": {"application/json": {"schema": {}}}}}
    figures: Documented = {200: {"description": "The figures, in the format that was asked for"}}
    configuration = {
        "maxValues": settings.most_cells,
        "maxCells": settings.most_cells,
        "maxCalls": settings.calls or 1_000_000,  # this version has no way to say that there is no limit
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
        refuse_language(language)
        return [{"dbid": DATABASE, "text": "Tables"}]

    @api.get("/v1/{language}/{database}", responses=listed | responses(400, 404))
    async def database(language: Language, database: str, request: Request) -> Any:
        """The tables of the database."""
        if "config" in request.query_params:
            return configuration
        refuse_language(language)
        _refuse_database(database)
        return [
            {"id": table.id, "type": "t", "text": table.title, "updated": table.updated.strftime("%Y-%m-%dT%H:%M:%S")}
            for table in served.catalogue
        ]

    @api.get("/v1/{language}/{database}/{id}", responses=listed | responses(400, 404))
    async def variables(language: Language, database: str, id: str, request: Request) -> Any:  # noqa: A002
        """The variables of a table with all codes."""
        if "config" in request.query_params:
            return configuration
        refuse_language(language)
        _refuse_database(database)
        return _variables(served.catalogue[id])

    @api.post(
        "/v1/{language}/{database}/{id}",
        responses=figures | responses(400, 403, 404, 413),
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _QUESTION}}}},
    )
    async def data(language: Language, database: str, id: str, request: Request) -> Response:  # noqa: A002
        """Figures of a table; the body is JSON, whatever its content type says."""
        refuse_language(language)
        _refuse_database(database)
        table = served.catalogue[id]
        question = _question(await request.body())
        name = _format(question)
        selection = _selection(table, question)
        made = await served.rendered(
            table,
            selection,
            name="json-stat2" if name == "json-stat" else name,
            options=Asked().options(settings),
            scope=request.scope,
        )
        return _first_version(made.content) if name == "json-stat" else made.respond(request)

    return api


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
                **({"elimination": True} if axis.eliminable else {}),
                **({"time": True} if axis.role == "time" else {}),
            }
            for axis in table.axes
        ],
    }


def _question(body: bytes) -> dict[str, Any]:
    try:
        question = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _wrong("a body that is no JSON") from error
    if not isinstance(question, dict):
        raise _wrong("JSON that is no object")
    return question


def _format(question: dict[str, Any]) -> str:
    response = question.get("response") or {}
    name = response.get("format", "json") if isinstance(response, dict) else None
    found = _FORMATS.get(name) if isinstance(name, str) else None
    if found is None:
        raise RefusedError(
            "response.format", expected=f"one of {', '.join(_FORMATS)}", found=str(name), do="choose one of them"
        )
    return found


def _selection(table: ServedTable, question: dict[str, Any]) -> Selection:
    """The selection of a question; a dimension that is not named is left out, or whole where it cannot be."""
    asked: dict[str, list[str]] = {}
    codelists: dict[str, str] = {}
    query = question.get("query") or []
    if not isinstance(query, list):
        raise _wrong("a query that is no list")
    for one in query:
        if (
            not isinstance(one, dict)
            or not isinstance(one.get("selection"), dict)
            or not isinstance(one.get("code"), str)
        ):
            raise _wrong("an element of the query without code or selection")
        code, chosen = one["code"], one["selection"]
        word, values = chosen.get("filter", "item"), chosen.get("values", [])
        if not isinstance(word, str) or not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            raise _wrong("a selection without filter and values")
        kind, _, named = word.partition(":")
        if kind.lower() in ("agg", "agg_single", "vs") and named:
            codelists[code] = named
            asked[code] = values
        elif kind.lower() == "top" and values:
            asked[code] = [f"top({values[0]})"]
        elif kind.lower() in ("item", "all"):
            asked[code] = values
        else:
            raise RefusedError("filter", expected="item, all, top, agg:… or vs:…", found=word, do="choose one of them")
    known = {name.lower() for name in asked}
    for axis in table.dimensions:
        if axis.name.lower() not in known and not axis.eliminable:
            asked[axis.name] = ["*"]
    return select(table, {name: codes for name, codes in asked.items() if codes}, codelists=codelists)


def _first_version(content: bytes) -> Response:
    """A dataset of JSON-stat 2 as one of version 1: sizes and roles belong to the dimension there."""
    made = json.loads(content)
    dimension = {**made["dimension"], "id": made["id"], "size": made["size"], "role": made["role"]}
    names = ("label", "source", "updated", "value", "status")
    dataset = {"dimension": dimension, **{name: made[name] for name in names if name in made}}
    return Response(json.dumps({"dataset": dataset}, ensure_ascii=False).encode(), media_type="application/json")


def _wrong(found: str) -> RefusedError:
    return RefusedError(
        "question",
        expected='{"query": [{"code": …, "selection": {"filter": "item", "values": […]}}], "response": {"format": …}}',
        found=found,
        do="correct the body",
    )
