"""What a bundle says of statistics of people: their columns, and their part of the privacy statement."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

from sfumato.frame.records import Microdata
from sfumato.privacy.account import sequential
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, plain
from sfumato.privacy.meaning import believed, factor, named_tables, odds, person_comparisons, surest
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.percentiles import NoisyQuantiles
from sfumato.statistics.people.question import SampleQuestion, Weight
from sfumato.statistics.people.sensitivity import UNCONDITIONALLY
from sfumato.statistics.table import Table
from sfumato.surroundings import Surroundings

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


class PeopleTable(Protocol):
    """What is said of a table of people follows from this."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def table(self) -> Table:
        """What the release file says of it."""
        ...

    @property
    def question(self) -> SampleQuestion:
        """What it asks."""
        ...

    @property
    def method(self) -> Any:
        """How it is protected."""
        ...

    @property
    def guarantee(self) -> Guarantee:
        """What it reveals at most."""
        ...


PEOPLE_LEAVE_OPEN = (
    "Codes of attributes are regarded as public, and so are the bounds of values and the edges of bins. The noise "
    "hides one person. What many people tell together is what the tables are for, and not hidden."
)


SEVERAL_RECORDS = "A firm or person with several records has this protection for each of them, not for all together."


def people_leave_open(tables: Sequence[PeopleTable]) -> str:
    """What tables of people do not protect, those on a condition included."""
    leaks = dict.fromkeys(getattr(table.method, "leaks", "") for table in tables)
    return " ".join([PEOPLE_LEAVE_OPEN, *filter(None, [_observed_leaves_open(_observing(tables)), *leaks])])


