"""The address of the catalogue: one for all formats, which the header Accept or `format` tells apart."""

import json
import re
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from sfumato.serve.context import Rendered, ServerContext
from sfumato.serve.core.errors import RefusedError, not_found
from sfumato.serve.core.http import responses
from sfumato.serve.core.model import ServedTable
from sfumato.serve.dcat.catalogue import CATALOG, catalogue_of, dataset_of, schema_org, schema_org_catalogue
from sfumato.serve.dcat.graph import Thing, write_json_ld, write_rdf_xml, write_turtle

FORMATS: dict[str, tuple[str, Callable[[list[Thing]], bytes]]] = {
    "jsonld": ("application/ld+json", write_json_ld),
    "turtle": ("text/turtle", write_turtle),
    "rdfxml": ("application/rdf+xml", write_rdf_xml),
}
"""By name a media type, and what writes it; the first is for those who do not mind."""
SCHEMA_ORG = "schema.org"
_NAMES = (*FORMATS, SCHEMA_ORG)
_QUALITY = re.compile(r";\s*q=(0(?:\.\d*)?|1(?:\.0*)?)\s*$")
_LONGEST = 1_000
Format = Annotated[
    str | None, Query(description="the format, instead of the header Accept", json_schema_extra={"enum": list(_NAMES)})
]


def router(context: ServerContext) -> APIRouter:
    """The routes of the catalogue."""
    api = APIRouter(tags=["DCAT-AP"])
    text = {"schema": {"type": "string"}}
    content: dict[str, Any] = {media_type: text for media_type, _ in FORMATS.values()}
    content[FORMATS["jsonld"][0]] = {"schema": {"type": "object"}}
    found: dict[int | str, dict[str, Any]] = {200: {"description": "The catalogue", "content": content}}

    @api.get(CATALOG, responses=found | responses(400, 406))
    async def catalogue(request: Request, format: Format = None) -> Response:  # noqa: A002 — the word of the address
        """All tables as data sets of DCAT-AP, or of schema.org."""
        return await answer(request, format, "", lambda: list(context.catalogue))

    @api.get(f"{CATALOG}/{{id}}", responses=found | responses(400, 404, 406))
    async def dataset(
        id: Annotated[str, Path(description="a table", max_length=400)],  # noqa: A002
        request: Request,
        format: Format = None,  # noqa: A002
    ) -> Response:
        """One table as a data set."""
        table = context.catalogue[id]
        if table.id not in context.catalogue.tables:  # two that are compared
            raise not_found("data set", id, "ask for both tables, each by its own name")
        return await answer(request, format, table.id, lambda: [table])

    async def answer(request: Request, name: str | None, id: str, tables: Callable[[], list[ServedTable]]) -> Response:  # noqa: A002
        chosen = _format(name, ",".join(request.headers.getlist("accept")))
        base = context.address(request)
        key = (CATALOG, id, chosen, base)
        kept = context.cache.get(key)
        if kept is None:
            client = context.client(request.scope)
            made = await context.worker_queue.page(
                lambda: _write(context, tables(), chosen, base, whole=not id),
                client=client,
                question=context.question(key),
            )
            kept = Rendered.of(made, media_type=FORMATS.get(chosen, FORMATS["jsonld"])[0])
            kept.headers["Vary"] = "Accept"
            context.keep(key, kept, len(base))
        return kept.respond(request)

    return api


def _write(context: ServerContext, tables: list[ServedTable], chosen: str, base: str, *, whole: bool) -> bytes:
    settings = context.settings
    if chosen == SCHEMA_ORG:
        found = schema_org_catalogue(tables, settings, base) if whole else schema_org(tables[0], settings, base)
        return json.dumps(found, ensure_ascii=False, indent=1).encode("utf-8", "replace")
    things = catalogue_of(tables, settings, base) if whole else dataset_of(tables[0], settings, base)
    return FORMATS[chosen][1](things)


def _format(name: str | None, accept: str) -> str:
    """The format that is named, or that is accepted most."""
    if name is not None:
        if name.lower() not in _NAMES:
            raise RefusedError("format", expected=f"one of {', '.join(_NAMES)}", found=name, do="choose one of them")
        return name.lower()
    wished: list[tuple[float, str]] = []
    for part in accept[:_LONGEST].split(","):
        quality = _QUALITY.search(part)
        wished.append((-float(quality[1]) if quality else -1.0, part.partition(";")[0].strip().lower()))
    known = {media_type: one for one, (media_type, _) in FORMATS.items()}
    known |= {"application/json": "jsonld", "application/xml": "rdfxml", "text/xml": "rdfxml"}
    for quality_of, media_type in sorted(wished, key=lambda one: one[0]):
        if quality_of < 0 and media_type in known:
            return known[media_type]
    return next(iter(FORMATS))  # browsers, and whoever takes anything
