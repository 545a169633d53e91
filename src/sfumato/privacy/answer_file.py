"""The file of an answer: protected cells and their dimensions, to the bit as they were drawn."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.cells import Cells, Dimension
from sfumato.cube.stored import ABOUT


@dataclass(frozen=True, kw_only=True)
class Layout:
    """In which order the answer to a question is stored."""

    by: tuple[Dimension, ...]
    columns: tuple[str, ...]

    def is_by(self, dimensions: Iterable[Dimension]) -> bool:
        """Whether these are the dimensions, with the same codes, in whatever order."""
        return _codes(self.by) == _codes(dimensions)


def _codes(dimensions: Iterable[Dimension]) -> dict[str, frozenset[str]]:
    return {dimension.name: frozenset(dimension.codes) for dimension in dimensions}


def layout_of(content: Any) -> Layout:
    """How the file of an answer is laid out, be it cells or a cube."""
    schema = pq.read_schema(pa.BufferReader(content))
    of_cells = schema.metadata.get(b"dimensions")
    dimensions = json.loads(of_cells) if of_cells else json.loads(schema.metadata[ABOUT])["dimensions"]
    by = tuple(Dimension(name=d["name"], codes=tuple(d["codes"])) for d in dimensions)
    return Layout(by=by, columns=tuple(schema.names))


def content_of(answer: Cells) -> pa.Buffer:
    """An answer as the content of a file."""
    columns = {"position": answer.positions, **answer.columns}
    dimensions = [{"name": d.name, "codes": d.codes, "public": d.public} for d in answer.dimensions]
    table = pa.table(columns).replace_schema_metadata({"dimensions": json.dumps(dimensions)})
    content = pa.BufferOutputStream()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def cells_of(content: Any) -> Cells:
    """The answer that a file holds."""
    table = pq.read_table(pa.BufferReader(content))
    dimensions = json.loads(table.schema.metadata[b"dimensions"])
    columns = {name: table[name].to_numpy().astype(np.int64, copy=False) for name in table.column_names}
    return Cells(
        dimensions=tuple(Dimension(name=d["name"], codes=tuple(d["codes"]), public=d["public"]) for d in dimensions),
        positions=columns.pop("position"),
        columns=columns,
    )
