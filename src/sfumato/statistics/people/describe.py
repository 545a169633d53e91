"""What a bundle says of statistics of people: their columns, and their part of the privacy statement."""

from math import prod
from typing import Any

import numpy as np

from sfumato.asking import periods_of
from sfumato.cells import Cells
from sfumato.method import ERROR_UNKNOWN
from sfumato.microdata import Microdata
from sfumato.plan import Plan, PlannedTable
from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.statistics.people.mose import UNCONDITIONALLY, Mose
from sfumato.statistics.people.percentiles import NoisyQuantiles
from sfumato.statistics.people.question import SampleQuestion
from sfumato.statistics.people.small_samples import NO_ERROR, RecordLaplace

SIZES = (30, 100, 1000)
"""Groups of so many people are examples of what an error is."""
ESTIMATED = {
    "value": "protected value",
    "count": "noisy number of people in the group, the same in all its rows",
    "error": "standard error of the protection, from published numbers only; 1.96 times it to either side hold the "
    "value without protection about 95 times in 100; empty: not known",
}
BOUNDED = {
    "value": 'percentile; with the status "below" or "above", an edge of the bins that it is below, or not below',
    "error": "standard error of the protection, from published numbers only; 1.96 times it to either side hold the "
    "percentile without protection about 95 times in 100; empty: the value is a bound, or withheld",
}
COUNTED = {
    "error": "mean absolute error of the value; of a negative one at least the value without its sign",
}
PEOPLE_LEAVE_OPEN = (
    "Codes of attributes are regarded as public, and so are the bounds of values and the edges of bins. The noise "
    "hides one person. What many people tell together is what the tables are for, and not hidden."
)


def people_leave_open(plan: Plan) -> str:
    """What tables of people do not protect, those on a condition included."""
    methods = [planned.method for planned in of_people(plan) if isinstance(planned.method, Mose)]
    if not methods:
        return PEOPLE_LEAVE_OPEN
    told = " or ".join(map(str, sorted({method.minimum for method in methods})))
    text = (
        f"{PEOPLE_LEAVE_OPEN} In tables protected with mose, whether a group is withheld is decided by the true data: "
        f'"suppressed" tells exactly that it has fewer than {told} people, "not available" that χ is no bound for it'
    )
    if any(method.at for method in methods):
        text += ", or that its people have one value only of what is predicted from"
    text += "."
    if any(not method.chi for method in methods):
        text += (
            " The scale of the noise, which errors tell to anyone who multiplies, is χ: the largest sensitivity "
            "observed in a class of groups, rounded up. In a class of one group χ describes the people of that group, "
            "and it can do so in a class of few."
        )
    return text


def operator_notes(plan: Plan) -> list[str]:
    """What whoever runs a release should know of its tables of people, and readers of the bundle need not."""
    notes, data = [], plan.release.data
    for planned in of_people(plan):
        asked, method = planned.question, planned.method
        if not (isinstance(asked, SampleQuestion) and isinstance(data, Microdata)):
            continue
        clipped = [b.name for b in (asked.x, asked.y) if b is not None and data.measures[b.name].outside == "clip"]
        if clipped:
            notes.append(
                f"Table {planned.name}: values of {' and '.join(clipped)} beyond the bounds count as the bound. "
                "How many do is confidential: `sfumato assess` writes the number into its report."
            )
        if isinstance(method, Mose) and not method.chi:
            most = prod(len(dimension) for dimension in asked.groups if dimension not in asked.classes)
            inside = all(dimension in asked.groups for dimension in asked.classes)
            sole = "Every class has" if most == 1 and inside else "Where a class has"
            told = "so χ describes" if most == 1 and inside else "χ describes"
            notes.append(
                f"Table {planned.name}: {sole} one group only, {told} the people of that group, and published errors "
                "tell it. Choose coarser `classes`, withhold such classes with `least_groups`, or set `chi`."
            )
    return notes


def of_people(plan: Plan) -> tuple[PlannedTable, ...]:
    """The tables of people in a release, those that ask what another one asks left out."""
    return tuple(planned for planned in plan.distinct() if isinstance(planned.question, SampleQuestion))


