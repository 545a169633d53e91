"""A data query: the key and the parameters of an address, checked, as a selection and a layout."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from sfumato.serve.errors import RefusedError
from sfumato.serve.model import Selection
from sfumato.serve.sdmx.flow import ALL_DIMENSIONS, Component, Flow
from sfumato.serve.sdmx.spans import places_between

Detail = Literal["full", "dataonly", "serieskeysonly", "nodata"]
OF_TIME = ("startPeriod", "endPeriod", "firstNObservations", "lastNObservations")
"""What only a table with a dimension of time can be asked."""
PARAMETERS = (*OF_TIME, "dimensionAtObservation", "detail", "format")
LATER = ("updatedAfter", "includeHistory")
"""What the standard has and this server does not."""
_COUNT = re.compile(r"[1-9]\d{0,8}", re.ASCII)
Words = Mapping[str, str]


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
        places = dict(zip(flow.key, _places(flow, key), strict=True))
        if flow.time is not None:
            places[flow.time] = _periods(flow.time, words)
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


def _places(flow: Flow, key: str) -> list[tuple[int, ...]]:
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


def _codes(flow: Flow, component: Component, part: str) -> tuple[int, ...]:
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


def _periods(time: Component, words: Words) -> tuple[int, ...]:
    """The places of the periods that are asked for: from one to another, of these the first and the last few."""
    inside = places_between(time, start=words.get("startPeriod"), end=words.get("endPeriod"))
    if not inside:
        raise RefusedError(
            "startPeriod, endPeriod",
            expected=f"a time with observations: there are some from {time.codes[0]} to {time.codes[-1]}",
            found=f"{words.get('startPeriod', '')} to {words.get('endPeriod', '')}",
            do="ask for another time",
            status=404,
        )
    first, last = (_count(name, words) for name in ("firstNObservations", "lastNObservations"))
    if first is None and last is None:
        return tuple(inside)
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
