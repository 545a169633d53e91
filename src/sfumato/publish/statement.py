"""The privacy statement: what was protected, against whom, and what it means, in plain words first."""

from collections.abc import Mapping

from sfumato.cube.figures import Calibration
from sfumato.engine.question import (
    ContributorQuestion,
    IndicatorQuestion,
    PairQuestion,
    Question,
    SampleQuestion,
)
from sfumato.frame import Frame
from sfumato.methods.infused_sums import InfusedSums
from sfumato.methods.method import Biased, PlannedError
from sfumato.methods.top_contributors import TopContributors
from sfumato.microdata import Microdata
from sfumato.plan import Plan, PlannedTable
from sfumato.privacy.composition import sequential
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, NoFormalGuarantee, at_most, plain
from sfumato.privacy.over_periods import OverPeriods
from sfumato.publish.agreeing import reconciled_tables
from sfumato.publish.cubes import (
    CUBES_LEAVE_OPEN,
    computed_without_noise,
    cube_in_short,
    cube_text,
    error_text,
    protected_records,
)
from sfumato.publish.meaning import (
    Comparison,
    belief,
    comparisons,
    establishment,
    factor,
    odds,
    person,
    person_comparisons,
    record_comparisons,
)
from sfumato.publish.other_releases import other_releases
from sfumato.publish.people import (
    errors_of_people,
    of_people,
    people_guarantee,
    people_in_short,
    people_leave_open,
    people_meaning,
    people_text,
)
from sfumato.publish.table import CONFIDENCE

THE_CELLS = "the cell's"
NONE: Mapping[str, Calibration] = {}


def statement(plan: Plan, calibrations: Mapping[str, Calibration] = NONE, *, spent: OverPeriods | None = None) -> str:
    """Write the privacy statement of a release as Markdown.

    `calibrations` are those of its cubes, by name; `spent` is what its ledger knows of all periods of the population.
    """
    about = plan.release.about
    parts = [
        f"# Privacy statement: {about.title}",
        f"Population: {about.population}. Period: {about.period}. Made with sfumato {plan.software}.",
        "## In short",
        *_first(plan),
        "## Other periods and releases",
        *other_releases(plan, spent),
        "## What is not protected",
        _public(plan),
        "## How the numbers were changed",
        *(_table(plan, planned) for planned in plan.tables),
        *(cube_text(cube, calibrations.get(cube.name)) for cube in plan.cubes),
        *_agreement(plan),
        *_errors(plan),
        "## The parameters",
        _parameters(plan),
        *_documented(plan),
    ]
    return "\n\n".join(parts) + "\n"


def _first(plan: Plan) -> list[str]:
    """The first paragraphs: what the release protects, and what that means."""
    apart = _apart(plan)
    if not apart:
        return [_in_short(plan), *_meaning(plan.guarantee)]
    return [*([_in_short(plan)] if isinstance(plan.guarantee, NoFormalGuarantee) else []), *apart]


def _apart(plan: Plan) -> list[str]:
    """What is said of people and of cubes, which protect no establishments."""
    return [*_of_people(plan), *_of_cubes(plan)]


def _of_people(plan: Plan) -> list[str]:
    total, data = people_guarantee(plan), plan.release.data
    if total is None:
        return []
    history = isinstance(data, Microdata) and data.records.period is not None
    there, described = (found.loss for found in person_comparisons(total))
    meant = people_meaning(
        total, factor=factor(there.epsilon), belief=belief(there.epsilon), twice=factor(described.epsilon)
    )
    return [*people_in_short(total, history=history), meant]


def _of_cubes(plan: Plan) -> list[str]:
    cubes = cubes_guarantee(plan)
    if cubes is None:
        return []
    _, described = (found.loss for found in record_comparisons(cubes))
    return [
        *cube_in_short(plan, factor(cubes.epsilon), belief(cubes.epsilon)),
        *protected_records(cubes),
        "Of a record that is known to be among the data, whether it is in one cell or in another, which is one record "
        f"less and one more: {odds(described)}.",
    ]


def cubes_guarantee(plan: Plan) -> EmployerEmployee | None:
    """What all cubes reveal together of one record; None where there are none."""
    return sequential([cube.guarantee for cube in plan.distinct_cubes()]) if plan.cubes else None


