"""Whether a bought scale pays: how far published errors will be above true ones, by public numbers alone."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np

from sfumato.agree.largest import largest_of, with_largest
from sfumato.agree.published import USUAL_SIZE, usual_error
from sfumato.cells import Cells
from sfumato.engine.data import OpenJobs
from sfumato.method import CONFIDENCE, MeasuresLargest, bought_steps, published_figures
from sfumato.plan import Plan
from sfumato.privacy.guarantee import at_most, plain
from sfumato.statistics.jobs.bought_scale import LIKELY, BoughtScale, worth_buying
from sfumato.statistics.jobs.tabulate import establishments_of
from sfumato.statistics.published import PublishedTable

MANY = 50
"""Cells of fewer establishments are not looked at: what is published of them is not far from the truth."""
PAYS = 3.0
"""From so many times the true error on, a scale is offered: with it, that is about two."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a table would gain by buying its scale."""

    now: float
    """Published over true error, the median of cells of many establishments."""
    epsilon: Fraction
    """The `error_epsilon` that is offered."""
    then: float
    adds: Fraction = Fraction(0)
    """What that adds to what the release is charged."""

    def in_words(self) -> str:
        """The offer, for `sfumato check`."""
        adds = (
            f"{at_most(self.adds)} to the charge" if self.adds else "nothing to the charge, as tables are charged now"
        )
        return (
            f"published errors will be roughly {self.now:.1f} times the true ones where there are {MANY} "
            f"establishments and more, as far as public numbers tell. error_epsilon = {plain(self.epsilon)} under "
            f"`protect` would make that roughly {self.then:.1f}; it adds {adds}."
        )

    def figures(self) -> dict[str, float]:
        """The same for machines."""
        return {
            "now": round(self.now, 2),
            "error_epsilon": float(self.epsilon),
            "then": round(self.then, 2),
            "adds": float(self.adds),
        }


def offers(plan: Plan, opened: Any, due: Callable[[Plan], Fraction] = Plan.epsilon) -> dict[str, Offer]:
    """The tables for which a bought scale would make published errors much smaller.

    `due` tells what a plan is charged: a scale costs what the plan is charged with it, less what it is without.
    Nothing but the register of establishments is looked at: cells are taken to have the usual number of jobs, and
    largest establishments of the usual size, as weights of reconciling are.
    """
    answers = {table.name: _usual(table, opened) for table in plan.tables if _suits(table, plan)}
    if not answers:
        return {}
    told = with_largest(answers, {name: (answer,) for name, answer in answers.items()}, plan.finer)
    methods = {table.name: table.method for table in plan.tables}
    found = {name: _offer(methods[name], answer) for name, answer in told.items()}
    return {
        name: replace(offer, adds=due(_buying(plan, name, offer.epsilon)) - due(plan))
        for name, offer in found.items()
        if offer is not None and offer.now > PAYS
    }


def _buying(plan: Plan, name: str, epsilon: Fraction) -> Plan:
    """The plan in which one table buys its scale."""
    changed = (
        replace(cast(Any, one), method=replace(cast(Any, one).method, error_epsilon=epsilon))
        if one.name == name and one.folder == "tables"
        else one
        for one in plan.statistics
    )
    return replace(plan, statistics=tuple(changed))


def _suits(table: PublishedTable, plan: Plan) -> bool:
    """Whether public numbers tell what is to be expected of a table: counts by public attributes, with a register."""
    data = plan.release.data
    return (
        table.counts_jobs_formally
        and isinstance(table.method, MeasuresLargest)
        and not bought_steps(table.method)
        and table.tells_establishments
        and not (table.in_chunks or data.joined)
        and all(map(plan.is_public, (*(one.name for one in table.by), *table.where)))
    )


def _usual(table: PublishedTable, opened: OpenJobs) -> Cells:
    """A table as it would usually be published: so many jobs for every establishment of the register."""
    question = replace(table.question, needs=frozenset())
    cells = establishments_of(opened.frame, opened.tables, question)
    return cells.with_column("value", USUAL_SIZE * cells["establishments"])


def _offer(method: Any, answer: Cells) -> Offer | None:
    many = answer["establishments"] >= MANY
    planned = method.planned_error()
    if not many.any() or planned.share is None:
        return None
    published = published_figures(method, answer, CONFIDENCE, largest_of(answer)).error
    usual = usual_error(planned, answer["establishments"].astype(np.float64))
    epsilon = worth_buying(method.alpha)
    return Offer(
        now=float(np.median(published[many] / usual[many])),
        epsilon=epsilon,
        then=BoughtScale(alpha=method.alpha, epsilon=epsilon).factor(LIKELY),
    )
