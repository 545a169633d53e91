"""Tabulate: jobs to establishments once, establishments to the cells of every table."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sfumato.cells import Cells, Dimension, Integers
from sfumato.engine.connect import Tables
from sfumato.engine.factor_table import factor_table
from sfumato.engine.positions import positions_of, strides
from sfumato.engine.question import Question
from sfumato.engine.text import text
from sfumato.frame import Frame
from sfumato.noise.factors import Factors

# Columns of our own begin with an underscore, which no attribute does: whatever an office calls its columns, they
# cannot be mixed up.

if TYPE_CHECKING:
    import ibis.expr.types as ir


def tabulate(
    frame: Frame, tables: Tables, questions: Mapping[str, Question], factors: Factors | None = None
) -> dict[str, Cells]:
    """Answer every question with its cells: `count` of jobs, `largest` establishment, number of `establishments`.

    The jobs are scanned once for all questions: they are counted by establishment and by the worker attributes that
    any question uses. Every cell that has an establishment is listed, also when it has no jobs. In a joined table
    nothing tells where establishments without jobs are, so there every combination is listed and the number of
    establishments, which would count only those with jobs, is not given. Questions that need `distorted` get the sum of
    jobs times the factor of their establishment.
    """
    workers = tuple(dict.fromkeys(name for q in questions.values() for name in q.worker_attributes(frame)))
    workplaces = tuple(dict.fromkeys(name for q in questions.values() for name in q.workplace_attributes(frame)))
    groups = establishment_groups(frame, tables, workers, workplaces)
    infused = {name: question for name, question in questions.items() if "distorted" in question.needs}
    with nullcontext(groups) if len(questions) == 1 and not infused else groups.cache() as kept:
        found = {name: _cells(frame, tables, kept, question) for name, question in questions.items()}
        if infused:
            if factors is None:
                raise ValueError("distorted sums need factors")
            placed = kept.inner_join(factor_table(frame, tables, factors), "_workplace")
            distorted = placed.mutate(_jobs=placed["_jobs"] * placed["_factor"]).drop("_factor")
            for name, question in infused.items():
                found[name] = found[name].with_sums(_counted(frame, tables, distorted, question)["count"])
    return found


def establishment_groups(frame: Frame, tables: Tables, workers: Sequence[str], workplaces: Sequence[str]) -> "ir.Table":
    """Count the jobs of each establishment by the worker attributes: the one scan of the jobs."""
    jobs = tables.jobs
    from_workers = [n for n in workers if tables.workers is not None and n in tables.workers.columns]
    kept = {"_workplace": jobs[frame.jobs.workplace]}
    kept |= {name: text(jobs[name], name) for name in workers if name not in from_workers}
    if frame.joined:
        # The attributes of an establishment are the same in all its rows (validated), so they only ride along.
        kept |= {name: text(jobs[name], name) for name in workplaces}
    if from_workers and tables.workers is not None and frame.workers is not None and frame.jobs.worker:
        people = tables.workers.select(
            _worker=tables.workers[frame.workers.key],
            **{name: text(tables.workers[name], name) for name in from_workers},
        )
        selected = jobs.select(_worker=jobs[frame.jobs.worker], **kept).inner_join(people, "_worker")
    else:
        selected = jobs.select(**kept)
    keys = ["_workplace", *workers, *(workplaces if frame.joined else ())]
    return selected.group_by(keys).agg(_jobs=selected.count())


def _cells(frame: Frame, tables: Tables, groups: "ir.Table", question: Question) -> Cells:
    """Sum establishments to the cells of one question, with every column its method needs."""
    cells = _counted(frame, tables, groups, question)
    columns = dict(cells.columns)
    if "largest_employer" in question.needs:
        columns["largest_employer"] = _largest_employer(frame, tables, groups, question, cells)
    if "count_below_threshold" in question.needs:
        kept = _counted(frame, tables, _below_threshold(groups, question.threshold), question)
        columns["count_below_threshold"] = np.zeros(len(cells), dtype=np.int64)
        columns["count_below_threshold"][np.searchsorted(cells.positions, kept.positions)] = kept["count"]
    return Cells(dimensions=cells.dimensions, positions=cells.positions, columns=columns)


def _below_threshold(groups: "ir.Table", threshold: int) -> "ir.Table":
    """Leave out establishments by their whole workforce, whatever part of it a table is about."""
    totals = groups.group_by("_workplace").agg(_total=groups["_jobs"].sum())
    return groups.anti_join(totals.filter(totals["_total"] >= threshold), "_workplace")


def _largest_employer(frame: Frame, tables: Tables, groups: "ir.Table", question: Question, cells: Cells) -> Integers:
    """The total workforce of the largest establishment of each cell's workplace cell, all its workers counted."""
    public = tuple(dimension for dimension in question.by if dimension.public)
    where = {name: codes for name, codes in question.where.items() if frame.is_public(name)}
    if not public:
        places = _workplaces(frame, tables, Question(by=(), where=where))
        totals = groups.group_by("_workplace", *(where if frame.joined else ())).agg(_jobs=groups["_jobs"].sum())
        kept = totals.semi_join(places, "_workplace") if places is not None else totals
        kept = _where(kept, Question(by=(), where=where), frame) if places is None else kept
        largest = int(kept["_jobs"].max().fill_null(0).execute() or 0)
        return np.full(len(cells), largest, dtype=np.int64)
    employers = _counted(frame, tables, groups, Question(by=public, where=where))
    shape = tuple(map(len, public))
    at = np.ravel_multi_index(tuple(cells.codes(dimension.name) for dimension in public), shape)
    return employers["largest"][np.searchsorted(employers.positions, at)]


