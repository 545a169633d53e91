"""Periods as queries write them, and which observations lie between two of them."""

import re
from calendar import monthrange
from datetime import date, timedelta

from sfumato.serve.errors import RefusedError
from sfumato.serve.sdmx.flow import Component

_PARTS = {"A": 1, "S": 2, "T": 3, "Q": 4, "M": 12}
"""How many periods of a kind a year has: years, half-years, trimesters, quarters, months."""
_PERIOD = re.compile(r"(?P<year>\d{4})(?:-(?P<kind>[ASTQMWD])(?P<number>\d{1,3}))?", re.ASCII)
_DATE = re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})(?:-(?P<day>\d{2})(?:T[\d:.]{5,20}Z?)?)?", re.ASCII)
Days = tuple[date, date]


def days_of(period: str) -> Days:
    """The first and the last day of a period; ValueError if it is none.

    >>> days_of("2024-Q1") == days_of("2024-01")[:1] + days_of("2024-M03")[1:]
    True
    """
    if found := _PERIOD.fullmatch(period):
        return _numbered(int(found["year"]), found["kind"] or "A", int(found["number"] or 1))
    if found := _DATE.fullmatch(period):
        year, month = int(found["year"]), int(found["month"])
        if found["day"] is None:
            return _numbered(year, "M", month)
        day = date(year, month, int(found["day"]))
        return day, day
    raise ValueError(period)


def _numbered(year: int, kind: str, number: int) -> Days:
    if kind == "D":
        day = date(year, 1, 1) + timedelta(days=number - 1)
        if not number or day.year != year:
            raise ValueError(number)
        return day, day
    if kind == "W":
        monday = date.fromisocalendar(year, number, 1)
        return monday, monday + timedelta(days=6)
    if not 1 <= number <= _PARTS[kind]:
        raise ValueError(number)
    months = 12 // _PARTS[kind]
    last = number * months
    return date(year, last - months + 1, 1), date(year, last, monthrange(year, last)[1])


def places_between(time: Component, *, start: str | None, end: str | None) -> range:
    """The places of the periods that lie wholly between the beginning of one period and the end of another."""
    first = _asked("startPeriod", start)[0] if start is not None else date.min
    last = _asked("endPeriod", end)[1] if end is not None else date.max
    inside = [place for place, code in enumerate(time.codes) if first <= days_of(code)[0] and days_of(code)[1] <= last]
    # Periods follow each other, so those inside do too.
    return range(inside[0], inside[-1] + 1) if inside else range(0)


def _asked(name: str, period: str) -> Days:
    try:
        return days_of(period)
    except (ValueError, OverflowError):
        raise RefusedError(
            name,
            expected="a period such as 2025, 2025-Q1, 2025-M01, 2025-W01, 2025-01 or 2025-01-31",
            found=period,
            do="correct it",
        ) from None
