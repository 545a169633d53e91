"""Work on the parts of a table on Spark's executors: of what they do only names, sizes and digests come back."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from sfumato.engine.spark_work import sent
from sfumato.errors import EngineError
from sfumato.parts import Part

if TYPE_CHECKING:
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend
    from pyspark.sql import DataFrame, SparkSession

    from sfumato.engine.cell_parts import Parted

METADATA = "number int, name string, rows bigint, sha256 string, bytes bigint"
"""All that returns to the driver, a row for each part: the fields of a `Part`."""
T = TypeVar("T")
_FAILED = "work on an executor failed"


def spark_each_part(backend: "BaseBackend", parted: "Parted", work: Callable[[pa.Table], Part]) -> Iterator[Part]:
    """Hand every part to an executor, which counts its cells, works on them and writes its file."""
    rows = backend.raw_sql(backend.compile(parted.rows))
    # A number of partitions that is asked for is kept: Spark would join small ones, and one executor do all the work.
    spread = rows.repartition(parted.layout.parts, "_part")
    with sent(spread.sparkSession, work) as received:
        yield from _collected(spread.groupBy("_part").applyInArrow(_telling(received), METADATA))


def spark_each_file(backend: "BaseBackend", numbers: Sequence[int], work: Callable[[int], Part]) -> Iterator[Part]:
    """Hand every stored part to an executor, by its number."""
    session = spark_of(backend)
    asked = session.range(0, len(numbers), 1, max(1, len(numbers)))
    with sent(session, work) as received:
        told = _telling(received)

        def of_numbers(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    yield from told(numbers[number]).to_batches()

        yield from _collected(asked.mapInArrow(of_numbers, METADATA))


def spark_column(
    backend: "BaseBackend", table: "ir.Table", name: str, work: Callable[[pa.RecordBatch], pa.Array]
) -> "ir.Table":
    """A table with one more column of integers, which the executors compute from the others."""
    from pyspark.sql.types import LongType, StructType

    rows = backend.raw_sql(backend.compile(table))

    silent = _silent(work)

    def widened(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            yield batch.append_column(name, silent(batch))

    view = f"sfumato_with{name}"
    schema = StructType(list(rows.schema.fields)).add(name, LongType())
    rows.mapInArrow(widened, schema).createOrReplaceTempView(view)
    return backend.table(view)


def spark_of(backend: "BaseBackend") -> "SparkSession":
    """The Spark session of an open engine."""
    session: SparkSession = backend.raw_sql("SELECT 1").sparkSession
    return session


def _silent(work: Callable[[Any], T]) -> Callable[[Any], T]:
    """The same work, which tells only the kind of an error: Spark writes the text of errors into its logs."""

    def silent(piece: Any) -> T:
        try:
            return work(piece)
        except Exception as error:
            raise RuntimeError(f"{_FAILED}: {type(error).__name__}") from None

    return silent


def _telling(work: Callable[[Any], Part]) -> Callable[[Any], pa.Table]:
    """The same work, which tells of its part in a row."""
    silent = _silent(work)

    def told(piece: Any) -> pa.Table:
        part = silent(piece)
        columns = {
            "number": pa.array([part.number], pa.int32()),
            "name": [part.name],
            "rows": [part.rows],
            "sha256": [part.sha256],
            "bytes": [part.bytes],
        }
        return pa.table(columns)

    return told


def _collected(told: "DataFrame") -> Iterator[Part]:
    for row in told_by(told):
        yield Part(**row.asDict())


def told_by(told: "DataFrame") -> Any:
    """What the executors tell; what stopped them is said without the text of an error, which may quote a record."""
    try:
        return told.collect()
    except Exception as error:
        raise EngineError(
            'engine = "spark"',
            expected="executors that finish their work",
            found=f"an error of type {_kind(error)}, whose text may quote a record and is not shown",
            do="see the logs of the executors, and run again: what was charged is not charged twice",
        ) from error


def _kind(error: Exception) -> str:
    """The kind of the error that was raised on the executor, or of the one that came back."""
    raised = re.search(rf"{_FAILED}: (\w+)", str(error))
    return raised[1] if raised else type(error).__name__
