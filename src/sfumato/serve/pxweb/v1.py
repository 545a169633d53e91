"""PxWebApi version 1, as much as its clients need: folders, the variables of a table, and questions."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from sfumato.serve.errors import not_found
from sfumato.serve.formats import FORMATS as WRITTEN
from sfumato.serve.formats.json_stat import LANGUAGE
from sfumato.serve.model import Selection, ServedTable
from sfumato.serve.problems import responses
from sfumato.serve.pxweb.asked import refuse_language
from sfumato.serve.pxweb.body import understood
from sfumato.serve.pxweb.v1_answered import answered
from sfumato.serve.pxweb.v1_asked import FORMATS, SHAPE, Question
from sfumato.serve.sdmx.formats import WRITERS
from sfumato.serve.served import Served

Language = Annotated[str, Path(description="language; there is one", json_schema_extra={"enum": [LANGUAGE]})]
Documented = dict[int | str, dict[str, Any]]
DATABASE = "tables"
"""The one database."""


def router(served: Served) -> APIRouter:
    """The routes of PxWebApi version 1; mounted at /api, because clients look for a configuration at every level."""
    api = APIRouter(tags=["PxWebApi v1"])
    settings = served.settings
    some: dict[str, Any] = {"description": "The configuration where `?config` is asked for, otherwise a list"}
    listed: Documented = {200: {**some, "content": {"application/json": {"schema": {}}}}}
    figures: Documented = {200: {"description": "The figures, in the format that was asked for", "content": _content()}}
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
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": SHAPE}}}},
    )
    async def data(language: Language, database: str, id: str, request: Request) -> Response:  # noqa: A002
        """Figures of a table; the body is JSON, whatever its content type says."""
        refuse_language(language)
        _refuse_database(database)
        table = served.catalogue[id]

        def understand(body: bytes) -> tuple[str, Selection]:
            question = Question.read(body)
            return question.format, question.selected(table)

        name, selection = await understood(served, request, understand)
        return (await answered(served, table, selection, name, request.scope)).respond(request)

    return api


def _content() -> dict[str, Any]:
    """The media types of the formats."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    some = {WRITTEN[made].media_type.split(";")[0]: binary for made in FORMATS.values() if made in WRITTEN}
    sdmx = next(iter(WRITERS)).media_types[0]
    return some | {"application/json": {"schema": {"type": "object"}}, sdmx: {"schema": {"type": "string"}}}


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
