"""Tables of indicators that lie inside a finer one are published as its sums, so that additivity survives rounding."""

from collections.abc import Mapping

import numpy as np

from sfumato.cells import Cells
from sfumato.engine.question import IndicatorQuestion
from sfumato.indicators import CODES
from sfumato.methods.infused_sums import InfusedSums
from sfumato.methods.status import HIDDEN
from sfumato.plan import Plan, PlannedTable


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
