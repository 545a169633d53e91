"""A view as text: heads with spans, lines with cells, and a legend of every symbol that occurs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isnan, prod
from typing import NamedTuple

import numpy as np

from sfumato.serve.core.model import Metric
from sfumato.serve.core.status import BEYOND, HAS_NONE, IS_BEYOND, NO_FIGURE, RELIABILITY, REMARKS, STATUSES
from sfumato.serve.page.question import ReaderQuestion
from sfumato.serve.page.view import Edge, View, relative_error

MOST_SHOWN = 3_000
"""How many figures a page shows; downloads have all."""
MOST_ACROSS = 120
"""How many figures stand side by side at most."""
_LEGEND = (*STATUSES[1:], NO_FIGURE, BEYOND, *RELIABILITY[1:])


class Head(NamedTuple):
    """A cell that names rows or columns."""

    text: str
    span: int
    id: str


class Cell(NamedTuple):
    """A figure as it is shown, its mark or symbol, and what a screen reader says of it."""

    text: str
    mark: str
    spoken: str
    kind: str
    headers: str


class Line(NamedTuple):
    """A row: the heads that begin at it, and its cells."""

    heads: tuple[Head, ...]
    cells: tuple[Cell, ...]
    total: bool


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """What the page shows of a view."""

    names: tuple[str, ...]
    """What stands above the heads of the rows."""
    above: tuple[tuple[Head, ...], ...]
    """The heads of the columns, by level."""
    levels: tuple[str, ...]
    """What the levels of columns are."""
    lines: tuple[Line, ...]
    legend: tuple[tuple[str, str, int], ...]
    """Symbols that occur, their meanings, and how often they occur."""
    rows: int
    columns: int
    """How many rows and columns of figures there are, shown or not."""
    across: int
    """How many columns of figures are shown."""

    @property
    def cut(self) -> bool:
        """Whether some of the table is not shown."""
        return len(self.lines) < self.rows or self.across < self.columns


def sheet_of(view: View, question: ReaderQuestion) -> Sheet:
    """Write the beginning of a view out, as much as fits on a page."""
    metrics = view.metrics[: view.shown]
    tall, wide = shown_part(view)
    order = view.order[:tall]
    relative = question.display.errors == "relative"
    labels = tuple(_metric_label(metric, metrics, relative=relative, percent=view.percent) for metric in metrics)
    levels = [*view.columns, *([Edge("Figure", labels, None, False)] if len(metrics) > 1 or not view.columns else [])]
    above = tuple(tuple(heads) for heads in _above(levels, wide * len(metrics)))
    complex_heads = len(levels) > 1 or len(view.rows) > 1
    texts = _texts(view, metrics, order, wide, relative=relative)
    used: Counter[str] = Counter()
    lines = []
    totals = view.row_totals()
    row_heads, row_ids = _beside(view.rows, order)
    column_ids = _ids_above(above, wide * len(metrics))
    for at, row in enumerate(order):
        cells = []
        for place in range(wide * len(metrics)):
            column, metric = divmod(place, len(metrics))
            headers = f"{row_ids[at]} {column_ids[place]}" if complex_heads else ""
            cells.append(
                _cell(metrics[metric], int(view.remarks[row, column, metric]), texts[at][place], headers, used)
            )
        lines.append(Line(row_heads[at], tuple(cells), bool(totals[row])))
    return Sheet(
        names=tuple(edge.label for edge in view.rows),
        above=above,
        levels=tuple(edge.label for edge in levels),
        lines=tuple(lines),
        legend=tuple((one.symbol, one.meaning, used[one.symbol]) for one in _LEGEND if used[one.symbol]),
        rows=view.values.shape[0],
        columns=view.values.shape[1] * len(metrics),
        across=wide * len(metrics),
    )


def shown_part(view: View) -> tuple[int, int]:
    """How many rows and columns of a view are shown at most; each column has all figures that are shown."""
    wide = max(min(view.values.shape[1], MOST_ACROSS // view.shown), 1)
    return max(MOST_SHOWN // (wide * view.shown), 1), wide


def format_figure(value: float, metric: Metric, *, percent: bool = False) -> str:
    """A figure with as many digits as are worth showing."""
    return f"{value:,.{_digits(metric, relative=False, percent=percent)}f}"


def _metric_label(metric: Metric, beside: Sequence[Metric], *, relative: bool, percent: bool) -> str:
    """What stands above a column; an error beside its value need not say again what it is about."""
    label = metric.label
    for value in beside:
        if value.code == metric.about and label.startswith(f"{value.label}, "):
            label = label.removeprefix(f"{value.label}, ").capitalize()
    if metric.kind == "error" and relative:
        return f"{label}, % of the figure"
    shares = percent and metric.additive and metric.kind not in ("other", "rse")
    return f"{label}, %" if shares or metric.kind == "rse" else label


def _texts(
    view: View, metrics: Sequence[Metric], order: Sequence[int], wide: int, *, relative: bool
) -> list[list[str]]:
    """The figures of the rows that are shown, as text; empty where there is none."""
    values = view.values[list(order), :wide].copy()
    places = {metric.code: at for at, metric in enumerate(view.metrics)}
    for at, metric in enumerate(metrics):
        if relative and metric.kind == "error" and metric.about in places:
            found = relative_error(view.metrics, values, places[metric.about])
            assert found is not None
            values[..., at] = np.where(np.isfinite(found), found, np.nan)
    kinds = [_digits(metric, relative=relative, percent=view.percent) for metric in metrics]
    return [
        [
            "" if isnan(value) else f"{value:,.{digits}f}"
            for column in row
            for value, digits in zip(column, kinds, strict=False)
        ]
        for row in values.tolist()
    ]


def _digits(metric: Metric, *, relative: bool, percent: bool) -> int:
    """How many digits after the point a figure of a column is shown with."""
    shares = percent and metric.additive and metric.kind in ("value", "error", "low", "high")
    return 1 if shares or (relative and metric.kind == "error") else metric.decimals


def _cell(metric: Metric, number: int, text: str, headers: str, used: Counter[str]) -> Cell:
    """A figure with what is said of it, counted for the legend."""
    said = REMARKS[number]
    if not text and not said.hides:
        # The page made no figure of one that there is: a share of nothing, or an error in percent of 0.
        said = REMARKS[IS_BEYOND if metric.kind == "error" else HAS_NONE]
    used.update(part.symbol for part in said.parts)
    kind = f"{metric.kind} none" if not text else f"{metric.kind} mark{said.mark}" if said.mark else metric.kind
    return Cell(text, said.symbol, said.text, kind, headers)


def _above(levels: Sequence[Edge], wide: int) -> Iterator[list[Head]]:
    """The heads of every level, each over the columns that belong to it and are shown."""
    span, repeat = prod(len(edge.texts) for edge in levels), 1
    for level, edge in enumerate(levels):
        span //= len(edge.texts)
        heads, begin = [], 0
        for number, text in enumerate(edge.texts * repeat):
            if begin >= wide:
                break
            heads.append(Head(text, min(span, wide - begin), f"c{level}-{number}"))
            begin += span
        yield heads
        repeat *= len(edge.texts)


def _ids_above(above: Sequence[Sequence[Head]], wide: int) -> list[str]:
    """For every column the identifiers of its heads."""
    ids: list[list[str]] = [[] for _ in range(wide)]
    for heads in above:
        place = 0
        for head in heads:
            for column in range(place, place + head.span):
                ids[column].append(head.id)
            place += head.span
    return [" ".join(found) for found in ids]


def _beside(edges: Sequence[Edge], order: Sequence[int]) -> tuple[list[tuple[Head, ...]], list[str]]:
    """The heads that begin at every row, each as long as rows have it, and for every row all that it has."""
    if not edges:
        return [()] * len(order), [""] * len(order)
    every = list(product(*(edge.texts for edge in edges)))
    texts = [every[row] for row in order]
    heads: list[list[Head]] = [[] for _ in order]
    ids: list[list[str]] = [[] for _ in order]
    for level in range(len(edges)):
        begin = 0
        for at in range(1, len(texts) + 1):
            if at < len(texts) and level < len(edges) - 1 and texts[at][: level + 1] == texts[begin][: level + 1]:
                continue
            head = Head(texts[begin][level], at - begin, f"r{level}-{begin}")
            heads[begin].append(head)
            for row in range(begin, at):
                ids[row].append(head.id)
            begin = at
    return [tuple(found) for found in heads], [" ".join(found) for found in ids]
