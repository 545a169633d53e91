"""Perturbed totals of records that were opened once, beside DuckDB's aggregates of the same records."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

from bench.shared.gate import CHANCE, Errors, WrongResultError
from bench.shared.processes import SFUMATO, Tell, in_turn, module, seconds_of, timed, told_by
from bench.shared.release import forget
from bench.shared.report import Results
from bench.totals.floor import BARE, PACKED, SAME, WEIGHTED, Floor
from bench.totals.records import ATTRIBUTES, TABLE, write_records
from sfumato.arrays import Integers
from sfumato.bundle.manifest import read_manifest
from sfumato.cells import Cells
from sfumato.live import GuardedSession, open_guarded
from sfumato.noise.factors import ONE
from sfumato.noise.randomness import OperatingSystem
from sfumato.plan import plan_table
from sfumato.release import Release, load
from sfumato.statistics.published import PublishedTable
from sfumato.statistics.totals.top_contributors import TopContributors

_COMMANDS = 3
_TOLERANCE = 0.1
"""How far the mean error of the published values may be from the expected one, as a share of it."""

LABELS = {
    "bare": "DuckDB alone, in memory: the sum",
    "floor": "DuckDB alone, in memory: sum, count, sum of keys, three largest (the floor)",
    "packed": "…with the three largest packed into numbers, as sfumato asks for them",
    "ours": "sfumato, records opened before: the same, perturbed, with errors and intervals, as a table",
    "live": "…as a live answer, with the differencing guard",
    "weighted_floor": "With weights: DuckDB alone, without standard errors",
    "weighted": "With weights: sfumato, with standard errors by the unit jackknife",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Asked:
    """The table, asked of open records as a release would ask it."""

    live: GuardedSession
    planned: PublishedTable
    method: TopContributors

    @classmethod
    def of(cls, live: GuardedSession) -> "_Asked":
        (table,) = live.release.tables
        planned = plan_table(live.release, table, live.codelists)
        assert isinstance(planned.method, TopContributors)
        return cls(live=live, planned=planned, method=planned.method)

    def count(self) -> Cells:
        return self.live.prepared.answer(self.planned.question)

    def publish(self) -> pa.Table:
        """What is timed: count, perturb, and lay out the table."""
        return self.planned.rows(self.method.protect(self.count(), OperatingSystem()))

    def publish_live(self) -> pa.Table:
        return self.live.ask(total="turnover", by=list(ATTRIBUTES))


def measure_contributors(folder: Path, *, records: int, repeat: int, tell: Tell) -> Results:
    """Everything about perturbed totals; a wrong result ends it."""
    tell("making records")
    files = write_records(folder, records=records)
    plain, weighted = load(files.plain), load(files.weighted)
    tell("reading records into DuckDB")
    opening = {"floor": timed(lambda: Floor(files.records).close())[0]}
    floor = Floor(files.records)
    with opened(plain, opening, "plain", tell) as asked:
        errors = _check(asked, floor, records, SAME)
        turns = {
            "bare": lambda: floor.answer(BARE),
            "floor": lambda: floor.answer(SAME),
            "packed": lambda: floor.answer(PACKED),
            "ours": asked.publish,
            "live": asked.publish_live,
        }
        seconds = answer_seconds(turns, repeat=repeat, tell=tell, what="perturbed totals")
    with opened(weighted, opening, "weighted", tell) as asked:
        _check(asked, floor, records, WEIGHTED)
        turns = {"weighted_floor": lambda: floor.answer(WEIGHTED), "weighted": asked.publish}
        seconds |= answer_seconds(turns, repeat=repeat, tell=tell, what="weighted totals")
    floor.close()

    def whole() -> float:
        forget(plain)
        taken = seconds_of(SFUMATO, "run", files.plain)
        read_manifest(plain.bundle)
        return taken

    commands = {"floor": lambda: seconds_of(*module("totals.floor", files.records, "view")), "ours": whole}
    tell("peak memory")
    peak = {"floor": told_by("totals.floor", files.records, "table")["peak_bytes"]}
    for name, what in (("ours", "release"), ("live", "live")):
        forget(plain)
        peak[name] = told_by("shared.child", what, files.plain)["peak_bytes"]
    return {
        "records": records,
        "cells": int(np.prod(list(ATTRIBUTES.values()))),
        "labels": LABELS,
        "seconds": seconds,
        "opening_seconds": opening,
        "command_seconds": in_turn(commands, repeat=_COMMANDS, tell=tell, what="whole commands"),
        "peak_bytes": peak,
        "mean_error": asdict(errors),
    }


@contextmanager
def opened(release: Release, opening: dict[str, float], name: str, tell: Tell) -> Iterator[_Asked]:
    """Open records for the first time, and note how long validating them and making them ready took."""
    forget(release)
    began = {"": perf_counter()}

    def step(what: str) -> None:
        began[what] = perf_counter()
        tell(f"opening {name} records: {what}")

    with open_guarded(release, step) as live:
        done = perf_counter()
        opening[f"{name}: read and validate"] = began["prepare"] - began[""]
        opening[f"{name}: prepare"] = done - began["prepare"]
        yield _Asked.of(live)


def answer_seconds(
    turns: dict[str, Callable[[], pa.Table]], *, repeat: int, tell: Tell, what: str
) -> dict[str, list[float]]:
    """Seconds of each in turn; all answers must stay the same."""

    def again(name: str, turn: Callable[[], pa.Table], first: pa.Table) -> float:
        taken, answer = timed(turn)
        if not _sorted(answer).equals(first):
            raise WrongResultError(f"{LABELS.get(name, name)}: asked again, it gives another answer")
        return taken

    checked = {name: partial(again, name, turn, _sorted(turn())) for name, turn in turns.items()}
    return in_turn(checked, repeat=repeat, tell=tell, what=what)


def _sorted(answer: pa.Table) -> pa.Table:
    """In the order of the cells, as ours are; which of equal contributors DuckDB names is left to it."""
    if "total" not in answer.column_names:
        return answer
    kept = [name for name in answer.column_names if name != "largest"]
    return answer.select(kept).sort_by([(name, "ascending") for name in ATTRIBUTES])


def _check(asked: _Asked, floor: Floor, records: int, query: str) -> Errors:
    """Refuse totals that DuckDB does not find, and published values that are not as far from them as expected."""
    cells = asked.count()
    found = _sorted(floor.answer(query))
    weighted = "weights" in found.column_names
    at = np.ravel_multi_index([found[name].to_numpy() for name in ATTRIBUTES], tuple(ATTRIBUTES.values()))
    if int(cells["records"].sum()) != records or not (
        np.array_equal(cells["records"][at], found["records"].to_numpy())
        and _exact(cells, "total", at) == _integers(found["total"], ONE if not weighted else 1)
        and (not weighted or _exact(cells, "weights", at) == _integers(found["weights"], 1))
    ):
        raise WrongResultError("sfumato and DuckDB alone do not find the same totals")
    published = asked.publish()
    values = published["value"].to_numpy(zero_copy_only=False)
    true, expected = asked.method.true_value(cells), asked.method.expected_error(cells)
    shown = np.flatnonzero(~np.isnan(values.astype(np.float64)) & (expected > 0))
    errors = np.abs(values[shown] - true[shown])
    apart = abs(float(np.mean(errors / expected[shown])) - 1)
    if len(shown) < len(cells) / 2 or apart > max(_TOLERANCE, CHANCE / np.sqrt(len(shown))):
        raise WrongResultError(
            f"{len(shown):,} published totals of '{TABLE}' are {apart:.1%} from the error that is expected of them"
        )
    return Errors(observed=float(np.mean(errors / true[shown])), expected=float(np.mean(expected[shown] / true[shown])))


def _exact(cells: Cells, name: str, at: Integers) -> list[int]:
    return [w * ONE + p for w, p in zip(cells[name][at].tolist(), cells[f"{name}_part"][at].tolist(), strict=True)]


def _integers(column: pa.ChunkedArray, unit: int) -> list[int]:
    return [int(value) * unit for value in column.to_pylist()]
