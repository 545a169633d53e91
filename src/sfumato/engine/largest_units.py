"""The largest units of every cell, with sums over all of them: in one pass of the engine where it can."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.cells import Integers
from sfumato.engine.records import RecordTables
from sfumato.engine.wide_sums import unbounded, wide_sum

if TYPE_CHECKING:
    import ibis.expr.types as ir

_ALL = "_all"
"""Tells cells apart where nothing else does: there is one."""
_OF_UNITS = ("_unit", "_value", "_weighted", "_weight", "_consent")


@dataclass(frozen=True, kw_only=True)
class Found:
    """An engine's answer: cells with `_units`, `_key`, `_guard` and other sums, and the largest units of each."""

    cells: pa.Table
    units: pa.Table


def largest_units(
    tables: RecordTables,
    parts: "ir.Table",
    names: Sequence[str],
    *,
    most: int,
    numbers: int,
    largest: int,
    sums: "Mapping[str, ir.DecimalScalar] | None" = None,
    known: "Callable[[Integers, Integers], dict[str, Integers]] | None" = None,
) -> Found:
    """Sum `parts` by the attributes that tell cells apart, and pick `most` units of each cell.

    A part is what a unit has in a cell, its `_key` and `_guard` included. Units are ordered by |`_value`|, none of them
    above `largest`, and then by their number `_unit`, below `numbers`. Where units have one part each, `known` may say
    from their numbers and |values| what else the part has; otherwise the engine is asked.
    """
    import ibis  # noqa: PLC0415 (an engine is imported when it is used)

    if not names:
        parts, names = parts.mutate(**{_ALL: ibis.literal(0, "int16")}), (_ALL,)
    asked = {"_units": parts.count(), "_key": wide_sum(parts["_key"]), "_guard": wide_sum(parts["_guard"])}
    asked |= sums or {}
    if not tables.is_duckdb:
        cells = parts.group_by(list(names)).agg(**asked).to_pyarrow()
        return Found(cells=cells, units=_by_window(parts, names, most))
    room = 1 << (max(numbers, 1) - 1).bit_length()
    asked["_largest"] = _packed(parts, room, largest, most)
    answered = parts.group_by(list(names)).agg(**asked).to_pyarrow()
    cells, (sizes, units) = answered.drop("_largest"), _unpacked(answered["_largest"].combine_chunks(), room)
    chosen = cells.select(list(names)).take(_rows(answered["_largest"])).append_column("_unit", pa.array(units))
    if known is not None:
        for name, column in known(units, sizes).items():
            chosen = chosen.append_column(name, pa.array(column))
        return Found(cells=cells, units=chosen)
    with tables.lent(chosen) as lent:
        return Found(
            cells=cells, units=parts.semi_join(lent, [*names, "_unit"]).select(*names, *_OF_UNITS).to_pyarrow()
        )


def unit_parts(rows: "ir.Table", names: Sequence[str]) -> "ir.Table":
    """Add up the rows of each unit in each cell that the attributes tell apart."""
    return rows.group_by([*names, "_unit"]).agg(
        _value=wide_sum(rows["_value"]).cast("int64"),
        _weighted=wide_sum(rows["_weighted"]),
        _weight=wide_sum(rows["_weight"]).cast("int64"),
        _consent=rows["_consent"].max(),
        _key=rows["_key"].max(),
        _guard=rows["_guard"].max(),
    )


def _by_window(parts: "ir.Table", names: Sequence[str], most: int) -> pa.Table:
    """Rank all units of every cell; slower, but every engine can do it."""
    import ibis  # noqa: PLC0415 (an engine is imported when it is used)

    order = ibis.window(group_by=list(names), order_by=[parts["_value"].abs().desc(), parts["_unit"]])
    numbered = parts.mutate(_rank=ibis.row_number().over(order))
    return numbered.filter(numbered["_rank"] < most).select(*names, *_OF_UNITS).to_pyarrow()


def _packed(parts: "ir.Table", room: int, largest: int, most: int) -> "ir.ArrayScalar":
    """The `most` largest of whole numbers that are larger for a larger value, and among equal ones a smaller number."""
    import ibis  # noqa: PLC0415 (an engine is imported when it is used)

    size, place = parts["_value"].abs(), (room - 1) - parts["_unit"].cast("int64")
    if (largest + 1) * room < 2**63:
        return _greatest("int64")(size * room + place, most)
    wide = size.cast("decimal(19, 0)") * ibis.literal(room, "decimal(11, 0)") + place.cast("decimal(19, 0)")
    return _greatest("decimal(38, 0)")(wide.cast("decimal(38, 0)"), most)


@cache
def _greatest(kind: str) -> Any:
    """DuckDB's max(x, n): the n largest as a list."""
    import ibis  # noqa: PLC0415 (an engine is imported when it is used)

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
