"""Moves: who left one employer and joined another in the same period of a panel."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.engine.connect import Tables
from sfumato.engine.text import text
from sfumato.errors import ReleaseError
from sfumato.frame import Frame

if TYPE_CHECKING:
    import ibis.expr.types as ir

_PERIODS = 60
"""Periods in one whole number, a bit each: fewer than the 63 that every engine's have."""


def moves(frame: Frame, tables: Tables) -> "ir.Table":
    """Every move of a `_worker` out of the employer `_from` into the employer `_to`, in the `_period` as text.

    A worker leaves an employer in the last period with earnings before one without, and joins in the first after one
    without; so there are no moves in the first and in the last period of the panel, where one cannot tell.
    """
    calendar, words = _calendar(frame, tables), _words(frame)
    jobs = _histories(frame, tables, calendar)
    left = jobs.select("_worker", _from=jobs["_workplace"], **{f"_left{w}": jobs[f"_left{w}"] for w in words})
    joined = jobs.select("_worker", _to=jobs["_workplace"], **{f"_joined{w}": jobs[f"_joined{w}"] for w in words})
    met = left.filter(_any(left[f"_left{w}"] != 0 for w in words)).inner_join(
        joined.filter(_any(joined[f"_joined{w}"] != 0 for w in words)), "_worker"
    )
    moved = met.select(
        "_worker", "_from", "_to", **{f"_moved{w}": met[f"_left{w}"] & met[f"_joined{w}"] for w in words}
    ).filter(lambda pair: (pair["_from"] != pair["_to"]) & _any(pair[f"_moved{w}"] != 0 for w in words))
    spread = moved.cross_join(calendar)
    when = _any((spread[f"_moved{w}"] & spread[f"_in{w}"]) != 0 for w in words)
    return spread.filter(when).select("_worker", "_from", "_to", "_period")


def available_periods(frame: Frame) -> tuple[str, ...]:
    """The periods of a panel in which moves can be seen: all but the first and the last."""
    return _codes(frame)[1:-1]


def _histories(frame: Frame, tables: Tables, calendar: "ir.Table") -> "ir.Table":
    """Each worker at each employer once, with the periods in which they joined and left as bits of whole numbers.

    One pass over the jobs: of every period with earnings, the bit of itself, of the next and of the one before are
    gathered. A worker joined in a period that has earnings and does not follow one that has.
    """
    jobs = tables.jobs
    paid = jobs.filter(jobs[frame.jobs.earnings] > 0)
    rows = paid.select(
        _worker=paid[frame.jobs.worker],
        _workplace=paid[frame.jobs.workplace],
        _period=text(paid[frame.jobs.period], "_period"),
    )
    dated = rows.inner_join(calendar, "_period")
    words = _words(frame)
    gathered = dated.group_by("_worker", "_workplace").agg(
        **{f"_{which}{w}": _gathered(dated[f"_{which}{w}"]) for which in ("in", "after", "before") for w in words}
    )
    changes = {f"_joined{w}": gathered[f"_in{w}"] & ~gathered[f"_after{w}"] for w in words}
    changes |= {f"_left{w}": gathered[f"_in{w}"] & ~gathered[f"_before{w}"] for w in words}
    return gathered.select("_worker", "_workplace", **changes)


def _gathered(bits: "ir.IntegerColumn") -> "ir.IntegerScalar":
    """All bits that any row has: a function that every engine calls `bit_or`, though Ibis knows it for some only."""
    import ibis  # noqa: PLC0415 (an engine is imported when it is used)

    @ibis.udf.agg.builtin(name="bit_or", signature=(("int64",), "int64"))
    def bit_or(bits):  # type: ignore[no-untyped-def]
        """Not run: it stands for the engine's own."""

    return bit_or(bits)


def _calendar(frame: Frame, tables: Tables) -> "ir.Table":
    """Every period as text with its own bit, the bit of the next and the bit of the one before.

    In the first period everybody with earnings could have joined before, in the last everybody could stay: they count
    as following, and as followed by, a period with earnings.
    """
    codes = _codes(frame)
    columns: dict[str, list[str] | pa.Array] = {"_period": list(codes)}
    end = len(codes) - 1
    for word in _words(frame):
        for which, step in (("in", 0), ("after", 1), ("before", -1)):
            bits = [_bit(place + step, word) for place in range(len(codes))]
            if which == "after":
                bits[0] |= _bit(0, word)
            if which == "before":
                bits[end] |= _bit(end, word)
            columns[f"_{which}{word}"] = pa.array(bits, pa.int64())
    return tables.lend(pa.table(columns))


def _bit(place: int, word: int) -> int:
    within = place - word * _PERIODS
    return 1 << within if 0 <= within < _PERIODS else 0


def _words(frame: Frame) -> range:
    return range(-(-len(_codes(frame)) // _PERIODS))


def _codes(frame: Frame) -> tuple[str, ...]:
    if frame.span is None:
        raise ReleaseError(
            "data, jobs",
            expected="a panel: job-to-job flows follow workers from one period to the next",
            found="jobs without a period",
            do="describe `period`, `first`, `last` and `earnings` of the jobs, or ask for a graph",
        )
    return frame.span.codes()


def _any(conditions: "Iterable[ir.BooleanValue]") -> "ir.BooleanValue":
    return reduce(or_, conditions)
