"""Tables in chunks: which blocks of cells a chunk has, and how it is cut out of the engine."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, prod
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.chunks import Chunk
from sfumato.engine.query import Engine, Rows

# Where the rows of an engine's answer stand in the product of the dimensions.


def strides(by: Sequence[Dimension]) -> dict[str, int]:
    """How far apart in the product of all dimensions two neighbouring codes of each dimension are."""
    return {d.name: prod(map(len, by[i + 1 :])) for i, d in enumerate(by)}


def positions_of(found: pa.Table, dimensions: Sequence[Dimension], by: Sequence[Dimension]) -> Integers:
    """Where the rows of an answer stand in the product of all dimensions."""
    step = strides(by)
    positions = np.zeros(found.num_rows, dtype=np.int64)
    for dimension in dimensions:
        codes = pc.index_in(found[dimension.name], value_set=pa.array(dimension.codes, pa.string()))
        if codes.null_count:
            raise ValueError(f"a value of {dimension.name!r} is not in its codelist")
        positions += codes.to_numpy().astype(np.int64) * step[dimension.name]
    return positions


# The layout of a table in parts: which blocks of cells a part has, and what its cells are.

OfRows = Callable[[pa.Table], Chunk]
"""Work on the true rows of one part, which writes a file and tells of it; it may be sent to another process."""
OfFile = Callable[[int], Chunk]
"""Work on the file of one part, known by its number; it may be sent to another process."""
EachFile = Callable[[Sequence[int], OfFile], Iterator[Chunk]]
"""Works on the files of stored parts somewhere, in any order."""
T = TypeVar("T")
_BATCH = 1 << 17
"""Rows the engine hands out at a time."""
CELLS_OF_A_CHUNK = 2_000_000
"""Parts have about so many cells, few enough that several are protected at a time in little memory."""
IN_ONE_PIECE = 20_000_000
"""What has more cells than this is never made in one piece where it can be made in parts."""
MOST_CELLS = 50_000_000
"""Tables in one piece are held in memory; beyond this many listed cells a release is refused before it is charged."""
BUCKETS = 1 << 16
"""Workplace cells are counted in so many ranges at most to cut the table into parts of like size."""
THE_BLOCK = -1
"""In the column `_inside`: the row is about the workplace cell itself."""
THE_CHUNK = -2
"""In the column `_inside`: the row is about no cell; it only says that there is such a part."""
_OF_BLOCKS = ("establishments", "largest_employer")


@dataclass(frozen=True, kw_only=True)
class ChunkLayout:
    """How the cells of a table are cut into parts; a plain value, which may be sent to another process.

    A block is a workplace cell, known by its place in the product of the public dimensions; `inside` is the place of a
    worker cell in the product of the others. In a table of people every cell is a block. A part is a range of blocks.
    """

    dimensions: tuple[Dimension, ...]
    starts: tuple[int, ...]
    """The first block of each part."""
    columns: tuple[str, ...]
    """What the cells have beside their positions, `count` first."""
    every_block: bool
    """Whether all blocks are listed, because nothing tells which have an establishment."""

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self.starts)

    @property
    def public(self) -> tuple[Dimension, ...]:
        """The dimensions of the blocks."""
        return tuple(dimension for dimension in self.dimensions if dimension.public)

    @property
    def inside(self) -> tuple[Dimension, ...]:
        """The dimensions inside a block."""
        return tuple(dimension for dimension in self.dimensions if not dimension.public)

    @property
    def blocks(self) -> int:
        """The number of blocks, those without any establishment included."""
        return prod(map(len, self.public))

    @property
    def width(self) -> int:
        """The number of cells in a block."""
        return prod(map(len, self.inside))

    def all_blocks(self, part: int) -> Integers:
        """Every block in the range of a part."""
        end = self.starts[part + 1] if part + 1 < self.parts else self.blocks
        return np.arange(self.starts[part], end, dtype=np.int64)

    def cells(self, rows: pa.Table) -> Cells:
        """The true cells of one part from its rows, in any order: what no row tells of is zero."""
        block, inside = (_numbers(rows, name) for name in ("_block", "_inside"))
        occupied = np.flatnonzero(inside >= 0)
        own = np.flatnonzero(inside == THE_BLOCK) if self.inside else occupied
        own = own[np.argsort(block[own])]
        part = int(_numbers(rows, "_part")[0]) if len(block) else 0
        blocks = self.all_blocks(part) if self.every_block else block[own]
        positions = self._placed(blocks)
        at = np.searchsorted(blocks, block[occupied]) * self.width + inside[occupied]
        columns = {}
        for name in self.columns:
            found = _numbers(rows, f"_{name}")
            if name in _OF_BLOCKS:
                values = found[own] if not self.every_block else _scattered(blocks, block[own], found[own])
                columns[name] = np.repeat(values, self.width)
            else:
                columns[name] = np.zeros(len(positions), dtype=np.int64)
                columns[name][at] = found[occupied]
        if not bool(np.all(positions[1:] > positions[:-1])):  # a worker dimension stands before a public one
            order = np.argsort(positions, kind="stable")
            positions, columns = positions[order], {name: column[order] for name, column in columns.items()}
        distorted = columns.pop("distorted", None)
        cells = Cells(dimensions=self.dimensions, positions=positions, columns=columns)
        return cells if distorted is None else cells.with_sums(distorted)

    def _placed(self, blocks: Integers) -> Integers:
        """The positions of all cells of some blocks, block after block."""
        step = strides(self.dimensions)
        begin = np.zeros(len(blocks), dtype=np.int64)
        if self.public:
            places = np.unravel_index(blocks, tuple(map(len, self.public)))
            for dimension, place in zip(self.public, places, strict=True):
                begin += place * step[dimension.name]
        offsets = np.zeros(1, dtype=np.int64)
        for dimension in self.inside:
            steps = np.arange(len(dimension), dtype=np.int64) * step[dimension.name]
            offsets = np.add.outer(offsets, steps).ravel()
        return np.add.outer(begin, offsets).ravel()


def bucket_width(blocks: int) -> int:
    """How many neighbouring blocks are counted together."""
    return ceil(blocks / BUCKETS)


def number_of_chunks(cells: int, parts: int | None) -> int:
    """As many parts as asked for, or so many that each has some two million of the listed cells.

    What has more cells than fit in one piece has no fewer parts than that, whatever is asked for.
    """
    needed = max(1, ceil(cells / CELLS_OF_A_CHUNK))
    if parts is None:
        return needed
    return max(parts, needed) if cells > IN_ONE_PIECE else parts


def cut(counted: Sequence[int], *, width: int, cells_of_a_block: int, parts: int | None) -> tuple[int, ...]:
    """The first block of each part, of as many as are asked for or needed.

    `counted` is the number of listed blocks in every bucket of `width` blocks. Buckets stay whole.
    """
    listed = sum(counted)
    wanted = number_of_chunks(listed * cells_of_a_block, parts)
    starts, begun = [0], 0
    for bucket, before in enumerate(accumulate(counted, initial=0)):
        part = before * wanted // listed if listed else 0
        if bucket and begun < part and before < listed:
            starts.append(bucket * width)
            begun = part
    return tuple(starts)


def _numbers(rows: pa.Table, name: str) -> Integers:
    found: Integers = rows[name].to_numpy().astype(np.int64, copy=False)
    return found


def _scattered(blocks: Integers, at: Integers, values: Integers) -> Integers:
    found = np.zeros(len(blocks), dtype=np.int64)
    found[np.searchsorted(blocks, at)] = values
    return found


def located(rows: Rows, codes: Mapping[str, tuple[str, ...]]) -> Rows:
    """Rows with the places of codes in their codelists instead of their texts, −1 for a code that is in none.

    Numbers are grouped and kept in a fraction of what texts take.
    """
    for name, listed in codes.items():
        known = rows.engine.lend(pa.table({name: pa.array(listed, pa.string()), "_at": np.arange(len(listed))}))
        place = f"CAST(coalesce(_at, -1) AS {'TINYINT' if len(listed) < 2**7 else 'INT'})"
        others = [other for other in rows.columns if other != name]
        rows = rows.join(known, [name], "left").select(*others, **{name: place})
    return rows


def place_in(dimensions: Sequence[Dimension], rows: Rows) -> str:
    """The place of every row in the product of some dimensions, from its place in each."""
    places = (f"CAST({rows.engine.q(name)} AS BIGINT) * {step}" for name, step in strides(dimensions).items())
    return " + ".join(["CAST(0 AS BIGINT)", *places])


@dataclass(frozen=True, kw_only=True)
class Chunked:
    """The true cells of a table in parts, not yet counted: they are confidential and stay on the engine."""

    layout: ChunkLayout
    found: Rows
    """Integer columns `_part`, `_block`, `_inside` and one for each column of the layout.

    Cells that hold a job or a person have a row. So does every listed block, with `_inside` −1. In a table without
    worker attributes a cell is a block, and one row tells both.
    """

    @property
    def rows(self) -> Rows:
        """The same with a row for every part, whose `_inside` is −2: one without any establishment is there too."""
        return self.found.union(self.found.engine.lend(_marks(self.layout)))


def _marks(layout: ChunkLayout) -> pa.Table:
    """A row for every part, so that one without any job or establishment is there too."""
    zeros = np.zeros(layout.parts, dtype=np.int64)
    return pa.table(
        {
            "_part": np.arange(layout.parts, dtype=np.int32),
            "_block": zeros,
            "_inside": zeros + THE_CHUNK,
            **{f"_{name}": zeros for name in layout.columns},
        }
    )


def each_chunk(engine: Engine, parted: Chunked, work: OfRows) -> Iterator[Chunk]:
    """Count the cells and work on them part by part; of a part only what the work tells comes back."""
    if engine.is_distributed:
        from sfumato.engine.executors import spark_each_chunk

        yield from spark_each_chunk(engine, parted, work)
    else:
        yield from side_by_side(_rows_by_chunk(engine, parted), work)


def each_file(engine: Engine, numbers: Sequence[int], work: OfFile) -> Iterator[Chunk]:
    """Work on the files of stored parts, in any order."""
    if engine.is_distributed:
        from sfumato.engine.executors import spark_each_file

        yield from spark_each_file(engine, numbers, work)
    else:
        yield from side_by_side(numbers, work)


def _rows_by_chunk(engine: Engine, parted: Chunked) -> Iterator[pa.Table]:
    """The rows of one part after the other; what is not asked for yet stays with the engine, on its disk if need be."""
    held: list[pa.RecordBatch] = []
    current = 0
    with engine.batches(parted.rows.in_order_of("_part"), _BATCH) as batches:
        for batch in batches:
            begin = 0
            while begin < len(batch):
                part = batch["_part"]
                if part[begin].as_py() != current:
                    yield pa.Table.from_batches(held)
                    held, current = [], part[begin].as_py()
                end = begin + _length_of_run(part, begin)
                held.append(batch.slice(begin, end - begin))
                begin = end
    yield pa.Table.from_batches(held)


def _length_of_run(sorted_column: pa.Array, begin: int) -> int:
    values = sorted_column.to_numpy()[begin:]
    return int(values.searchsorted(values[0], side="right"))


def side_by_side(pieces: Iterable[T], work: Callable[[T], Chunk]) -> Iterator[Chunk]:
    """Work on as many pieces at a time as there are cores, and take the next piece only when one is done."""
    cores = os.cpu_count() or 1
    waiting: deque[Future[Chunk]] = deque()
    with ThreadPoolExecutor(max_workers=cores) as pool:
        try:
            for piece in pieces:
                waiting.append(pool.submit(work, piece))
                if len(waiting) > cores:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
