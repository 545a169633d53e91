"""A data query: its key, periods and parameters, checked, as a selection and a layout."""

import re
from calendar import monthrange
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, get_args

from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import Selection
from sfumato.serve.sdmx.flow import ALL_DIMENSIONS, Component, Flow

# Periods as queries write them, and which observations lie between two of them.

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
    first = days("startPeriod", start)[0] if start is not None else date.min
    last = days("endPeriod", end)[1] if end is not None else date.max
    inside = [place for place, code in enumerate(time.codes) if first <= days_of(code)[0] and days_of(code)[1] <= last]
    # Periods follow each other, so those inside do too.
    return range(inside[0], inside[-1] + 1) if inside else range(0)


def days(name: str, period: str) -> Days:
    """The first and the last day of a period that a parameter names."""
    try:
        return days_of(period)
    except (ValueError, OverflowError):
        raise RefusedError(
            name,
            expected="a period such as 2025, 2025-Q1, 2025-M01, 2025-W01, 2025-01 or 2025-01-31",
            found=period,
            do="correct it",
        ) from None


Detail = Literal["full", "dataonly", "serieskeysonly", "nodata"]
OF_TIME = ("startPeriod", "endPeriod", "firstNObservations", "lastNObservations")
"""What only a table with a dimension of time can be asked."""
PARAMETERS = (*OF_TIME, "dimensionAtObservation", "detail", "format")
LATER = ("updatedAfter", "includeHistory")
"""What the standard has and this server does not."""
_COUNT = re.compile(r"[1-9]\d{0,8}", re.ASCII)
Words = Mapping[str, str]
Places = tuple[int, ...]
"""Of a dimension the places of the codes that are asked for."""


@dataclass(frozen=True, kw_only=True)
class DataQuery:
    """What is asked of a dataflow."""

    selection: Selection
    at_observation: str
    detail: Detail = "full"

    @property
    def has_observations(self) -> bool:
        """Whether the answer has observations, and not only series."""
        return self.detail in ("full", "dataonly")

    @property
    def has_attributes(self) -> bool:
        """Whether the answer has attributes."""
        return self.detail in ("full", "nodata")

    @classmethod
    def read(cls, flow: Flow, key: str, words: Words) -> "DataQuery":
        """Read the key of an address and its parameters."""
        places = dict(zip(flow.key, places_of_key(flow, key), strict=True))
        if flow.time is not None:
            places[flow.time] = _between(flow.time, words)
        return cls.of(flow, places, words)

    @classmethod
    def of(cls, flow: Flow, places: dict[Component, Places], words: Words) -> "DataQuery":
        """The codes of every component, with what else an address says: the first and the last periods, a layout."""
        if flow.time is not None:
            places = places | {flow.time: _some(places[flow.time], words)}
        elif refused := [name for name in OF_TIME if name in words]:
            # The first and the last are counted by time: any other order of observations would be ours, not theirs.
            raise RefusedError(
                f"dataflow '{flow.id}'",
                expected=f"no {refused[0]}: this table has no dimension of time",
                found=f"{refused[0]}={words[refused[0]]}",
                do="leave it out, and choose codes in the key",
            )
        *dimensions, metrics = (some for _, some in sorted(places.items(), key=lambda one: one[0].axis))
        detail = _detail(words.get("detail", "full"))
        asked = _at_observation(flow, words.get("dimensionAtObservation"))
        with_series = detail in ("full", "dataonly") or asked != ALL_DIMENSIONS
        return cls(
            selection=Selection(places=tuple(dimensions), metrics=metrics),
            at_observation=asked if with_series else flow.at_observation,
            detail=detail,
        )


def read_words(query: Iterable[tuple[str, str]], known: tuple[str, ...]) -> dict[str, str]:
    """The parameters of an address by their names, which do not mind the case; each may be given once."""
    names = {name.lower(): name for name in known}
    words: dict[str, str] = {}
    for written, text in query:
        name = names.get(written.lower())
        if written.lower() in {later.lower() for later in LATER}:
            raise RefusedError(
                written, expected="a query of what is published now", found=text, do="leave it out", status=501
            )
        if name is None or name in words:
            raise RefusedError(
                "the query", expected=f"parameters of {', '.join(known)}, each once", found=written, do="leave it out"
            )
        words[name] = text
    return words


def places_of_key(flow: Flow, key: str) -> list[Places]:
    """Of every dimension of the key the places of the codes that are asked for."""
    if key in ("", "all"):
        return [tuple(range(len(component.codes))) for component in flow.key]
    parts = key.split(".", len(flow.key))
    if len(parts) != len(flow.key):
        raise RefusedError(
            f"key of dataflow '{flow.id}'",
            expected=f"codes for {'.'.join(one.id for one in flow.key)}: {len(flow.key)} parts between dots, or all",
            found=key,
            do="write a part for every dimension; an empty one stands for all codes",
        )
    return [_codes(flow, component, part) for component, part in zip(flow.key, parts, strict=True)]


def _codes(flow: Flow, component: Component, part: str) -> Places:
    if not part:
        return tuple(range(len(component.codes)))
    asked = set(part.split("+"))
    unknown = next((code for code in sorted(asked) if code not in component.places), None)
    if unknown is not None:
        raise RefusedError(
            f"key of dataflow '{flow.id}', {component.id}",
            expected=f"codes such as {', '.join(component.codes[:5])}, with + between them",
            found=unknown,
            do=f"correct the code; the code list {flow.codelist_id(component)} has them all",
        )
    return tuple(sorted({component.places[code] for code in asked}))


def _between(time: Component, words: Words) -> Places:
    """The places of the periods from one to another."""
    inside = places_between(time, start=words.get("startPeriod"), end=words.get("endPeriod"))
    if not inside:
        raise RefusedError(
            "startPeriod, endPeriod",
            expected=f"a time with observations: there are some from {time.codes[0]} to {time.codes[-1]}",
            found=f"{words.get('startPeriod', '')} to {words.get('endPeriod', '')}",
            do="ask for another time",
            status=404,
        )
    return tuple(inside)


def _some(inside: Places, words: Words) -> Places:
    """Of some periods the first and the last few, if these are asked for."""
    first, last = (_count(name, words) for name in ("firstNObservations", "lastNObservations"))
    if first is None and last is None:
        return inside
    return tuple(sorted({*inside[: first or 0], *inside[max(len(inside) - (last or 0), 0) :]}))


def _count(name: str, words: Words) -> int | None:
    text = words.get(name)
    if text is None:
        return None
    if not _COUNT.fullmatch(text):
        raise RefusedError(name, expected="a number from 1", found=text, do="correct it")
    return int(text)


def _detail(text: str) -> Detail:
    found = next((one for one in get_args(Detail) if one == text.lower()), None)
    if found is None:
        known = ", ".join(get_args(Detail))
        raise RefusedError("detail", expected=f"one of {known}", found=text, do="choose one of them")
    return found  # type: ignore[no-any-return]


def _at_observation(flow: Flow, text: str | None) -> str:
    if text is None:
        return flow.at_observation
    known = (*(component.id for component in flow.components), ALL_DIMENSIONS)
    found = next((name for name in known if name.lower() == text.lower()), None)
    if found is None:
        raise RefusedError(
            "dimensionAtObservation", expected=f"one of {', '.join(known)}", found=text, do="choose one of them"
        )
    return ALL_DIMENSIONS if len(flow.components) == 1 else found  # a series needs a key
