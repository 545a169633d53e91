"""The structure of a bundle for machines: dimensions, codes, labels, columns, methods and guarantees."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sfumato.bundle.statement import compared
from sfumato.plan import Plan
from sfumato.privacy.answers import AnswerChunks
from sfumato.privacy.book import OverPeriods

IN_ONE_PIECE: Mapping[str, AnswerChunks] = MappingProxyType({})
"""No table is in chunks."""


def structure(
    plan: Plan, large: Mapping[str, AnswerChunks] = IN_ONE_PIECE, *, spent: OverPeriods | None = None
) -> dict[str, Any]:
    """Describe every statistic of a release.

    `large` are the answers that are published in chunks, and `spent` is what was charged about the population.
    """
    about = plan.release.about
    described: dict[str, Any] = {
        "title": about.title,
        "population": about.population,
        "period": about.period,
        "guarantee": plan.guarantee.described(),
        "comparisons": [found.data() for found in compared(plan)],
        **({} if spent is None else {"over_periods": describe_periods(spent)}),
        "tables": [],
    }
    for statistic in plan.statistics:
        described.setdefault(statistic.folder, []).append(statistic.describe(plan, large.get(statistic.name)))
    return described


def describe_periods(spent: OverPeriods) -> dict[str, Any]:
    """What was charged about a population: in all periods together, as far as it can be summed, and in each."""
    together = spent.together()
    return {
        "together": None if together is None else together.described(),
        "periods": [
            {
                "period": each.period,
                "guarantee": None if each.guarantee is None else each.guarantee.described(),
                "tables_without_guarantee": each.unbounded,
            }
            for each in spent.periods
        ],
    }
