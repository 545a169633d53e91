"""What protection costs statistics of people, by true size of the group, and how many values were clipped."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.cells import Cells
from sfumato.measures.attacks import AttackResult
from sfumato.measures.drawing import attacks_table, table
from sfumato.measures.formulas import by_class, mean, size_classes, size_label
from sfumato.measures.usability import ACCURACY, Usability, measure_usability
from sfumato.measures.utility import defined
from sfumato.method import BOUNDS as BOUNDS_OF_VALUES
from sfumato.method import HIDDEN
from sfumato.statistics.people.envelope import Envelope, envelope_chart, envelopes
from sfumato.statistics.people.small_samples import NO_ERROR, NORMAL
from sfumato.statistics.people.statistic import People
from sfumato.statistics.people.tails import TailsFound, assess_tails, tails_chart

BOUNDS = ((0, 2), (3, 9), (10, 29), (30, 99), (100, 299), (300, 999), (1_000, None))
"""Classes of groups by their true number of people."""
_MOST_CLASSES = 30
"""So many classes are listed, those with the most groups."""


@dataclass(frozen=True, kw_only=True)
class SizeOfGroup:
    """The values of groups of one class of sizes; figures that nothing defines are None."""

    label: str
    values: int
    published: float
    """The share of values that are not withheld."""
    mean_error: float | None
    relative_error: float | None
    """The mean of |published − true| as a share of the true value."""
    covered: float | None
    """The share of values with an error whose interval of 95 % holds the true value."""


@dataclass(frozen=True, kw_only=True)
class PeopleAssessment:
    """The confidential findings about a table of predictions, means or percentiles."""

    name: str
    title: str
    unit: str
    by_size: tuple[SizeOfGroup, ...]
    clipped: Mapping[str, int]
    """How many records have a value beyond the bounds of a measure."""
    tails: TailsFound | None = None
    """Which groups with the lowest and highest values are found, beside what hiding small groups would leave."""
    envelopes: tuple[tuple[str, Envelope], ...] = ()
    """Where noise is scaled to what is observed: the sensitivity of every group, of each statistic."""
    attacks: tuple[AttackResult, ...] = ()
    """On what is published of a group: an estimate, a number of people, and an error."""
    usability: Usability
    """Which values can be used, by the errors of the answer itself."""


def assess_people(
    planned: People,
    counted: Any,
    answer: Cells,
    clipped: Mapping[str, int],
    *,
    unit: str,
    accuracy: float = ACCURACY,
) -> PeopleAssessment:
    """Compare published estimates with those of the true data, in the unit of the measure."""
    answer = planned.shown_estimates(answer)
    parts = 10**planned.table.decimals
    true = planned.method.true_estimates(counted)
    people = np.repeat(planned.method.people(counted), len(planned.question.by[-1]))
    value, error = answer["value"] / parts, answer["error"] / parts
    seen = ~np.isin(answer["status"], HIDDEN)
    estimated = seen & ~np.isin(answer["status"], BOUNDS_OF_VALUES)
    off = np.where(estimated, np.abs(value - true), np.nan)
    sizes = by_class(
        _size,
        classes=size_classes(people, BOUNDS),
        seen=seen,
        off=off,
        relative=np.divide(off, np.abs(true), out=np.full(len(off), np.nan), where=true != 0),
        covered=np.where(estimated & (answer["error"] != NO_ERROR), off <= NORMAL * error + 0.5 / parts, np.nan),
    )
    table, weight = planned.table, () if planned.question.weight is None else (planned.question.weight.bound,)
    return PeopleAssessment(
        name=table.name,
        title=table.title or table.name,
        unit=unit,
        by_size=tuple(SizeOfGroup(label=size_label(int(place), BOUNDS), **part) for place, part in sizes.items()),
        clipped={name: clipped[name] for name in (*table.measures, *weight) if name in clipped},
        tails=assess_tails(planned, counted, answer),
        envelopes=tuple(envelopes(planned, counted)),
        attacks=planned.method.attacks(counted, answer),
        usability=measure_usability(
            name=table.name,
            title=table.title or table.name,
            unit=unit,
            sizes="people in the group",
            size=people,
            bounds=BOUNDS,
            true=np.where(people > 0, np.nan_to_num(true), 0.0),
            error=off,
            withheld=~seen,
            accuracy=accuracy,
        ),
    )


def people_section(found: PeopleAssessment) -> str:
    """A section of the report."""
    headings = ("people in the group", "values", "published", "mean error", "relative", "within 1.96 published errors")
    rows = (
        (
            part.label,
            f"{part.values:,}",
            f"{part.published:.1%}",
            _amount(part.mean_error),
            _figure(part.relative_error, ".1%"),
            _figure(part.covered, ".1%"),
        )
        for part in found.by_size
    )
    clipped = ((name, f"{records:,}") for name, records in found.clipped.items())
    return f"""<h2>{escape(found.title)}</h2>
