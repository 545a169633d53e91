"""Whether keys are unique and links lead somewhere, at the price of a glance for dense integer keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import ibis.expr.types as ir

_ROOM = 8
"""A key is dense when its range is at most this many times the number of units."""


@dataclass(frozen=True, kw_only=True)
class LinkFaults:
    """What is wrong with the link from jobs to a unit table."""

    repeated_keys: int
    orphans: int


def link_faults(units: "ir.Table", key: str, jobs: "ir.Table", column: str) -> LinkFaults:
    """Count the units that share a key and the jobs whose unit does not exist."""
    dense = _Dense.of(units, key)
    if dense is None or not _is_integer(jobs, column):
        distinct = units[key].nunique().execute()
        orphans = jobs.anti_join(units, jobs[column] == units[key]).count().execute()
        return LinkFaults(repeated_keys=int(units.count().execute()) - int(distinct), orphans=int(orphans))
    seen = np.zeros(dense.span, dtype=np.bool_)
    for keys in _columns(units, key):
        seen[keys[0] - dense.low] = True
    missing = 0
    for keys in _columns(jobs, column):
        shifted = keys[0] - dense.low
        inside = (shifted >= 0) & (shifted < dense.span)
        missing += len(inside) - int(np.count_nonzero(inside))
        missing += int(np.count_nonzero(~seen[shifted[inside]]))
    return LinkFaults(repeated_keys=dense.units - int(np.count_nonzero(seen)), orphans=missing)


def repeated_pairs(jobs: "ir.Table", worker: str, workplace: str) -> int:
    """Count the pairs of worker and workplace that stand in more than one row.

    Nearly everyone has one job, so it is enough to look at the rows of those who have several.
    """
    dense = _Dense.of(jobs, worker)
    if dense is None or not _is_integer(jobs, workplace):
        pairs = jobs.group_by(worker, workplace).agg(rows=jobs.count())
        return int(pairs.filter(pairs.rows > 1).count().execute())
    rows = np.zeros(dense.span, dtype=np.uint16)
    for keys in _columns(jobs, worker):
        np.add.at(rows, keys[0] - dense.low, np.uint16(1))
    if int(rows.sum(dtype=np.int64)) != dense.units:  # someone has 65,536 rows or more: the counter went round
        pairs = jobs.group_by(worker, workplace).agg(rows=jobs.count())
        return int(pairs.filter(pairs.rows > 1).count().execute())
    several = [
        np.stack([people[chosen], places[chosen]])
        for people, places in _columns(jobs, worker, workplace)
        if (chosen := rows[people - dense.low] > 1).any()
    ]
    if not several:
        return 0
    people, places = np.concatenate(several, axis=1)
    order = np.lexsort((places, people))
    same = (np.diff(people[order]) == 0) & (np.diff(places[order]) == 0)
    begins = same & ~np.concatenate([[False], same[:-1]])  # a pair in three rows is one pair
    return int(np.count_nonzero(begins))


@dataclass(frozen=True, kw_only=True)
class _Dense:
    """An integer key column whose values fill a good part of their range."""

    low: int
    span: int
    units: int

    @classmethod
    def of(cls, table: "ir.Table", key: str) -> "_Dense | None":
        """Look at the range of a key; None when only the engine can check it in bounded memory."""
        if not _is_integer(table, key) or table.get_backend().name != "duckdb":
            return None  # Spark's records stay on its executors
        column = table[key]
        found = table.agg(low=column.min(), high=column.max(), units=table.count()).to_pyarrow().to_pylist()[0]
        if found["low"] is None:
            return cls(low=0, span=0, units=0)
        span = int(found["high"]) - int(found["low"]) + 1
        if span > _ROOM * max(int(found["units"]), 1_000_000):
            return None
        return cls(low=int(found["low"]), span=span, units=int(found["units"]))


def _is_integer(table: "ir.Table", column: str) -> bool:
    return bool(table[column].type().is_integer())


def _columns(table: "ir.Table", *names: str) -> Iterator[list[NDArray[np.int64]]]:
    """Stream columns without nulls in batches."""
    for batch in table.select(*names).to_pyarrow_batches(chunk_size=1_000_000):
        yield [column.to_numpy().astype(np.int64, copy=False) for column in batch.columns]
