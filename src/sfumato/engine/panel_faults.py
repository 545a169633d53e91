"""Whether a panel is sound: its periods, its earnings, and each job at most once in a period.

A period of the panel without anybody is a gap in the data and refused. A period without earnings within one worker's
history at one employer is no fault: the job ended, and if it began again that is an accession, perhaps a recall.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engine.connect import Tables
from sfumato.engine.history import calendar, held, panel, periods_held
from sfumato.engine.text import text
from sfumato.errors import DataError
from sfumato.frame import Frame
from sfumato.periods import Span

if TYPE_CHECKING:
    import ibis.expr.types as ir

_MOST_VALUES = 1_000_000
"""No more distinct values of the period are looked at than this."""
_MOST_EARNINGS = 2.0**60
"""All earnings of a panel must stay below this, so that no sum of them leaves 64 bits."""
_FAULTS = ("empty", "not finite", "below 0", "not whole")
_NAMED = 8
"""At most so many periods are named in a message."""


def refuse_no_rows(frame: Frame, tables: Tables) -> None:
    """Refuse a panel without rows, and a table of workplaces without any: an empty file tells no types either."""
    jobs = [("jobs", tables.jobs, frame.jobs.path)] if frame.span is not None else []
    units = [("workplaces", tables.workplaces, frame.workplaces.path)] if frame.workplaces is not None else []
    for name, table, path in jobs + units:
        if table is not None and not table.limit(1).count().execute():
            raise DataError(
                name,
                expected=f"rows in {path}",
                found="a file that is empty, or has column names only",
                do="write the file again, or correct `path` in the release file",
            )


def check_panel_columns(frame: Frame, tables: Tables) -> None:
    """Check that the columns with the period and the earnings exist and can hold them."""
    span, period, earnings, _ = panel(frame)
    for column in (period, earnings):
        if column not in tables.jobs.columns:
            raise DataError(
                f"jobs, column '{column}'",
                expected=f"a column '{column}'",
                found=f"the columns {', '.join(tables.jobs.columns)}",
                do="correct the name in the release file, or the file",
            )
    kind = tables.jobs[period].type()
    if not (kind.is_string() or (kind.is_integer() and not span.quarterly)):
        raise DataError(
            f"jobs, period '{period}'",
            expected=f"text such as {span.first}" if span.quarterly else f"text or whole numbers such as {span.first}",
            found=f"a column of type {kind}",
            do=f"store the periods as text, written like {span.first}",
        )
    kind = tables.jobs[earnings].type()
    if not kind.is_numeric():
        raise DataError(
            f"jobs, earnings '{earnings}'",
            expected="numbers",
            found=f"a column of type {kind}",
            do="store the earnings as whole numbers of their smallest unit",
        )


@contextmanager
def jobs_of_panel(frame: Frame, tables: Tables) -> "Iterator[ir.Table]":
    """Check the rows of a panel and lend its jobs, each worker at each employer once, to have their links checked.

    Links must not be empty. The history is read twice: by period, and by job. That a job has two rows of one period
    shows in its number of rows, which is more than its number of periods; no list of all rows is made.
    """
    by_period = _by_period(frame, tables)
    _check_periods(frame, by_period)
    _check_earnings(frame, by_period)
    with _jobs(frame, tables).cache() as jobs:
        _check_once(frame, jobs)
        yield jobs


def _by_period(frame: Frame, tables: Tables) -> pa.Table:
    """The rows of every period that occurs, how many have earnings, their total, and how many are faulty."""
    _, period, earnings, _ = panel(frame)
    jobs = tables.jobs
    rows = jobs.select(_period=text(jobs[period], "_period"), _earnings=jobs[earnings])
    column = rows["_earnings"]
    # Both engines order NaN above every number, while their tests for NaN and null disagree.
    finite = (column.abs() <= sys.float_info.max).fill_null(False)
    faults = {
        "empty": rows.count() - column.count(),
        "not finite": column.count() - finite.sum(),
        "below 0": (finite & (column < 0)).sum(),
    }
    if not column.type().is_integer():
        faults["not whole"] = (finite.ifelse(column, 0) % 1 != 0).sum()
    counted = rows.group_by("_period").agg(
        _rows=rows.count(),
        _paid=(finite & (column > 0)).sum(),
        _total=finite.ifelse(column, 0).cast("float64").sum(),
        **faults,
    )
    return counted.limit(_MOST_VALUES).to_pyarrow()


def _check_periods(frame: Frame, by_period: pa.Table) -> None:
    span, period, _, _ = panel(frame)
    misplaced = [f"{rows:,} rows {fault}" for fault, rows in _misplaced(span, by_period).items() if rows]
    if misplaced:
        raise DataError(
            f"jobs, period '{period}'",
            expected=f"a period from {span.first} to {span.last} in every row, written like them",
            found=", ".join(misplaced),
            do="correct these rows, or `first` and `last` in the release file",
        )
    paid = set(by_period.filter(pc.greater(by_period["_paid"], 0))["_period"].to_pylist())
    missing = [code for code in span.codes() if code not in paid]
    if missing:
        raise DataError(
            f"jobs, period '{period}'",
            expected=f"rows with earnings in every period from {span.first} to {span.last}: a gap would end all jobs",
            found=f"{len(missing):,} without any: {', '.join(missing[:_NAMED])}{' …' if len(missing) > _NAMED else ''}",
            do="add the missing periods, or correct `first` and `last` in the release file",
        )


def _misplaced(span: Span, by_period: pa.Table) -> dict[str, int]:
    """How many rows have a value that is no period of the panel, by what is wrong with it."""
    periods, rows = by_period["_period"], by_period["_rows"]
    # Periods that are written alike are in the order of their text.
    alike = pc.match_substring_regex(periods, f"^{_written(span)}$")
    faults = {
        "without one": pc.is_null(periods),
        f"before {span.first}": pc.and_(alike, pc.less(periods, span.first)),
        f"after {span.last}": pc.and_(alike, pc.greater(periods, span.last)),
        "written otherwise": pc.invert(alike),
    }
    return {fault: pc.sum(pc.filter(rows, which)).as_py() or 0 for fault, which in faults.items()}


def _written(span: Span) -> str:
    """The pattern of the periods of a panel."""
    if not span.quarterly:
        return "[0-9]{4}"
    return "[0-9]{4}-Q[1-4]" if "-" in span.first else "[0-9]{4}Q[1-4]"


def _check_earnings(frame: Frame, by_period: pa.Table) -> None:
    _, _, earnings, _ = panel(frame)
    counts = {fault: pc.sum(by_period[fault]).as_py() for fault in _FAULTS if fault in by_period.column_names}
    wrong = [f"{count:,} {fault}" for fault, count in counts.items() if count]
    if not wrong and pc.sum(by_period["_total"]).as_py() >= _MOST_EARNINGS:
        wrong = ["too large to be added up"]
    if wrong:
        raise DataError(
            f"jobs, earnings '{earnings}'",
            expected=f"whole, finite numbers that are not negative in every row, in all below {_MOST_EARNINGS:.2g}",
            found=f"values that are {', '.join(wrong)}",
            do="correct the rows; store whole numbers of the smallest unit, and 0 or no row where nothing was earned",
        )


def _jobs(frame: Frame, tables: Tables) -> "ir.Table":
    """Every worker at every employer once, with the number of rows and the periods of these rows."""
    span, period, _, worker = panel(frame)
    jobs = tables.jobs
    rows = jobs.select(worker, frame.jobs.workplace, _written=jobs[period]).inner_join(
        calendar(frame, tables), "_written"
    )
    return rows.group_by(worker, frame.jobs.workplace).agg(_rows=rows.count(), **held(rows, span))


def _check_once(frame: Frame, jobs: "ir.Table") -> None:
    span, period, _, worker = panel(frame)
    repeated = int((jobs["_rows"] - periods_held(jobs, span)).sum().fill_null(0).execute())
    if repeated:
        raise DataError(
            f"jobs, columns '{worker}', '{frame.jobs.workplace}' and '{period}'",
            expected="one row for each worker at an employer in a period",
            found=f"{repeated:,} rows that repeat the worker, employer and period of another row",
            do=f"add up the repeated rows of {frame.jobs.path}",
        )
