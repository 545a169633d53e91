"""What can be wrong with columns, keys and links of any table."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engine.lacking import need
from sfumato.engine.query import Rows, is_number, is_text, texts, times
from sfumato.errors import DataError
from sfumato.frame.attributes import Measure
from sfumato.frame.codelists import Codelist

# Whether keys are unique and links lead somewhere: in one pass over the jobs where keys are dense integers.

_MOST_HASHES = 1 << 27
"""Rows whose hashes are held at a time, a gigabyte of them."""
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
    def of(cls, table: Rows, column: str) -> "Range":
        """Look at the ends of a column, which Parquet files keep at hand; a column of text has span 0."""
        key = table.engine.q(column)
        ends = {"low": f"min({key})", "high": f"max({key})"} if pa.types.is_integer(table.types[column]) else {}
        found = table.row(rows="count(*)", filled=f"count({key})", **ends)
        low = found.get("low")
        span = 0 if low is None else int(found["high"]) - int(low) + 1
        return cls(rows=found["rows"], empty=found["rows"] - found["filled"], low=int(low or 0), span=span)

    def is_dense(self) -> bool:
        """Whether an array over the whole range is affordable."""
        within = self.low > -(2**62) and self.low + self.span < 2**62
        return within and 0 < self.span <= min(_ROOM * max(self.rows, 1_000_000), 2**31 - 2)


@dataclass(frozen=True, eq=False)
class Units:
    """A table of units with their key column and how it is filled; it has no empty rows."""

    rows: Rows
    key: str
    filled: Range

    @cached_property
    def present(self) -> NDArray[np.bool_] | None:
        """Which keys of a dense range exist; None where they are not dense, or on other machines."""
        if self.rows.engine.is_distributed or not self.filled.is_dense():
            return None
        present = np.zeros(self.filled.span, dtype=np.bool_)
        for (keys,) in _columns(self.rows, self.key):
            present[keys - self.filled.low] = True
        return present

    def repeated(self) -> int:
        """The number of rows whose key another row has too."""
        if self.present is None:
            return repeated_rows(self.rows, self.key, rows=self.filled.rows)
        return self.filled.rows - int(np.count_nonzero(self.present))

    def missing(self, keys: NDArray[np.int64]) -> int:
        """How many of some keys are of no unit, where the keys of units are dense."""
        at, present = keys - self.filled.low, self.present
        if present is None:
            raise ValueError("the keys are not dense")
        if len(at) and (at.min() < 0 or at.max() >= len(present)):
            outside = (at < 0) | (at >= len(present))
            return int(np.count_nonzero(outside)) + int(np.count_nonzero(~present[at[~outside]]))
        return int(np.count_nonzero(~present[at]))


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
    jobs: Rows,
    *,
    workplace: str,
    worker: str | None,
    filled: Mapping[str, Range],
    units: Mapping[str, Units],
) -> JobFaults:
    """Check the links of all jobs.

    `filled` tells how the linking columns are filled, `units` gives what each leads to.

    Columns must have no empty rows. Memory is a few bytes for each worker; where keys are text or spread out, the
    engine does the same work with joins.
    """
    columns = [workplace] if worker is None else [workplace, worker]
    sparse = [column for column, linked in units.items() if linked.present is None]
    if jobs.engine.is_distributed or sparse or not all(column.is_dense() for column in filled.values()):
        return _by_joins(jobs, workplace, worker, units)
    orphans = dict.fromkeys(units, 0)
    pairs = None if worker is None else _Pairs(filled[worker], filled[workplace])
    rows, used = 0, np.zeros(filled[workplace].span, dtype=np.bool_)
    for batch in _columns(jobs, *columns):
        read = dict(zip(columns, batch, strict=True))
        rows += len(batch[0])
        used[read[workplace] - filled[workplace].low] = True
        for column, linked in units.items():
            orphans[column] += linked.missing(read[column])
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


def _by_joins(jobs: Rows, workplace: str, worker: str | None, units: Mapping[str, Units]) -> JobFaults:
    """The same faults, counted by the engine."""
    q = jobs.engine.q
    orphans = {
        column: jobs.select(_key=q(column)).join(linked.rows.select(_key=q(linked.key)), ["_key"], "anti").number()
        for column, linked in units.items()
    }
    counts = {"jobs": "count(*)", "workplaces": f"count(DISTINCT {q(workplace)})"}
    if worker is not None:
        counts["workers"] = f"count(DISTINCT {q(worker)})"
    counted = {"workers": None, **jobs.row(**counts)}
    repeated = 0 if worker is None else repeated_rows(jobs, worker, workplace)
    return JobFaults(orphans=orphans, repeated=repeated, **counted)


def repeated_rows(table: Rows, *columns: str, rows: int | None = None) -> int:
    """Count the rows, of a known number if it is given, that have the same values in some columns as another row.

    Where all hashes differ, so do all values, and numbers are sorted in a fraction of the time that texts are compared
    in. The others, repeated or not, are left to the engine, and so are tables beyond our memory.
    """
    rows = table.number() if rows is None else rows
    if not table.engine.is_distributed and rows <= _MOST_HASHES and _all_differ(table, columns, rows):
        return 0
    return table.group(columns, _rows="count(*)").number("sum(_rows - 1)")


def _all_differ(table: Rows, columns: Sequence[str], rows: int) -> bool:
    hashes, end = np.empty(rows, dtype=np.int64), 0
    for (found,) in _columns(table.select(_hash=table.engine.hashed(columns)), "_hash"):
        begin, end = end, end + len(found)
        hashes[begin:end] = found
    hashes.sort()
    return not bool((hashes[1:] == hashes[:-1]).any())


def _columns(table: Rows, *names: str) -> Iterator[list[NDArray[np.int64]]]:
    """Stream whole numbers without empty rows in batches, the engine reading the next while one is looked at."""
    with (
        table.engine.batches(table.select(*names), 1_000_000) as batches,
        ThreadPoolExecutor(max_workers=1) as reader,
    ):
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield [column.to_numpy().astype(np.int64, copy=False) for column in batch.columns]


# What can be wrong with a column of any table: its type, its codes, its numbers.
#
# Messages count what is wrong. They show examples only of public attributes: a value of a confidential one, or a key,
# would put a record on somebody's screen.

_TOGETHER = 20_000
"""Attributes are counted in one pass while the product of their codelists stays below this."""
_MOST_VALUES = 1_000_000
"""No more distinct values than this are fetched."""
_MOST_DOUBTFUL = 1_000_000
"""So many values that are in no codelist are counted: enough to refuse a column."""


OUTSIDE = "\u2060outside"
"""The code of what is in no class, and of codes that a recode does not name: its unseen first sign is in no file."""


def check_key_type(table: Rows, column: str, holder: str, named: str) -> None:
    """Refuse a key that is missing or no name: as a decimal, 17 would be 17.0 and have another permanent factor."""
    need(table, holder, column)
    kind = table.types[column]
    if not (is_text(kind) or pa.types.is_integer(kind)):
        raise DataError(
            f"{holder}, column '{column}'",
            expected=f"whole numbers or text, which name {named}",
            found=f"a column of type {kind}",
            do=f"store the names of {named} as whole numbers or text",
        )


def check_attribute_type(table: Rows, name: str, holder: str) -> None:
    """Refuse an attribute whose values cannot be codes."""
    kind = table.types[name]
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"attribute '{name}' in {holder}",
            expected="text, whole numbers or true/false, whose codes the codelist gives",
            found=f"a column of type {kind}",
            do="store the codes of the attribute as text",
        )


def refuse_zone(kind: pa.DataType, holder: str, column: str) -> None:
    """Refuse instants in a time zone as dates: on which day one falls depends on where somebody looks at it."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        raise DataError(
            f"{holder}, column '{column}'",
            expected="dates, or timestamps without a time zone",
            found=f"a column of type {kind}",
            do="store the dates that are meant: the day of an instant is another one in another zone",
        )


