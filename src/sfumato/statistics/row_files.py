"""The rows of a published table, and as the content of files: Parquet, and CSV in pieces."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.agree.composite import COMPOSITE_ERROR
from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells, places
from sfumato.method import HIDDEN, STATUSES


def at_period(table: pa.Table, when: tuple[str, str] | None) -> pa.Table:
    """The rows of one period of a series, with the time dimension as their first column."""
    if when is None:
        return table
    name, code = when
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(table), dtype=np.int32)), pa.array([code]))
    return table.add_column(0, name, column)


def parquet(table: pa.Table) -> pa.Buffer:
    """A published table as the content of a file."""
    content = pa.BufferOutputStream()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def csv_text(table: pa.Table, *, header: bool = True) -> pa.Buffer:
    """The rows of a table as CSV: codes as they are, quoted only where they must be."""
    plain = {
        name: column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    content = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(include_header=header, quoting_style="needed", batch_size=1 << 16)
    pyarrow.csv.write_csv(pa.table(plain), content, options)
    return content.getvalue()


def is_hidden(status: NDArray[Any]) -> Flags:
    """Which cells have no published value."""
    return np.isin(status, HIDDEN)


def as_arrow(answer: Cells, positions: Integers, columns: dict[str, NDArray[Any]]) -> pa.Table:
    """Columns of cells at some positions as a table with a column for every dimension."""
    arrays: dict[str, pa.Array] = {}
    for dimension, place in zip(answer.dimensions, places(positions, answer.dimensions), strict=True):
        arrays[dimension.name] = pa.DictionaryArray.from_arrays(place.astype(np.int32), list(dimension.codes))
    for name, column in columns.items():
        if name == "status":
            arrays[name] = pa.DictionaryArray.from_arrays(column.astype(np.int32), list(STATUSES))
            continue
        hidden = is_hidden(columns["status"]) if name == "value" and "status" in columns else np.isnan(column)
        decimal = name in ("error", COMPOSITE_ERROR, "convergence_ratio", "rse") or (
            name not in ("count", "total", "jobs", "establishments") and columns["value"].dtype.kind == "f"
        )
        kind = pa.float64() if decimal else pa.int64()
        arrays[name] = pa.array(column, kind, mask=hidden, safe=False)
    return pa.table(arrays)


def laid_out(column: NDArray[Any], answer: Cells) -> NDArray[Any]:
    """Spread a column over the whole domain, zero where nothing is listed."""
    whole = np.zeros(answer.domain, dtype=column.dtype)
    whole[answer.positions] = column
    return whole
