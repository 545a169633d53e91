"""The privacy statement: what was protected, against whom, and what it means, in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from sfumato.agree.composite import Composite
from sfumato.method import bought_epsilon
from sfumato.plan import Plan
from sfumato.privacy.book import OverPeriods, PeriodSpent
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, at_most, capped, loss, plain, spoken, totals_in
from sfumato.privacy.meaning import (
    Comparison,
    comparisons,
    establishment,
    odds,
    person,
    surest,
    why_revealing_less,
)
from sfumato.privacy.over_time import over_panel, record_losses
from sfumato.privacy.units import of_all_periods, of_window
from sfumato.statistics.column_texts import number_left_out
from sfumato.statistics.registry import METHODS

# What a statement says of other releases and periods: what they reveal adds up.

JOBS_ADD_UP = "A job that lasts over several periods is in the tables of each, and what they reveal of it adds up."
UNITS_ADD_UP = "What tables of several periods reveal of a unit that is in the data of each adds up."
PEOPLE_ADD_UP = "What tables of several periods reveal of someone who is in the data of each adds up."


def other_releases(plan: Plan, spent: OverPeriods | None) -> list[str]:
    """What all releases about the same population reveal together, as far as the ledger knows."""
    if plan.guarantee.bound is None:
        formal = any(statistic.guarantee.bound is not None for statistic in plan.statistics)
        of_all = (
            "What these tables reveal adds to what those of other periods and releases reveal, and nothing bounds it."
        )
        return [of_all, *([*_over_periods(plan, spent), *_over_windows(plan, spent)] if formal else [])]
    return [*_budget(plan, spent), *_over_periods(plan, spent), *_over_windows(plan, spent)]


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
    jobs = plan.release.data.of_jobs
    units = any(
        one.guarantee.bound is not None and one.guarantee.bound.definition == "units" for one in plan.statistics
    )
    adds = JOBS_ADD_UP if jobs else UNITS_ADD_UP if units else PEOPLE_ADD_UP
    if spent is None or not spent.formal:
        return [adds]
    listed = "; ".join(_period(each) for each in spent.periods if each.guarantee is not None)
    who = "a job that was held" if jobs else "a unit that is in the data" if units else "someone who is in the data"
    apart = (
        ("whether it is so", "what is said of it") if not units else ("two values a step apart", "those twice as far")
    )
    text = f"{adds} So far the ledger of this release has charges for this population in: {listed}."
    together = spent.together()
    if not spent.composes:
        text += " They protect values of units, and others: all together they bound nothing."
    elif together is None:
        text += " Their deltas add up to 1 or more: all together they bound nothing."
    else:
        once, twice = loss(together, 1), loss(together, 2)
        where = "in all of these" if len(spent.formal) > 1 else "then"
        tables = "all tables with a guarantee" if spent.unbounded else "all tables"
        text += (
            f" For {who} {where}, {tables} together promise: {together}. The odds of {apart[0]} change by "
            f"{odds(once)}, and of {apart[1]} by {odds(twice)}."
        )
    if plan.tables and any(cube.guarantee.bound is not None and not cube.is_covered for cube in plan.cubes):
        text += " Of cubes that is about the counts of records; their other numbers are outside of it."
    if spent.unbounded:
        text += (
            f" Tables without a formal guarantee were made for {', '.join(spent.unbounded)}; they are in no sum, and "
            "nothing bounds what they reveal."
        )
    return [f"{text} Charges in other ledgers are not known here."]


def _over_windows(plan: Plan, spent: OverPeriods | None) -> list[str]:
    """What a unit in all periods of a window may lose in total, where the ledger limits that."""
    calendars = () if spent is None else spent.windows
    return [text for one in calendars for text in of_window(one, jobs=plan.release.data.of_jobs)]


def _period(spent: PeriodSpent) -> str:
    """What one period has spent, in short."""
    if spent.guarantee is None:
        return spent.period
    delta = f", delta = {at_most(spent.guarantee.delta)}" if spent.guarantee.delta else ""
    return f"{spent.period}, epsilon = {at_most(spent.guarantee.epsilon)}{delta}"


UNANSWERED: Mapping[str, Any] = MappingProxyType({})
_READING = "## How to read the error figures"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The paragraphs of a privacy statement, by what they are about; Markdown where something is stressed."""

    in_short: tuple[str, ...]
    """What the release protects, with headings of what that means."""
    other_releases: tuple[str, ...]
    not_protected: tuple[str, ...]
    changed: Mapping[str, str]
    """How the numbers of every statistic were changed, by its name."""
    agreement: tuple[str, ...]
    errors: tuple[str, ...]
    """How to read the error figures."""

    def facts(self) -> dict[str, Any]:
        """The paragraphs as fields, for machines; what was done to each statistic stands beside it."""
        promises = [text for text in (*self.in_short, *self.other_releases) if not text.startswith("#")]
        return {"promises": promises, "not_protected": list(self.not_protected), "errors": list(self.errors)}