def check_measure_type(table: Rows, name: str, holder: str, *, written: str | None = None) -> None:
    """Refuse a measure that is missing or has no numbers."""
    need(table, holder, name, called=written)
    if not is_number(table.types[name]):
        raise DataError(
            f"measure '{name}' in {holder}",
            expected="numbers",
            found=f"a column of type {table.types[name]}",
            do="store the measure as whole numbers of its smallest unit",
        )


def codes_of(table: Rows, name: str, holder: str) -> Codelist:
    """The codes of a public attribute, read off its column."""
    values = _values(table, [name])
    if len(values) > _MOST_VALUES:
        raise DataError(
            f"attribute '{name}' in {holder}",
            expected=f"at most {_MOST_VALUES:,} codes where they are read off the data",
            found="more",
            do="give a codelist in the release file",
        )
    _refuse_nulls(values, name, holder)
    codes = sorted(values[name].to_pylist())
    if not codes or any(not code.strip() for code in codes):
        raise DataError(
            f"attribute '{name}' in {holder}",
            expected="codes that are not empty",
            found="no rows" if not codes else "rows with an empty code",
            do="fill the codes, or give a codelist in the release file",
        )
    return Codelist.of(codes)


def check_codes(
    table: Rows,
    names: Sequence[str],
    codelists: Mapping[str, Codelist],
    holder: str,
    *,
    public: Collection[str],
) -> None:
    """Refuse attributes without a code or with one that is not in the codelist; only public codes are shown."""
    for group in _groups(names, codelists):
        values = _values(table, group)
        if len(values) > _MOST_VALUES:  # each by itself, of which only what is wrong is fetched
            values = pa.table({})
        for name in group:
            found = values if values.num_columns else _doubtful(table, name, codelists[name])
            _refuse_nulls(found, name, holder)
            _refuse_unknown(found, name, holder, codelists[name], public=name in public)
    for name in names:
        if codelists[name].nested:
            _refuse_levels(set(_values(table, [name])[name].to_pylist()), name, holder, codelists[name])