def _counted(frame: Frame, tables: Tables, groups: "ir.Table", question: Question) -> Cells:
    """Sum establishments to the cells of one question, and add the cells that hold no jobs."""
    public = [dimension for dimension in question.by if frame.is_public(dimension.name)]
    workers = [dimension for dimension in question.by if not frame.is_public(dimension.name)]
    among = [name for name in question.where if not frame.is_public(name)]
    places = _workplaces(frame, tables, question)

    if among:
        groups = groups.filter(*(groups[name].isin(question.where[name]) for name in among))
    keys = [
        "_workplace",
        *(d.name for d in workers),
        *(question.workplace_attributes(frame) if frame.joined else ()),
    ]
    if set(groups.columns) - {"_jobs"} != set(keys):
        groups = groups.group_by(keys).agg(_jobs=groups["_jobs"].sum())
    if places is None:
        chosen = _where(groups, question, frame)
    elif workers:
        chosen = groups.inner_join(places, "_workplace")
    else:
        chosen = places.left_join(groups, "_workplace")
    by = [dimension.name for dimension in question.by]
    found = (
        chosen.group_by(by)
        .agg(
            _count=chosen["_jobs"].sum().fill_null(0).cast("int64"),
            _largest=chosen["_jobs"].max().fill_null(0).cast("int64"),
            _establishments=chosen.count().cast("int64"),
        )
        .to_pyarrow()
    )
    if places is None:
        return _complete(question.by, found, np.arange(prod(map(len, question.by)), dtype=np.int64), None)
    if not workers:
        listed = positions_of(found, question.by, question.by)
        return _complete(question.by, found, listed, found["_establishments"].to_numpy())
    keys = [dimension.name for dimension in public]
    existing = (places.group_by(keys) if keys else places).agg(_establishments=places.count().cast("int64"))
    return _spread(question.by, found, existing.to_pyarrow(), public, workers)


def _workplaces(frame: Frame, tables: Tables, question: Question) -> "ir.Table | None":
    """The establishments a question is about, with the attributes it uses."""
    if tables.workplaces is None or frame.workplaces is None:
        return None
    table = tables.workplaces
    kept = table.select(
        _workplace=table[frame.workplaces.key],
        **{name: text(table[name], name) for name in question.workplace_attributes(frame)},
    )
    return _where(kept, question, frame)


def _where(table: "ir.Table", question: Question, frame: Frame) -> "ir.Table":
    """Keep the rows whose public attributes are among those the question asks for."""
    kept = [table[name].isin(codes) for name, codes in question.where.items() if frame.is_public(name)]
    return table.filter(*kept) if kept else table


def _complete(by: tuple[Dimension, ...], found: pa.Table, listed: Integers, establishments: Integers | None) -> Cells:
    """Lay the answer of the engine over the listed positions; what the engine did not return is zero."""
    order = np.argsort(listed, kind="stable")
    listed = listed[order]
    at = np.searchsorted(listed, positions_of(found, by, by))
    columns = {name: np.zeros(len(listed), dtype=np.int64) for name in ("count", "largest")}
    for name, column in columns.items():
        column[at] = found[f"_{name}"].to_numpy()
    if establishments is not None:
        columns["establishments"] = establishments[order]
    return Cells(dimensions=by, positions=listed, columns=columns)


def _spread(
    by: tuple[Dimension, ...],
    found: pa.Table,
    existing: pa.Table,
    public: Sequence[Dimension],
    workers: Sequence[Dimension],
) -> Cells:
    """List every worker cell inside every workplace cell that has an establishment."""
    step = strides(by)
    inside = np.zeros(1, dtype=np.int64)
    for dimension in workers:
        steps = np.arange(len(dimension), dtype=np.int64) * step[dimension.name]
        inside = np.add.outer(inside, steps).ravel()
    listed = np.add.outer(positions_of(existing, public, by), inside).ravel()
    establishments = np.repeat(existing["_establishments"].to_numpy(), len(inside))
    return _complete(by, found, listed, establishments)