def people_guarantee(plan: Plan) -> EmployerEmployee | None:
    """What all tables of people reveal together of one person; None where there are none."""
    budget, tables = plan.release.budget, of_people(plan)
    formal = [t.guarantee.within(budget) for t in tables if budget and isinstance(t.guarantee, EmployerEmployee)]
    return sequential(formal) if formal else None


def shown_estimates(planned: PlannedTable, answer: Cells) -> Cells:
    """The answer as readers get it: without values whose error nothing tells, unless the release wants them.

    Errors come from noisy numbers of people, so that what is withheld here tells nothing that is not published.
    """
    if planned.table.unknown_errors == "published":
        return answer
    untold = (answer["error"] == NO_ERROR) & (answer["status"] == 0)
    status = np.where(untold, ERROR_UNKNOWN, answer["status"])
    return answer.with_column("status", status).with_column("value", np.where(untold, 0, answer["value"]))


def people_structure(planned: PlannedTable) -> dict[str, Any]:
    """The public design of a table of people: where values end, and in which bins they were counted."""
    asked = planned.question
    if not isinstance(asked, SampleQuestion):
        return {}
    bounds = {bound.name: [bound.low, bound.high] for bound in (asked.x, asked.y) if bound is not None}
    return {
        **({"bounds": bounds} if bounds else {}),
        **({"edges": list(asked.edges)} if asked.edges else {}),
        **({"unknown_errors": planned.table.unknown_errors} if asked.statistic in ("predict", "mean") else {}),
        **({"classes": [dimension.name for dimension in asked.classes]} if asked.classes else {}),
    }


def people_in_short(guarantee: EmployerEmployee, *, history: bool) -> list[str]:
    """What the tables of people protect, for the first paragraph."""
    changed = "Every number of this release was changed by random noise before it was published"
    whole = "with the whole history of the person, " if history else ""
    hidden = (
        "nobody can tell from all tables together whether a given person is among the data, or what the person's "
        f"record says, {whole}beyond the odds stated below, whatever they already know"
    )
    if not guarantee.condition:
        return [f"{changed}, enough that {hidden}."]
    return [
        f"{changed}. **This is not differential privacy**: what is said here is "
        f"{_rests_on(guarantee.condition)}. Nobody can prove that this is met.",
        f"Only if it is granted, {hidden}.",
    ]


def _rests_on(condition: str) -> str:
    """What a guarantee is conditional on, after the words that it is none otherwise."""
    return condition.replace(UNCONDITIONALLY, "")


def people_meaning(guarantee: EmployerEmployee, *, factor: str, belief: str, twice: str) -> str:
    """What a guarantee means for one person; `twice` is the factor where one record is exchanged for another."""
    granted = "If the condition above is granted: whether" if guarantee.condition else "Whether"
    return (
        f"{granted} a given person is among the data: this release changes the odds by a factor of at most {factor}. "
        f"Someone who thought it fifty-fifty before can be at most {belief} sure afterwards, even knowing everything "
        "about everyone else. Of someone who is known to be among the data, whether the records say one thing or "
        f"another: the factor is at most {twice}."
    )


def people_text(plan: Plan, planned: PlannedTable) -> str:
    """What else was done to a table of people, and what its epsilon was divided over."""
    asked, data, guarantee = planned.question, plan.release.data, planned.guarantee
    if not (isinstance(asked, SampleQuestion) and isinstance(data, Microdata)):
        raise TypeError("a table of people")
    text = f" {expected_error(planned)}"
    if isinstance(planned.method, NoisyQuantiles) and not planned.method.bounds:
        text += (
            " These percentiles were drawn by version 0.1.0: in the first and the last bin, which are not marked, and "
            "in groups far from the middle of the bins they can be off by far more than their errors say."
        )
    if isinstance(guarantee, EmployerEmployee):
        if guarantee.condition:
            together = people_guarantee(plan)
            known = together is not None and together.condition == guarantee.condition
            text += " It is **not differentially private**; " + (
                "what it is conditional on is stated above." if known else f"it is {_rests_on(guarantee.condition)}."
            )
        periods = periods_of(data, asked)
        if periods > 1:
            share = plain(guarantee.epsilon / periods)
            text += f" A person can be in each of {periods} periods, and each spends {share} of the table's epsilon."
    for bound in (asked.x, asked.y):
        if bound is not None and data.measures[bound.name].outside == "clip":
            ends = [(word, end) for word, end in (("below", bound.low), ("above", bound.high)) if end is not None]
            told = ", and those ".join(f"{word} {end:,} count as {end:,}" for word, end in ends)
            text += f" Values of {bound.name} {told}."
    if asked.classes:
        text += f" Classes for the scale of the noise are {' × '.join(d.name for d in asked.classes)}."
    return text


