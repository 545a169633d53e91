"""What commands say of windows: what periods spent together, and what is left for one of them."""

from collections.abc import Iterable
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from sfumato.cli.screen import printed_table
from sfumato.privacy.guarantee import at_least, at_most, plain
from sfumato.privacy.windows import Calendar, WindowSum


def calendar_table(calendar: Calendar, period: str = "") -> list[RenderableType]:
    """What every period spent, and the window that ends with it; of a period that is checked, those beside it."""
    window = calendar.window
    table = printed_table("period", "epsilon", f"in the {window.periods} {window.length}s to it", "left in these")
    for cost in calendar.costs:
        if period and not window.meets(period, cost.period):
            continue
        row = calendar.ending_with(cost.period)
        spent = "no bound" if cost.unbounded else at_most(cost.epsilon)
        name = f"{cost.period} (checked now)" if cost.period == period else cost.period
        table.add_row(name, spent, *(("in all", "") if row is None else _amounts(row)))
    return [Text(f"Spent of {plain(window.most.epsilon)} for {window.words} ({window.most}):"), table]


def _amounts(row: WindowSum) -> tuple[str, str]:
    return (at_most(row.epsilon), at_least(row.remaining_epsilon)) if row.is_bounded else ("no bound", "nothing")


def left_words(calendars: Iterable[Calendar], period: str) -> list[str]:
    """What each window has left for a period: where it has least left."""
    found = []
    for one in calendars:
        row, words = one.with_period(period), one.window.words
        if row is not None:
            left = at_least(row.remaining_epsilon) if row.is_bounded else "nothing"
            most = f"{words[0].upper()}{words[1:]} may spend epsilon = {plain(one.window.most.epsilon)} together."
            found.append(f"{most} Left for {period}: {left}, in {row.words}.")
    return found


def calendar_data(calendars: Iterable[Calendar], period: str) -> list[dict[str, Any]]:
    """The same for machines, with the window that has least left for a period."""
    rows = [(one, one.with_period(period)) for one in calendars]
    return [{**one.facts(), "least_left": None if row is None else row.facts()} for one, row in rows]
