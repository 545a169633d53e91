"""What a statement says of other releases and periods: what they reveal adds up."""

from sfumato.frame import Frame
from sfumato.plan import Plan
from sfumato.privacy.distance import loss
from sfumato.privacy.guarantee import EmployerEmployee, NoFormalGuarantee, at_most
from sfumato.privacy.over_periods import OverPeriods, PeriodSpent
from sfumato.publish.meaning import odds

JOBS_ADD_UP = "A job that lasts over several periods is in the tables of each, and what they reveal of it adds up."
PEOPLE_ADD_UP = "What tables of several periods reveal of someone who is in the data of each adds up."


def other_releases(plan: Plan, spent: OverPeriods | None) -> list[str]:
    """What all releases about the same population reveal together, as far as the ledger knows."""
    if isinstance(plan.guarantee, NoFormalGuarantee):
        formal = any(isinstance(part.guarantee, EmployerEmployee) for part in plan.parts)
        of_all = (
            "What these tables reveal adds to what those of other periods and releases reveal, and nothing bounds it."
        )
        return [of_all, *(_over_periods(plan, spent) if formal else [])]
    return [*_budget(plan, spent), *_over_periods(plan, spent)]


def _budget(plan: Plan, spent: OverPeriods | None) -> list[str]:
    budget = plan.release.budget
    if budget is None:
        return []
    granted = ", where the conditions of their tables are granted," if budget.condition else ""
    text = (
        "Other releases may be about the same population and period. All of their tables that have a formal guarantee "
        f"together{granted} reveal at most what their common budget allows: {budget}."
    )
    periods = () if spent is None else spent.periods
    charged = next((each.guarantee for each in periods if each.period == plan.release.about.period), None)
    if charged is not None and (charged.epsilon > budget.epsilon or charged.delta > budget.delta):
        text += " More than that was charged when an earlier ledger was lost: what follows counts."
    return [text]


def _over_periods(plan: Plan, spent: OverPeriods | None) -> list[str]:
    jobs = isinstance(plan.release.data, Frame)
    adds = JOBS_ADD_UP if jobs else PEOPLE_ADD_UP
    if spent is None or not spent.formal:
        return [adds]
    listed = "; ".join(_period(each) for each in spent.periods if each.guarantee is not None)
    who = "a job that was held" if jobs else "someone who is in the data"
    text = f"{adds} So far the ledger of this release has charges for this population in: {listed}."
    together = spent.together()
    if together is None:
        text += " Their deltas add up to 1 or more: all together they bound nothing."
    else:
        once, twice = loss(together, 1), loss(together, 2)
        where = "in all of these" if len(spent.formal) > 1 else "then"
        tables = "all tables with a guarantee" if spent.unbounded else "all tables"
        text += (
            f" For {who} {where}, {tables} together promise: {together}. The odds of whether it is so change by "
            f"{odds(once)}, and of what is said of it by {odds(twice)}."
        )
    if spent.unbounded:
        text += (
            f" Tables without a formal guarantee were made for {', '.join(spent.unbounded)}; they are in no sum, and "
            "nothing bounds what they reveal."
        )
    return [f"{text} Charges in other ledgers are not known here."]


def _period(spent: PeriodSpent) -> str:
    """What one period has spent, in short."""
    if spent.guarantee is None:
        return spent.period
    delta = f", delta = {at_most(spent.guarantee.delta)}" if spent.guarantee.delta else ""
    return f"{spent.period}, epsilon = {at_most(spent.guarantee.epsilon)}{delta}"
