"""Published tables that agree: stored answers reconciled or nested on the way to the bundle."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sfumato.agree.reconcile import Protected, largest_detail, reconcile, rounded
from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.method import HIDDEN, Biased
from sfumato.plan import Plan, PlannedTable
from sfumato.statistics.jobs.vector import WholeTableFigures, published_figures
from sfumato.statistics.panel.indicators import CODES
from sfumato.statistics.panel.infused_sums import InfusedSums
from sfumato.statistics.panel.question import IndicatorQuestion

# Tables of indicators that lie inside a finer one are published as its sums, so that additivity survives rounding.


def nested_sums(plan: Plan, answers: Mapping[str, Cells]) -> dict[str, Cells]:
    """The answers with coarser tables of indicators replaced by sums of the finest one they lie in.

    Ratios are worked out again, and what employers gained and lost where groups of their workers are put together: that
    does not add up. Stored answers stay as they are; the same answers always give the same sums.
    """
    found = dict(answers)
    for planned in plan.tables:
        finer = _finest_around(plan, planned)
        if finer is not None:
            found[planned.table.name] = _summed(planned, finer, answers)
    return found


def _finest_around(plan: Plan, planned: PlannedTable) -> PlannedTable | None:
    """The largest other table whose cells are parts of this one's; of two alike, the one that comes first."""
    candidates = [other for other in plan.tables if other is planned or _is_inside(planned, other)]
    finest = max(candidates, key=lambda other: other.cells)
    return None if finest is planned else finest


def _is_inside(planned: PlannedTable, other: PlannedTable) -> bool:
    asked, around = planned.question, other.question
    if not (isinstance(asked, IndicatorQuestion) and isinstance(around, IndicatorQuestion)):
        return False
    whole = _is_whole(planned) and _is_whole(other)
    return whole and dict(asked.where) == dict(around.where) and set(asked.by) <= set(around.by)


def _is_whole(planned: PlannedTable) -> bool:
    """Whether no cell is suppressed, which would be missing from the sums."""
    return isinstance(planned.method, InfusedSums) and not planned.method.minimum


def _summed(planned: PlannedTable, finer: PlannedTable, answers: Mapping[str, Cells]) -> Cells:
    own, parts = answers[planned.table.name], answers[finer.table.name]
    names = [dimension.name for dimension in own.dimensions]
    place = np.ravel_multi_index(tuple(parts.codes(name) for name in names), tuple(map(len, own.dimensions)))
    sums = np.zeros(len(own), dtype=np.int64)
    np.add.at(sums, np.searchsorted(own.positions, place), parts["value"])
    value, before = (column.reshape(-1, len(CODES)) for column in (sums, own["value"]))
    at = {code: place for place, code in enumerate(CODES)}
    if any(not dimension.public for dimension in finer.question.by if dimension not in planned.question.by):
        net = value[:, at["end"]] - value[:, at["beginning"]]
        value[:, at["job_creation"]] = np.maximum(before[:, at["job_creation"]], np.maximum(net, 0))
        value[:, at["job_destruction"]] = value[:, at["job_creation"]] - net
    status = own["status"]
    if isinstance(planned.method, InfusedSums):
        value[:, at["average_monthly_earnings"]] = planned.method.average(
            value[:, at["full_quarter_payroll"]], value[:, at["full_quarter"]]
        )
        status = planned.method.with_averages(value.reshape(-1), status)
    hidden = np.isin(status, HIDDEN)
    return own.with_column("value", np.where(hidden, 0, value.reshape(-1))).with_column("status", status)


_ANY = 0.9  # the confidence of intervals, which are not used here


def agreeing(plan: Plan, answers: Mapping[str, Cells]) -> dict[str, Cells]:
    """The answers with the values that are published: reconciled if the release asks for it, else as they are.

    Stored answers stay as they are; the same answers always give the same reconciled values. Tables of indicators agree
    by themselves, but for rounding, and always are made to.
    """
    names = reconciled_tables(plan)
    answers = nested_sums(plan, answers)
    if not names:
        return answers
    protected = {
        planned.table.name: Protected(
            cells=answers[planned.table.name],
            errors=np.full(len(answers[planned.table.name]), np.nan),
            population=_population(planned),
            nonnegative=planned.table.nonnegative,
        )
        for planned in plan.tables
        if planned.table.name in names
    }
    methods = {planned.table.name: planned for planned in plan.tables}
    weighted = {
        name: replace(table, errors=_typical_error(methods[name], protected)) for name, table in protected.items()
    }
    values = rounded(weighted, reconcile(weighted))
    found = dict(answers)
    for name, value in values.items():
        columns = {**answers[name].columns, "value": value}
        found[name] = Cells(dimensions=answers[name].dimensions, positions=answers[name].positions, columns=columns)
    return found


def reconciled_tables(plan: Plan) -> tuple[str, ...]:
    """The tables that are made to agree: those that are right on average and share a population with another such.

    A biased table would pull the others away from the truth.
    """
    if not plan.release.about.reconcile:
        return ()
    counts = [t for t in plan.tables if t.table.statistic == "count"]
    unbiased = [t for t in counts if not isinstance(t.method, Biased) or t.method.unbiased]
    populations = [_population(planned) for planned in unbiased]
    return tuple(t.table.name for t, p in zip(unbiased, populations, strict=True) if populations.count(p) > 1)


def _population(planned: PlannedTable) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(sorted((name, tuple(sorted(codes))) for name, codes in planned.question.where.items()))


def _typical_error(planned: PlannedTable, protected: Mapping[str, Protected]) -> Floats:
    """The published error figure; where noise follows the largest establishment, as large as that one can be."""
    method, table = planned.method, protected[planned.table.name]
    if isinstance(method, WholeTableFigures) or "largest" not in method.needs:
        return published_figures(method, table.cells, _ANY).error
    return method.published_error(largest_detail(protected, planned.table.name))
