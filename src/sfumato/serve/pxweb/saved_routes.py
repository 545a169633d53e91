"""Saved queries: keep a question under a short address, and answer it again."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from sfumato.serve.formats.json_stat import LANGUAGE
from sfumato.serve.problems import responses
from sfumato.serve.pxweb import schemas
from sfumato.serve.pxweb.answered import answered, checked, written
from sfumato.serve.pxweb.asked import DEFAULT_FORMAT, Asked, format_named, refuse_language
from sfumato.serve.pxweb.body import documented_body, read_json
from sfumato.serve.pxweb.documented import Id, Language, data_responses, parameters
from sfumato.serve.pxweb.listing import link
from sfumato.serve.pxweb.saved_queries import SavedQueries, canonical, refuse_long, smallest
from sfumato.serve.served import Served


def router(served: Served) -> APIRouter:
    """The routes of saved queries."""
    api = APIRouter()
    settings = served.settings
    saved = SavedQueries(
        folder=settings.state / "saved-queries", most=settings.most_saved, most_bytes=settings.most_saved_bytes
    )

    @api.post(
        "/savedqueries",
        status_code=201,
        response_model=schemas.SavedQueryResponse,
        responses=responses(400, 403, 404, 413),
        openapi_extra=documented_body(schemas.SavedQuery),
    )
    async def save_query(request: Request) -> Any:
        """Keep a question, so that it has a short address."""
        sent = await request.body()
        refuse_long(sent)  # before anything is read of it
        body = read_json(schemas.SavedQuery, sent, request)
        described = served.catalogue[body.tableId]
        refuse_language(body.language)
        _, selection = checked(served, described, asked_of(body))

        def save() -> tuple[str, dict[str, Any]]:
            if described.kind != "live":  # whose answers are remembered: they are given to those who ask for them
                described.answer(smallest(selection))  # refuses what has no answer
            query = canonical(body, described)
            return saved.save(query), query

        return response_of(*await run_in_threadpool(save))

    @api.get("/savedqueries/{id}", response_model=schemas.SavedQueryResponse, responses=responses(400, 404))
    async def saved_query(id: Id, lang: Language = LANGUAGE) -> Any:  # noqa: A002
        """A question that was kept."""
        refuse_language(lang)
        return response_of(id, saved.read(id))

    @api.get("/savedqueries/{id}/selection", response_model=schemas.SelectionResponse, responses=responses(400, 404))
    async def saved_selection(id: Id, lang: Language = LANGUAGE) -> Any:  # noqa: A002
        """The selection of a question that was kept, with codes in place of expressions."""
        refuse_language(lang)
        query = schemas.SavedQuery(**saved.read(id))
        described = served.catalogue[query.tableId]
        return {
            "language": LANGUAGE,
            **written(described, asked_of(query).selection(described)),
            "links": [link("self", f"/savedqueries/{id}/selection", settings)],
        }

    @api.get(
        "/savedqueries/{id}/data",
        responses=data_responses(400, 403, 404),
        openapi_extra={"parameters": parameters(selecting=False)},
    )
    async def saved_data(id: Id, request: Request) -> Response:  # noqa: A002
        """The answer to a question that was kept, as of now."""
        query = schemas.SavedQuery(**saved.read(id))
        wished, asked = Asked.read(request.query_params.multi_items()), asked_of(query)
        wished.refuse_selection("the saved query")
        names = {name.lower() for name in request.query_params}
        if "outputformat" in names:  # what another format was to be like says nothing of this one
            asked = replace(asked, format=wished.format, parameters=wished.parameters)
        if "outputformatparams" in names:
            asked = replace(asked, parameters=wished.parameters)
        if names & {"heading", "stub"}:
            asked = replace(asked, heading=wished.heading, stub=wished.stub)
        return (await answered(served, query.tableId, asked, request.scope)).respond(request)

    def response_of(id: str, query: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        links = [link("self", f"/savedqueries/{id}", settings), link("data", f"/savedqueries/{id}/data", settings)]
        return {"language": LANGUAGE, "id": id, "savedQuery": {**query, "id": id}, "links": links}

    return api


def asked_of(query: schemas.SavedQuery) -> Asked:
    """The question that was kept."""
    written = Asked(format=format_named(query.outputFormat or DEFAULT_FORMAT), parameters=query.outputFormatParams)
    return written.with_body(query.selection)
