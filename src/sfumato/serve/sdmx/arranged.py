"""The answer to a data query, in the order in which messages are written: series, and observations inside them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from sfumato.serve.model import Answer, Metric
from sfumato.serve.sdmx.flow import ALL_DIMENSIONS, Component, Flow
from sfumato.serve.sdmx.observed import statuses
from sfumato.serve.sdmx.query import DataQuery

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
class Arranged:
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
    def of(cls, flow: Flow, query: DataQuery) -> "Arranged":
        """Ask the table, unless no observation is wanted."""
        series, observation = _dimensions(flow, query)
        if not query.has_observations:
            return cls(flow=flow, query=query, series=series, observation=observation, values=(), status=(), notes=())
        answer = flow.table.answer(query.selection)
        order = _order(answer, (*series, *observation))
        values = answer.values()
        letters = statuses(answer)[order].tolist() if query.has_attributes else ()
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


def _order(answer: Answer, ordered: Sequence[Chosen]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
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
