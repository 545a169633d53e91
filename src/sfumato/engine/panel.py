"""Histories of a panel: its jobs with their periods, and whether they are sound."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engine.connect import Tables
from sfumato.engine.faults import faults_of, is_finite, not_whole
from sfumato.engine.lacking import no_column
from sfumato.engine.query import Rows, is_number, is_text, text, texts, times, total
from sfumato.errors import DataError
from sfumato.frame.data import Frame
from sfumato.frame.periods import Span
from sfumato.frame.sources import written

# Job histories: every job of a panel with the periods it was held, and employers' jobs by what is around a period.

_BITS = 63
"""Periods in one whole number of the engine, a bit each; a longer panel takes several numbers."""
YEAR = 4
"""How many periods before an accession tell a recall from a new hire."""
AROUND = {"_before": (-1, -1), "_within": (-YEAR, -1), "_after": (1, 1)}
"""What is looked at around a period, from where to where: held before it, in the year before it, after it."""


def panel(frame: Frame) -> tuple[Span, str, str, str]:
    """The periods of a panel, and the columns with the period, the earnings and the worker."""
    span, jobs = frame.span, frame.jobs
    if span is None or jobs.period is None or jobs.earnings is None or jobs.worker is None:
        raise ValueError("the jobs of the frame are no panel")
    return span, jobs.period, jobs.earnings, jobs.worker


def calendar(frame: Frame, tables: Tables) -> Rows:
    """Every period as the data write it in `_written`, its place in the panel in `_period`, and what is around it.

    A period is a bit, in one of as many whole numbers as are needed: `_now0`, `_now1` and so on have its own bit,
    `_before0`, `_within0`, `_after0` and so on the bits around it.
    """
    span, period, _, _ = panel(frame)
    codes = span.codes()
    integer = pa.types.is_integer(tables.jobs.types[period])
    columns = {
        "_written": pa.array(map(int, codes), pa.int64()) if integer else pa.array(codes, pa.string()),
        "_period": pa.array(range(len(codes)), pa.int32()),
    }
    for name, (begin, end) in {"_now": (0, 0), **AROUND}.items():
        for word in words(span):
            bits = [bits_of(place + begin, place + end, word=word, periods=len(codes)) for place in range(len(codes))]
            columns[f"{name}{word}"] = pa.array(bits, pa.int64())
    return tables.engine.lend(pa.table(columns))


def words(span: Span) -> range:
    """The whole numbers that hold a bit for every period."""
    return range((span.high - span.low) // _BITS + 1)


def gathered(span: Span, *, bits: str = "_now") -> dict[str, str]:
    """All bits that any row of a group has in `_now0`, `_now1` and so on, or in the other bits of a calendar."""
    return {f"{bits}{word}": f"bit_or({bits}{word})" for word in words(span)}


def held(span: Span) -> dict[str, str]:
    """In `_held0`, `_held1` and so on, the bits of all periods in some rows of a history."""
    return {name.replace("_now", "_held"): bits for name, bits in gathered(span).items()}


def periods_held(span: Span) -> str:
    """The number of periods in which each job was held."""
    return " + ".join(f"CAST(bit_count(_held{word}) AS BIGINT)" for word in words(span))


@contextmanager
def employer_groups(
    frame: Frame, tables: Tables, employers: Rows, attributes: Sequence[str], *, cap: int | None = None
) -> Iterator[Rows]:
    """The number of jobs and their earnings of every employer and period, by worker attributes and what is around.

    `employers` numbers the `_workplace` of the register as `_employer`. `_before`, `_within` and `_after` tell whether
    the job had earnings in the period before, in one of the four periods before, and in the period after. A row
    without earnings is as no row; an attribute that is in the history is that of the period. With a `cap` no job counts
    for more than that in a period.

    The history is read twice. First every job is found with the periods it was held, which is a small table and is
    kept; then every row looks up its job. Of 51 million rows that takes two thirds to three quarters of the work of a
    sort by worker, employer and period, and a quarter of its memory or less.
    """
    span, *_ = panel(frame)
    of_workers = [name for name in attributes if tables.workers is not None and name in tables.workers.columns]
    history = _history(frame, tables, employers, [name for name in attributes if name not in of_workers])
    jobs = history.group(["_worker", "_employer"], **held(span))
    if of_workers and tables.workers is not None and frame.workers is not None:
        workers = tables.workers
        jobs = jobs.join(
            workers.select(_worker=tables.engine.q(frame.workers.key), **texts(workers, of_workers)), ["_worker"]
        )
    with jobs.kept() as kept:
        rows = history.join(kept, ["_worker", "_employer"])
        around = {name: " OR ".join(f"(_held{word} & {name}{word}) <> 0" for word in words(span)) for name in AROUND}
        known = rows.select("_employer", "_period", *attributes, "_earnings", **around)
        earned = "_earnings" if cap is None else f"least(_earnings, {cap})"
        yield known.group(["_employer", "_period", *attributes, *AROUND], _jobs="count(*)", _earnings=total(earned))


def _history(frame: Frame, tables: Tables, employers: Rows, attributes: Sequence[str]) -> Rows:
    """The rows with earnings, their employer and period as small numbers."""
    _, period, earnings, worker = panel(frame)
    jobs, q = tables.jobs, tables.engine.q
    rows = jobs.select(
        _worker=q(worker),
        _workplace=q(frame.jobs.workplace),
        _written=q(period),
        _earnings=f"CAST({q(earnings)} AS BIGINT)",
        **texts(jobs, attributes),
    )
    rows = rows.where("_earnings > 0")
    numbered = employers.select("_workplace", "_employer")
    return rows.join(calendar(frame, tables), ["_written"]).join(numbered, ["_workplace"])


def bits_of(begin: int, end: int, *, word: int, periods: int) -> int:
    """The bits of the periods from begin to end that are in the panel and in one of its whole numbers."""
    first, last = word * _BITS, min((word + 1) * _BITS, periods) - 1
    return sum(1 << (place - first) for place in range(max(begin, first), min(end, last) + 1))


# Whether a panel is sound: its periods, its earnings, and each job at most once in a period.
#
# A period of the panel without anybody is a gap in the data and refused. A period without earnings within one worker's
# history at one employer is no fault: the job ended, and if it began again that is an accession, perhaps a recall.

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
        if table is not None and not table.limit(1).number():
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
            raise no_column(f"jobs, column '{written(column)}'", written(column), {"jobs": tables.jobs})
    kind = tables.jobs.types[period]
    if not (is_text(kind) or (pa.types.is_integer(kind) and not span.quarterly)):
        raise DataError(
            f"jobs, period '{period}'",
            expected=f"text such as {span.first}" if span.quarterly else f"text or whole numbers such as {span.first}",
            found=f"a column of type {kind}",
            do=f"store the periods as text, written like {span.first}",
        )
    kind = tables.jobs.types[earnings]
    if not is_number(kind):
        raise DataError(
            f"jobs, earnings '{earnings}'",
            expected="numbers",
            found=f"a column of type {kind}",
            do="store the earnings as whole numbers of their smallest unit",
        )


@contextmanager
def jobs_of_panel(frame: Frame, tables: Tables) -> Iterator[Rows]:
    """Check the rows of a panel and lend its jobs, each worker at each employer once, to have their links checked.

    Links must not be empty. The history is read twice: by period, and by job. That a job has two rows of one period
    shows in its number of rows, which is more than its number of periods; no list of all rows is made.
    """
    by_period = _by_period(frame, tables)
    _check_periods(frame, by_period)
    _check_earnings(frame, by_period)
    with _jobs(frame, tables).kept() as jobs:
        _check_once(frame, jobs)
        yield jobs


def _by_period(frame: Frame, tables: Tables) -> pa.Table:
    """The rows of every period that occurs, how many have earnings, their total, and how many are faulty."""
    _, period, earnings, _ = panel(frame)
    jobs, finite = tables.jobs, is_finite("_earnings")
    rows = jobs.select(_period=text(jobs, period), _earnings=tables.engine.q(earnings))
    faults = {**faults_of("_earnings"), "below 0": times(f"{finite} AND _earnings < 0")}
    if not pa.types.is_integer(jobs.types[earnings]):
        faults["not whole"] = not_whole("_earnings")
    counted = rows.group(
        ["_period"],
        _rows="count(*)",
        _paid=times(f"{finite} AND _earnings > 0"),
        _total=f"sum(CASE WHEN {finite} THEN CAST(_earnings AS DOUBLE) ELSE 0.0 END)",
        **faults,
    )
    return counted.limit(_MOST_VALUES).fetch()


def _check_periods(frame: Frame, by_period: pa.Table) -> None:
    span, period, _, _ = panel(frame)
    misplaced = [f"{rows:,} rows {fault}" for fault, rows in _misplaced(span, by_period).items() if rows]
    if misplaced:
        raise DataError(
            f"jobs, period '{period}'",
            expected=f"a period from {span.first} to {span.last} in every row, written like them",
            found=", ".join(misplaced),
            do="correct these rows, or `first` and `last` in the release file; to publish a part of a panel, leave the "
            "other rows out of the file",
        )
    paid = set(by_period.filter(pc.greater(by_period["_paid"], 0))["_period"].to_pylist())
    missing = [code for code in span.codes() if code not in paid]
    if missing:
        raise DataError(
            f"jobs, period '{period}'",
            expected=f"rows with earnings in every period from {span.first} to {span.last}: a gap would end all jobs",
            found=f"{len(missing):,} without any: {', '.join(missing[:_NAMED])}{' …' if len(missing) > _NAMED else ''}",
            do="add the missing periods, or correct `first` and `last` in the release file; what is before and after a "
            "gap can be published as two panels",
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


_DECIMALS = (
    "; `factor` is for measures and changes no earnings: multiply euros with cents by 100 in the file, or in the "
    "`query` of a database"
)


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
            do="correct the rows; store whole numbers of the smallest unit, and 0 or no row where nothing was earned"
            + (_DECIMALS if counts.get("not whole") else ""),
        )


def _jobs(frame: Frame, tables: Tables) -> Rows:
    """Every worker at every employer once, with the number of rows and the periods of these rows."""
    span, period, _, worker = panel(frame)
    rows = tables.jobs.select(worker, frame.jobs.workplace, _written=tables.engine.q(period))
    rows = rows.join(calendar(frame, tables), ["_written"])
    return rows.group([worker, frame.jobs.workplace], _rows="count(*)", **held(span))


def _check_once(frame: Frame, jobs: Rows) -> None:
    span, period, _, worker = panel(frame)
    repeated = jobs.number(f"sum(_rows - ({periods_held(span)}))")
    if repeated:
        raise DataError(
            f"jobs, columns '{worker}', '{frame.jobs.workplace}' and '{period}'",
            expected="one row for each worker at an employer in a period",
            found=f"{repeated:,} rows that repeat the worker, employer and period of another row",
            do=f"add up the repeated rows of {frame.jobs.path}",
        )
