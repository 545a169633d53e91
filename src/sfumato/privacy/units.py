"""What a guarantee about the values of units means to a reader, in steps and in words.

docs/methods/formal-records.md derives the steps.
"""

from typing import Any

from sfumato.privacy.guarantee import EmployerEmployee, Loss, at_most, capped, largest_value, loss, plain, spoken
from sfumato.privacy.meaning import Comparison, believed, odds, surest
from sfumato.privacy.over_time import in_all_periods, over_window, window_facts
from sfumato.privacy.steps import steps_between
from sfumato.privacy.windows import Calendar

EXAMPLE = 100
"""The example of a value is so many floors."""


def value_loss(guarantee: EmployerEmployee, floor: int, one: int, other: int) -> Loss:
    """What is bounded between two values of a unit, both not below 0.

    >>> from fractions import Fraction
    >>> tenth = EmployerEmployee(definition="units", alpha=Fraction(1, 10), epsilon=Fraction(2))
    >>> value_loss(tenth, 1_000, 100_000, 121_000).steps, value_loss(tenth, 1_000, 0, 100_000).steps
    (2, 35)
    """
    smaller, larger = sorted((one, other))
    return loss(guarantee, steps_between(alpha=guarantee.alpha, smaller=smaller, larger=larger, floor=floor))


def value_comparisons(guarantee: EmployerEmployee) -> tuple[Comparison, ...]:
    """Of every measure: nothing or the floor, an example and a share alpha more, twice that, and nothing or it."""
    found = []
    for measure, floor in spoken(guarantee.caps):
        value = EXAMPLE * floor
        more = largest_value(value, guarantee.alpha, floor)
        pairs = ((0, floor), (value, more), (value, largest_value(more, guarantee.alpha, floor)), (0, value))
        found += [
            Comparison(about="value", measure=measure, pair=pair, loss=value_loss(guarantee, floor, *pair))
            for pair in pairs
        ]
    return tuple(found)


def units_in_short(guarantee: EmployerEmployee, unit: str, tables: str) -> str:
    """What is protected of units, for the first paragraph of a statement; `tables` is what is spoken of."""
    share = plain(100 * guarantee.alpha)
    limits = " and ".join(f"{floor:,} of {measure}" for measure, floor in spoken(guarantee.caps))
    return (
        f"Every total of {tables} was changed by random noise before it was published. That bounds what anyone can "
        f"tell from all of them together of the values of one {unit}: of which of two values it has that are within "
        f"{share} % of each other, or within {limits}, {surest(loss(guarantee, 1))}. That holds against any reader, "
        f"whatever they already know, also against one who knows the values of all other units."
    )


def unit_meaning(guarantee: EmployerEmployee, unit: str) -> list[str]:
    """What a guarantee means for one unit, a paragraph for every measure."""
    found = value_comparisons(guarantee)
    return [
        _measure(found[at : at + 4], unit, plain(100 * guarantee.alpha)) for at in range(0, len(found), 4)
    ] + _several(guarantee)


def _measure(found: tuple[Comparison, ...], unit: str, share: str) -> str:
    first, once, twice, whole = found
    floor = (first.pair or (0, 0))[1]
    sure = believed(once.loss, "both equally likely", ", even knowing the values of all others")
    return (
        f"Whether the {first.measure} of one {unit} is {_pair(once)}: this release changes the odds by "
        f"{odds(once.loss)}.{sure} Values further apart are easier to tell apart: each further step of {share} %, or "
        f"of {floor:,}, multiplies the odds again. For {_pair(twice)} it is {odds(twice.loss)}. A value of up to "
        f"{floor:,} is hidden whole: whether it is 0, or any such value, is one step. Whether it is {_pair(whole)} is "
        f"{whole.loss.steps:,} steps: {odds(whole.loss)}."
    )


def _several(guarantee: EmployerEmployee) -> list[str]:
    if len(guarantee.caps) < 2:
        return []
    return ["All measures of a unit may differ by a step at once: what is said of one holds for all of them together."]


def _pair(found: Comparison) -> str:
    return " or ".join(f"{number:,}" for number in found.pair or ())


# What consecutive periods reveal together, whoever the window is about.


def of_all_periods(calendar: Calendar, *, jobs: bool) -> str:
    """In short, what everything that a window lets be published reveals at most of a unit in all its periods."""
    most, window = calendar.window.most, calendar.window
    if most.definition != "units":
        return in_all_periods(calendar, jobs=jobs)
    return (
        f"That is about one period alone. The tables of {window.periods} {window.length}s in a row tell more of a unit "
        f"that is in all of them, and has one of two values a step apart in each: {surest(loss(most, 1))}."
    )


def of_window(calendar: Calendar, *, jobs: bool) -> list[str]:
    """What a unit loses in total that is in the data of all periods of a window, and what was charged so far."""
    window, most = calendar.window, calendar.window.most
    if most.definition != "units":
        return over_window(calendar, jobs=jobs)
    text = (
        f"A unit that is in the data of {window.periods} {window.length}s in a row is in the tables of each, and what "
        f"these reveal adds up. The ledger of this release lets {window.words} spend at most this together, with all "
        f"totals of {capped(spoken(most.caps), most.definition)}, revisions and ad-hoc questions: {most}. In total the "
        f"odds between two values a step apart in each of them change by {odds(loss(most, 1))}."
    )
    if window.first:
        text += f" {window.length.capitalize()}s before {window.first} are not counted in that: they come on top."
    spent = calendar.most_spent
    if spent is None or not spent.epsilon:
        return [text]
    return [f"{text} Most was charged so far in {spent.words}: epsilon = {at_most(spent.epsilon)}."]


def facts_of_window(calendar: Calendar, *, jobs: bool) -> dict[str, Any]:
    """The same for machines."""
    found, most = window_facts(calendar, jobs=jobs), calendar.window.most
    if most.definition != "units":
        return found
    periods = calendar.window.periods
    return {**found, "comparisons": [{**one.data(), "periods": periods} for one in value_comparisons(most)]}
