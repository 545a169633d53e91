"""What several periods reveal together: of a unit in the data of all of them, and of a job of a panel."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sfumato.privacy.guarantee import EmployerEmployee, Loss, at_most, capped, loss, plain, spoken
from sfumato.privacy.meaning import comparisons, grows, odds, pair_of, person_comparisons, size_comparisons, surest
from sfumato.privacy.windows import Calendar

# What consecutive periods reveal together of a unit that is in the data of all of them.


def in_all_periods(calendar: Calendar, *, jobs: bool) -> str:
    """In short, what everything that a window lets be published reveals at most of a unit in all its periods."""
    window = calendar.window
    tables = f"That is about one period alone. The tables of {window.periods} {window.length}s in a row tell more of"
    if not jobs:
        who = "someone who is in the data of all of them"
    elif window.most.definition == "individuals":
        who = "a job that is held in all of them"
    else:
        who = "a job that is held in all of them, and of the size of an establishment that exists in all of them"
        who += _growing_alike(window.most)
    return f"{tables} {who}: {surest(loss(window.most, 1))}."


def _growing_alike(guarantee: EmployerEmployee) -> str:
    """As far as which the size of an establishment is protected, in short; nothing where it is whoever its workers are.

    >>> pay = EmployerEmployee(
    ...     definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(6), caps=(("earnings", 100), ("hours", 60))
    ... )
    >>> _growing_alike(pay)
    ', where its workers and what they have of earnings and of hours grow alike'
    """
    if guarantee.definition == "strong" and not guarantee.caps:
        return ""
    who = "all groups of its workers" if guarantee.definition == "weak" else "its workers"
    told = dict.fromkeys(measure for measure, _ in spoken(guarantee.caps))
    measures = " and ".join(f"of {measure}" for measure in told)
    return f", where {who}{f' and what they have {measures}' if measures else ''} grow alike"


def over_window(calendar: Calendar, *, jobs: bool) -> list[str]:
    """What a unit loses in total that is in the data of all periods of a window, and what was charged so far."""
    window, most = calendar.window, calendar.window.most
    count, name, once, twice = window.periods, window.length, loss(window.most, 1), loss(window.most, 2)
    who = (
        f"A job that is held for {count} {name}s in a row, and an establishment that exists in all of them, are"
        if jobs
        else f"Someone who is in the data of {count} {name}s in a row is"
    )
    text = (
        f"{who} in the tables of each, and what these reveal adds up. The ledger of this release lets {window.words} "
        "spend at most this together, with all tables that have a formal guarantee, revisions and ad-hoc questions, "
        "each in the period that it was charged to (tables of many periods at once that were charged before there was "
        f"a limit count in the one period that their release names): {most}. In total the odds of whether "
        f"{'the job was held' if jobs else 'that is so'} change by {odds(once)}, "
        f"and of what is said of it by {odds(twice)}."
    )
    if jobs and most.definition == "individuals":
        text += " The sizes of establishments are not protected, in one period or in several."
    elif jobs:
        text += _sizes_over_window(calendar)
    if 2 * most.delta < 1:
        text += (
            f" In {2 * count} {name}s in a row it is twice as much, epsilon = {at_most(2 * most.epsilon)}, and so on."
        )
    if window.first:
        text += f" {name.capitalize()}s before {window.first} are not counted in that: what they reveal comes on top."
    spent = calendar.most_spent
    if spent is None or (spent.is_bounded and not (spent.epsilon or spent.delta)):
        return [text]
    if not spent.is_within:
        text += " More than that was charged when an earlier ledger was lost: what follows counts."
    charged = f"epsilon = {at_most(spent.epsilon)}" if spent.is_bounded else "more than can be bounded so"
    return [f"{text} Most was charged so far in {spent.words}: {charged}."]


def _sizes_over_window(calendar: Calendar) -> str:
    """What the periods of a window reveal together of the size of an establishment, with the space before it."""
    window, most = calendar.window, calendar.window.most
    share, conditions = plain(100 * most.alpha), ""
    if most.definition == "weak":
        conditions = ", if all groups of its workers grow alike" + grows(most, ", and if ")
    elif most.caps:
        conditions = grows(most, ", if ", who="its workers")
    text = (
        f" Which of two sizes within about {share} % of each other, or one worker apart, an establishment has in each "
        f"of the {window.length}s{conditions}: the odds change in total by {odds(loss(most, 1))}."
    )
    if most.caps:
        text = (
            f' "With totals" says which workforces are compared: those where what the workers have in all of '
            f"{capped(spoken(most.caps))} grows as their number may, by at most {share} % or by one job. That is so "
            f"for the sum of all tables, also where a release has counts only.{text}"
        )
    if conditions:
        whoever = next(one for one in size_comparisons(most) if one.about == "size" and one.pair and one.pair[0] == 100)
        text += (
            f" Otherwise each further worker can be a step. Whether it has {pair_of(whoever)} workers: the odds then "
            f"change in total by {odds(whoever.loss)}."
        )
    return text


def window_facts(calendar: Calendar, *, jobs: bool) -> dict[str, Any]:
    """The same for machines: the window, the bounds of every comparison over all its periods, and what was charged."""
    most, spent = calendar.window.most, calendar.most_spent
    found = comparisons(most) if jobs else person_comparisons(most)
    sums = [one.facts() for one in calendar.sums]
    return {
        **calendar.window.facts(),
        "sums": [{name: value for name, value in one.items() if name != "spent"} for one in sums],
        "comparisons": [{**one.data(), "periods": calendar.window.periods} for one in found],
        "most_spent": None if spent is None else spent.facts(),
    }


# What tables of a panel mean for a job that is held over several of its periods.


def record_losses(spent: Mapping[str, Fraction], codes: Sequence[str], steps: Mapping[int, int]) -> dict[str, Fraction]:
    """What numbers of all periods tell at most of whether a job had earnings in each of them.

    `spent` is what each period spends, and `steps` has how many steps a record is in numbers of so many periods later.

    >>> record_losses({"b": Fraction(1), "c": Fraction(4)}, "abc", {0: 1, 1: 1})  # jobs at the beginning
    {'a': Fraction(1, 1), 'b': Fraction(5, 1), 'c': Fraction(4, 1)}
    """
    return {
        code: sum(
            (
                number * spent.get(codes[at + later], Fraction(0))
                for later, number in steps.items()
                if 0 <= at + later < len(codes)
            ),
            Fraction(0),
        )
        for at, code in enumerate(codes)
    }


def over_panel(spent: Mapping[str, Fraction], by_record: Fraction, delta: Fraction, *, series: bool) -> str:
    """What is protected of a job over all periods that the tables are about, and of its record in one of them.

    `by_record` is the most that all tables tell of one record. docs/methods/panels.md has the proof.
    """
    listed = "; ".join(f"{code}, epsilon = {at_most(spent[code])}" for code in sorted(spent))
    more = " Tables of other periods of this series that look at the same record add to that." if series else ""
    return (
        "The data are a panel. A job is a worker at an establishment, with all periods in which it was held, and what "
        f"is said here of a job is about all of them together. The tables are about: {listed}. Of a job that was held "
        "at some of these periods, only what they spend counts. Whether a given person had any earnings at a given "
        "establishment in one single period decides about the numbers of that period, and of others that look at it: "
        f"by all tables of this release together the odds change by "
        f"{odds(Loss(steps=1, epsilon=by_record, delta=delta))}.{more}"
    )
