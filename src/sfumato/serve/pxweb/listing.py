"""The list of tables as PxWebApi shows it, and from a question to its answer."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.types import Scope

from sfumato.frame.periods import in_time
from sfumato.serve.context import Answered, ServerContext
from sfumato.serve.core.access import Settings
from sfumato.serve.core.errors import not_found
from sfumato.serve.core.model import Selection, ServedDimension, ServedTable
from sfumato.serve.core.selection import is_part
from sfumato.serve.formats.json_stat import BASE, LANGUAGE
from sfumato.serve.formats.layout import Options, placement
from sfumato.serve.pxweb.request import DataRequest

_UNITS = {1: "Annual", 4: "Quarterly", 12: "Monthly"}
"""What PxWebApi calls periods, by how many there are in a year."""


async def render_request(context: ServerContext, id: str, asked: DataRequest, scope: Scope) -> Answered:  # noqa: A002
    """The finished answer to a question about a table."""
    table = context.catalogue[id]
    options, selection = check_request(context, table, asked)
    return await context.answer(table, selection, name=asked.format, options=options, scope=scope)


def check_request(context: ServerContext, table: ServedTable, asked: DataRequest) -> tuple[Options, Selection]:
    """How a question is to be answered, and with what; refused where it is not understood, or is too large."""
    options, selection = asked.options(context.settings), asked.selection(table)
    kept = [axis.name for axis, places in zip(table.dimensions, selection.places, strict=True) if places is not None]
    placement([*kept, table.contents.name], options.heading, options.stub)  # refuses what is not in the answer
    context.refuse_large(selection, table, name=asked.format)
    return replace(options, part=not asked.selects and is_part(table, selection)), selection


def selection_body(table: ServedTable, selection: Selection) -> dict[str, Any]:
    """A selection as PxWebApi writes it."""
    places = (*selection.places, selection.metrics)
    lists = dict(selection.groupings)
    chosen = [
        {
            "variableCode": axis.name,
            "codelist": lists.get(at),
            "valueCodes": [_codes(axis, lists.get(at))[place] for place in some],
        }
        for at, (axis, some) in enumerate(zip(table.axes, places, strict=True))
        if some is not None
    ]
    stub = [one["variableCode"] for one in chosen[:-1]]
    return {"selection": chosen, "placement": {"heading": [table.contents.name], "stub": stub}}


def _codes(axis: ServedDimension, grouping: str | None) -> list[str]:
    return next((list(one.groups) for one in axis.groupings if one.id == grouping), list(axis.codes))


MOST_DAYS = 36_500


def link(rel: str, path: str, settings: Settings) -> dict[str, str]:
    """A link to a path of this interface."""
    return {"rel": rel, "hreflang": LANGUAGE, "href": f"{settings.url}{BASE}{path}"}


def table_summary(table: ServedTable, settings: Settings) -> dict[str, Any]:
    """A table in short."""
    time = table.time
    periods = in_time(time.codes if time else [table.period])
    folder = "".join(character if character.isalnum() else "-" for character in table.release.lower())
    return {
        "type": "Table",
        "id": table.id,
        "label": f"{table.title}, {table.period}",
        "description": table.notes[0] if table.notes else "",
        "updated": table.updated.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "firstPeriod": time.codes[0] if time else table.period,
        "lastPeriod": time.codes[-1] if time else table.period,
        "category": "public",
        "variableNames": [axis.label for axis in table.axes],
        "discontinued": False,
        "source": settings.source,
        "timeUnit": _UNITS[periods[0].in_a_year] if periods else "Other",
        "paths": [[{"id": folder, "label": table.release}]],
        "links": [
            link("self", f"/tables/{table.id}", settings),
            link("metadata", f"/tables/{table.id}/metadata", settings),
            link("data", f"/tables/{table.id}/data", settings),
        ],
    }


def search(tables: Sequence[ServedTable], *, query: str = "", past_days: int | None = None) -> list[ServedTable]:
    """The tables that have every word of a query in their names, labels, dimensions or codes' labels."""
    words = query.lower().split()
    since = None if past_days is None else datetime.now(tz=UTC) - timedelta(days=min(past_days, MOST_DAYS))
    return [
        table
        for table in tables
        if (since is None or table.updated >= since) and all(word in _searched(table) for word in words)
    ]


def _searched(table: ServedTable) -> str:
    parts = [table.id, table.title, table.release, table.counted, table.population, table.period]
    for axis in table.axes:
        parts += [axis.name, axis.label]
    return "\n".join(parts).lower()


def tables_page(tables: Sequence[ServedTable], number: int, size: int, settings: Settings) -> dict[str, Any]:
    """One page of a list of tables."""
    pages = max(-(-len(tables) // size), 1)
    if number > pages:
        raise not_found("page", str(number), f"ask for a page up to {pages}")
    links = [link("self", f"/tables?pageNumber={number}&pageSize={size}", settings)]
    if number < pages:
        links.append(link("next", f"/tables?pageNumber={number + 1}&pageSize={size}", settings))
    if number > 1:
        links.append(link("previous", f"/tables?pageNumber={number - 1}&pageSize={size}", settings))
    shown = tables[(number - 1) * size : number * size]
    return {
        "language": LANGUAGE,
        "tables": [table_summary(table, settings) for table in shown],
        "page": {
            "pageNumber": number,
            "pageSize": size,
            "totalElements": len(tables),
            "totalPages": pages,
            "links": links,
        },
        "links": links[:1],
    }
