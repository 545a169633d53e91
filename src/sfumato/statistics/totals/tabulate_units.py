"""The largest units of every cell, with sums over all of them, and the permanent keys of units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.engine.factors import unbounded, wide_sum
from sfumato.engine.query import Rows, total
from sfumato.engine.records import RecordTables

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
    tables.engine.group_in_arrays(_ARRAY_BITS)


def largest_units(
    tables: RecordTables,
    parts: Rows,
    names: Sequence[str],
    *,
    most: int,
    numbers: int,
    largest: int,
    asked_only: bool = False,
    sums: Mapping[str, str] | None = None,
) -> Found:
    """Sum `parts` by the attributes that tell cells apart, and pick `most` units of each cell.

    A part is what a unit has in a cell: its `_value`, `_key` and `_guard`. Units are ordered by |`_value`|, none above
    `largest`, and then by their number `_unit`, below `numbers`. With `asked_only` only units with `_consent` are
    picked.
    """
    by = list(names)
    if not by:
        parts, by = parts.with_columns(**{_ALL: "CAST(0 AS SMALLINT)"}), [_ALL]
    asked = {"_units": "count(*)", "_key": wide_sum(parts, "_key"), "_guard": wide_sum(parts, "_guard"), **(sums or {})}
    if tables.engine.is_distributed:
        return Found(cells=parts.group(by, **asked).fetch(), chosen=_by_window(parts, by, most, asked_only))
    room = 1 << (max(numbers, 1) - 1).bit_length()
    # Of DuckDB, max(x, n) is a list of the n largest.
    cells = parts.group(by, **asked, _largest=f"max({_packed(room, largest, asked_only)}, {most})").fetch()
    sizes, units = _unpacked(cells["_largest"].combine_chunks(), room)
    sizes = sizes - asked_only
    chosen = cells.select(names).take(_rows(cells["_largest"]))
    chosen = pa.table({**dict(zip(names, chosen.columns, strict=True)), "_unit": units, "_size": sizes})
    chosen = chosen.filter(sizes >= 0) if asked_only else chosen
    return Found(cells=cells.drop("_largest"), chosen=chosen)


def unit_parts(rows: Rows, names: Sequence[str]) -> Rows:
    """What each unit has in each cell that the attributes tell apart; also of parts by more attributes."""
    return rows.group(
        [*names, "_unit"],
        _value=total("_value"),
        _key="any_value(_key)",
        _guard="any_value(_guard)",
        _consent="max(_consent)",
    )


def sums_of_units(tables: RecordTables, rows: Rows, names: Sequence[str], chosen: pa.Table) -> pa.Table:
    """Values, weighted values, weights and consent of some units in some cells, added up from their rows."""
    by = [*names, "_unit"]
    with tables.lent(chosen.select(by)) as lent:
        kept = rows.join(lent, by, "semi")
        return kept.group(
            by,
            _value=total("_value"),
            _weighted=wide_sum(kept, "_weighted"),
            _weight=total("_weight"),
            _consent="max(_consent)",
        ).fetch()


def _by_window(parts: Rows, names: Sequence[str], most: int, asked_only: bool) -> pa.Table:
    """Rank all units of every cell; slower, but every engine can do it."""
    parts = parts.where("_consent = 1") if asked_only else parts
    sized = parts.select(*names, "_unit", _size="abs(_value)")
    cell = ", ".join(map(parts.engine.q, names))
    order = f"PARTITION BY {cell} ORDER BY _size DESC, _unit"
    ranked = sized.with_columns(_rank=f"row_number() OVER ({order})")
    return ranked.where(f"_rank <= {most}").without("_rank").fetch()


def _packed(room: int, largest: int, asked_only: bool) -> str:
    """Whole numbers that are larger for a larger value, and among equal ones for a smaller number.

    With `asked_only` sizes are one larger, and 0 for units that did not ask.
    """
    size, place = "abs(_value)", f"{room - 1} - CAST(_unit AS BIGINT)"
    size = f"(({size} + 1) * _consent)" if asked_only else size
    if (largest + 2) * room < 2**63:
        return f"{size} * {room} + ({place})"
    wide = f"CAST({size} AS DECIMAL(19, 0)) * CAST({room} AS DECIMAL(11, 0)) + CAST({place} AS DECIMAL(19, 0))"
    return f"CAST({wide} AS DECIMAL(38, 0))"


def _unpacked(lists: pa.ListArray, room: int) -> tuple[Integers, Integers]:
    """The sizes and numbers of the units that were picked, cell after cell."""
    packed = lists.flatten()
    values = packed.to_numpy() if pa.types.is_integer(packed.type) else unbounded(pa.chunked_array([packed]))
    return (values // room).astype(np.int64), (room - 1 - values % room).astype(np.int64)


def _rows(lists: pa.ChunkedArray) -> pa.Array:
    """The row of each element of lists."""
    lengths = pc.list_value_length(lists).to_numpy()
    return pa.array(np.repeat(np.arange(len(lengths)), lengths))
