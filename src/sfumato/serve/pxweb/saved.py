"""Queries that people saved: kept under a short address, and answered again."""

import json
import os
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from sfumato.durable import write_durably
from sfumato.serve.context import ServerContext
from sfumato.serve.core.errors import RefusedError, not_found
from sfumato.serve.core.http import responses
from sfumato.serve.core.model import Selection, ServedTable
from sfumato.serve.core.rate_limit import Buckets
from sfumato.serve.formats.json_stat import LANGUAGE
from sfumato.serve.formats.layout import PARAMETERS
from sfumato.serve.pxweb import schemas
from sfumato.serve.pxweb.listing import check_request, link, render_request, selection_body
from sfumato.serve.pxweb.request import (
    DEFAULT_FORMAT,
    DataRequest,
    Id,
    data_responses,
    format_named,
    openapi_body,
    parameters,
    read_json,
)
from sfumato.serve.pxweb.schemas import SavedQuery

# Queries that people saved: one small file each, named by what is in it, on the disk before the answer goes out.

LONGEST = 20_000
"""Bytes that one query may have."""
MOST_NEW, HOUR = 500, 60 * 60
"""Queries that one client may add in an hour: else a single one could push out those of all others in minutes."""
_NAME = re.compile(r"[0-9a-f]{24}")
_OWNER = 0o700


