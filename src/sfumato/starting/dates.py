"""Dates that stand for periods: a column with nothing but first or last days has months, quarters or years."""

from calendar import monthrange
from datetime import date, datetime

from sfumato.engine.query import Rows
from sfumato.frame.sources import date_format

DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}"
"""Without its points one of these would be a number."""
SLASHED = r"[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}"
"""Whether the day or the month comes first is told by numbers above 12, or by nobody."""
UNCLEAR = "?"
"""Stands for a way of writing dates that nothing tells."""


def _days(*days: str) -> str:
    """A pattern for some days of any year, each as month-day."""
    written = (f"(19|20)[0-9]{{2}}-{day}|{day[3:]}\\.{day[:2]}\\.(19|20)[0-9]{{2}}" for day in days)
    return "|".join(written)


_FIRST_DAYS = [f"{month:02}-01" for month in range(1, 13)]
_LAST_DAYS = [*(f"{month:02}-{monthrange(2023, month)[1]}" for month in range(1, 13)), "02-29"]
EDGES = {
    "year": (_days("01-01"), _days("12-31")),
    "quarter": (_days(*_FIRST_DAYS[::3]), _days("03-31", "06-30", "09-30", "12-31")),
    "month": (_days(*_FIRST_DAYS), _days(*_LAST_DAYS)),
}
"""The first and the last days of periods."""


def counted_edges(text: str) -> dict[str, str]:
    """How many rows have a first or a last day, for each length of a period."""
    return {
        f"_{word}_{edge}": f"count(*) FILTER (regexp_full_match({text}, '{form}'))"
        for word, forms in EDGES.items()
        for edge, form in enumerate(forms)
    }


def slashes_of(rows: Rows, text: str, told: str | None) -> str:
    """How dates with slashes are written, shown by 31 March 2026, as it is told or as days above 12 tell it."""
    first, second = (f"max(TRY_CAST(split_part(_t, '/', {part}) AS INTEGER))" for part in (1, 2))
    found = rows.select(_t=text).row(_first=first, _second=second)
    fitting = {"31/03/2026": found["_second"] <= 12, "03/31/2026": found["_first"] <= 12}
    left = [shown for shown, fits in fitting.items() if fits and told in (None, shown)]
    return left[0] if len(left) == 1 else UNCLEAR


def as_days(text: str, written: str) -> str:
    """The expression for dates with slashes as 2026-03-31 is written."""
    return f"strftime(try_strptime({text}, '{date_format(written)}'), '%Y-%m-%d')"


def period_of(day: date, length: str) -> str:
    """The period in which a day is, as a release file has it."""
    if length == "quarter":
        return f"{day.year}-Q{(day.month + 2) // 3}"
    return f"{day.year}" if length == "year" else f"{day:%Y-%m}"


def day_of(text: str, written: str) -> date:
    """The day that a text means.

    >>> day_of("31.3.2026", ""), day_of("3/31/2026", "03/31/2026")
    (datetime.date(2026, 3, 31), datetime.date(2026, 3, 31))
    """
    if written:
        return datetime.strptime(text, date_format(written)).date()
    if "." not in text:
        return date.fromisoformat(text)
    day, month, year = map(int, text.split("."))
    return date(year, month, day)