def make_statement(
    plan: Plan, answers: Mapping[str, Any] = UNANSWERED, *, spent: OverPeriods | None = None
) -> Statement:
    """The statement of a release.

    `answers` are those that are published, by name; `spent` is what its ledger knows of all periods of the population.
    """
    return Statement(
        in_short=tuple(_first(plan, spent)),
        other_releases=tuple(other_releases(plan, spent)),
        not_protected=tuple(_public(plan)),
        changed={one.name: one.paragraph(plan, answers.get(one.name)) for one in plan.statistics},
        agreement=tuple(_agreement(plan)),
        errors=tuple(_errors(plan)),
    )


def statement(plan: Plan, answers: Mapping[str, Any] = UNANSWERED, *, spent: OverPeriods | None = None) -> str:
    """Write the privacy statement of a release as Markdown."""
    about, made = plan.release.about, make_statement(plan, answers, spent=spent)
    parts = [
        f"# Privacy statement: {about.title}",
        f"Population: {about.population}. Period: {about.period}. Made with sfumato {plan.software}.",
        "## In short",
        *made.in_short,
        "## Other periods and releases",
        *made.other_releases,
        "## What is not protected",
        *made.not_protected,
        "## How the numbers were changed",
        *made.changed.values(),
        *made.agreement,
        *([_READING, *made.errors] if made.errors else []),
        *_derived(plan),
        "## The parameters",
        _parameters(plan),
        *_documented(plan),
    ]
    return "\n\n".join(parts) + "\n"


def _first(plan: Plan, spent: OverPeriods | None) -> list[str]:
    """The first paragraphs: what the release protects, and what that means."""
    apart = _apart(plan)
    formal = any(statistic.guarantee.bound is not None for statistic in plan.statistics)
    windows = spent.windows if formal and spent is not None else ()
    in_time = [of_all_periods(one, jobs=plan.release.data.of_jobs) for one in windows]
    if not apart:
        return [_in_short(plan), *in_time, *_once(plan), *_at_periods(plan), *_meaning(plan.guarantee)]
    first, *rest = [*([_in_short(plan)] if plan.guarantee.bound is None else []), *apart]
    return [first, *in_time, *rest]


def _once(plan: Plan) -> list[str]:
    """Why tables about different establishments reveal less together than the sum of them."""
    if plan.guarantee.bound is None or not plan.charged_once:
        return []
    reason = (
        "An establishment has one code of each public attribute, so that the others do not depend on its workforce."
    )
    return [" ".join([*map(why_revealing_less, plan.charged_once), reason])]


def _at_periods(plan: Plan) -> list[str]:
    """What all tables of a panel spend at each period, and what is protected of a job over all of them."""
    span, bound = plan.release.data.span, plan.guarantee.bound
    if span is None or bound is None:
        return []
    spent: dict[str, Fraction] = {}
    told: dict[str, Fraction] = {}
    for one in plan.distinct():
        for period, epsilon in one.spent_at.items():
            spent[period] = spent.get(period, Fraction(0)) + epsilon
        for period, epsilon in record_losses(one.spent_at, span.codes(), one.moved_by_record).items():
            told[period] = told.get(period, Fraction(0)) + epsilon
    if not spent:
        return []
    return [over_panel(spent, max(told.values()), bound.delta, series=plan.release.series is not None)]


def _apart(plan: Plan) -> list[str]:
    """What is said of kinds that protect no establishments."""
    return [paragraph for kind in plan.kinds for paragraph in kind.in_short(plan)]


def compared(plan: Plan) -> tuple[Comparison, ...]:
    """Every comparison that the statement of a release bounds, for machines; none without a formal guarantee."""
    apart = tuple(found for kind in plan.kinds for found in kind.comparisons(plan))
    bound = plan.guarantee.bound
    return apart or (() if bound is None else comparisons(bound))