def compared(plan: Plan) -> tuple[Comparison, ...]:
    """Every comparison that the statement of a release bounds, for machines; none without a formal guarantee."""
    people, cubes = people_guarantee(plan), cubes_guarantee(plan)
    if people is not None or cubes is not None:
        return (
            *(person_comparisons(people) if people is not None else ()),
            *(record_comparisons(cubes) if cubes is not None else ()),
        )
    return comparisons(plan.guarantee) if isinstance(plan.guarantee, EmployerEmployee) else ()


def _in_short(plan: Plan) -> str:
    total = plan.guarantee
    if isinstance(total, NoFormalGuarantee):
        text = f"The tables of this release together have **no formal guarantee**: {total.statement}"
        if all(isinstance(planned.guarantee, NoFormalGuarantee) for planned in plan.parts):
            return f"{text}.{_asked(plan)}"
        return (
            f"{text}, to readers who combine them with what they know. The last section says which tables have a "
            "guarantee of their own."
        )
    changed = (
        "Every count of this release, where there is an establishment, was changed by random noise before it was "
        "published, enough that nobody can "
    )
    if total.definition == "individuals":
        return (
            changed + "tell from all its tables together whether a given person held a given job, beyond the odds "
            "stated below, whatever they already know. **The sizes of establishments and the composition of their "
            "workforces are not protected**: where a cell holds one establishment, its published numbers tell both to "
            "within a few jobs."
        )
    return (
        changed + "tell from all its tables together whether a given person held a given job, or the size of an "
        f"establishment's workforce more closely than within about {plain(100 * total.alpha)} %, beyond the odds "
        "stated below. That holds "
        + (
            "for a person against any reader. For the size of an establishment it holds as far as all groups of its "
            "workers grow alike, and so not against readers who already know the attributes of its workers."
            if total.definition == "weak"
            else "against any reader, whatever they already know and however much they compute, now or later."
        )
    )


def _asked(plan: Plan) -> str:
    """For whom figures were changed, where units were asked whether they want to be protected."""
    data = plan.release.data
    if not isinstance(data, Microdata) or data.records.consent is None:
        return ""
    return (
        " All this is so of units that asked to be protected, and **of no others**: where none of the largest "
        "contributors of a cell asked, its total is published as it is."
    )


def _meaning(total: Guarantee) -> list[str]:
    if isinstance(total, NoFormalGuarantee):
        return []
    return [
        "## What it means for one person",
        person(total),
        "## What it means for one establishment",
        *establishment(total),
    ]


def meaning_of(plan: Plan) -> list[str]:
    """What the guarantee of a release means, a paragraph each."""
    apart = [paragraph.replace("**", "") for paragraph in _apart(plan)]
    if apart and not isinstance(plan.guarantee, NoFormalGuarantee):
        return apart
    return [*meaning(plan.guarantee), *apart]


def meaning(guarantee: Guarantee) -> list[str]:
    """What a guarantee means for one person and for one establishment, a paragraph each."""
    if isinstance(guarantee, NoFormalGuarantee):
        return [f"No formal guarantee: {guarantee.statement}."]
    return [person(guarantee), *establishment(guarantee)]


def _table(plan: Plan, planned: PlannedTable) -> str:
    table = planned.table
    text = f"**{table.title or table.name}** (`{table.name}`): {planned.method.description}."
    if isinstance(planned.question, SampleQuestion):
        return text + people_text(plan, planned)
    text += f" {_typical(planned.method.planned_error())}"
    if isinstance(planned.guarantee, NoFormalGuarantee) and planned.guarantee != plan.guarantee:
        text += f" It has no formal guarantee: {planned.guarantee.statement}."
    if isinstance(planned.question, ContributorQuestion):
        return text + _perturbed(plan)
    if not isinstance(planned.question, Question):
        return text + _infused(planned)
    cells = planned.question.worker_cells(plan.release.frame)
    if cells > 1 and getattr(planned.method, "shares", 1) == cells:  # a vector method spends ε on all cells at once
        text += f" Each of the {cells} worker cells of a workplace cell uses 1/{cells} of the table's epsilon."
    if not (plan.release.frame.joined or planned.lists_structural_zeros):
        text += " Combinations without any establishment, exactly 0, are not listed."
    if table.nonnegative:
        text += (
            " Negative results were then raised to 0, as the release asked. Sums over many small cells therefore "
            "come out too high; do not add them up."
        )
    elif isinstance(planned.guarantee, NoFormalGuarantee):
        text += " Published numbers are not right on average: the factors stay what they are."
    elif table.name in reconciled_tables(plan):
        raised = any(planned.table.nonnegative for planned in plan.tables)
        text += "" if raised else " Nothing was clamped or suppressed, so a small cell can be negative."
        text += " Then tables were made to agree."
    else:
        text += " Nothing was clamped or suppressed, so " + (
            "a small cell can be negative. Published numbers are not right on average, and sums of many neither."
            if isinstance(planned.method, Biased) and not planned.method.unbiased
            else "sums are unbiased and a small cell can be negative."
        )
    return text


