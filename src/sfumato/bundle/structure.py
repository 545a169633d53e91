"""The structure of a bundle for machines: dimensions, codes, labels, columns, methods and guarantees."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sfumato.bundle.statement import UNANSWERED, compared, make_statement
from sfumato.plan import Plan
from sfumato.privacy.answers import AnswerChunks
from sfumato.privacy.book import OverPeriods
from sfumato.privacy.units import facts_of_window

IN_ONE_PIECE: Mapping[str, AnswerChunks] = MappingProxyType({})
"""No table is in chunks."""


def structure(
    plan: Plan,
    large: Mapping[str, AnswerChunks] = IN_ONE_PIECE,
    *,
    answers: Mapping[str, Any] = UNANSWERED,
    spent: OverPeriods | None = None,
) -> dict[str, Any]:
    """Describe every statistic of a release; all that the statement says is there too, as fields.

    `large` are the answers that are published in chunks, `answers` those in one piece, and `spent` is what was charged
    about the population.
    """
    about, stated = plan.release.about, make_statement(plan, answers, spent=spent)
    described: dict[str, Any] = {
        "title": about.title,
        "population": about.population,
        "period": about.period,
        "guarantee": plan.guarantee.described(),
        **({"charged_once": [found.facts() for found in plan.charged_once]} if plan.charged_once else {}),
        "statement": stated.facts(),
        "comparisons": [found.data() for found in compared(plan)],
        **({} if spent is None else {"over_periods": describe_periods(spent, jobs=plan.release.data.of_jobs)}),
        "tables": [],
    }
    for statistic in plan.statistics:
        facts = statistic.describe(plan, large.get(statistic.name))
        facts |= statistic.found(answers[statistic.name]) if statistic.name in answers else {}
        facts["changes"] = stated.changed[statistic.name].partition(f"(`{statistic.name}`): ")[2]
        described.setdefault(statistic.folder, []).append(facts)
    if plan.hierarchies:
        described["hierarchies"] = [found.described() for found in plan.hierarchies]
    return described


def describe_periods(spent: OverPeriods, *, jobs: bool = True) -> dict[str, Any]:
    """What was charged about a population: in all periods together, as far as it can be summed, and in each.

    And what consecutive ones may spend together, of `jobs` or of something else, where that is limited.
    """
    together = spent.together()
    windows = [facts_of_window(one, jobs=jobs) for one in spent.windows]
    return {
        **({"windows": windows} if windows else {}),
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
