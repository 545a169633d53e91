"""The answer to a data query in series and observations with their status; as CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.core import stream
from sfumato.serve.core.model import Metric, TableAnswer
from sfumato.serve.core.status import APART, BEYOND, NO_FIGURE, RELIABILITY, REMARKS, STATUSES, CellStatus
from sfumato.serve.formats.sheets import as_text
from sfumato.serve.sdmx.flow import (
    ALL_DIMENSIONS,
    CONF_STATUS,
    DECIMALS,
    OBS_STATUS,
    OBS_VALUE,
    UNIT_MEASURE,
    VERSION,
    Component,
    Flow,
)
from sfumato.serve.sdmx.query import DataQuery

# The status of observations, in the codes of SDMX.

_NORMAL, _MISSING, _UNTOLD = "A", "M", "O"
_LETTERS = {
    "": _NORMAL,
    "suppressed": "Q",
    "synthesised": "E",
    "not available": _MISSING,
    "not defined": _MISSING,
    "mostly perturbation": "U",
    **dict.fromkeys(APART.values(), _NORMAL),  # of ad-hoc tables, which are not served as SDMX
    "too few records": "U",
    "too uncertain": "U",
    "too small": "U",
    "below": "D",
    "above": "D",
    "error unknown": "Q",
    NO_FIGURE.text: _MISSING,
    BEYOND.text: _UNTOLD,
    **{status.text: "U" for status in RELIABILITY[1:]},
}
# An observation has one status: that of the bundle goes before what its error says.
_BY_NUMBER = np.array([_LETTERS[said.parts[0].text] if said.parts else _NORMAL for said in REMARKS])
OBS_STATUSES = {
    _NORMAL: "Normal value",
    "D": "Definition differs",
    "E": "Estimated value",
    _MISSING: "Missing value; data cannot exist",
    _UNTOLD: "Missing value",
    "Q": "Missing value; suppressed",
    "U": "Low reliability",
}
"""The statuses that occur, under the codes and names of the SDMX list of observation statuses."""
_FREE, _CONFIDENTIAL = "F", "C"
CONF_STATUSES = {_FREE: "Free for publication", _CONFIDENTIAL: "Confidential statistical information"}
"""Under the codes and names of the SDMX list. Its others say whether a figure was withheld for itself or for another:
nobody is told."""
STATUS_NAMES = {OBS_STATUS: OBS_STATUSES, CONF_STATUS: CONF_STATUSES}
"""For every status attribute of an observation the codes that occur, with their names."""


def statuses(letter: str) -> dict[str, str]:
    """The code of every status attribute of a figure, from its observation status.

    >>> statuses("Q"), statuses("A")
    ({'OBS_STATUS': 'Q', 'CONF_STATUS': 'C'}, {'OBS_STATUS': 'A', 'CONF_STATUS': 'F'})
    """
    return {OBS_STATUS: letter, CONF_STATUS: _CONFIDENTIAL if letter == _LETTERS["suppressed"] else _FREE}


def obs_status_meaning(letter: str) -> str:
    """What a status says of a figure, in the words that every interface has for it."""

    def said(status: CellStatus) -> bool:
        return _LETTERS[status.text] == letter and bool(status.meaning) and status.text not in APART.values()

    return "; or ".join(status.meaning for status in (*STATUSES, NO_FIGURE, BEYOND, *RELIABILITY) if said(status))


def obs_status(answer: TableAnswer) -> NDArray[np.str_]:
    """The code of every figure's status, in the order of the answer's values: the metric changes fastest."""
    return _BY_NUMBER[answer.remarks()].ravel()


Writing = Callable[[str, int, str], str]
"""How a code is written, from the identifier of its dimension, its place and itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chosen:
    """A dimension with the codes that were asked for."""

    component: Component
    places: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.places)

    @property
    def id(self) -> str:
        """The identifier of the dimension."""
        return self.component.id

    @property
    def codes(self) -> tuple[str, ...]:
        """The identifiers of the codes."""
        return tuple(self.component.codes[place] for place in self.places)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the codes."""
        return tuple(self.component.dimension.labels[place] for place in self.places)


@dataclass(frozen=True, kw_only=True, eq=False)
class SeriesData:
    """Series and observations: every series has the same ones; without series, one block has all observations."""

    flow: Flow
    query: DataQuery
    series: tuple[Chosen, ...]
    """The dimensions that tell series apart; none if there are no series."""
    observation: tuple[Chosen, ...]
    """The dimensions that tell the observations of a series apart."""
    values: Sequence[str | None]
    """The figures as text, one series after the other; None where there is none."""
    status: Sequence[str]
    """The status of every figure."""
    notes: tuple[str, ...]
    """What is to be said of this answer beside the notes of the table."""

    @classmethod
    def of(cls, flow: Flow, query: DataQuery) -> "SeriesData":
        """Ask the table, unless no observation is wanted."""
        series, observation = _dimensions(flow, query)
        if not query.has_observations:
            return cls(flow=flow, query=query, series=series, observation=observation, values=(), status=(), notes=())
        answer = flow.table.answer(query.selection)
        order = _order(answer, (*series, *observation))
        values = answer.values()
        letters = obs_status(answer)[order].tolist() if query.has_attributes else ()
        return cls(
            flow=flow,
            query=query,
            series=series,
            observation=observation,
            values=[None if (value := values[place]) is None else repr(value) for place in order.tolist()],
            status=letters,
            notes=answer.notes,
        )

    @property
    def width(self) -> int:
        """How many observations a series has."""
        return prod(map(len, self.observation))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that were asked for."""
        return tuple(self.flow.table.metrics[place] for place in self.query.selection.metrics)

    def series_keys(self, writing: Writing, between: str = "") -> list[str]:
        """The key of every series; one empty key if there are no series."""
        return _keys(self.series, writing, between)

    def observation_keys(self, writing: Writing, between: str = "") -> list[str]:
        """The key of every observation inside a series."""
        return _keys(self.observation, writing, between)

    def of_metrics(self, texts: Sequence[str]) -> tuple[list[str], list[str]]:
        """Texts about metrics, for every series and for every observation inside one: empty where the other has it."""
        return _told_apart(self.series, texts), _told_apart(self.observation, texts)

    def blocks(self) -> Iterator[tuple[Sequence[str | None], Sequence[str]]]:
        """The figures and statuses of one series after the other; no observation has a status if none was wanted."""
        width = self.width
        status = self.status or [""] * len(self.values)
        for start in range(0, len(self.values), width):
            yield self.values[start : start + width], status[start : start + width]


