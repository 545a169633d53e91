"""Work on Spark's executors: sent by name, over disks where it is large, in a folder all machines share."""

import io
import pickle
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import pyarrow as pa

from sfumato import __version__
from sfumato.chunks import Chunk
from sfumato.durable import write_durably
from sfumato.engine.query import Engine, Rows, Spark
from sfumato.errors import EngineError
from sfumato.keys import Secret

if TYPE_CHECKING:  # only names for types
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession


# Send work to Spark's executors in two pieces: what is large goes over disks, and the key never with it.

T = TypeVar("T")


@contextmanager
def sent(session: "SparkSession", work: Callable[[Any], T]) -> Iterator[Callable[[Any], T]]:
    """The same work, to be given to executors: all but its secrets is broadcast, and they travel with the task.

    PySpark writes work of more than a megabyte, as long lists of codes make it, to a file for the executors. Without
    its secrets it may lie there; the rest is a few hundred bytes, which no file is made for.
    """
    content, secrets = _apart(work)
    large = session.sparkContext.broadcast(content)
    try:
        yield Received[T](large=large, secrets=secrets)
    finally:
        large.destroy()


@dataclass(frozen=True, kw_only=True)
class Received(Generic[T]):
    """Work on its way, put together where it is done."""

    large: "Broadcast[bytes]"
    secrets: tuple[Secret, ...] = field(repr=False)

    def __call__(self, piece: Any) -> T:
        """Do the work on one piece."""
        return self._work(piece)

    @cached_property
    def _work(self) -> Callable[[Any], T]:
        return cast(Callable[[Any], T], _Together(self.large.value, self.secrets).load())


def _apart(work: Callable[[Any], Any]) -> tuple[bytes, tuple[Secret, ...]]:
    """The work as bytes without its secrets, and the secrets in the order in which they are missed."""
    from pyspark.cloudpickle import CloudPickler

    missed: list[Secret] = []

    class Apart(CloudPickler):
        def persistent_id(self, value: object) -> int | None:
            if not isinstance(value, Secret):
                return None
            missed.append(value)
            return len(missed) - 1

    content = io.BytesIO()
    Apart(content).dump(work)  # type: ignore[no-untyped-call]  # PySpark's copy has no types
    return content.getvalue(), tuple(missed)


class _Together(pickle.Unpickler):
    """Reads such bytes, and puts the secrets where they were."""

    def __init__(self, content: bytes, secrets: tuple[Secret, ...]) -> None:
        super().__init__(io.BytesIO(content))
        self._secrets = secrets

    def persistent_load(self, number: int) -> Secret:
        return self._secrets[number]


# Work on the parts of a table on Spark's executors: of what they do only names, sizes and digests come back.

METADATA = "number int, name string, rows bigint, sha256 string, bytes bigint"
"""All that returns to the driver, a row for each part: the fields of a `Chunk`."""

_FAILED = "work on an executor failed"


def spark_each_chunk(engine: Engine, parted: Any, work: Callable[[pa.Table], Chunk]) -> Iterator[Chunk]:
    """Hand every part to an executor, which counts its cells, works on them and writes its file."""
    rows = _spark(engine).frame(parted.rows)
    # A number of partitions that is asked for is kept: Spark would join small ones, and one executor do all the work.
    spread = rows.repartition(parted.layout.parts, "_part")
    with sent(spread.sparkSession, work) as received:
        yield from _collected(spread.groupBy("_part").applyInArrow(_telling(received), METADATA))


