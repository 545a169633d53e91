"""The largest units of every cell, with sums over all of them, and the permanent keys of units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.engine.factors import narrow_sum, unbounded, wide_sum
from sfumato.engine.records import RecordTables

if TYPE_CHECKING:
    import ibis.expr.types as ir

_ALL = "_all"
"""Tells cells apart where nothing else does: there is one."""
_ARRAY_BITS = 17
"""Tables of up to 2 to this many cells are summed in arrays: about 20 megabytes for each of the engine's threads."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """An engine's answer: cells with `_units`, `_key`, `_guard` and other sums, and the largest units of each.

    Of those, `chosen` has the number `_unit` and the `_size`, which is |value|.
    """

    cells: pa.Table
    chosen: pa.Table


def group_in_arrays(tables: RecordTables) -> None:
    """Let DuckDB find the cell of a row by its codes as in an array, which takes half as long as looking it up.

    It does so by itself only for tables of up to 4,096 cells.
    """
    if tables.is_duckdb:
        tables.backend.con.execute(f"SET perfect_ht_threshold = {_ARRAY_BITS}")


def largest_units(
    tables: RecordTables,
    parts: "ir.Table",
    names: Sequence[str],
    *,
    most: int,
    numbers: int,
    largest: int,
    asked_only: bool = False,
    sums: "Mapping[str, ir.DecimalScalar] | None" = None,
) -> Found:
    """Sum `parts` by the attributes that tell cells apart, and pick `most` units of each cell.

    A part is what a unit has in a cell: its `_value`, `_key` and `_guard`. Units are ordered by |`_value`|, none above
    `largest`, and then by their number `_unit`, below `numbers`. With `asked_only` only units with `_consent` are
    picked.
    """
    import ibis

    by = list(names)
    if not by:
        parts, by = parts.mutate(**{_ALL: ibis.literal(0, "int16")}), [_ALL]
    asked = {"_units": parts.count(), "_key": wide_sum(parts["_key"]), "_guard": wide_sum(parts["_guard"])}
    asked |= sums or {}
    if not tables.is_duckdb:
        return Found(cells=parts.group_by(by).agg(**asked).to_pyarrow(), chosen=_by_window(parts, by, most, asked_only))
    room = 1 << (max(numbers, 1) - 1).bit_length()
    cells = parts.group_by(by).agg(**asked, _largest=_packed(parts, room, largest, most, asked_only)).to_pyarrow()
    sizes, units = _unpacked(cells["_largest"].combine_chunks(), room)
    sizes = sizes - asked_only
    chosen = cells.select(names).take(_rows(cells["_largest"]))
    chosen = pa.table({**dict(zip(names, chosen.columns, strict=True)), "_unit": units, "_size": sizes})
    chosen = chosen.filter(sizes >= 0) if asked_only else chosen
    return Found(cells=cells.drop("_largest"), chosen=chosen)


def unit_parts(rows: "ir.Table", names: Sequence[str]) -> "ir.Table":
    """What each unit has in each cell that the attributes tell apart; also of parts by more attributes."""
    return rows.group_by([*names, "_unit"]).agg(
        _value=narrow_sum(rows["_value"]),
        _key=rows["_key"].arbitrary(),
        _guard=rows["_guard"].arbitrary(),
        _consent=rows["_consent"].max(),
    )


def sums_of_units(tables: RecordTables, rows: "ir.Table", names: Sequence[str], chosen: pa.Table) -> pa.Table:
    """Values, weighted values, weights and consent of some units in some cells, added up from their rows."""
    by = [*names, "_unit"]
    with tables.lent(chosen.select(by)) as lent:
        kept = rows.semi_join(lent, by)
        return (
            kept.group_by(by)
            .agg(
                _value=narrow_sum(kept["_value"]),
                _weighted=wide_sum(kept["_weighted"]),
                _weight=narrow_sum(kept["_weight"]),
                _consent=kept["_consent"].max(),
            )
            .to_pyarrow()
        )


def _by_window(parts: "ir.Table", names: Sequence[str], most: int, asked_only: bool) -> pa.Table:
    """Rank all units of every cell; slower, but every engine can do it."""
    import ibis

    parts = parts.filter(parts["_consent"] == 1) if asked_only else parts
    sized = parts.mutate(_size=parts["_value"].abs())
    order = ibis.window(group_by=list(names), order_by=[sized["_size"].desc(), sized["_unit"]])
    ranked = sized.mutate(_rank=ibis.row_number().over(order))
    return ranked.filter(ranked["_rank"] < most).select(*names, "_unit", "_size").to_pyarrow()


def _packed(parts: "ir.Table", room: int, largest: int, most: int, asked_only: bool) -> "ir.ArrayScalar":
    """The `most` largest of whole numbers that are larger for a larger value, and among equal ones a smaller number.

    With `asked_only` sizes are one larger, and 0 for units that did not ask.
    """
    import ibis

    size, place = parts["_value"].abs(), (room - 1) - parts["_unit"].cast("int64")
    size = (size + 1) * parts["_consent"] if asked_only else size
    if (largest + 2) * room < 2**63:
        return _greatest("int64")(size * room + place, most)
    wide = size.cast("decimal(19, 0)") * ibis.literal(room, "decimal(11, 0)") + place.cast("decimal(19, 0)")
    return _greatest("decimal(38, 0)")(wide.cast("decimal(38, 0)"), most)


@cache
def _greatest(kind: str) -> Any:
    """DuckDB's max(x, n): the n largest as a list."""
    import ibis

    def greatest(x, n):  # type: ignore[no-untyped-def]
        ...

    signature = ((ibis.dtype(kind), ibis.dtype("int64")), ibis.dtype(f"array<{kind}>"))
    return ibis.udf.agg.builtin(greatest, name="max", signature=signature)


def _unpacked(lists: pa.ListArray, room: int) -> tuple[Integers, Integers]:
    """The sizes and numbers of the units that were picked, cell after cell."""
    packed = lists.flatten()
    values = packed.to_numpy() if pa.types.is_integer(packed.type) else unbounded(pa.chunked_array([packed]))
    return (values // room).astype(np.int64), (room - 1 - values % room).astype(np.int64)


def _rows(lists: pa.ChunkedArray) -> pa.Array:
    """The row of each element of lists."""
    lengths = pc.list_value_length(lists).to_numpy()
    return pa.array(np.repeat(np.arange(len(lengths)), lengths))
