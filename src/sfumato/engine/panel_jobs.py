"""The jobs of a panel at some periods, as jobs that are no panel: an establishment in a period is one of its own."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from sfumato.engine.connect import Tables
from sfumato.engine.panel import calendar, held, panel, words
from sfumato.engine.query import Rows
from sfumato.frame.data import Frame
from sfumato.frame.jobs import Around

_AT = "_workplace"
"""The number of an establishment in a period, which links the jobs of the view to their workplaces."""


def register_at(frame: Frame, tables: Tables, periods: Sequence[str]) -> tuple[Frame, Tables]:
    """A frame whose establishments are those of the register in each of some periods, with the period as an attribute.

    The register is public and has no dates, so that all its establishments are in every period. Jobs are not looked at.
    """
    if frame.span is None:
        return frame, tables
    _, register = _numbered(frame, tables, periods)
    return _without_periods(frame), replace(tables, workplaces=register)


@contextmanager
def jobs_at(frame: Frame, tables: Tables, periods: Sequence[str]) -> Iterator[tuple[Frame, Tables]]:
    """The same with jobs: those of the population at each of the periods. Data that are no panel stay as they are.

    Whatever counts jobs of establishments, or adds up what they have, then does so in every period.
    """
    if frame.span is None:
        yield frame, tables
        return
    span, period, _, worker = panel(frame)
    seen, (numbers, register) = _without_periods(frame), _numbered(frame, tables, periods)
    rows = _rows(frame, tables, numbers, periods)
    others = [name for name in tables.jobs.columns if name not in (period, worker, frame.jobs.workplace)]
    sides = _sides(frame.jobs.around)
    if not sides:
        yield seen, replace(tables, jobs=rows.select(worker, *others, _AT), workplaces=register)
        return
    # As for indicators, every job is found first with the periods it was held, which is a small table.
    with rows.group(["_worker", "_employer"], **held(span)).kept() as jobs:
        here = rows.where(tables.engine.among("_period", _places(frame, periods)))
        here = here.join(jobs, ["_worker", "_employer"])
        for side in sides:
            here = here.where(" OR ".join(f"(_held{word} & {side}{word}) <> 0" for word in words(span)))
        yield seen, replace(tables, jobs=here.select(worker, *others, _AT), workplaces=register)


def _without_periods(frame: Frame) -> Frame:
    """The frame of a view: no panel, and the period a public attribute of workplaces."""
    no_panel = {"period": None, "first": None, "last": None, "earnings": None, "workplace": _AT}
    units = None if frame.workplaces is None else frame.workplaces.model_copy(update={"key": _AT})
    public = (*frame.public, *filter(None, [frame.panel_period]))
    return frame.model_copy(
        update={"jobs": frame.jobs.model_copy(update=no_panel), "workplaces": units, "public": public}
    )


def _sides(around: Around) -> list[str]:
    """On which sides of the period a job must have had earnings too, as a calendar calls them."""
    if max(around.before, around.after) > 1:
        raise ValueError("populations look at the periods next to one, and no further")
    return ["_before"] * around.before + ["_after"] * around.after


def _places(frame: Frame, periods: Sequence[str]) -> list[int]:
    span, *_ = panel(frame)
    return [place for place, code in enumerate(span.codes()) if code in periods]


def _numbered(frame: Frame, tables: Tables, periods: Sequence[str]) -> tuple[Rows, Rows]:
    """The number of every establishment by its key, and the register once for every period."""
    span, period, _, _ = panel(frame)
    register, engine = tables.workplaces, tables.engine
    if register is None or frame.workplaces is None:
        raise ValueError("a panel needs its table of workplaces")
    key = frame.workplaces.key
    keys = register.select(_key=engine.q(key)).fetch()
    numbers = engine.lend(keys.append_column("_employer", pa.array(np.arange(keys.num_rows, dtype=np.int64))))
    places = _places(frame, periods)
    dates = {"_period": pa.array(places, pa.int64()), period: pa.array([span.codes()[one] for one in places])}
    others = [name for name in register.columns if name not in (key, period)]
    listed = register.select(*others, _key=engine.q(key)).join(numbers, ["_key"]).without("_key")
    each = listed.join(engine.lend(pa.table(dates)), [], "cross")
    return numbers, each.select(*others, period, **{_AT: _number(frame)})


def _number(frame: Frame) -> str:
    span, *_ = panel(frame)
    return f"_employer * {len(span.codes())} + CAST(_period AS BIGINT)"


def _rows(frame: Frame, tables: Tables, numbers: Rows, periods: Sequence[str]) -> Rows:
    """The rows with earnings in the periods that matter, with the number of their establishment in the period."""
    span, period, earnings, worker = panel(frame)
    jobs, engine, around = tables.jobs, tables.engine, frame.jobs.around
    steps = range(-around.before, around.after + 1)
    places = sorted({place + step for place in _places(frame, periods) for step in steps})
    others = [name for name in jobs.columns if name not in (period, frame.jobs.workplace)]
    rows = jobs.select(
        *others, _worker=engine.q(worker), _key=engine.q(frame.jobs.workplace), _written=engine.q(period)
    )
    rows = rows.where(f"CAST({engine.q(earnings)} AS BIGINT) > 0")
    bits = [f"{name}{word}" for name in ("_now", *_sides(around)) for word in words(span)]
    dated = calendar(frame, tables).select("_written", "_period", *bits)
    rows = rows.join(dated.where(engine.among("_period", places)), ["_written"]).join(numbers, ["_key"])
    return rows.with_columns(**{_AT: _number(frame)}).without("_key", "_written")