<p>Published values beside those of the true data, in {escape(found.unit)}.</p>
{table("Error by true number of people", headings, rows)}
{table("Values that count as a bound of their measure", ("measure", "records"), clipped)}
{_tails_section(found.tails)}
{"".join(_envelope_section(place, edge, found.unit) for place, edge in found.envelopes)}
{attacks_table("Attacks with the published table", found.attacks, guess="right as published, without an attack")}"""


def _tails_section(found: TailsFound | None) -> str:
    if found is None:
        return ""
    lines = (found.published, *found.suppression, *(line for _, line in found.by_epsilon))
    rows = ((line.protection, f"{line.found:.1%}", f"{line.right:.1%}", f"{line.published:.1%}") for line in lines)
    headings = ("published by", "found, of the groups in a tail", "right, of those named", "groups published")
    return f"""<h3>Who is in the tails</h3>
<p>The bottom and the top {found.share:.0%} of the {found.groups:,} groups of {found.least} people and more. A rule of
suppression publishes the groups it does not hide as they are. Other epsilons are tried with noise drawn anew.</p>
<figure>{tails_chart(found)}</figure>
{table("Noise beside suppression", headings, rows)}"""


def _envelope_section(place: str, edge: Envelope, unit: str) -> str:
    classes = sorted(edge.data()["classes"], key=lambda of: -of["groups"])[:_MOST_CLASSES]
    rows = ((of["class"], f"{of['groups']:,}", _amount(of["observed"]), _amount(of["used"])) for of in classes)
    headings = ("class", "groups", f"largest people × sensitivity ({unit})", "χ that is used")
    title = f"Local sensitivity of every group, and χ/n of its class: {place}"
    return f"""<h3>The envelope: {escape(place)}</h3>
<p>By how much one more person could move the value of a group. The noise of every group has the scale of the line; the
nearest group reaches {edge.largest_share:.1%} of it.</p>
<figure>{envelope_chart(edge, of="people in the group", unit=unit, title=title)}</figure>
{table(f"χ of the {len(classes)} classes with the most groups: {place}", headings, rows)}"""


def people_data(found: PeopleAssessment) -> dict[str, Any]:
    """The findings for machines."""
    return {part.name: getattr(found, part.name) for part in fields(found)} | {
        "by_size": [asdict(size) for size in found.by_size],
        "tails": None if found.tails is None else found.tails.data(),
        "envelopes": {place: edge.data() for place, edge in found.envelopes},
        "attacks": [attack.data() for attack in found.attacks],
        "usability": found.usability.data(),
    }


def people_words(found: PeopleAssessment) -> str:
    """The findings in a few lines."""
    lines = [f"{found.title}, by true number of people in the group:"]
    lines += [
        f"{part.label}: {part.published:.1%} of {part.values:,} values published, off by "
        f"{_figure(part.relative_error, '.1%') or 'nothing that is known'} on average."
        for part in found.by_size
    ]
    if found.tails is not None:
        told, (*_, largest) = found.tails.published, found.tails.suppression
        best = max(found.tails.suppression, key=lambda rule: rule.found)
        lines.append(
            f"Of the groups in the bottom and the top {found.tails.share:.0%}, {told.found:.1%} are found, and "
            f"{told.right:.1%} of those named are right. {best.protection.capitalize()} people would find "
            f"{best.found:.1%}, {largest.protection} {largest.found:.1%}."
        )
    lines += [f"{records:,} records have a clipped value of {name}." for name, records in found.clipped.items()]
    lines += [
        f"Attack, {tried.attack}: {tried.successes:,} of {tried.targets:,} disclosed; without it {tried.guessed:,}."
        for tried in found.attacks
    ]
    return "\n".join(lines)


def _size(*, seen: NDArray[Any], off: Floats, relative: Floats, covered: Floats) -> dict[str, Any]:
    return {
        "values": len(seen),
        "published": float(seen.mean()),
        **{
            name: defined(mean(column[~np.isnan(column)]))
            for name, column in (("mean_error", off), ("relative_error", relative), ("covered", covered))
        },
    }


def _amount(value: float | None) -> str:
    """An amount in about four digits, without powers of ten."""
    return _figure(value, ",.0f" if value is not None and abs(value) >= 1_000 else ",.4g")


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
