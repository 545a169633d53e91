"""What a question is known by: what it asks, in one order however it is written, or in the order in which it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sfumato.cells import Dimension
from sfumato.method import Method
from sfumato.statistics.panel.question import PairQuestion
from sfumato.statistics.people.question import SampleQuestion
from sfumato.statistics.people.small_samples import SmallSamples
from sfumato.statistics.questions import Asked
from sfumato.statistics.table import Table
from sfumato.statistics.totals.question import ContributorQuestion


def in_any_order(table: Table, asked: Asked) -> dict[str, Any]:
    """What is asked, with dimensions and codes in the order of their names.

    The two ends of a directed pair are dimensions with names of their own, and stay apart.
    """
    statistic = statistic_of(table, asked)
    if isinstance(asked, PairQuestion):
        statistic[-1] = sorted(asked.attributes)
    if isinstance(asked, SampleQuestion):
        statistic[-1] = _sorted(asked.classes)
    return {"statistic": statistic, "by": _sorted(asked.by), "where": _where(asked)}


def as_laid_out(table: Table, asked: Asked, by: Sequence[Dimension]) -> dict[str, Any]:
    """What is asked, as version 0.1 knew it: with dimensions and codes in a certain order."""
    statistic = statistic_of(table, asked)
    if isinstance(asked, PairQuestion):
        ends = table.end_names()
        statistic[-1] = [ends.get(dimension.name) for dimension in by[: len(asked.attributes)]]
    named = [[dimension.name, dimension.codes] for dimension in by]
    return {"statistic": statistic, "by": named, "where": _where(asked)}


def statistic_of(table: Table, asked: Asked) -> list[Any]:
    """What is counted, beside the dimensions; the indicators chosen for publication change no number."""
    if isinstance(asked, PairQuestion):
        return [asked.kind, asked.between, asked.weight, asked.directed, asked.rule, list(asked.attributes)]
    if isinstance(asked, ContributorQuestion):
        return [table.statistic, asked.measure, asked.margins]
    if isinstance(asked, SampleQuestion):
        bounds = [None if bound is None else [bound.name, bound.low, bound.high] for bound in (asked.x, asked.y)]
        classes = [[dimension.name, dimension.codes] for dimension in asked.classes]
        return ["people", asked.statistic, *bounds, list(asked.edges), classes]
    return [table.statistic]


def method_in_order(method: Method) -> Method:
    """The same method with the places it predicts at in one order."""
    if isinstance(method, SmallSamples):
        return replace(method, at=tuple(sorted(method.at)))
    return method


def _sorted(dimensions: Sequence[Dimension]) -> list[Any]:
    return sorted([dimension.name, sorted(dimension.codes)] for dimension in dimensions)


def _where(asked: Asked) -> list[Any]:
    return sorted((name, sorted(codes)) for name, codes in asked.where.items())