def refuse_empty(filled: Range, holder: str, column: str) -> None:
    """Refuse rows without a key."""
    if filled.empty:
        raise DataError(
            f"{holder}, column '{column}'",
            expected="a key in every row",
            found=f"{filled.empty:,} rows without one",
            do="fill the keys, or remove these rows",
        )


def check_measure(table: Rows, name: str, measure: Measure, holder: str) -> None:
    """Refuse a measure that is not whole, finite and, unless it is clipped, within its bounds in every row."""
    column, whole = table.engine.q(name), pa.types.is_integer(table.types[name])
    value = column if whole else f"CAST({column} AS DOUBLE)"
    finite, counted = is_finite(column), faults_of(column)
    if measure.outside == "refuse":
        counted[f"below {float(measure.minimum):g}"] = times(f"{finite} AND {value} < {float(measure.minimum)!r}")
    if measure.outside == "refuse" and measure.maximum is not None:
        counted[f"above {float(measure.maximum):g}"] = times(f"{finite} AND {value} > {float(measure.maximum)!r}")
    if not whole:
        counted[_NOT_WHOLE] = not_whole(column)
    row = table.row(**{f"_{at}": count for at, count in enumerate(counted.values())})
    found = {fault: count for fault, count in zip(counted, row.values(), strict=True) if count}
    if found:
        raise DataError(
            f"measure '{name}' in {holder}",
            expected="whole, finite numbers within the measure's bounds in every row",
            found=f"values that are {', '.join(f'{count:,} {fault}' for fault, count in found.items())}",
            do="; ".join(_remedies(measure, found)),
        )


_EMPTY, _NOT_FINITE, _NOT_WHOLE = "empty", "not finite", "not whole"


def _remedies(measure: Measure, found: Collection[str]) -> Iterator[str]:
    """What helps against some faults of a measure."""
    yield "correct the rows, or write under [data.measures]"
    if _EMPTY in found:
        yield "empty = 0, if rows without an amount count as 0 or are left out by `where`"
    if _NOT_WHOLE in found:
        if measure.factor == 1:
            yield "factor = 100, if euros such as 12.34 are to be counted in cents"
        yield 'fractions = "round", if amounts with more decimals are to be rounded'
    if {_EMPTY, _NOT_FINITE, _NOT_WHOLE} >= set(found):
        return
    yield "other bounds (minimum, maximum)"
    if measure.minimum == 0 and any("below" in fault for fault in found):  # totals publish values as they are
        yield "where negative values are meant, a `minimum` that all of them may have"
    else:
        yield 'methods for people may count values beyond a bound as the bound: outside = "clip"'


def is_finite(column: str) -> str:
    """Where a column has a number that is neither infinite nor NaN."""
    value = f"CAST({column} AS DOUBLE)"  # engines order NaN in several ways
    return f"coalesce(NOT isnan({value}) AND abs({value}) <= {sys.float_info.max!r}, false)"


def faults_of(column: str) -> dict[str, str]:
    """How many rows have no number."""
    return {
        _EMPTY: f"count(*) - count({column})",
        _NOT_FINITE: f"count({column}) - {times(is_finite(column))}",
    }


def not_whole(column: str) -> str:
    """How many rows have a number with a fraction."""
    return times(f"CASE WHEN {is_finite(column)} THEN {column} ELSE 0 END % 1 <> 0")


