"""What indicators with a guarantee are made of: jobs of each kind, changes and payrolls, and the largest employers."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from math import prod

import numpy as np
import pyarrow as pa

from sfumato.arrays import Integers
from sfumato.cells import Cells, Dimension
from sfumato.engine.chunks import positions_of, strides
from sfumato.engine.connect import Tables
from sfumato.engine.panel import employer_groups, panel
from sfumato.engine.query import Rows, times, total
from sfumato.frame.data import Frame
from sfumato.statistics.jobs.totals import Cut
from sfumato.statistics.panel.formal_period import (
    AT,
    AVERAGE,
    CHANGE,
    FLOWS,
    GAINED,
    KEPT_PAY,
    LOST,
    MEASURED,
    OF,
    OTHER_PAY,
    PAYROLLS,
)
from sfumato.statistics.panel.indicators import CODES, NAME
from sfumato.statistics.panel.question import FormalQuestion
from sfumato.statistics.panel.tabulate_indicators import (
    availability,
    chosen_groups,
    listed_cells,
    places_of,
    worker_names,
)

_KINDS = (
    "_before AND _after",
    "_before AND NOT _after",
    "NOT _before AND _within AND _after",
    "NOT _before AND _within AND NOT _after",
    "NOT _within AND _after",
    "NOT _within AND NOT _after",
)
"""The kinds of jobs of `sfumato.statistics.panel.formal_period`, by what is around the period."""
_NUMBERS = tuple(f"_number{place}" for place in range(MEASURED))


def formal_indicators(frame: Frame, tables: Tables, questions: Mapping[str, FormalQuestion]) -> dict[str, Cells]:
    """Answer every question with the columns that `IndicatorPareto` needs, the true indicators as `count` beside them.

    The history is summed to employers once for all questions, as for indicators with factors.
    """
    attributes = tuple(dict.fromkeys(name for q in questions.values() for name in worker_names(frame, q)))
    if tables.workplaces is None or frame.workplaces is None:
        raise ValueError("a panel needs its table of workplaces")
    named = tables.workplaces.select(_workplace=tables.engine.q(frame.workplaces.key)).fetch()
    numbers = pa.array(np.arange(named.num_rows, dtype=np.int32))
    employers = tables.engine.lend(named.append_column("_employer", numbers))
    caps = {question.cap for question in questions.values()} - {None}
    if len(caps) > 1:
        raise ValueError("one column of earnings has one cap")
    with (
        employer_groups(frame, tables, employers, attributes, cap=next(iter(caps), None)) as groups,
        nullcontext(groups) if len(questions) == 1 and not attributes else groups.kept() as kept,
    ):
        return {name: _cells(frame, tables, kept, employers, one) for name, one in questions.items()}


def _cells(frame: Frame, tables: Tables, groups: Rows, employers: Rows, question: FormalQuestion) -> Cells:
    """Sum employers to the cells of one question, and add the cells that hold no jobs."""
    span, period, _, _ = panel(frame)
    public = [dimension for dimension in question.by if frame.is_public(dimension.name)]
    inside = [dimension for dimension in question.by if not frame.is_public(dimension.name)]
    workers = [dimension.name for dimension in inside if dimension.name not in (period, NAME)]
    places = places_of(frame, tables, employers, question)
    keys = [dimension.name for dimension in public]
    existing = places.group(keys, _establishments="count(*)").fetch()
    chosen = chosen_groups(frame, groups, question)
    summed = {name: total(name) for name in _NUMBERS}
    largest = {"_jobs": "max(_jobs)", "_payroll": "max(_payroll)"}

    def placed(by: Sequence[str], **made: str) -> pa.Table:
        """What employers have, in every workplace cell and period."""
        rows = _of_employers(chosen, by).join(places, ["_employer"]).group([*keys, "_period", *by], **made).fetch()
        written = pa.array(span.codes(), pa.string()).take(rows["_period"].combine_chunks())
        return rows.append_column(period, written)

    found = placed(workers, **summed, **({} if workers else largest))
    sizes = placed((), **largest) if workers else found
    if question.every_cell:
        listed, establishments = np.arange(question.cells, dtype=np.int64), None
    else:
        listed, establishments = listed_cells(existing, public, inside, question.by)
    columns = {"available": availability(question, span, period, listed)}
    if establishments is not None:
        columns["establishments"] = establishments
    cells = Cells(dimensions=question.by, positions=listed, columns=columns)
    measured = _spread(found, question.by[:-1], cells)
    answer = cells.with_column("measured", np.pad(measured, ((0, 0), (0, len(CODES) - MEASURED))).reshape(-1))
    answer = answer.with_column("largest_employer", _largest(sizes, workers, cells))
    true = true_indicators(measured, months=3 if span.quarterly else 12).reshape(-1)
    return answer.with_column("count", true * cells["available"])


def cut_off(frame: Frame, tables: Tables, measure: str, cap: int) -> Cut:
    """What the cap takes off payrolls, as shares of all earnings and of all jobs in a period: confidential."""
    earned = f"CAST({tables.engine.q(panel(frame)[2])} AS DOUBLE)"
    row = tables.jobs.where(f"{earned} > 0").row(
        _total=f"sum({earned})",
        _cut=f"sum(greatest({earned} - {cap}, 0))",
        _jobs="count(*)",
        _above=times(f"{earned} > {cap}"),
    )
    return Cut(
        measure=measure,
        cap=cap,
        total=float(row["_cut"] or 0) / (float(row["_total"] or 0) or 1.0),
        jobs=int(row["_above"] or 0) / (int(row["_jobs"] or 0) or 1),
    )


def _of_employers(groups: Rows, workers: Sequence[str]) -> Rows:
    """What is measured of each employer, period and worker cell, and its jobs and payroll."""
    counted = {name: total(f"CASE WHEN {of} THEN _jobs ELSE 0 END") for name, of in zip(_NUMBERS, _KINDS, strict=False)}
    paid = {KEPT_PAY: _KINDS[0], OTHER_PAY: f"NOT ({_KINDS[0]})"}
    sums = groups.group(
        ["_employer", "_period", *workers],
        **counted,
        **{_NUMBERS[place]: total(f"CASE WHEN {of} THEN _earnings ELSE 0 END") for place, of in paid.items()},
        _jobs=total("_jobs"),
        _payroll=total("_earnings"),
    )
    gained, lost = (" + ".join(_NUMBERS[kind] for kind in kinds) for kinds in (GAINED, LOST))
    return sums.with_columns(**{_NUMBERS[CHANGE]: f"abs({gained} - ({lost}))"})


def _spread(found: pa.Table, by: Sequence[Dimension], cells: Cells) -> Integers:
    """What is measured of every listed cell, 0 where nobody works."""
    base = cells.positions[:: len(CODES)] // len(CODES)
    rows = np.searchsorted(base, positions_of(found, by, by))
    measured = np.zeros((len(base), MEASURED), dtype=np.int64)
    for place, name in enumerate(_NUMBERS):
        measured[rows, place] = found[name].to_numpy()
    return measured


def _largest(sizes: pa.Table, workers: Sequence[str], cells: Cells) -> Integers:
    """In every row the jobs of the largest employer of the workplace cell and period, and in payrolls its payroll."""
    by = [dimension for dimension in cells.dimensions[:-1] if dimension.name not in workers]
    largest = np.zeros((prod(map(len, by)), 2), dtype=np.int64)
    largest[positions_of(sizes, by, by)] = np.stack([sizes[name].to_numpy() for name in ("_jobs", "_payroll")], axis=1)
    base = Cells(dimensions=cells.dimensions[:-1], positions=cells.positions[:: len(CODES)] // len(CODES))
    block, step = np.zeros(len(base), dtype=np.int64), strides(by)
    for dimension in by:
        block += base.codes(dimension.name) * step[dimension.name]
    of_pay = [int(code in (*PAYROLLS, AVERAGE)) for code in CODES]
    found: Integers = largest[block][:, of_pay].reshape(-1)
    return found


def true_indicators(measured: Integers, *, months: int) -> Integers:
    """Every indicator of what was measured of each cell, averages rounded as they are published: confidential."""
    found = np.zeros((len(measured), len(CODES)), dtype=np.int64)
    for code, kinds in OF.items():
        found[:, AT[code]] = measured[:, list(kinds)].sum(axis=1)
    net = measured[:, list(GAINED)].sum(axis=1) - measured[:, list(LOST)].sum(axis=1)
    found[:, AT[FLOWS[0]]] = (measured[:, CHANGE] + net) // 2
    found[:, AT[FLOWS[1]]] = (measured[:, CHANGE] - net) // 2
    found[:, AT[PAYROLLS[0]]] = measured[:, KEPT_PAY] + measured[:, OTHER_PAY]
    found[:, AT[PAYROLLS[1]]] = measured[:, KEPT_PAY]
    jobs = np.maximum(measured[:, 0], 1)
    found[:, AT[AVERAGE]] = (2 * measured[:, KEPT_PAY] + months * jobs) // (2 * months * jobs)
    return found
