"""The figures behind a view: the answer of a table as one block of numbers, with published totals at its edges."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.errors import RefusedError
from sfumato.serve.model import Selection, ServedTable
from sfumato.serve.reliability import Marks

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Figures by the dimensions that were asked for, in the order of the table, and by metric."""

    values: Numbers
    """Not a number where there is none."""
    said: Marks
    """The numbers of `status.SAID`."""
    notes: tuple[str, ...] = ()


def gather(table: ServedTable, selection: Selection, totals: Sequence[int] = ()) -> Block:
    """The answer to a selection; axes of `totals` get one more entry, the published total over them."""
    if not totals:
        answer = table.answer(selection)
        values = np.stack([column.values.astype(np.float64) for column in answer.columns], axis=-1)
        for at, column in enumerate(answer.columns):
            if column.missing is not None:
                values[..., at][column.missing] = np.nan
        return Block(values=values, said=answer.said(), notes=answer.notes)
    axis, *others = totals
    inside = gather(table, selection, others)
    over = gather(table, without(selection, [axis]), others)
    at = sum(places is not None for places in selection.places[:axis])
    return Block(
        values=np.concatenate([inside.values, np.expand_dims(over.values, at)], axis=at),
        said=np.concatenate([inside.said, np.expand_dims(over.said, at)], axis=at),
        notes=tuple(dict.fromkeys((*inside.notes, *over.notes))),
    )


def without(selection: Selection, axes: Sequence[int]) -> Selection:
    """The selection with some dimensions left out."""
    places = tuple(None if axis in axes else places for axis, places in enumerate(selection.places))
    return replace(selection, places=places, groupings=tuple(g for g in selection.groupings if g[0] not in axes))


def published_total(
    table: ServedTable, selection: Selection, over: Sequence[int], totals: Sequence[int]
) -> Numbers | None:
    """The published totals over some dimensions, with length one in their place; None where there are none."""
    try:
        block = gather(table, without(selection, over), [axis for axis in totals if axis not in over])
    except RefusedError:
        return None
    values = block.values
    for axis in sorted(over):
        values = np.expand_dims(values, sum(places is not None for places in selection.places[:axis]))
    return values
