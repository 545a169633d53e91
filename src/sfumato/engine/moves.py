"""Moves: who left one employer and joined another in the same period of a panel."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from sfumato.engine.connect import Tables
from sfumato.engine.history import bits_of, calendar, gathered, panel, words
from sfumato.engine.text import text
from sfumato.errors import ReleaseError
from sfumato.frame import Frame
from sfumato.periods import Span

if TYPE_CHECKING:
    import ibis.expr.types as ir


def moves(frame: Frame, tables: Tables) -> "ir.Table":
    """Every move of a `_worker` out of the employer `_from` into the employer `_to`, in the `_period` as text.

    A worker leaves an employer in the last period with earnings before one without, and joins in the first after one
    without; so there are no moves in the first and in the last period of the panel, where one cannot tell.
    """
    numbers, periods = words(_span(frame)), calendar(frame, tables)
    jobs = _changes(frame, tables, periods)
    left = jobs.select("_worker", _from=jobs["_workplace"], **{f"_left{w}": jobs[f"_left{w}"] for w in numbers})
    joined = jobs.select("_worker", _to=jobs["_workplace"], **{f"_joined{w}": jobs[f"_joined{w}"] for w in numbers})
    met = left.filter(_any(left[f"_left{w}"] != 0 for w in numbers)).inner_join(
        joined.filter(_any(joined[f"_joined{w}"] != 0 for w in numbers)), "_worker"
    )
    moved = met.select(
        "_worker", "_from", "_to", **{f"_moved{w}": met[f"_left{w}"] & met[f"_joined{w}"] for w in numbers}
    ).filter(lambda pair: (pair["_from"] != pair["_to"]) & _any(pair[f"_moved{w}"] != 0 for w in numbers))
    spread = moved.cross_join(periods.mutate(_period=text(periods["_written"], "_period")))
    when = _any((spread[f"_moved{w}"] & spread[f"_now{w}"]) != 0 for w in numbers)
    return spread.filter(when).select("_worker", "_from", "_to", "_period")


def available_periods(frame: Frame) -> tuple[str, ...]:
    """The periods of a panel in which moves can be seen: all but the first and the last."""
    return _span(frame).codes()[1:-1]


def _changes(frame: Frame, tables: Tables, periods: "ir.Table") -> "ir.Table":
    """Each worker at each employer once, with the periods in which they joined and left as bits of whole numbers.

    One pass over the jobs: of every period with earnings, the bit of itself, of the next and of the one before are
    gathered. A worker joined in a period that has earnings and does not follow one that has. In the first period
    everybody could have joined before, in the last everybody could stay: they count as no change.
    """
    span, period, earnings, worker = panel(frame)
    paid = tables.jobs.filter(tables.jobs[earnings] > 0)
    rows = paid.select(_worker=paid[worker], _workplace=paid[frame.jobs.workplace], _written=paid[period])
    dated = rows.inner_join(periods, "_written")
    every = {
        name: bit for bits in ("_now", "_after", "_before") for name, bit in gathered(dated, span, bits=bits).items()
    }
    jobs = dated.group_by("_worker", "_workplace").agg(**every)
    changes, end = {}, len(span.codes()) - 1
    for w in words(span):
        later, earlier = (bits_of(*ends, word=w, periods=end + 1) for ends in ((1, end), (0, end - 1)))
        # No `~(a | b)`: Ibis writes it without its parentheses.
        changes[f"_joined{w}"] = jobs[f"_now{w}"] & later & ~jobs[f"_after{w}"]
        changes[f"_left{w}"] = jobs[f"_now{w}"] & earlier & ~jobs[f"_before{w}"]
    return jobs.select("_worker", "_workplace", **changes)


def _span(frame: Frame) -> Span:
    if frame.span is None:
        raise ReleaseError(
            "data, jobs",
            expected="a panel: job-to-job flows follow workers from one period to the next",
            found="jobs without a period",
            do="describe `period`, `first`, `last` and `earnings` of the jobs, or ask for a graph",
        )
    return frame.span


def _any(conditions: "Iterable[ir.BooleanValue]") -> "ir.BooleanValue":
    return reduce(or_, conditions)