def _in_short(plan: Plan) -> str:
    total = plan.guarantee
    if total.bound is None:
        text = f"The tables of this release together have **no formal guarantee**: {total.statement}"
        if all(statistic.guarantee.bound is None for statistic in plan.statistics):
            return text + "." + "".join(words for kind in plan.kinds for words in kind.exceptions(plan))
        return (
            f"{text}, to readers who combine them with what they know. The last section says which tables have a "
            "guarantee of their own."
        )
    where = ", where there is an establishment," if any(table.tells_establishments for table in plan.tables) else ""
    totals = any(totals_in(one.guarantee.bound.caps) for one in plan.statistics if one.guarantee.bound)
    changed = (
        f"Every {'number' if totals else 'count'} of this release{where} was changed by random noise before it was "
        "published. That bounds what anyone can tell from all its tables together: "
    )
    sure = surest(loss(total.bound, 1))
    if total.definition == "individuals":
        return (
            f"{changed}of whether a given person held a given job, {sure}, whatever they already know. **The sizes of "
            "establishments and the composition of their workforces are not protected**: where a cell holds one "
            "establishment, its published numbers tell both to within a few jobs."
        )
    return (
        f"{changed}of whether a given person held a given job, or which of two sizes within about "
        f"{plain(100 * total.alpha)} % of each other an establishment's workforce has, {sure}. That holds "
        + (
            "for a person against any reader. For the size of an establishment it holds as far as all groups of its "
            "workers grow alike, and so not against readers who already know the attributes of its workers."
            if total.definition == "weak"
            else "against any reader, whatever they already know and however much they compute, now or later."
        )
        + _limits(total)
    )


def _limits(total: EmployerEmployee) -> str:
    """What else limits a step, with the space before it."""
    if not total.caps:
        return ""
    share, totals = plain(100 * total.alpha), totals_in(total.caps)
    numbers = spoken(tuple(cap for cap in total.caps if cap not in totals))
    jobs = " and ".join(f"of its {words}" for words, _ in numbers)
    if not totals:
        return (
            f" For the size of an establishment it holds where a step adds at most {share} % of its workers in a "
            f"period and {jobs}, or one job of each."
        )
    return (
        " For the size of an establishment, and for what it adds to a total, it holds where both grow alike: a "
        f"step adds at most {share} % of its workers{f', {jobs},' if jobs else ''} and of its part of every total of "
        f"{capped(spoken(totals))}, or one job. If many workers more each have the most that one job counts "
        "for, that is several steps."
    )


def _meaning(total: Guarantee) -> list[str]:
    if total.bound is None:
        return []
    return [
        "## What it means for one person",
        person(total.bound),
        "## What it means for one establishment",
        *establishment(total.bound),
    ]


def meaning_of(plan: Plan) -> list[str]:
    """What the guarantee of a release means, a paragraph each."""
    apart = [paragraph.replace("**", "") for paragraph in _apart(plan)]
    return apart if apart and plan.guarantee.bound is not None else [*meaning(plan.guarantee), *apart]


def meaning(guarantee: Guarantee) -> list[str]:
    """What a guarantee means for one person and for one establishment, a paragraph each."""
    if guarantee.bound is None:
        return [f"No formal guarantee: {guarantee.statement}."]
    return [person(guarantee.bound), *establishment(guarantee.bound)]


def _agreement(plan: Plan) -> list[str]:
    """What reconciliation did to the values, and what it leaves as it was."""
    names = plan.reconciled
    apart = [f"`{name}` was left as it is, because {why}." for name, why in plan.not_reconciled.items()]
    if not names:
        return ["## How the tables were made to agree", " ".join(["No table was changed.", *apart])] if apart else []
    silent = [planned.name for planned in plan.tables if planned.name in names and not planned.tells_establishments]
    if silent and len(silent) < len(names):
        listed = ", ".join(f"`{name}`" for name in silent)
        apart.append(f"{listed} agree with one another and not with the others, which tell where establishments are.")
    kept = ", ".join(f"`{one.table.name}`" for one in plan.earlier if one.table.why_not_reconciled is None)
    if kept:
        apart.append(
            "They agree with tables that were published earlier too, but for roundings where several of these cross, "
            f"and these stay as they are: {kept}."
        )
    raised = [planned.name for planned in plan.tables if planned.table.nonnegative and planned.name in names]
    upwards = (
        f" Negative results of {', '.join(f'`{name}`' for name in raised)} were raised to 0, and all values were made "
        "to agree with that, so that they are no longer right on average: cells that are near 0 come out too high, and "
        "others, and sums, too high or too low, by more than their `error` where many cells are small."
        if raised
        else ""
    )
    bought = any(bought_epsilon(planned.method) for planned in plan.tables if planned.name in names)
    used = {dimension.name for planned in plan.tables if planned.name in names for dimension in planned.by}
    nested = [f"`{h.dimension}` in `{h.above}`" for h in plan.hierarchies if {h.dimension, h.above} <= used]
    levels = f" So are sums over the codes that lie in one of another level: {', '.join(nested)}." if nested else ""
    return [
        "## How the tables were made to agree",
        f"After the noise was added, the tables {', '.join(f'`{name}`' for name in names)} were changed so that the "
        "sums they share are the same in all of them: each value by as little as its typical error allows (weighted "
        "least squares)." + levels + " A table inside a finer one agrees with it exactly, and so do others, but for a "
        "rounding where several cross in a ring. Only "
        "protected numbers were used, so this reveals nothing more. How large an error is typically follows from the "
        "method and from public numbers of establishments"
        + (" and released scales" if bought else "")
        + ", and not from the noise"
        + (". " if raised else ", so that values are still right on average. ")
        + "`measured` has the values before this step. `error`, `low` and `high` are those of the agreed value: the "
        "errors that all protected values have by themselves were carried through the same step, as noise that is "
        "independent between cells. No proof says how often these intervals hold the true value, as the normal "
        "distribution stands for that of sums; trials on made-up economies say 88 % or more in every table and size of "
        "cells, and mostly more than 90 %." + upwards,
        *([" ".join(apart)] if apart else []),
        *(_composites(name, rule) for name, rule in plan.composites.items()),
    ]


