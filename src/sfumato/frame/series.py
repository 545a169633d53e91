"""One release file for many periods: which rows are of a period, and the period in texts of the file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sfumato.errors import ReleaseError
from sfumato.frame.jobs import POPULATIONS, Around
from sfumato.frame.periods import Period, layout, number_of


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


# A panel in a series: of its many periods, those that the one being run looks at.


def panel_column(data: Any) -> str | None:
    """The column with the periods of a panel, as a section [data] has it; None where there is none."""
    jobs = data.get("jobs") if isinstance(data, Mapping) else None
    found = jobs.get("period") if isinstance(jobs, Mapping) else None
    return found if isinstance(found, str) else None


def panel_at(data: Any, period: Period) -> Any:
    """A section [data] whose panel, if it is one, has the period of a series and those that its population looks at.

    `first` and `last` are left out by most, as the series tells them; where they are given, they tell how the data
    write periods, and which there are.
    """
    if panel_column(data) is None:
        return data
    jobs = data["jobs"]
    population = str(jobs.get("population", "beginning"))
    around = POPULATIONS.get(population, Around())  # what is none of them is refused with the rest of the file
    given = {key: text for key in ("first", "last") if isinstance(text := jobs.get(key), str) and layout(text)}
    _refuse_beyond(period, given, around, population)
    style = layout(next(iter(given.values()), str(period)))
    first, last = (
        _as_written(replace(period, number=period.number + step), style) for step in (-around.before, around.after)
    )
    return {**data, "jobs": {**jobs, "first": first, "last": last}}


def _as_written(period: Period, style: tuple[str, str] | None) -> str:
    between = "" if style is None else style[1]
    return f"{period.year}{between}{period.part}" if period.name == "quarter" else str(period)


def _refuse_beyond(period: Period, given: Mapping[str, str], around: Around, population: str) -> None:
    """Refuse a period of which the panel lacks those before or after that its population looks at."""
    ends = {key: number_of(text) for key, text in given.items() if (layout(text) or ("",))[0] == period.name}
    early = "first" in ends and period.number - around.before < ends["first"]
    if early or ("last" in ends and period.number + around.after > ends["last"]):
        needed = {f"{around.before} before it": around.before, f"{around.after} after it": around.after}
        raise ReleaseError(
            f"--period {period}",
            expected=f"a {period.name} that the panel has, from {given.get('first', 'its first')} to "
            f"{given.get('last', 'its last')}"
            + "".join(f", and {words}" for words, periods in needed.items() if periods)
            + f', which population = "{population}" looks at',
            found=str(period),
            do="choose another period, or correct or leave out `first` and `last` under [data.jobs]",
        )


def titled(title: str, first: str, last: str) -> str:
    """The title of a release as that of all periods from the first to the last.

    >>> titled("Jobs by place, {period}", "2026-Q1", "2026-Q4"), titled("Jobs in {year}", "2025", "2025")
    ('Jobs by place, 2026-Q1 to 2026-Q4', 'Jobs in 2025')
    """
    begin, end = (_words(Period.read(period)) for period in (first, last))
    both = {name: dict.fromkeys((begin[name], end[name])) for name in begin}
    return _WORD.sub(lambda word: " to ".join(both.get(word[1], {word[0]: None})), title)