def _groups(names: Sequence[str], codelists: Mapping[str, Codelist]) -> list[list[str]]:
    """Attributes that can be counted in one pass: as many as keep the number of combinations small."""
    groups: list[list[str]] = []
    for name in sorted(names, key=lambda name: len(codelists[name].codes)):
        if groups and prod(len(codelists[n].codes) for n in (*groups[-1], name)) <= _TOGETHER:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _values(table: Rows, names: list[str]) -> pa.Table:
    """The combinations of values that occur, each with its number of rows."""
    return table.select(**texts(table, names)).group(names, _rows="count(*)").limit(_MOST_VALUES + 1).fetch()


def _doubtful(table: Rows, name: str, codelist: Codelist) -> pa.Table:
    """The values of a column that are in no codelist, empty ones too, each with its number of rows."""
    known = table.engine.lend(pa.table({name: pa.array(codelist.codes, pa.string())}))
    found = table.select(**texts(table, [name])).join(known, [name], "anti").group([name], _rows="count(*)")
    return found.limit(_MOST_DOUBTFUL).fetch()


def _refuse_nulls(values: pa.Table, name: str, holder: str) -> None:
    rows = pc.sum(pc.filter(values["_rows"], pc.is_null(values[name]))).as_py()
    if rows:
        raise DataError(
            f"attribute '{name}' in {holder}",
            expected="a code in every row",
            found=f"{rows:,} rows without one",
            do='fill them, or give them a code under [data.attributes]: empty = "unknown"',
        )


def _refuse_unknown(values: pa.Table, name: str, holder: str, codelist: Codelist, *, public: bool) -> None:
    unknown = values.filter(pc.invert(pc.is_in(values[name], value_set=pa.array(codelist.codes, pa.string()))))
    rows = pc.sum(unknown["_rows"]).as_py()
    if not rows:
        return
    outside = pc.sum(pc.filter(unknown["_rows"], pc.equal(unknown[name], OUTSIDE))).as_py()
    if outside:
        raise DataError(
            f"attribute '{name}' in {holder}",
            expected="every row in one of its classes, or with a code that `recode` names",
            found=f"{outside:,} rows outside of them",
            do='add a class that begins lower or a code for the others ("*"), or correct the rows',
        )
    examples = sorted(set(unknown[name].to_pylist()))
    shown = f": {', '.join(map(repr, examples[:5]))}{' …' if len(examples) > 5 else ''}" if public else ""
    listed = len({*examples} & {*codelist.not_chosen})
    raise DataError(
        f"attribute '{name}' in {holder}",
        expected=f"one of the {len(codelist.codes):,} codes {'chosen out ' if listed else ''}of its codelist",
        found=f"{rows:,} rows with {len(examples):,} other values{shown}"
        + (
            f"; {listed:,} of them are in the file of the codelist, and below no code that was chosen" if listed else ""
        ),
        do=_CHOOSE if listed else "add the codes to the codelist, or correct the rows",
    )


_CHOOSE = (
    "choose the codes that rows have (`level`, `digits`), or name the column that has the code above each, in which "
    'rows are then counted: codelist = { file = "…", level = 2, columns = { parent = "…" } }'
)


def _refuse_levels(found: Collection[str], name: str, holder: str, codelist: Codelist) -> None:
    """Refuse a list of several levels of which none is chosen, where rows have no codes of some: these would be 0."""
    levels = dict(zip(codelist.codes, codelist.levels or (), strict=True))
    above = dict(zip(codelist.codes, codelist.parents or [None] * len(codelist.codes), strict=True))
    uppers: set[str | None] = set()
    for code in found:
        upper = above[code]
        while upper in above and upper not in uppers:
            uppers.add(upper)
            upper = above[upper]
    lacking, held = uppers - {*found, None}, sorted({levels[code] for code in found})
    if not found or (not lacking and len(held) == len(set(levels.values()))):
        return
    some = f"{len(lacking):,} codes above them that have no row" if lacking else "none of other levels"
    raise DataError(
        f"attribute '{name}' in {holder}",
        expected=f"a choice among the {len(set(levels.values()))} levels of its codelist, or rows with codes of each",
        found=f"rows with codes of level {', '.join(map(str, held))}, and {some}: they would be published as 0",
        do=f'choose the level that is meant: codelist = {{ file = "…", level = {held[-1]} }}, or `leaves = true`; rows '
        'with codes below it are counted in it; level = "all" publishes all codes as they are',
    )
