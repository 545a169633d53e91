"""Tables of indicators that lie inside a finer one are published as its sums, so that additivity survives rounding."""

from collections.abc import Mapping

import numpy as np

from sfumato.cells import Cells, Integers
from sfumato.engine.question import IndicatorQuestion
from sfumato.indicators import CODES, INDICATORS
from sfumato.methods.infused_sums import InfusedSums
from sfumato.plan import Plan, PlannedTable


def nested_sums(plan: Plan, answers: Mapping[str, Cells]) -> dict[str, Cells]:
    """The answers with coarser tables of indicators replaced by sums of the finest one they lie in.

    A ratio keeps its own value. Stored answers stay as they are; the same answers always give the same sums.
    """
    found = dict(answers)
    for planned in plan.tables:
        finer = _finest_around(plan, planned)
        if finer is not None:
            own = answers[planned.table.name]
            summed = _summed(answers[finer.table.name], own)
            found[planned.table.name] = own.with_column("value", summed)
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
    if dict(asked.where) != dict(around.where) or not (_is_whole(planned) and _is_whole(other)):
        return False
    # Creation and destruction add up over employers, but not over groups of their workers.
    dropped = [dimension for dimension in around.by if dimension not in asked.by]
    return set(asked.by) <= set(around.by) and all(dimension.public for dimension in dropped)


def _is_whole(planned: PlannedTable) -> bool:
    """Whether no cell is suppressed, which would be missing from the sums."""
    return isinstance(planned.method, InfusedSums) and not planned.method.minimum


def _summed(finer: Cells, own: Cells) -> Integers:
    names = [dimension.name for dimension in own.dimensions]
    place = np.ravel_multi_index(tuple(finer.codes(name) for name in names), tuple(map(len, own.dimensions)))
    sums = np.zeros(len(own), dtype=np.int64)
    np.add.at(sums, np.searchsorted(own.positions, place), finer["value"])
    ratios = np.array([not indicator.additive for indicator in INDICATORS])[own.positions % len(CODES)]
    summed: Integers = np.where(ratios, own["value"], sums)
    return summed
