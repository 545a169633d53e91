"""Job histories: every job of a panel with the periods it was held, and employers' jobs by what is around a period."""

from collections.abc import Sequence
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.engine.connect import Tables
from sfumato.engine.text import text
from sfumato.frame import Frame
from sfumato.periods import Span

if TYPE_CHECKING:
    import ibis.expr.types as ir

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


def calendar(frame: Frame, tables: Tables) -> "ir.Table":
    """Every period as the data write it in `_written`, its place in the panel in `_period`, and what is around it.

    A period is a bit, in one of as many whole numbers as are needed: `_now0`, `_now1` and so on have its own bit,
    `_before0`, `_within0`, `_after0` and so on the bits around it.
    """
    span, period, _, _ = panel(frame)
    codes = span.codes()
    integer = tables.jobs[period].type().is_integer()
    columns = {
        "_written": pa.array(map(int, codes), pa.int64()) if integer else pa.array(codes, pa.string()),
        "_period": pa.array(range(len(codes)), pa.int32()),
    }
    for name, (begin, end) in {"_now": (0, 0), **AROUND}.items():
        for word in words(span):
            bits = [bits_of(place + begin, place + end, word=word, periods=len(codes)) for place in range(len(codes))]
            columns[f"{name}{word}"] = pa.array(bits, pa.int64())
    return tables.lend(pa.table(columns))


def words(span: Span) -> range:
    """The whole numbers that hold a bit for every period."""
    return range((span.high - span.low) // _BITS + 1)


def gathered(rows: "ir.Table", span: Span, *, bits: str = "_now") -> "dict[str, ir.IntegerScalar]":
    """All bits that any row has in `_now0`, `_now1` and so on, or in the other bits of a calendar."""
    import ibis

    @ibis.udf.agg.builtin(name="bit_or", signature=(("int64",), "int64"))  # Ibis knows it for DuckDB only
    def bit_or(bits):  # type: ignore[no-untyped-def]
        """Not run: it stands for the engine's own."""

    return {f"{bits}{word}": bit_or(rows[f"{bits}{word}"]) for word in words(span)}


def held(history: "ir.Table", span: Span) -> "dict[str, ir.IntegerScalar]":
    """In `_held0`, `_held1` and so on, the bits of all periods in some rows of a history."""
    return {name.replace("_now", "_held"): bits for name, bits in gathered(history, span).items()}


def periods_held(jobs: "ir.Table", span: Span) -> "ir.IntegerColumn":
    """The number of periods in which each job was held."""
    import ibis

    @ibis.udf.scalar.builtin(name="bit_count", signature=(("int64",), "int64"))
    def bit_count(bits):  # type: ignore[no-untyped-def]
        """Not run: it stands for the engine's own."""

    return reduce(add, (bit_count(jobs[f"_held{word}"]) for word in words(span)))


def employer_groups(frame: Frame, tables: Tables, employers: "ir.Table", attributes: Sequence[str]) -> "ir.Table":
    """The number of jobs and their earnings of every employer and period, by worker attributes and what is around.

    `employers` numbers the `_workplace` of the register as `_employer`. `_before`, `_within` and `_after` tell whether
    the job had earnings in the period before, in one of the four periods before, and in the period after. A row
    without earnings is as no row; an attribute that is in the history is that of the period.

    The history is read twice. First every job is found with the periods it was held, which is a small table and is
    kept; then every row looks up its job. Of 51 million rows that takes two thirds to three quarters of the work of a
    sort by worker, employer and period, and a quarter of its memory or less.
    """
    span, *_ = panel(frame)
    of_workers = [name for name in attributes if tables.workers is not None and name in tables.workers.columns]
    history = _history(frame, tables, employers, [name for name in attributes if name not in of_workers])
    jobs = history.group_by("_worker", "_employer").agg(**held(history, span))
    if of_workers and tables.workers is not None and frame.workers is not None:
        people = tables.workers.select(
            _worker=tables.workers[frame.workers.key],
            **{name: text(tables.workers[name], name) for name in of_workers},
        )
        jobs = jobs.inner_join(people, "_worker")
    rows = history.inner_join(jobs.cache(), ["_worker", "_employer"])
    around = {
        name: reduce(or_, ((rows[f"_held{word}"] & rows[f"{name}{word}"]) != 0 for word in words(span)))
        for name in AROUND
    }
    known = rows.select("_employer", "_period", *attributes, "_earnings", **around)
    return known.group_by("_employer", "_period", *attributes, *AROUND).agg(
        _jobs=known.count(), _earnings=known["_earnings"].sum()
    )


def _history(frame: Frame, tables: Tables, employers: "ir.Table", attributes: Sequence[str]) -> "ir.Table":
    """The rows with earnings, their employer and period as small numbers."""
    _, period, earnings, worker = panel(frame)
    jobs = tables.jobs
    rows = jobs.select(
        _worker=jobs[worker],
        _workplace=jobs[frame.jobs.workplace],
        _written=jobs[period],
        _earnings=jobs[earnings].cast("int64"),
        **{name: text(jobs[name], name) for name in attributes},
    )
    rows = rows.filter(rows["_earnings"] > 0)
    numbered = employers.select("_workplace", "_employer")
    return rows.inner_join(calendar(frame, tables), "_written").inner_join(numbered, "_workplace")


def bits_of(begin: int, end: int, *, word: int, periods: int) -> int:
    """The bits of the periods from begin to end that are in the panel and in one of its whole numbers."""
    first, last = word * _BITS, min((word + 1) * _BITS, periods) - 1
    return sum(1 << (place - first) for place in range(max(begin, first), min(end, last) + 1))
