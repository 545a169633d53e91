"""Published tables that agree: stored answers reconciled on the way to the bundle, from published numbers only."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sfumato.adjust.reconcile import Protected, largest_detail, reconcile, rounded
from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.methods.method import Biased
from sfumato.methods.vector_figures import WholeTableFigures, published_figures
from sfumato.plan import Plan, PlannedTable
from sfumato.publish.nested import nested_sums

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
