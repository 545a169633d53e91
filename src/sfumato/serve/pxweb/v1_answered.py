"""Answers that only PxWebApi version 1 has: JSON-stat in its first version, and SDMX inside of PxWeb."""

import json
from dataclasses import replace

from starlette.types import Scope

from sfumato.serve.audit_asked import noted
from sfumato.serve.errors import RefusedError
from sfumato.serve.model import Selection, ServedDimension, ServedTable
from sfumato.serve.pxweb.asked import Asked
from sfumato.serve.pxweb.documented import JSON
from sfumato.serve.pxweb.v1_asked import FORMATS
from sfumato.serve.sdmx.arranged import Arranged
from sfumato.serve.sdmx.flow import Flow
from sfumato.serve.sdmx.formats import WRITERS
from sfumato.serve.sdmx.query import DataQuery
from sfumato.serve.served import Rendered, Served, rendered


async def answered(served: Served, table: ServedTable, selection: Selection, name: str, scope: Scope) -> Rendered:
    """The finished answer to a question, in a format of this version."""
    if name == "sdmx":
        return await _as_sdmx(served, table, selection, scope)
    made = await served.rendered(
        table, selection, name=FORMATS[name], options=Asked().options(served.settings), scope=scope
    )
    if name != "json-stat":
        return made
    key = ("v1", table.id, selection)
    kept = served.cache.get(key)
    if kept is None:
        content = await served.turns.page(lambda: _first_version(made.content), client=served.client(scope))
        kept = rendered(content, media_type=JSON, noted=made.noted)
        served.keep(key, kept, len(selection.places))
    return kept


async def _as_sdmx(served: Served, table: ServedTable, selection: Selection, scope: Scope) -> Rendered:
    """Generic data of SDMX, in which every dimension has codes: the total stands for one that was left out."""
    if selection.groupings:
        raise _refused("codes of the table", f"the code list {selection.groupings[0][1]}")
    places = tuple(
        (_total(dimension),) if some is None else some
        for dimension, some in zip(table.dimensions, selection.places, strict=True)
    )
    whole = replace(selection, places=places)
    served.refuse_large(whole)
    flow = Flow(table=table, agency=served.settings.agency)
    offer, write = next(iter(WRITERS.items()))

    def made() -> bytes:
        query = DataQuery(selection=whole, at_observation=flow.at_observation)
        return write(Arranged.of(flow, query), served.settings.source)

    content = await served.turns.download(made, client=served.client(scope))
    return rendered(content, media_type=offer.content_type(offer.media_types[0]), noted=noted(table, whole))


def _total(dimension: ServedDimension) -> int:
    if dimension.total is None or dimension.total not in dimension.places:
        raise _refused(f"codes of {dimension.name}, which has no total", "none")
    return dimension.places[dimension.total]


def _refused(expected: str, found: str) -> RefusedError:
    return RefusedError(
        "response.format sdmx", expected=expected, found=found, do="choose codes, or another format than sdmx"
    )


def _first_version(content: bytes) -> bytes:
    """A dataset of JSON-stat 2 as one of version 1: sizes and roles belong to the dimension there."""
    made = json.loads(content)
    dimension = {**made["dimension"], "id": made["id"], "size": made["size"], "role": made["role"]}
    names = ("label", "source", "updated", "value", "status", "extension")
    dataset = {"dimension": dimension, **{name: made[name] for name in names if name in made}}
    return json.dumps({"dataset": dataset}, ensure_ascii=False).encode()