def expected_error(planned: PlannedTable) -> str:
    """How far a value is typically off, as far as it is known before any data are read."""
    method = planned.method
    if isinstance(method, RecordLaplace):
        return f"The noise is typically {method.planned_error().in_a_small_cell} people."
    if isinstance(method, NoisyQuantiles):
        error = method.planned_error()
        return f"{(error.of[0].upper() + error.of[1:])} is typically off by {100 * (error.share or 0):.2g} % of itself."
    if isinstance(method, Mose) and method.chi:
        errors = method.planned_errors(np.array(SIZES)) / 10**planned.table.decimals
        told = [
            f"{float(f'{error:.3g}'):,.10g} in a group of {size:,}" for size, error in zip(SIZES, errors, strict=True)
        ]
        return f"The noise is typically {', '.join(told[:-1])} and {told[-1]} people."
    return "How far a value is typically off depends on the people of its group; the table says it beside every value."


def in_columns(planned: PlannedTable) -> tuple[str, str]:
    """The same in short, for small and for large groups."""
    method = planned.method
    error = method.planned_error()
    if isinstance(method, RecordLaplace):
        return f"{error.in_a_small_cell} people", "the same"
    if isinstance(method, Mose) and method.chi:
        few, _, many = method.planned_errors(np.array(SIZES)) / 10**planned.table.decimals
        return f"{_three_digits(few)} of {SIZES[0]} people", f"{_three_digits(many)} of {SIZES[-1]:,} people"
    return ("by group", "by group") if error.share is None else ("by group", error.in_a_large_cell)


def _wrong_guess(plan: Plan) -> str:
    """Only the default curve allows for a wrong guess of the bins."""
    curves = {planned.method.curve for planned in of_people(plan) if isinstance(planned.method, NoisyQuantiles)}
    if curves == {NoisyQuantiles.curve}:
        return ", also where the guess behind the bins is wrong"
    return " as long as the guess behind the bins is about right"


def errors_of_people(plan: Plan) -> str:
    """How to read the error figures of tables of people."""
    statistics = {planned.table.statistic for planned in of_people(plan)}
    text = ""
    if "count" in statistics:
        text += (
            "Of counts, `error` is the mean absolute error, or the value without its sign where that is negative and "
            "larger; `low` and `high` enclose the true count, which is never negative, with a probability of at least "
            "90%. "
        )
    if statistics - {"count"}:
        text += (
            "`count` is a noisy number of people, and can be negative. `error` is the standard error "
            "of the protection, worked out from published numbers only: 1.96 times it to either side hold the value "
            "without protection about 95 times in 100. "
        )
    if any(isinstance(planned.method, NoisyQuantiles) and planned.method.bounds for planned in of_people(plan)):
        text += (
            "For percentiles that is so over all groups together" + _wrong_guess(plan) + "; in "
            "single groups whose people are distributed very unevenly, or many of whom have the same value, it can be "
            "far fewer. A percentile in the first or "
            'the last bin has no error: it is marked "below" or "above", and its value is the edge of the bins that it '
            "is below, or not below, in at least 95 of 100 such cases. "
        )
    shown = {p.table.unknown_errors for p in of_people(plan) if p.table.statistic in ("predict", "mean")}
    if "withheld" in shown:
        text += (
            'A prediction or mean whose error nothing published tells is withheld ("error unknown"): its number of '
            "people, with noise, is too small. "
        )
    if "published" in shown:
        text += (
            "Predictions and means without an error are published because this release asks for it"
            + (" in some of its tables" if "withheld" in shown else "")
            + ": they may be off by any amount. "
        )
    return text + "These figures speak of the protection only, not of sampling or of errors in the data."


def _three_digits(number: float) -> str:
    """A number in three digits, without powers of ten.

    >>> _three_digits(16_712.3)
    '16,700'
    """
    return f"{float(f'{number:.3g}'):,.10g}"