def spark_each_file(engine: Engine, numbers: Sequence[int], work: Callable[[int], Chunk]) -> Iterator[Chunk]:
    """Hand every stored part to an executor, by its number."""
    session = _spark(engine).session
    asked = session.range(0, len(numbers), 1, max(1, len(numbers)))
    with sent(session, work) as received:
        told = _telling(received)

        def of_numbers(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    yield from told(numbers[number]).to_batches()

        yield from _collected(asked.mapInArrow(of_numbers, METADATA))


def spark_column(rows: Rows, name: str, work: Callable[[pa.RecordBatch], pa.Array]) -> Rows:
    """Rows with one more column of integers, which the executors compute from the others."""
    from pyspark.sql.types import LongType, StructType

    engine, silent = _spark(rows.engine), _silent(work)
    frame = engine.frame(rows)

    def widened(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            yield batch.append_column(name, silent(batch))

    schema = StructType(list(frame.schema.fields)).add(name, LongType())
    return engine.view(frame.mapInArrow(widened, schema), f"with{name}")


def _spark(engine: Engine) -> Spark:
    """A distributed engine, which is Spark."""
    return cast(Spark, engine)


def _silent(work: Callable[[Any], T]) -> Callable[[Any], T]:
    """The same work, which tells only the kind of an error: Spark writes the text of errors into its logs."""

    def silent(piece: Any) -> T:
        try:
            return work(piece)
        except Exception as error:
            raise RuntimeError(f"{_FAILED}: {type(error).__name__}") from None

    return silent


def _telling(work: Callable[[Any], Chunk]) -> Callable[[Any], pa.Table]:
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


def _collected(told: "DataFrame") -> Iterator[Chunk]:
    for row in told_by(told):
        yield Chunk(**row.asDict())


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


# Whether the machines of a cluster share a folder and have this program: asked before anything is charged.


def refuse_unshared(engine: Engine, folders: Sequence[Path]) -> None:
    """Refuse a cluster whose executors cannot write where this machine reads, or do not have this sfumato.

    Executors that only compute need no folder: without any, they are asked for the program alone.
    """
    if not engine.is_distributed:
        return
    session = _spark(engine).session
    if re.match(r"local(\[|$)", session.sparkContext.master or ""):
        return  # the executor is this process's own machine, and its Python this one
    found = set().union(*(_found(session, folder) for folder in folders)) if folders else _told(session, None)
    if found - {"same"}:
        other = min(found - {"same"})
        raise EngineError(
            'engine = "spark"',
            expected=f"sfumato {__version__} on every executor",
            found=f"sfumato {other}" if other else "none",
            do="install it in the Python of the executors, or send a packed environment; see docs/cluster.md",
        )


def _found(session: "SparkSession", folder: Path) -> set[str]:
    """What executors say, once all of them share a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f".shared-{secrets.token_hex(16)}"
    write_durably(probe, probe.name.encode())
    try:
        told = _told(session, probe)
        returned = [path.read_bytes() == probe.name.encode() for path in folder.glob(f"{probe.name}-*")]
    except OSError:
        returned = []
    finally:
        for path in folder.glob(f"{probe.name}*"):
            path.unlink(missing_ok=True)
    if "unshared" in told or not returned or not all(returned):
        raise EngineError(
            f"folder {folder}",
            expected="a folder that this machine and all executors share, where executors may write",
            found="one that they do not share",
            do="put the ledger and the bundle on a shared file system; see docs/cluster.md",
        )
    return told


def _told(session: "SparkSession", probe: Path | None) -> set[str]:
    """What executors say: "same", "unshared", or the version of another sfumato; empty text where there is none."""
    places = 2 * max(2, session.sparkContext.defaultParallelism)
    asked = session.range(0, places, 1, places)
    look = _look(None if probe is None else str(probe), __version__)
    return {row.found for row in told_by(asked.mapInArrow(look, "found string"))}


def _look(where: str | None, version: str) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """What an executor does; it names nothing of sfumato, which may be what is missing there."""

    def look(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        import importlib
        import os
        import pathlib

        for _ in batches:
            pass
        shared = True
        if where is not None:
            probe = pathlib.Path(where)
            try:
                shared = probe.read_text(encoding="utf-8") == probe.name
                probe.with_name(f"{probe.name}-{os.urandom(8).hex()}").write_text(probe.name, encoding="utf-8")
            except OSError:
                shared = False
        try:
            installed = importlib.import_module("sfumato").__version__
        except ImportError:
            installed = ""
        found = "unshared" if not shared else "same" if installed == version else installed
        yield pa.RecordBatch.from_pydict({"found": [found]})

    return look