def _observed_leaves_open(methods: Sequence[Mose]) -> str:
    """What the scale of observed noise tells; nothing where no method observes."""
    if not methods:
        return ""
    told = " or ".join(sorted({method.withheld_below for method in methods if method.heaviest > 1}))
    if plain_ones := sorted({method.minimum for method in methods if method.heaviest == 1}):
        fewer = f"fewer than {' or '.join(map(str, plain_ones))} people"
        told = f"{fewer} or {told}" if told else fewer
    text = (
        "In tables protected with mose, whether a group is withheld is decided by the true data: "
        f'"suppressed" tells exactly that it has {told}, "not available" that χ is no bound for it'
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


def operator_notes(tables: Sequence[PeopleTable], data: Microdata) -> list[str]:
    """What whoever runs a release should know of its tables of people, and readers of the bundle need not."""
    notes = []
    for planned in tables:
        asked = planned.question
        if asked.limit is not None:
            notes.append(
                f"{planned.name} counts at most {asked.limit.most:,} records of one {asked.limit.column}, and its "
                "noise hides as many. How many records that leaves out, and what another limit would cost, is "
                "confidential: `sfumato assess` tells it."
            )
        clipped = [b.name for b in (asked.x, asked.y) if b is not None and data.measures[b.name].outside == "clip"]
        if clipped:
            notes.append(
                f"Table {planned.name}: values of {' and '.join(clipped)} beyond the bounds count as the bound. "
                "How many do is confidential: `sfumato assess` writes the number into its report."
            )
        if any(not method.chi for method in _observing([planned])):
            most = prod(len(dimension) for dimension in asked.groups if dimension not in asked.classes)
            inside = all(dimension in asked.groups for dimension in asked.classes)
            sole = "Every class has" if most == 1 and inside else "Where a class has"
            told = "so χ describes" if most == 1 and inside else "χ describes"
            notes.append(
                f"Table {planned.name}: {sole} one group only, {told} the people of that group, and published errors "
                "tell it. Choose coarser `classes`, withhold such classes with `least_groups`, or set `chi`."
            )
    return notes


def _observing(tables: Sequence[PeopleTable]) -> list[Mose]:
    """The methods that scale their noise to what they observe."""
    return [table.method for table in tables if getattr(table.method, "observes", False)]


def _of_percentiles(tables: Sequence[PeopleTable]) -> list[NoisyQuantiles]:
    """The methods that make percentiles."""
    return [table.method for table in tables if table.table.quantiles is not None]


def people_guarantee(tables: Sequence[PeopleTable], budget: EmployerEmployee | None) -> EmployerEmployee | None:
    """What all tables of people reveal together of one person; None where there are none."""
    bounds = [table.guarantee.bound for table in tables if budget is not None]
    formal = [bound.within(budget) for bound in bounds if bound is not None and budget is not None]
    return sequential(formal) if formal else None


def uncovered(plan: Surroundings) -> list[Any]:
    """What a release publishes beside what its guarantees cover: all of a statistic, or some of its columns."""
    return [one for one in (*plan.tables, *plan.cubes) if not one.is_covered]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What guarantees cover in a release that publishes more than that: some tables, and counts of cubes."""

    tables: tuple[str, ...]
    cubes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """All of it, in a sentence."""
        counts = f" and the counts of records of {', '.join(f'`{name}`' for name in self.cubes)}" if self.cubes else ""
        return named_tables(self.tables) + counts

    @property
    def together(self) -> str:
        """A word for several."""
        return " together" if len(self.tables) + len(self.cubes) > 1 else ""


def scope_of(plan: Surroundings, tables: Sequence[PeopleTable]) -> Scope | None:
    """What is covered, where not all of the release is; cubes where a guarantee of all statistics has their counts."""
    if not uncovered(plan):
        return None
    cubes = plan.cubes if plan.guarantee.bound is not None else ()
    bounded = (table.name for table in tables if table.guarantee.bound is not None)
    return Scope(tables=tuple(bounded), cubes=tuple(cube.name for cube in cubes))


def people_in_words(
    plan: Surroundings, total: EmployerEmployee | None, *, only: Scope | None, history: bool
) -> list[str]:
    """What the tables of people protect, what that means for one person, and what other statistics do.

    `only` is what is spoken of, where that is not the whole release.
    """
    if total is None:
        return []
    there, described = (found.loss for found in person_comparisons(total))
    meant = people_meaning(
        total,
        factor=factor(there.epsilon),
        sure=believed(there, "it fifty-fifty", ", even knowing everything about everyone else"),
        twice=factor(described.epsilon),
        only=only,
    )
    return [*people_in_short(total, only=only, history=history), meant, *_beside(uncovered(plan))]


def _beside(others: Sequence[Any]) -> list[str]:
    """What is published with tables of people, and reveals what their guarantee does not bound."""
    words = [
        f"Nothing bounds what `{one.name}` reveals of the same records: {one.guarantee.statement}."
        if one.guarantee.bound is None
        else f"Of `{one.name}` a guarantee covers the counts of records only; its other numbers are outside of every "
        "guarantee."
        for one in others
    ]
    return ["**This does not cover everything that is published here.** " + " ".join(words)] if words else []


def people_in_short(guarantee: EmployerEmployee, *, only: Scope | None, history: bool) -> list[str]:
    """What the tables of people protect, for the first paragraph."""
    which = "this release" if only is None else named_tables(only.tables)
    changed = f"Every number of {which} was changed by random noise before it was published"
    whole = "with the whole history of the person, " if history else ""
    together = "all tables together" if only is None else f"{only.words}{only.together}"
    hidden = (
        f"bounds what anyone can tell from {together} of whether a given person is among the data, or of what the "
        f"person's record says, {whole}whatever they already know: of the former, "
        f"{surest(person_comparisons(guarantee)[0].loss)}"
    )
    if not guarantee.condition:
        return [f"{changed}. That {hidden}."]
    return [
        f"{changed}. **This is not differential privacy**: what is said here is "
        f"{_rests_on(guarantee.condition)}. Nobody can prove that this is met.",
        f"Only if it is granted, the noise {hidden}.",
    ]


def _rests_on(condition: str) -> str:
    """What a guarantee is conditional on, after the words that it is none otherwise."""
    return condition.replace(UNCONDITIONALLY, "")


def people_meaning(
    guarantee: EmployerEmployee, *, factor: str, sure: str, twice: str, only: Scope | None = None
) -> str:
    """What a guarantee means for one person; `twice` is the factor where one record is exchanged for another."""
    granted = "If the condition above is granted: whether" if guarantee.condition else "Whether"
    change = "this release changes"
    if only is not None:
        change = f"{only.words}{only.together} change{'' if only.together else 's'}"
    return (
        f"{granted} a given person is among the data: {change} the odds by a factor of at most {factor}."
        f"{sure} Of someone who is known to be among the data, whether the records say one thing or "
        f"another: the factor is at most {twice}."
    )


def units_in_words(plan: Surroundings, tables: Sequence[PeopleTable]) -> list[str]:
    """What tables tell of a whole unit whose records they hide together."""
    said = []
    limited = [table for table in tables if table.question.limit is not None]
    for column in dict.fromkeys(table.question.limit.column for table in limited if table.question.limit):
        found = {t.name: (t.question.limit, t.guarantee.bound) for t in limited}
        used = {name: both for name, both in found.items() if both[0] is not None and both[0].column == column}
        there, others = (
            one.loss for one in person_comparisons(sequential([bound for _, bound in used.values() if bound]))
        )
        listed = " and ".join(f"{name} (at most {lim.most:,} records of one)" for name, (lim, _) in used.items() if lim)
        more = len(used) < len(plan.tables) + len(plan.cubes)
        said.append(
            f"**All records of one {column} are hidden together in {listed}.** Of each {column} no more records were "
            "counted, chosen by a secret key, and the noise is as many times as large. Whether a given "
            f"{column} is among the data at all, with all of its records: {odds(there)}. Whether its records are these "
            f"or quite others, which is one {column} less and one more: {odds(others)}."
            + (" What else this release tells of its records comes on top." if more else "")
        )
    return said


def weights_in_words(asked: SampleQuestion) -> str:
    """How the records of a table count, what of them the noise hides, and what is not hidden."""
    weight = asked.weight
    if weight is None:
        return ""
    most = f"{weight.largest:,}"
    if asked.in_steps:
        text = f"Every record counts with its weight, rounded to {_STEPS[weight.fraction]}. "
    else:
        text = "Every record counts with its weight; what a cell or bin weighs is rounded to a whole number, once. "
    text += (
        f"Weights above {most} count as {most}, so that heavier records stand for fewer people than they should, "
        if weight.clips
        else f"None weighs more than {most}, "
    )
    return text + (
        "and the noise hides a record of that weight. Weights are taken as given: how one record more would have "
        "changed the weights of others is not hidden."
    )


_STEPS = {1: "a whole number", 10: "a tenth", 100: "a hundredth", 1_000: "a thousandth"}


def people_text(planned: PeopleTable, data: Microdata, together: EmployerEmployee | None, *, periods: int) -> str:
    """What else was done to a table of people, and what its epsilon was divided over.

    `together` is the guarantee of all tables of people.
    """
    asked, guarantee = planned.question, planned.guarantee.bound
    text = f" {planned.method.typical_error()}"
    if asked.limit is not None:
        text += (
            f" Of each {asked.limit.column} at most {asked.limit.most:,} records were counted, chosen by a key, and "
            "the noise hides as many: the table tells too little where units have more, and its error figures leave "
            "that out."
        )
    if asked.weight is not None:
        text += f" {weights_in_words(asked)}"
    if any(not method.bounds for method in _of_percentiles([planned])):
        text += (
            " These percentiles were drawn by version 0.1.0: in the first and the last bin, which are not marked, and "
            "in groups far from the middle of the bins they can be off by far more than their errors say."
        )
    if guarantee is not None:
        if guarantee.condition:
            known = together is not None and together.condition == guarantee.condition
            text += " It is **not differentially private**; " + (
                "what it is conditional on is stated above." if known else f"it is {_rests_on(guarantee.condition)}."
            )
        if planned.table.protect.by_period:
            spent = ", ".join(f"{code}: {plain(epsilon)}" for code, epsilon in planned.table.protect.by_period.items())
            of = f"by {data.records.period}"
            text += (
                f" A person can be in each of {periods} periods, and each spends an epsilon of its own, {of}: {spent}."
            )
        elif periods > 1:
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


def _wrong_guess(tables: Sequence[PeopleTable]) -> str:
    """Only the default curve allows for a wrong guess of the bins."""
    curves = {method.curve for method in _of_percentiles(tables)}
    if curves == {NoisyQuantiles.curve}:
        return ", also where the guess behind the bins is wrong"
    return " as long as the guess behind the bins is about right"


def _rounding(tables: Sequence[PeopleTable]) -> str:
    """What percentiles say of values that people round."""
    steps = {planned.question.step for planned in tables if planned.question.edges}
    text = ""
    if 1 in steps:
        text += (
            "It is so for values that are not rounded to coarse steps: where most people tell theirs in hundreds, say, "
            "and a bin is not much wider, intervals hold less often. "
        )
    if known := sorted(steps - {1}):
        text += (
            f"Where values are known to be rounded to multiples of {' or '.join(f'{step:,}' for step in known)} (field "
            "`rounded`), percentiles are such multiples, and their errors hold for them. "
        )
    return text


def errors_of_people(tables: Sequence[PeopleTable], family: Sequence[PeopleTable]) -> str:
    """How to read the error figures of tables of people; `family` are all of the release, of whatever kind."""
    statistics = {planned.table.statistic for planned in tables}
    text = ""
    if "count" in statistics:
        text += (
            "Of counts, `error` is the mean absolute error, or the value without its sign where that is negative and "
            "larger; `low` and `high` enclose the true count, which is never negative, with a probability of at least "
            "90%. "
        )
    if statistics - {"count"}:
        text += (
            f"`count` is a noisy number of people{_WEIGHED if any(_weights(tables)) else ''}, and can be negative. "
            "`error` is the standard error "
            "of the protection, worked out from published numbers only: 1.96 times it to either side hold the value "
            "without protection about 95 times in 100. "
        )
    if any(method.bounds for method in _of_percentiles(tables)):
        text += (
            "For percentiles that is so over all groups together" + _wrong_guess(tables) + "; in "
            "single groups whose people are distributed very unevenly, or many of whom have the same value, it can be "
            "far fewer. " + _rounding(tables) + "A percentile in the first or "
            'the last bin has no error: it is marked "below" or "above", and its value is the edge of the bins that it '
            "is below, or not below, in at least 95 of 100 such cases. "
        )
    estimates = [p for p in tables if p.table.statistic in ("predict", "mean")]
    unsure = [planned for planned in estimates if not getattr(planned.method, "has_one_error", False)]
    shown = {planned.table.unknown_errors for planned in unsure}
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
    return text + errors_of_protection(family)


def errors_of_protection(tables: Sequence[PeopleTable]) -> str:
    """What is so of the error figures of all tables of people, above all of records with weights."""
    text = ""
    if any(_weights(tables)):
        text += (
            "The data are a sample with weights, and another sample would give other numbers: **sampling errors are in "
            "none of these figures**, and come on top of them. "
        )
    if any(weight.clips for weight in _weights(tables)):
        text += (
            "Where heavy weights count as less than they are, figures are of what the lowered weights add up to, and "
            "do not hold what that changed. "
        )
    return text + "These figures speak of the protection only, not of sampling or of errors in the data."


_WEIGHED = ", those of records with weights being what they weigh"


def _weights(tables: Sequence[PeopleTable]) -> list[Weight]:
    """How records count, of the tables in which they have weights."""
    return [planned.question.weight for planned in tables if planned.question.weight is not None]
