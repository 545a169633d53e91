"""Drive a cluster: run a release, or work of our own on the parts of its table; findings are printed as JSON."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.checking import Checked, check, checked
from sfumato.chunks import Chunk, settled
from sfumato.engine.chunks import Chunked, each_chunk
from sfumato.engine.connect import connect
from sfumato.engine.executors import refuse_unshared
from sfumato.engine.factors import factor_table, factors_of
from sfumato.errors import EngineError
from sfumato.noise.randomness import OperatingSystem
from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.running import ProtectChunk, run
from sfumato.statistics.jobs.tabulate import parted


@dataclass(frozen=True, kw_only=True)
class Who:
    """Says which process works on a part, and which noise it would draw."""

    def __call__(self, rows: pa.Table) -> Chunk:
        drawn = sha256(OperatingSystem().words(1_000).tobytes()).hexdigest()
        return Chunk(number=rows["_part"][0].as_py(), name=str(os.getpid()), rows=len(rows), sha256=drawn, bytes=0)


@dataclass(frozen=True, kw_only=True)
class Dies:
    """Protects a part, and then takes its whole executor down, as often as there are marks to take."""

    work: ProtectChunk
    marks: Path

    def __call__(self, rows: pa.Table) -> Chunk:
        part = self.work(rows)
        for mark in self.marks.iterdir():
            mark.unlink()
            os.kill(_executor(os.getpid()), signal.SIGKILL)
        return part


@dataclass(frozen=True, kw_only=True)
class Fails:
    """Raises an error that quotes a record."""

    def __call__(self, rows: pa.Table) -> Chunk:
        raise ArithmeticError("-".join(["quoted"] * len(rows)))


def _executor(process: int) -> int:
    """The Java process that a Python worker belongs to."""
    while b"java" not in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]:
        process = int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    return process


def _spied() -> list[list[str]]:
    """The columns of everything that Spark sends to the driver from now on."""
    from pyspark.sql.classic.dataframe import DataFrame

    seen: list[list[str]] = []

    def spy(name: str) -> None:
        action = getattr(DataFrame, name)

        def spied(self: Any, *arguments: Any, **options: Any) -> Any:
            seen.append(self.columns)
            return action(self, *arguments, **options)

        setattr(DataFrame, name, spied)

    for name in ("collect", "_collect_as_arrow", "toLocalIterator"):
        spy(name)
    return seen


def returned(release: Path) -> dict[str, Any]:
    """Run the release, and say what came back to the driver since the charge."""
    seen = _spied()
    steps: dict[str, int] = {}
    run(load(release), progress=lambda step: steps.update({step: len(seen)}))
    return {"returned": seen[steps["charge"] :]}


def published(release: Path) -> dict[str, Any]:
    """Run the release; say what came back to the driver since the charge, and which processes work on parts."""
    from pyspark.sql import SparkSession

    found = returned(release)
    planned = check(load(release), data=False).plan.tables[0]
    frame = load(release).frame
    with connect(frame) as tables, parted(frame, tables, {"formal": planned.question}, {"formal": 5}) as cut:
        told = list(each_chunk(tables.engine, cut["formal"], Who()))
        factor_table(frame, tables, factors_of(load(release).secret()))
        session = SparkSession.getActiveSession()
        views = [session.table(view.name) for view in session.catalog.listTables()]
        plans = [view._jdf.queryExecution().toString() for view in views]
    drawn = [part.sha256 for part in told]
    return {**found, "plans": plans, "driver": os.getpid(), "told": [p.name for p in told], "drawn": drawn}


def interrupted(release: Path) -> dict[str, Any]:
    """Take an executor down after it wrote its part; then let a part fail as often as Spark tries."""
    marks, draft = release.parent / "marks", release.parent / "draft"
    marks.mkdir()
    draft.mkdir()
    (marks / "once").touch()
    with _cut(release) as (ready, cut):
        planned = {table.name: table for table in ready.plan.tables}
        layout = cut["keyed"].layout
        work = ProtectChunk(statistic=planned["keyed"], secret=ready.plan.secret, layout=layout, folder=draft)
        told = list(ready.each_chunk(cut["keyed"], Dies(work=work, marks=marks)))
        written = sorted(path.name for path in draft.iterdir())
        parts = settled(draft, told)
        try:
            list(ready.each_chunk(cut["keyed"], Fails()))
        except EngineError as error:
            failed = str(error)
    return {
        "left": [path.name for path in marks.iterdir()],
        "written": written,
        "told": [part.name for part in told],
        "kept": [[part.name, part.sha256] for part in parts],
        "failed": failed,
    }


def lost(release: Path) -> dict[str, Any]:
    """Lose the cluster as soon as the release is charged; then run it again."""
    from pyspark.sql import SparkSession

    def lose(step: str) -> None:
        if step == "protect":
            SparkSession.getActiveSession().stop()

    try:
        run(load(release), progress=lose)
        ended = "published"
    except Exception as error:
        ended = type(error).__name__
    first = [entry.kind for entry in Ledger.open(load(release).ledger).history()]
    again = run(load(release))
    return {"ended": ended, "first": first, "charged_again": again.charged, "bundle": str(again.bundle)}


def refused(release: Path) -> dict[str, Any]:
    """Ask executors for a folder that is another one in every process, and run with another program on them."""
    found = {}
    with connect(load(release).frame) as tables:
        try:
            refuse_unshared(tables.engine, [Path("/proc/self/cwd/private")])
        except EngineError as error:
            found["folder"] = str(error)
    try:
        run(load(release))
    except EngineError as error:
        found["program"] = str(error)
    return found


@contextmanager
def _cut(release: Path) -> Iterator[tuple[Checked, Mapping[str, Chunked]]]:
    with checked(load(release)) as ready, ready.tabulate_in_chunks({t.name: t for t in ready.plan.tables}) as cut:
        yield ready, cut


if __name__ == "__main__":
    programs = {program.__name__: program for program in (returned, published, interrupted, lost, refused)}
    sys.stdout.write(json.dumps(programs[sys.argv[2]](Path(sys.argv[1]))) + "\n")
