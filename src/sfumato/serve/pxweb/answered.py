"""From a question of PxWebApi version 2 to its answer, and a selection written as PxWebApi writes it."""

from typing import Any

from starlette.types import Scope

from sfumato.serve.formats.grid import placement
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Selection, ServedDimension, ServedTable
from sfumato.serve.pxweb.asked import Asked
from sfumato.serve.served import Rendered, Served


async def answered(served: Served, id: str, asked: Asked, scope: Scope) -> Rendered:  # noqa: A002
    """The finished answer to a question about a table."""
    table = served.catalogue[id]
    options, selection = checked(served, table, asked)
    return await served.rendered(table, selection, name=asked.format, options=options, scope=scope)


def checked(served: Served, table: ServedTable, asked: Asked) -> tuple[Options, Selection]:
    """How a question is to be answered, and with what; refused where it is not understood, or is too large."""
    options, selection = asked.options(served.settings), asked.selection(table)
    kept = [axis.name for axis, places in zip(table.dimensions, selection.places, strict=True) if places is not None]
    placement([*kept, table.contents.name], options.heading, options.stub)  # refuses what is not in the answer
    served.refuse_large(selection)
    return options, selection


def written(table: ServedTable, selection: Selection) -> dict[str, Any]:
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
