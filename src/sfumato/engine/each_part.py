"""Do some work on every part of a table where the part is: in this process, or on the machines of a cluster."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from sfumato.engine.cell_parts import Parted
from sfumato.parts import Part

if TYPE_CHECKING:
    from ibis.backends import BaseBackend

OfRows = Callable[[pa.Table], Part]
"""Work on the true rows of one part, which writes a file and tells of it; it may be sent to another process."""
OfFile = Callable[[int], Part]
"""Work on the file of one part, known by its number; it may be sent to another process."""
EachFile = Callable[[Sequence[int], OfFile], Iterator[Part]]
"""Works on the files of stored parts somewhere, in any order."""
T = TypeVar("T")
_BATCH = 1 << 17
"""Rows the engine hands out at a time."""


def each_part(backend: "BaseBackend", parted: Parted, work: OfRows) -> Iterator[Part]:
    """Count the cells and work on them part by part; of a part only what the work tells comes back."""
    if backend.name == "pyspark":
        from sfumato.engine.spark_parts import spark_each_part

        yield from spark_each_part(backend, parted, work)
    else:
        yield from side_by_side(_rows_by_part(backend, parted), work)


def each_file(backend: "BaseBackend", numbers: Sequence[int], work: OfFile) -> Iterator[Part]:
    """Work on the files of stored parts, in any order."""
    if backend.name == "pyspark":
        from sfumato.engine.spark_parts import spark_each_file

        yield from spark_each_file(backend, numbers, work)
    else:
        yield from side_by_side(numbers, work)


def _rows_by_part(backend: "BaseBackend", parted: Parted) -> Iterator[pa.Table]:
    """The rows of one part after the other; what is not asked for yet stays with the engine, on its disk if need be."""
    held: list[pa.RecordBatch] = []
    current = 0
    with backend.to_pyarrow_batches(parted.rows.order_by("_part"), chunk_size=_BATCH) as batches:
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


def side_by_side(pieces: Iterable[T], work: Callable[[T], Part]) -> Iterator[Part]:
    """Work on as many pieces at a time as there are cores, and take the next piece only when one is done."""
    cores = os.cpu_count() or 1
    waiting: deque[Future[Part]] = deque()
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