@dataclass(frozen=True, kw_only=True)
class SavedQueries:
    """A folder of saved queries; the same query is kept once, and the ones used least recently make room."""

    folder: Path
    most: int
    most_bytes: int
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def save(self, query: dict[str, Any], *, refuse: Callable[[], None] = lambda: None) -> str:
        """Keep a query and return its name; one that is not kept yet may be refused."""
        content = json.dumps(query, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
        refuse_long(content)
        name = blake2b(content, digest_size=12).hexdigest()
        path = self.folder / f"{name}.json"
        with self._lock:
            try:
                os.utime(path)
            except FileNotFoundError:
                refuse()
                self._make_folder()
                self._make_room(len(content))
                write_durably(path, content)
        return name

    def read(self, name: str) -> dict[str, Any]:
        """A query that was kept."""
        path = self.folder / f"{name}.json"
        try:
            if not _NAME.fullmatch(name):
                raise FileNotFoundError(name)
            kept: dict[str, Any] = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise not_found("saved query", name, "save it again") from None
        with suppress(OSError):  # the query is there, even if another server with this folder just removed it
            os.utime(path)  # the time of the file says when it was used last
        return kept

    def _make_folder(self) -> None:
        """Make the folder, and those it is in, for their owner alone: what people ask is nobody else's business."""
        for folder in (*reversed(self.folder.parents), self.folder):
            if not folder.exists():
                folder.mkdir(mode=_OWNER, exist_ok=True)
        if stat.S_IMODE(self.folder.stat().st_mode) != _OWNER:  # an earlier version made it for others too
            self.folder.chmod(_OWNER)

    def _make_room(self, size: int) -> None:
        """Remove the queries used least recently, until one more of a size fits."""
        found = {}
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another server with this folder was quicker
                found[path] = path.stat()
        number, held = len(found), sum(about.st_size for about in found.values())
        for path in sorted(found, key=lambda path: found[path].st_mtime_ns):
            if number < self.most and held + size <= self.most_bytes:
                break
            path.unlink(missing_ok=True)
            number, held = number - 1, held - found[path].st_size


def refuse_long(content: bytes) -> None:
    """Refuse a query that is too long to be kept."""
    if len(content) > LONGEST:
        raise RefusedError(
            "saved query",
            expected=f"at most {LONGEST:,} bytes",
            found=f"{len(content):,}",
            do="write expressions such as * or range(a,b) in place of long lists of codes",
            status=413,
        )


def canonical(query: SavedQuery, table: ServedTable) -> dict[str, Any]:
    """A query that has an answer, in one spelling: each dimension and each code once, in the order of the table.

    Expressions stay as they are, after the codes: what they stand for may change with the table.
    """
    codes: dict[str, set[str]] = {}
    lists: dict[str, str] = {}
    single: set[str] = set()
    for one in query.selection.selection:
        place = table.by_name.get(one.variableCode.lower())
        if place is None:  # it selects nothing, or there were no answer
            continue
        axis = table.axes[place].name
        codes.setdefault(axis, set()).update(one.valueCodes)
        if one.codelist:
            lists[axis] = one.codelist
            single |= {axis} if one.outputValues == "single" else set()
    chosen = [
        {
            "variableCode": axis.name,
            "valueCodes": sorted(codes[axis.name], key=lambda code: (axis.places.get(code, len(axis)), code)),
            "codelist": lists.get(axis.name),
            # What was kept before there was this word keeps its name.
            **({"outputValues": "single"} if axis.name in single else {}),
        }
        for axis in table.axes
        if axis.name in codes
    ]
    placed = query.selection.placement
    words = {word.lower(): word for word in PARAMETERS}
    return {
        "tableId": table.id,
        "language": LANGUAGE,
        "outputFormat": query.outputFormat and query.outputFormat.lower(),
        "outputFormatParams": list(
            dict.fromkeys(words[word.strip().lower()] for word in query.outputFormatParams if word.strip())
        ),
        "selection": {
            "selection": chosen,
            "placement": placed and {"heading": _axes(table, placed.heading), "stub": _axes(table, placed.stub)},
        },
    }


def _axes(table: ServedTable, names: Sequence[str] | None) -> list[str] | None:
    """Dimensions as the table calls them, each once."""
    if names is None:
        return None
    return list(dict.fromkeys(table.axes[table.by_name[name.lower()]].name for name in names))


def smallest(selection: Selection) -> Selection:
    """One figure of a selection, which has an answer where all of them have."""
    places = tuple(some and some[:1] for some in selection.places)
    return replace(selection, places=places, metrics=selection.metrics[:1])


def router(context: ServerContext) -> APIRouter:
    """The routes of saved queries."""
    api = APIRouter()
    settings = context.settings
    saved = SavedQueries(
        folder=settings.state / "saved-queries", most=settings.most_saved, most_bytes=settings.most_saved_bytes
    )

    added = Buckets(calls=MOST_NEW, window=HOUR)

    @api.post(
        "/savedqueries",
        status_code=201,
        response_model=schemas.SavedQueryResponse,
        responses=responses(400, 403, 404, 413),
        openapi_extra=openapi_body(schemas.SavedQuery),
    )
    async def save_query(request: Request) -> Any:
        """Keep a question, so that it has a short address."""
        sent = await request.body()
        refuse_long(sent)  # before anything is read of it
        body = read_json(schemas.SavedQuery, sent, request)
        described = context.catalogue[body.tableId]
        _, selection = check_request(context, described, saved_request(body))
        client = context.client(request.scope)

        def save() -> tuple[str, dict[str, Any]]:
            if described.kind != "live":  # whose answers are remembered: they are given to those who ask for them
                described.answer(smallest(selection))  # refuses what has no answer
            query = canonical(body, described)
            return saved.save(query, refuse=lambda: refuse_many(client)), query

        return response_of(*await run_in_threadpool(save))

    @api.get("/savedqueries/{id}", response_model=schemas.SavedQueryResponse, responses=responses(400, 404))
    async def saved_query(id: Id) -> Any:  # noqa: A002
        """A question that was kept."""
        return response_of(id, saved.read(id))

    @api.get("/savedqueries/{id}/selection", response_model=schemas.SelectionResponse, responses=responses(400, 404))
    async def saved_selection(id: Id) -> Any:  # noqa: A002
        """The selection of a question that was kept, with codes in place of expressions."""
        query = schemas.SavedQuery(**saved.read(id))
        described = context.catalogue[query.tableId]
        return {
            "language": LANGUAGE,
            **selection_body(described, saved_request(query).selection(described)),
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
        wished, asked = DataRequest.read(request.query_params.multi_items()), saved_request(query)
        wished.refuse_selection("the saved query")
        names = {name.lower() for name in request.query_params}
        if "outputformat" in names:  # what another format was to be like says nothing of this one
            asked = replace(asked, format=wished.format, parameters=wished.parameters)
        if "outputformatparams" in names:
            asked = replace(asked, parameters=wished.parameters)
        if names & {"heading", "stub"}:
            asked = replace(asked, heading=wished.heading, stub=wished.stub)
        return (await render_request(context, query.tableId, asked, request.scope)).respond(request)

    def refuse_many(client: str) -> None:
        wait = added.wait(client) if settings.calls else 0
        if wait:
            words = f"You saved {MOST_NEW} queries in an hour. To do: use addresses, which need no room, or come back."
            raise HTTPException(429, words, {"Retry-After": str(ceil(wait))})

    def response_of(id: str, query: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        links = [link("self", f"/savedqueries/{id}", settings), link("data", f"/savedqueries/{id}/data", settings)]
        return {"language": LANGUAGE, "id": id, "savedQuery": {**query, "id": id}, "links": links}

    return api


def saved_request(query: schemas.SavedQuery) -> DataRequest:
    """The question that was kept."""
    written = DataRequest(
        format=format_named(query.outputFormat or DEFAULT_FORMAT), parameters=query.outputFormatParams
    )
    return written.with_body(query.selection)
