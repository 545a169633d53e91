"""A cube as a Parquet file: a row for every cell, codes and whole numbers, in any order."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.cells import Dimension
from sfumato.privacy.answers import ABOUT
from sfumato.statistics.cube.cube import Cube
from sfumato.statistics.cube.figures import ColumnNoise, Figures, Scale
from sfumato.statistics.cube.section import COUNT, WEIGHTED

_ROWS = 1 << 20


def stored(cube: Cube, figures: Figures) -> bytes:
    """The file; rows are made a million at a time, so that codes of a large cube are never in memory at once."""
    about = {
        "dimensions": [{"name": d.name, "codes": d.codes} for d in cube.dimensions],
        "parts": dict(cube.parts),
        "figures": figures.described(),
    }
    codes = [(d.name, pa.dictionary(pa.int32(), pa.string())) for d in cube.dimensions]
    numbers = [(name, pa.int64()) for name in cube.columns]
    schema = pa.schema([*codes, *numbers], metadata={ABOUT: json.dumps(about).encode()})
    file = BytesIO()
    # Numbers of cells hardly repeat: their differences are smaller than a dictionary of them, and quicker to read.
    encoding = dict.fromkeys(cube.columns, "DELTA_BINARY_PACKED")
    with pq.ParquetWriter(
        file, schema, compression="zstd", store_schema=True, use_dictionary=list(cube.names), column_encoding=encoding
    ) as writer:
        for batch in _batches(cube, schema):
            writer.write_batch(batch, row_group_size=_ROWS)
    return file.getvalue()


def read_stored(content: bytes) -> tuple[Cube, Figures]:
    """The cube and its figures; codes of rows are not read, because rows are in the order of the product."""
    # One column at a time has no use for Arrow's threads, which can abort a process that ends while they start.
    file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
    about: dict[str, Any] = json.loads(file.schema_arrow.metadata[ABOUT])
    dimensions = tuple(Dimension(name=d["name"], codes=tuple(d["codes"])) for d in about["dimensions"])
    shape = tuple(map(len, dimensions))
    columns = {
        name: file.read(columns=[name], use_threads=False).column(0).to_numpy().reshape(shape)
        for name in about["parts"]
    }
    return Cube(dimensions=dimensions, columns=columns, parts=about["parts"]), Figures.read(about["figures"])


def read_figures(content: bytes) -> Figures:
    """The figures alone, without reading a cell."""
    about = json.loads(pq.read_schema(pa.BufferReader(content)).metadata[ABOUT])
    return Figures.read(about["figures"])


def with_columns(content: bytes, columns: Collection[str]) -> bytes:
    """The file with no other columns than these; as it is, if it has none."""
    about = json.loads(pq.read_schema(pa.BufferReader(content)).metadata[ABOUT])
    kept = [name for name in about["parts"] if name in columns]
    if len(kept) == len(about["parts"]):
        return content
    cube, figures = read_stored(content)
    return stored(cube.only(*kept), figures.only(kept))


def _batches(cube: Cube, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    dictionaries = [pa.array(d.codes, pa.string()) for d in cube.dimensions]
    flat = {name: column.reshape(-1) for name, column in cube.columns.items()}
    for start in range(0, len(cube), _ROWS):
        rows = np.arange(start, min(start + _ROWS, len(cube)))
        places = np.unravel_index(rows, cube.shape)
        arrays = [
            pa.DictionaryArray.from_arrays(pa.array(place.astype(np.int32)), codes)
            for place, codes in zip(places, dictionaries, strict=True)
        ]
        arrays += [pa.array(column[rows[0] : rows[-1] + 1]) for column in flat.values()]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


# A stored cube in another order of dimensions, codes and measures: the same numbers, as a release asks for them.


def laid_out(content: bytes, by: Sequence[Dimension], measures: Sequence[str]) -> bytes:
    """The file of a cube with these dimensions and measures, which are its own in another order."""
    cube, figures = read_stored(content)
    axes = [cube.names.index(dimension.name) for dimension in by]
    codes = [[cube.dimensions[axis].places[code] for code in d.codes] for axis, d in zip(axes, by, strict=True)]
    names = [name for name in cube.columns if name in (COUNT, WEIGHTED)] + list(measures)
    moved = Cube(
        dimensions=tuple(by),
        columns={name: np.ascontiguousarray(cube[name].transpose(axes)[np.ix_(*codes)]) for name in names},
        parts={name: cube.parts[name] for name in names},
    )
    to = {axis: place for place, axis in enumerate(axes)}
    noise = {name: _noise(figures.noise[name], to, codes) for name in names if name in figures.noise}
    return stored(moved, Figures(noise=noise, sampling=figures.sampling, calibration=figures.calibration))


def _noise(noise: ColumnNoise, to: Mapping[int, int], codes: Sequence[Sequence[int]]) -> ColumnNoise:
    controls = {tuple(sorted(to[axis] for axis in axes)): variance for axes, variance in noise.controls.items()}
    return replace(noise, controls=controls, scale=_scale(noise.scale, to, codes))


def _scale(scale: Scale, to: Mapping[int, int], codes: Sequence[Sequence[int]]) -> Scale:
    if scale.axis is None:
        return scale
    axis = to[scale.axis]
    return replace(scale, axis=axis, by_code=tuple(scale.by_code[place] for place in codes[axis]))
