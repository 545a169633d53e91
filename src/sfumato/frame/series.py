"""One release file for many periods: which rows are of a period, and the period in texts of the file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.frame.periods import Period


@dataclass(frozen=True, kw_only=True)
class OnlyPeriod:
    """The rows of the data that a period of a series is about, where one file has several periods."""

    column: str
    period: str

    def writings(self) -> tuple[str, ...]:
        """How the column may write the period."""
        return Period.read(self.period).writings()


# A period in the texts of a release file: {period}, {year}, {quarter} and {month} stand for those of the one being run.

_WORD = re.compile(r"\{(period|year|quarter|month)\}")


def has_words(value: Any) -> bool:
    """Whether a text has a word that stands for the period."""
    return isinstance(value, str) and _WORD.search(value) is not None


def filled(value: Any, period: Period) -> Any:
    """A part of a release file with the words that stand for the period filled in.

    >>> filled({"path": "jobs_{year}q{quarter}.csv"}, Period.read("2026-Q3"))
    {'path': 'jobs_2026q3.csv'}
    """
    if isinstance(value, str):
        return _WORD.sub(lambda word: _words(period).get(word[1], word[0]), value)
    if isinstance(value, Mapping):
        return {name: filled(part, period) for name, part in value.items()}
    return [filled(part, period) for part in value] if isinstance(value, list) else value


def _words(period: Period) -> dict[str, str]:
    words = {"period": str(period), "year": str(period.year)}
    return words | {"quarter": {"quarter": str(period.part)}, "month": {"month": f"{period.part:02d}"}}.get(
        period.name, {}
    )


def titled(title: str, first: str, last: str) -> str:
    """The title of a release as that of all periods from the first to the last.

    >>> titled("Jobs by place, {period}", "2026-Q1", "2026-Q4"), titled("Jobs in {year}", "2025", "2025")
    ('Jobs by place, 2026-Q1 to 2026-Q4', 'Jobs in 2025')
    """
    begin, end = (_words(Period.read(period)) for period in (first, last))
    both = {name: dict.fromkeys((begin[name], end[name])) for name in begin}
    return _WORD.sub(lambda word: " to ".join(both.get(word[1], {word[0]: None})), title)