def _infused(planned: PlannedTable) -> str:
    """What else is done to indicators, flows and graphs."""
    text = ""
    if isinstance(planned.question, IndicatorQuestion):
        text += (
            " Indicators were rounded together: jobs at the end less jobs at the beginning are exactly accessions less "
            "separations, in every cell and in every sum of cells. A table inside a finer one of this release is its "
            "sum."
        )
    if isinstance(planned.question, PairQuestion) and planned.question.between == "employers":
        text += " A pair of employers takes the factor of one of them, always the same one, whichever way workers move."
    method = planned.method
    if isinstance(method, InfusedSums) and method.minimum:
        what = "cells with fewer jobs than" if isinstance(planned.question, IndicatorQuestion) else "values below"
        done = "replaced by draws from a model of the others" if method.below == "synthesised" else "not published"
        text += f" Protected {what} {method.minimum} are {done}, and marked."
    return text


def _perturbed(plan: Plan) -> str:
    """What else is done to totals, means and counts of records."""
    data = plan.release.data
    text = (
        " The same contributors always get the same answer, however the table is asked for. Sums of published cells "
        "need not be the published total, which was protected by itself."
    )
    if isinstance(data, Microdata) and len(data.units) > 1:
        text += f" Protected are units at several levels: {', '.join(data.units)}."
    if isinstance(data, Microdata) and data.records.consent is not None:
        text += " Only units that asked for it are protected."
    return text


def _agreement(plan: Plan) -> list[str]:
    """What reconciliation did to the values, and what it leaves as it was."""
    names = reconciled_tables(plan)
    if not names:
        return []
    raised = [planned.name for planned in plan.tables if planned.table.nonnegative and planned.name in names]
    upwards = (
        f" Negative results of {', '.join(f'`{name}`' for name in raised)} were raised to 0, and the other tables were "
        "made to agree with that: their values come out too high, and by more than their `error` where many cells are "
        "small."
        if raised
        else ""
    )
    return [
        "## How the tables were made to agree",
        f"After the noise was added, the tables {', '.join(f'`{name}`' for name in names)} were changed so that the "
        "sums they share are the same in all of them: each value by as little as its typical error allows (weighted "
        "least squares). A table inside a finer one agrees with it exactly, others up to rounding. Only protected "
        "numbers were used, so this reveals nothing more. Values are then no longer right on average, because the "
        "weights depend on the noise: where small epsilons were reconciled, totals were seen to shift by 35 to 78 % of "
        "their error. `error`, `low` and `high` are still those of the value before this step, widened where they "
        "would contradict the new one: the interval holds the true value as often as stated, and the published value, "
        "unless that is negative." + upwards,
    ]


def _typical(error: PlannedError) -> str:
    if error.share is None:
        return "How far a number is typically off is confidential."
    if not error.share:
        return f"The noise is typically {error.in_a_small_cell} jobs."
    return (
        f"Where no establishment of a cell has more than {error.floor_size:,} workers the noise is typically "
        f"{error.in_a_small_cell} jobs; otherwise it is typically {100 * error.share:.3g} % of "
        f"{error.of.replace('its', THE_CELLS, 1)}."
    )


