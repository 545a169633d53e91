"""Parquet: a column for every dimension, with codes, and one for every metric, with its own type."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.serve.formats.grid import shown
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Answer
from sfumato.serve.status import RELIABILITY

_RELIABILITY = pa.array([status.text for status in RELIABILITY], pa.string())


def write_parquet(answer: Answer, options: Options) -> bytes:
    """The answer as a Parquet file; the last columns have the status of the bundle and what errors say of values."""
    content = pa.BufferOutputStream()
    pq.write_table(as_arrow(answer, options), content, compression="zstd")
    return bytes(content.getvalue())


def as_arrow(answer: Answer, options: Options) -> pa.Table:
    """The answer as a table of columns, in the layout of the files of a bundle."""
    texts = options.texts or "codes"
    cells = int(np.prod(answer.shape, dtype=np.int64))
    places = np.unravel_index(np.arange(cells), answer.shape) if answer.shape else ()
    columns: dict[str, pa.Array] = {}
    for dimension, place in zip(answer.dimensions, places, strict=True):
        codes = pa.array(shown(dimension, texts), pa.string())
        columns[dimension.name] = pa.DictionaryArray.from_arrays(pa.array(place.astype(np.int32)), codes)
    names = {metric.code: metric.code for metric in answer.metrics}
    names |= {answer.table.metrics[place].code: name for name, place in answer.table.contents.also}  # as in the bundle
    for metric, column in zip(answer.metrics, answer.columns, strict=True):
        missing = None if column.missing is None else column.missing.ravel()
        columns[names[metric.code]] = pa.array(column.values.ravel(), mask=missing)
    if answer.table.marks:
        columns["status"] = pa.array(answer.texts(), pa.string())
    values = [(m, c) for m, c in zip(answer.metrics, answer.columns, strict=True) if m.kind == "value"]
    for metric, column in values if any(answer.table.rating) else ():
        marks = np.zeros(cells, np.int8) if column.marks is None else column.marks.ravel()
        name = "reliability" if len(values) == 1 else f"{metric.code}_reliability"
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(marks), _RELIABILITY)
    return pa.table(columns)
