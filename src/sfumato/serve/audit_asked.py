"""What a request asked for, in one spelling: codes and names, never a figure."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from starlette.types import Scope

from sfumato.serve.model import Selection, ServedDimension, ServedTable, grouped

LISTED = 20
"""Codes of a dimension that are written out; of more, how many there are and a digest that tells them apart."""
_NOTED = "sfumato.asked"


@dataclass(frozen=True, kw_only=True)
class Noted:
    """A question as the log of questions has it."""

    table: str
    asked: Mapping[str, Any]
    cells: int

    def put(self, scope: Scope) -> None:
        """Say that a request asks for this; its entry in the log will have it."""
        scope[_NOTED] = self


def note(scope: Scope, *, table: str, asked: Mapping[str, Any], cells: int) -> None:
    """Say what a request asks for, in codes and names; its entry in the log will have it."""
    Noted(table=table, asked=asked, cells=cells).put(scope)


def noted_in(scope: Scope) -> Noted | None:
    """What was said of a request."""
    found: Noted | None = scope.get(_NOTED)
    return found


def noted(table: ServedTable, selection: Selection) -> Noted:
    """A selection: by dimension the codes, in their order; a star for all of them."""
    groupings = dict(selection.groupings)
    asked: dict[str, Any] = {}
    for at, (axis, places) in enumerate(zip(table.axes, (*selection.places, selection.metrics), strict=True)):
        if places is not None and at in groupings:
            asked[axis.name] = {groupings[at]: listed(grouped(axis, groupings[at]), places)}
        elif places is not None:
            asked[axis.name] = listed(axis, places)
    return Noted(table=table.id, asked=asked, cells=selection.cells)


def listed(dimension: ServedDimension, places: tuple[int, ...]) -> Any:
    """Codes as the log writes them.

    >>> dimension = ServedDimension(name="place", label="Place", codes=("a", "b"), labels=("A", "B"))
    >>> listed(dimension, (0, 1)), listed(dimension, (1,))
    ('*', ['b'])
    """
    if len(places) == len(dimension):
        return "*"
    if len(places) <= LISTED:
        return [dimension.codes[place] for place in places]
    digest = blake2b(repr(places).encode(), digest_size=8).hexdigest()
    return {"from": dimension.codes[places[0]], "number": len(places), "digest": digest}
