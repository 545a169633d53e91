"""Whether keys are unique and links lead somewhere: in one pass over the jobs where keys are dense integers."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import ibis.expr.types as ir

_ROOM = 8
"""A key is dense when its range is at most this many times the number of rows."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """How a key column is filled."""

    rows: int
    empty: int
    low: int
    span: int

    @classmethod
    def of(cls, table: "ir.Table", column: str) -> "Range":
        """Look at the ends of a column, which Parquet files keep at hand; a column of text has span 0."""
        key = table[column]
        ends = {"low": key.min(), "high": key.max()} if key.type().is_integer() else {}
        found = table.agg(rows=table.count(), filled=key.count(), **ends).to_pyarrow().to_pylist()[0]
        low = found.get("low")
        span = 0 if low is None else int(found["high"]) - int(low) + 1
        return cls(rows=found["rows"], empty=found["rows"] - found["filled"], low=int(low or 0), span=span)

    def is_dense(self) -> bool:
        """Whether an array over the whole range is affordable."""
        within = self.low > -(2**62) and self.low + self.span < 2**62
        return within and 0 < self.span <= min(_ROOM * max(self.rows, 1_000_000), 2**31 - 2)


def repeated_keys(table: "ir.Table", key: str, filled: Range) -> int:
    """Count the rows of a unit table whose key another row has too."""
    if _is_distributed(table) or not filled.is_dense():
        return filled.rows - int(table[key].nunique().execute())
    return filled.rows - int(np.count_nonzero(_present(table, key, filled)))


@dataclass(frozen=True, kw_only=True)
class JobFaults:
    """What is wrong with the links of jobs, and how many there are."""

    orphans: Mapping[str, int]
    """For each linking column, the jobs whose unit does not exist."""
    repeated: int
    """Jobs with the worker and the workplace of another job."""
    jobs: int
    workplaces: int
    """Workplaces that have a job."""
    workers: int | None
    """Workers who have a job, where these are known."""


def job_faults(
    jobs: "ir.Table",
    *,
    workplace: str,
    worker: str | None,
    filled: Mapping[str, Range],
    units: "Mapping[str, tuple[ir.Table, str, Range]]",
) -> JobFaults:
    """Check the links of all jobs.

    `filled` tells how the linking columns are filled, `units` gives the table and key that each leads to.

    Columns must have no empty rows. Memory is a few bytes for each worker; where keys are text or spread out, the
    engine does the same work with joins.
    """
    columns = [workplace] if worker is None else [workplace, worker]
    keys = {column: keyed for column, (_, _, keyed) in units.items()}
    if _is_distributed(jobs) or not all(r.is_dense() for r in (*filled.values(), *keys.values())):
        return _by_joins(jobs, workplace, worker, units)
    present = {column: _present(table, key, keyed) for column, (table, key, keyed) in units.items()}
    orphans = dict.fromkeys(units, 0)
    pairs = None if worker is None else _Pairs(filled[worker], filled[workplace])
    rows, used = 0, np.zeros(filled[workplace].span, dtype=np.bool_)
    for batch in _columns(jobs, *columns):
        read = dict(zip(columns, batch, strict=True))
        rows += len(batch[0])
        used[read[workplace] - filled[workplace].low] = True
        for column, known in present.items():
            orphans[column] += _missing(read[column], known, keys[column].low)
        if pairs is not None and worker is not None:
            pairs.add(read[worker], read[workplace])
    return JobFaults(
        orphans=orphans,
        repeated=0 if pairs is None else pairs.repeated(),
        jobs=rows,
        workplaces=int(np.count_nonzero(used)),
        workers=None if pairs is None else pairs.workers(),
    )


class _Pairs:
    """Count repeated pairs of worker and workplace in one pass.

    The first workplace of every worker is kept in an array. A later row with that workplace repeats the pair; rows
    with another workplace, few because nearly everyone has one job, are kept and compared among themselves.
    """

    def __init__(self, workers: Range, workplaces: Range) -> None:
        self._workers, self._workplaces = workers, workplaces
        self._first = np.full(workers.span, -1, dtype=np.int32)
        self._with_first = 0
        self._others: list[NDArray[np.int64]] = []

    def add(self, workers: NDArray[np.int64], workplaces: NDArray[np.int64]) -> None:
        who = workers - self._workers.low
        where = (workplaces - self._workplaces.low).astype(np.int32)
        new = self._first[who] < 0
        if new.all():  # the usual case, as most registers are sorted by worker
            self._first[who[::-1]] = where[::-1]  # of several rows the last assignment stays: the first row
        else:
            self._first[who[new][::-1]] = where[new][::-1]
        same = self._first[who] == where
        self._with_first += int(np.count_nonzero(same))
        if not same.all():
            self._others.append(who[~same] * self._workplaces.span + where[~same])

    def workers(self) -> int:
        return int(np.count_nonzero(self._first >= 0))

    def repeated(self) -> int:
        others = np.sort(np.concatenate([*self._others, np.empty(0, dtype=np.int64)]), kind="stable")
        return self._with_first - self.workers() + int(np.count_nonzero(np.diff(others) == 0))


def _by_joins(
    jobs: "ir.Table", workplace: str, worker: str | None, units: "Mapping[str, tuple[ir.Table, str, Range]]"
) -> JobFaults:
    """The same faults, counted by the engine."""
    orphans = {
        column: int(jobs.anti_join(table, jobs[column] == table[key]).count().execute())
        for column, (table, key, _) in units.items()
    }
    counts = {"jobs": jobs.count(), "workplaces": jobs[workplace].nunique()}
    if worker is not None:
        counts["workers"] = jobs[worker].nunique()
    counted = {"workers": None, **jobs.agg(**counts).to_pyarrow().to_pylist()[0]}
    if worker is None:
        return JobFaults(orphans=orphans, repeated=0, **counted)
    pairs = jobs.group_by(worker, workplace).agg(_rows=jobs.count())
    return JobFaults(orphans=orphans, repeated=int((pairs["_rows"] - 1).sum().fill_null(0).execute()), **counted)


def _present(table: "ir.Table", key: str, filled: Range) -> NDArray[np.bool_]:
    """Which keys of a dense range exist."""
    present = np.zeros(filled.span, dtype=np.bool_)
    for (keys,) in _columns(table, key):
        present[keys - filled.low] = True
    return present


def _missing(keys: NDArray[np.int64], present: NDArray[np.bool_], low: int) -> int:
    at = keys - low
    if len(at) and (at.min() < 0 or at.max() >= len(present)):
        outside = (at < 0) | (at >= len(present))
        return int(np.count_nonzero(outside)) + int(np.count_nonzero(~present[at[~outside]]))
    return int(np.count_nonzero(~present[at]))


def _is_distributed(table: "ir.Table") -> bool:
    """Whether records live on other machines, from where they are not fetched to be checked."""
    return bool(table.get_backend().name != "duckdb")


def _columns(table: "ir.Table", *names: str) -> Iterator[list[NDArray[np.int64]]]:
    """Stream columns without empty rows in batches, the engine reading the next while one is looked at."""
    batches = iter(table.select(*names).to_pyarrow_batches(chunk_size=1_000_000))
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield [column.to_numpy().astype(np.int64, copy=False) for column in batch.columns]