def _public(plan: Plan) -> str:
    frame = plan.release.data
    if plan.cubes or of_people(plan):
        of_cubes = [" ".join([CUBES_LEAVE_OPEN, *computed_without_noise(plan)])] if plan.cubes else []
        return "\n\n".join([*([people_leave_open(plan)] if of_people(plan) else []), *of_cubes])
    if not isinstance(frame, Frame):
        if any(isinstance(t.method, TopContributors) and not t.method.suppress for t in plan.tables):
            return (
                "Codes of attributes are regarded as public, and so is whether there is any unit in a cell: cells of "
                "a single one are published. What is said of its figure is all that protects it." + _live(plan)
            )
        return (
            "Codes of attributes are regarded as public. Whether a unit is in the data is not: cells without any "
            "record and cells with very few look the same." + _live(plan)
        )
    named = ", ".join(frame.label(name).lower() for name in frame.public)
    if frame.joined:
        return (
            f"The attributes of workplaces ({named}) are regarded as public. Every combination of codes was "
            "protected, also those without any job."
        )
    return (
        f"That an establishment exists, and its attributes ({named}), are regarded as public, and so is the number of "
        "establishments. A combination without any establishment is exactly 0: no one can work there."
        + (
            ""
            if isinstance(plan.guarantee, NoFormalGuarantee)
            else " A combination with establishments but without jobs was protected like any other."
        )
    )


def _live(plan: Plan) -> str:
    """What that means for tables that people ask for over the same records, should the office answer them."""
    hidden = all(t.method.suppress for t in plan.tables if isinstance(t.method, TopContributors))
    if plan.release.live.guard != "refuse":
        if not hidden:
            return ""
        return (
            " That does not hold for readers who may also ask for tables of their own: two answers that are equal, or "
            "differ by few units, tell how many there are between them."
        )
    return (
        " Where readers may also ask for tables of their own, a figure is withheld when it differs from one given "
        f"before by no unit or by {'as few as would be suppressed' if hidden else 'one'}, so that these two look the "
        f"same there{' too' if hidden else ''}. Differences of more units, and what follows from many answers "
        "together, are not withheld."
    )


def _documented(plan: Plan) -> list[str]:
    """Where guarantees are proved, if there are any, and that asking again reveals nothing more."""
    formal = [isinstance(part.guarantee, EmployerEmployee) for part in plan.parts]
    proved = "What each method guarantees is defined and proved in the documentation of sfumato. "
    some = "Where a method has a guarantee, it is defined and proved in the documentation of sfumato. "
    return [
        (proved if all(formal) else some if any(formal) else "")
        + "The same question about the same data always gets the same answer, so asking again reveals nothing more."
    ]


def _errors(plan: Plan) -> list[str]:
    of_tables = _errors_of_tables(plan) if len(of_people(plan)) < len(plan.distinct()) else []
    apart = [*([errors_of_people(plan)] if of_people(plan) else []), *([error_text(plan)] if plan.cubes else [])]
    return [*(of_tables or ["## How to read the error figures"]), *apart] if apart else of_tables


def _errors_of_tables(plan: Plan) -> list[str]:
    if any(isinstance(planned.question, ContributorQuestion) for planned in plan.tables):
        return [
            "## How to read the error figures",
            "`rse` is the relative standard error of sampling and perturbation together, rounded up to a coarse scale. "
            f"`low` and `high` enclose the figure with a probability of about {CONFIDENCE:.0%}; they come from the "
            "distribution of the perturbation that was used, which has two humps, and are rounded outward. Values "
            'marked "mostly perturbation" owe more of their error to it than to sampling.',
        ]
    if all(isinstance(planned.guarantee, NoFormalGuarantee) for planned in plan.tables):
        return []
    return [
        "## How to read the error figures",
        "The noise that was really drawn, and its scale, are confidential. The published figures are computed from "
        "the published value and the parameters alone. `error` is the mean absolute error the value would have if "
        "all its jobs were in one establishment, an upper estimate. `low` and `high` enclose the true value "
        f"with a probability of at least {CONFIDENCE:.0%}. No count is below 0: where a value is negative, `error` is "
        "at least as large as the value without its sign, and `low` and `high` enclose counts from 0 on. They speak of "
        "the noise only, not of errors in the data.",
    ]


def _parameters(plan: Plan) -> str:
    lines = ["| table | method | definition | alpha | epsilon | delta |", "|---|---|---|---|---|---|"]
    rows = [(f"`{part.name}`", part.method.name, part.guarantee) for part in plan.parts]
    for name, method, guarantee in [*rows, ("all tables together", "", plan.guarantee)]:
        if isinstance(guarantee, EmployerEmployee):
            parameters = (at_most(getattr(guarantee, field)) for field in ("alpha", "epsilon", "delta"))
            words = guarantee.definition + (", on a condition" if guarantee.condition else "")
            lines.append(f"| {name} | {method} | {words} | {' | '.join(parameters)} |")
        else:
            lines.append(f"| {name} | {method} | no formal guarantee | | | |")
    return "\n".join(lines)