Parts = Iterable[SeriesData]
"""Data that are one after the other the answer to a query: mostly all of it at once."""


def in_parts(flow: Flow, query: DataQuery) -> Iterator[SeriesData]:
    """The answer to a query in parts of a bounded size, none of which cuts a series."""
    series, observation = _dimensions(flow, query)
    order = [one.component.axis for one in series or observation]
    return (SeriesData.of(flow, replace(query, selection=part)) for part in stream.in_parts(query.selection, order))


def count(flow: Flow, query: DataQuery) -> int:
    """How many observations the answer has, or series if it has only these."""
    if query.has_observations:
        return query.selection.cells
    return prod(map(len, _dimensions(flow, query)[0]))


def _dimensions(flow: Flow, query: DataQuery) -> tuple[tuple[Chosen, ...], tuple[Chosen, ...]]:
    """The dimensions of series and those of observations, in their order."""
    asked = (*query.selection.places, query.selection.metrics)
    every = tuple(Chosen(component=one, places=asked[one.axis] or ()) for one in flow.components)
    if query.at_observation == ALL_DIMENSIONS:
        return (), every
    inner = tuple(one for one in every if one.id == query.at_observation)
    return tuple(one for one in every if one.id != query.at_observation), inner


def _order(answer: TableAnswer, ordered: Sequence[Chosen]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """The places of figures among the values of an answer, in the order of some dimensions."""
    shape = (*answer.shape, len(answer.metrics))
    return np.arange(prod(shape)).reshape(shape).transpose([one.component.axis for one in ordered]).ravel()


def _keys(dimensions: Sequence[Chosen], writing: Writing, between: str) -> list[str]:
    texts = [[writing(one.id, place, code) for place, code in enumerate(one.codes)] for one in dimensions]
    return [between.join(parts) for parts in product(*texts)]


def _told_apart(dimensions: Sequence[Chosen], texts: Sequence[str]) -> list[str]:
    """For every combination of codes the text of its metric, if metrics are among the dimensions."""
    lengths = [len(one) for one in dimensions]
    at = next((n for n, one in enumerate(dimensions) if one.component.dimension.role == "metric"), None)
    if at is None:
        return [""] * prod(lengths)
    each = [text for text in texts for _ in range(prod(lengths[at + 1 :]))]
    return each * prod(lengths[:at])


# Data as SDMX-CSV: a row for every observation, or for every series where only these are wanted.
#
# Observations come without series.

_END = "\r\n"


def write_csv_1(parts: Parts, _source: str) -> Iterator[str]:
    """The data as SDMX-CSV 1.0."""
    return _csv(parts, lambda data: {"DATAFLOW": _reference(data)})


def write_csv_2(parts: Parts, _source: str) -> Iterator[str]:
    """The data as SDMX-CSV 2.0."""
    return _csv(parts, lambda data: {"STRUCTURE": "dataflow", "STRUCTURE_ID": _reference(data), "ACTION": "I"})


def _reference(data: SeriesData) -> str:
    return f"{data.flow.agency}:{data.flow.id}({VERSION})"


def _csv(parts: Parts, beginning: Callable[[SeriesData], dict[str, str]]) -> Iterator[str]:
    for number, data in enumerate(parts):
        query, before = data.query, beginning(data)
        shown = data.observation if query.has_observations else data.series
        names = [
            *before,
            *(one.id for one in shown),
            *([OBS_VALUE] if query.has_observations else []),
            *(STATUS_NAMES if query.detail == "full" else ()),
            *([UNIT_MEASURE, DECIMALS] if query.has_attributes and _metrics_among(shown) else []),
        ]
        start = "".join(f"{text}," for text in before.values())
        rows = _observations(data) if query.has_observations else _series(data)
        heads = [] if number else [",".join(names)]
        yield _END.join([*heads, *(start + row for row in rows), ""])


def _metrics_among(shown: Sequence[Chosen]) -> bool:
    """Whether rows tell metrics apart, which is what units belong to."""
    return any(one.component.dimension.role == "metric" for one in shown)


def _series(data: SeriesData) -> Iterator[str]:
    of_series, _ = data.of_metrics(_units(data))
    return (key + said for key, said in zip(data.series_keys(_code, ","), of_series, strict=True))


def _observations(data: SeriesData) -> Iterator[str]:
    _, of_observations = data.of_metrics(_units(data))
    keys = data.observation_keys(_code, ",")
    marks = {letter: "".join(f",{code}" for code in statuses(letter).values()) for letter in {*data.status}} | {"": ""}
    for values, letters in data.blocks():
        for key, value, letter, said in zip(keys, values, letters, of_observations, strict=True):
            yield f"{key},{value or ''}{marks[letter]}{said}"


def _units(data: SeriesData) -> Sequence[str]:
    """Of every metric its unit and decimals, each with the comma before it."""
    if not data.query.has_attributes:
        return [""] * len(data.metrics)
    return [f",{_quoted(metric.unit)},{metric.decimals}" for metric in data.metrics]


def _code(_id: str, _place: int, code: str) -> str:
    return code  # identifiers need no quotes


def _quoted(text: str) -> str:
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="").writerow([as_text(text)])
    return written.getvalue()