def _composites(name: str, rule: Composite) -> str:
    """What composite estimates are, and what they are not."""
    within = f" within each code of {', '.join(rule.within)}" if rule.within else ""
    return (
        f"`{name}` also has composite estimates. `composite` moves the value towards what other cells predict: the "
        f"shares of workers in all other workplaces{within}, times the agreed total of the workplace cell. It is moved "
        "the more, the noisier values are and the less cells differ. `composite_error` is the root of its mean squared "
        "error, estimated for cells like it and not for each. On average over cells it is closer to the truth than "
        "`value`, but it is drawn towards the average: a workplace cell whose workers are unlike others looks more "
        "like them than it is. Add up `value`, not `composite`. Only protected and public numbers were used, so this "
        "reveals nothing more."
    )


def _public(plan: Plan) -> list[str]:
    data = plan.release.data
    apart = [paragraph for kind in plan.kinds for paragraph in kind.left_open(plan)]
    if apart:
        return apart
    named = ", ".join(data.label(name).lower() for name in data.public)
    if data.joined:
        return [
            f"The attributes of workplaces ({named}) are regarded as public. Every combination of codes was "
            "protected, also those without any job."
        ]
    return [
        f"That an establishment exists, and its attributes ({named}), are regarded as public, and so is the number of "
        "establishments. A combination without any establishment is exactly 0: no one can work there."
        + (
            ""
            if plan.guarantee.bound is None
            else " A combination with establishments but without jobs was protected like any other."
        )
        + number_left_out(plan.tables)
    ]


def _documented(plan: Plan) -> list[str]:
    """Where guarantees are proved, if there are any, and that asking again reveals nothing more."""
    packages = {one.method.name: METHODS.package_of(one.method) for one in plan.statistics}
    others = {name: package for name, package in packages.items() if package}
    formal = [one.guarantee.bound is not None for one in plan.statistics if one.method.name not in others]
    proved = "What each method guarantees is defined and proved in the documentation of sfumato. "
    some = "Where a method has a guarantee, it is defined and proved in the documentation of sfumato. "
    return [
        ("" if not any(formal) else some if others or not all(formal) else proved)
        + "".join(f"What {name} guarantees is the claim of the package {by}. " for name, by in others.items())
        + "The same question about the same data always gets the same answer, so asking again reveals nothing more."
    ]


def _derived(plan: Plan) -> list[str]:
    """What the codes of attributes were made of, where that is not just their column."""
    data, made = plan.release.data, plan.derived()
    listed = "\n".join(f"- {data.label(name)} (`{name}`): {words}." for name, words in made.items())
    return ["## What attributes were made of", listed] if made else []


def _errors(plan: Plan) -> list[str]:
    return [text for kind in plan.kinds for text in kind.reading_errors(plan)]


def _parameters(plan: Plan) -> str:
    lines = ["| table | method | definition | alpha | epsilon | delta |", "|---|---|---|---|---|---|"]
    rows = [(f"`{one.name}`", one.method.name, one.guarantee) for one in plan.statistics]
    for name, method, guarantee in [*rows, ("all tables together", "", plan.guarantee)]:
        bound = guarantee.bound
        if bound is not None:
            parameters = (at_most(getattr(bound, field)) for field in ("alpha", "epsilon", "delta"))
            words = bound.definition + (", on a condition" if bound.condition else "")
            words += ", with totals" if totals_in(bound.caps) else ", of jobs at a period" if bound.caps else ""
            lines.append(f"| {name} | {method} | {words} | {' | '.join(parameters)} |")
        else:
            lines.append(f"| {name} | {method} | no formal guarantee | | | |")
    return "\n".join(lines)
