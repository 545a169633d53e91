"""PxWebApi version 2: tables, metadata, data in every format, code lists and saved queries."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from sfumato import __version__
from sfumato.serve.context import Answered, Rendered, ServerContext
from sfumato.serve.core.errors import not_found
from sfumato.serve.core.http import responses
from sfumato.serve.core.model import Selection
from sfumato.serve.core.selection import default, valueset
from sfumato.serve.formats import FORMATS
from sfumato.serve.formats.json_stat import LANGUAGE, codelists, metadata
from sfumato.serve.formats.layout import Options
from sfumato.serve.pxweb import schemas
from sfumato.serve.pxweb.listing import (
    check_request,
    link,
    render_request,
    search,
    selection_body,
    table_summary,
    tables_page,
)
from sfumato.serve.pxweb.request import (
    DEFAULT_FORMAT,
    JSON,
    UNLIMITED,
    DataRequest,
    Id,
    data_responses,
    openapi_body,
    parameters,
    read_json,
    spoken_language,
    understood,
)
from sfumato.serve.pxweb.saved import router as saved_router

API_VERSION = "2.0.0"
PAGE_SIZE = 20


def router(context: ServerContext) -> APIRouter:
    """The routes of PxWebApi version 2, over a catalogue."""
    api = APIRouter(tags=["PxWebApi v2"], dependencies=[Depends(spoken_language)])
    settings = context.settings

    @api.get("/config", response_model=schemas.ConfigResponse, responses=responses(400))
    async def config() -> Any:
        """What clients need to know of the server."""
        return {
            "apiVersion": API_VERSION,
            "appVersion": __version__,
            "languages": [{"id": LANGUAGE, "label": "English"}],
            "defaultLanguage": LANGUAGE,
            "maxDataCells": settings.most_cells,
            "maxCallsPerTimeWindow": settings.calls or UNLIMITED,
            "timeWindow": max(settings.window, 1),
            "license": settings.license,
            "sourceReferences": [{"language": LANGUAGE, "text": settings.source}],
            "defaultDataFormat": DEFAULT_FORMAT,
            "dataFormats": list(FORMATS),
            "features": [{"id": "CORS", "params": [{"key": "enabled", "value": "true"}]}],
        }

    @api.get("/tables", response_model=schemas.TablesResponse, responses=responses(400, 404))
    async def tables(
        query: Annotated[str, Query(description="words that a table has to have", max_length=500)] = "",
        pastDays: Annotated[int | None, Query(description="updated in so many days", ge=1)] = None,  # noqa: N803
        includeDiscontinued: Annotated[bool, Query(description="no table is ever discontinued")] = False,  # noqa: ARG001, N803
        pageNumber: Annotated[int, Query(description="which page, from 1", ge=1)] = 1,  # noqa: N803
        pageSize: Annotated[int, Query(description="tables on a page", ge=1, le=10_000)] = PAGE_SIZE,  # noqa: N803
    ) -> Any:
        """The tables, found by words, in pages."""
        return tables_page(
            search(list(context.catalogue), query=query, past_days=pastDays), pageNumber, pageSize, settings
        )

    @api.get("/tables/{id}", response_model=schemas.TableResponse, responses=responses(400, 404))
    async def table(id: Id) -> Any:  # noqa: A002
        """One table in short."""
        return {**table_summary(context.catalogue[id], settings), "language": LANGUAGE}

    @api.get("/tables/{id}/metadata", response_model=schemas.Dataset, responses=responses(400, 404))
    async def table_metadata(id: Id, request: Request) -> Response:  # noqa: A002
        """The dimensions of a table with all codes, its notes and its guarantee, as JSON-stat 2."""
        described = context.catalogue[id]
        key = ("metadata", described.id)
        kept = context.cache.get(key)
        if kept is None:
            kept = _json(metadata(described, DataRequest().options(settings)))
            context.keep(key, kept, 0)
        return kept.respond(request)

    @api.get("/tables/{id}/defaultselection", response_model=schemas.SelectionResponse, responses=responses(400, 404))
    async def default_selection(id: Id) -> Any:  # noqa: A002
        """The part of a table that is given where nothing is selected."""
        described = context.catalogue[id]
        return {
            "language": LANGUAGE,
            **selection_body(described, default(described)),
            "links": [link("self", f"/tables/{described.id}/defaultselection", settings)],
        }

    @api.get("/tables/{id}/data", responses=data_responses(400, 403, 404), openapi_extra={"parameters": parameters()})
    async def data(id: Id, request: Request) -> Response:  # noqa: A002
        """Figures of a table: the codes of every dimension that is named; others are left out."""
        key = ("data", id, request.scope["query_string"])
        kept: Answered | None = context.cache.get(key)
        if kept is None:
            kept = await render_request(
                context, id, DataRequest.read(request.query_params.multi_items()), request.scope
            )
            context.keep(key, kept, len(request.scope["query_string"]))
        return kept.respond(request)

    @api.post(
        "/tables/{id}/data",
        responses=data_responses(400, 403, 404, 413),
        openapi_extra={
            "parameters": parameters(selecting=False),
            **openapi_body(schemas.VariablesSelection, required=False),
        },
    )
    async def data_of_selection(id: Id, request: Request) -> Response:  # noqa: A002
        """The same, with the selection in the body."""
        table, wished = context.catalogue[id], DataRequest.read(request.query_params.multi_items())

        def understand(body: bytes) -> tuple[Options, Selection]:
            selected = read_json(schemas.VariablesSelection, body, request) if body else None
            return check_request(context, table, wished.with_body(selected))

        options, selection = await understood(context, request, understand)
        made = context.answer(table, selection, name=wished.format, options=options, scope=request.scope)
        return (await made).respond(request)

    @api.get("/codelists/{id}", response_model=schemas.CodelistResponse, responses=responses(400, 404))
    async def codelist(
        id: Id,  # noqa: A002
    ) -> Any:
        """The codes of a dimension, or groups of them."""
        return _codelist(context, id)

    api.include_router(saved_router(context))
    return api


def _json(content: dict[str, Any]) -> Rendered:
    return Rendered.of(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(), media_type=JSON)


def _codelist(context: ServerContext, id: str) -> dict[str, Any]:  # noqa: A002
    for table in context.catalogue:
        for axis in table.dimensions:
            # The list of all codes is not offered, but programs that know its name may ask for it.
            for known, label, kind in ((valueset(table, axis), axis.label, "Valueset"), *codelists(axis)):
                if known.lower() == id.lower():
                    groups = next((one.groups for one in axis.groupings if one.id == known), None)
                    alone = {code: (text, (code,)) for code, text in zip(axis.codes, axis.labels, strict=True)}
                    return {
                        "id": known,
                        "label": label,
                        "language": LANGUAGE,
                        "languages": [LANGUAGE],
                        "elimination": axis.eliminable,
                        "type": kind,
                        "values": [
                            {"code": code, "label": text, "valueMap": list(members)}
                            for code, (text, members) in (groups or alone).items()
                        ],
                        "links": [link("self", f"/codelists/{known}", context.settings)],
                    }
    raise not_found("code list", id, "the metadata of a table name its code lists")
