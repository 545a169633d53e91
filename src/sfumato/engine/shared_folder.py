"""Whether the machines of a cluster share a folder and have this program: asked before anything is charged."""

import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato import __version__
from sfumato.durable import write_durably
from sfumato.engine.spark_parts import spark_of, told_by
from sfumato.errors import EngineError

if TYPE_CHECKING:
    from ibis.backends import BaseBackend
    from pyspark.sql import SparkSession


def refuse_unshared(backend: "BaseBackend", folders: Sequence[Path]) -> None:
    """Refuse a cluster whose executors cannot write where this machine reads, or do not have this sfumato.

    Executors that only compute need no folder: without any, they are asked for the program alone.
    """
    if backend.name != "pyspark":
        return
    session = spark_of(backend)
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
