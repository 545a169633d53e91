"""Periods: the quarters or years of a panel, and any year, quarter or month that a release may be about."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from sfumato.errors import ReleaseError

_QUARTER = re.compile(r"(\d{4})-?Q([1-4])")


_YEAR = re.compile(r"\d{4}")
YEARS = range(1800, 2201)
"""Years that data are of: any other is a slip, such as 0206, or 26 that was taken for a year with four digits."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """The periods from the first to the last, both included, as the data write them."""

    first: str
    last: str

    def __post_init__(self) -> None:
        for name, period in (("first", self.first), ("last", self.last)):
            if not (_QUARTER.fullmatch(period) or _YEAR.fullmatch(period)):
                raise ReleaseError(
                    f"jobs, {name} = {period!r}",
                    expected="a quarter such as 2025-Q1 or 2025Q1, or a year such as 2025",
                    found=repr(period),
                    do="write the period as the data do",
                )
        if _written(self.first) != _written(self.last) or self.low > self.high:
            raise ReleaseError(
                "jobs, first and last",
                expected="a first period that is not after the last, both written alike",
                found=f"{self.first} and {self.last}",
                do="correct the periods",
            )

    @property
    def quarterly(self) -> bool:
        """Whether periods are quarters."""
        return bool(_QUARTER.fullmatch(self.first))

    @property
    def low(self) -> int:
        """The number of the first period; periods that follow each other have numbers that do."""
        return number_of(self.first)

    @property
    def high(self) -> int:
        """The number of the last period."""
        return number_of(self.last)

    def codes(self) -> tuple[str, ...]:
        """All periods in order.

        >>> Span(first="2024-Q3", last="2025-Q1").codes()
        ('2024-Q3', '2024-Q4', '2025-Q1')
        """
        if not self.quarterly:
            return tuple(str(year) for year in range(self.low, self.high + 1))
        between = "-Q" if "-" in self.first else "Q"
        return tuple(f"{n // 4}{between}{n % 4 + 1}" for n in range(self.low, self.high + 1))


def number_of(period: str) -> int:
    """The number of a period, counted in quarters or years.

    >>> number_of("2025-Q1") - number_of("2024-Q4"), number_of("2025")
    (1, 2025)
    """
    if quarter := _QUARTER.fullmatch(period):
        return 4 * int(quarter[1]) + int(quarter[2]) - 1
    return int(period)


Length = Literal["year", "quarter", "month"]


def layout(period: str) -> tuple[Length, str] | None:
    """How long a period is, and what its text has behind the year; None where a text is no period.

    >>> layout("2026"), layout("2026-Q1"), layout("2026M03"), layout("spring")
    (('year', ''), ('quarter', '-Q'), ('month', 'M'), None)
    """
    found = re.fullmatch(r"[12]\d{3}(?:(-?Q)[1-4]|(-?M?)(?:0[1-9]|1[0-2]))?", period)
    if found is None:
        return None
    quarter, month = found.groups()
    return ("quarter", quarter) if quarter is not None else ("year", "") if month is None else ("month", month)


def _written(period: str) -> str:
    return re.sub(r"\d", "9", period)


# Any period that a release may be about: a year, a quarter or a month, however it is typed.

_TYPED = re.compile(r"(\d{4})(?:-?Q(?P<quarter>[1-4])|-?M(?P<month>0?[1-9]|1[0-2])|-?(?P<number>0[1-9]|1[0-2]))?", re.I)
_NAMES: dict[int, Length] = {1: "year", 4: "quarter", 12: "month"}


@dataclass(frozen=True, kw_only=True)
class Period:
    """A year, a quarter or a month, written in one way: 2026, 2026-Q3, 2026-07.

    >>> [str(Period.read(typed)) for typed in ("2026", "2026q3", "2026-Q3", "2026M7", "202607", "2026-07")]
    ['2026', '2026-Q3', '2026-Q3', '2026-07', '2026-07', '2026-07']
    """

    in_a_year: int
    """How many there are in a year."""
    number: int
    """Periods that follow each other have numbers that do."""

    @classmethod
    def read(cls, typed: str, where: str = "period") -> "Period":
        """The period that a text means."""
        found = _TYPED.fullmatch(typed.strip())
        if found is None:
            raise ReleaseError(
                where,
                expected="a year such as 2026, a quarter such as 2026-Q3, or a month such as 2026-07",
                found=repr(typed),
                do="write the period in one of these ways",
            )
        year, quarter, month = int(found[1]), found["quarter"], found["month"] or found["number"]
        if quarter:
            return cls(in_a_year=4, number=4 * year + int(quarter) - 1)
        return cls(in_a_year=12, number=12 * year + int(month) - 1) if month else cls(in_a_year=1, number=year)

    def __str__(self) -> str:
        return self.writings()[0]

    @property
    def year(self) -> int:
        """The year it is in."""
        return self.number // self.in_a_year

    @property
    def part(self) -> int:
        """Which part of its year it is, counted from 1."""
        return self.number % self.in_a_year + 1

    @property
    def name(self) -> Length:
        """What such a period is called: year, quarter or month."""
        return _NAMES[self.in_a_year]

    @property
    def next(self) -> "Period":
        """The one that follows."""
        return replace(self, number=self.number + 1)

    def writings(self) -> tuple[str, ...]:
        """How data may write it, the one way of ours first."""
        year, part = f"{self.year:04d}", self.part
        if self.in_a_year == 1:
            return (year,)
        if self.in_a_year == 4:
            return tuple(f"{year}{between}{part}" for between in ("-Q", "Q", "-q", "q"))
        short = tuple(f"{year}{between}{part}" for between in ("M", "-M")) if part < 10 else ()
        return (*(f"{year}{between}{part:02d}" for between in ("-", "", "M", "-M")), *short)


def in_time(codes: Sequence[str]) -> tuple[Period, ...]:
    """The periods that codes mean, if they are one after the other and all years, all quarters or all months."""
    try:
        periods = tuple(Period.read(code) for code in codes)
    except ReleaseError:
        return ()
    alike = len({(period.in_a_year, _written(code)) for period, code in zip(periods, codes, strict=True)}) == 1
    follow = all(one.number < other.number for one, other in pairwise(periods))
    return periods if alike and follow else ()
