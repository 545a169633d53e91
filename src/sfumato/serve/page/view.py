"""An answer laid out for a page: rows, columns, percentages, and how far figures can be relied on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags
from sfumato.geography.project import Projected
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import Marks, Metric, Selection, ServedDimension, ServedTable
from sfumato.serve.core.status import REMARKS
from sfumato.serve.page.changes import CHANGES, NO_PERIODS, changes
from sfumato.serve.page.language import Language
from sfumato.serve.page.question import PERCENTAGES, Place, ReaderQuestion
from sfumato.serve.page.rating import Numbers
from sfumato.statistics.totals.question import TOTAL

# The figures behind a view: the answer of a table as one block of numbers, with published totals at its edges.


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Figures by the dimensions that were asked for, in the order of the table, and by metric."""

    values: Numbers
    """Not a number where there is none."""
    remarks: Marks
    """The numbers of `status.REMARKS`."""
    notes: tuple[str, ...] = ()


def gather(table: ServedTable, selection: Selection, totals: Sequence[int] = ()) -> Block:
    """The answer to a selection; axes of `totals` get one more entry, the published total over them."""
    if not totals:
        answer = table.answer(selection)
        values = np.stack([column.values.astype(np.float64) for column in answer.columns], axis=-1)
        for at, column in enumerate(answer.columns):
            if column.missing is not None:
                values[..., at][column.missing] = np.nan
        return Block(values=values, remarks=answer.remarks(), notes=answer.notes)
    axis, *others = totals
    inside = gather(table, selection, others)
    over = gather(table, without(selection, [axis]), others)
    at = sum(places is not None for places in selection.places[:axis])
    return Block(
        values=np.concatenate([inside.values, np.expand_dims(over.values, at)], axis=at),
        remarks=np.concatenate([inside.remarks, np.expand_dims(over.remarks, at)], axis=at),
        notes=tuple(dict.fromkeys((*inside.notes, *over.notes))),
    )


def without(selection: Selection, axes: Sequence[int]) -> Selection:
    """The selection with some dimensions left out."""
    places = tuple(None if axis in axes else places for axis, places in enumerate(selection.places))
    return replace(selection, places=places, groupings=tuple(g for g in selection.groupings if g[0] not in axes))


def published_total(
    table: ServedTable, selection: Selection, over: Sequence[int], totals: Sequence[int]
) -> Numbers | None:
    """The published totals over some dimensions, with length one in their place; None where there are none."""
    try:
        block = gather(table, without(selection, over), [axis for axis in totals if axis not in over])
    except RefusedError:
        return None
    values = block.values
    for axis in sorted(over):
        values = np.expand_dims(values, sum(places is not None for places in selection.places[:axis]))
    return values


# Figures as parts of a whole: of published totals where there are any, otherwise of what is shown.

_WHOLE: dict[str, tuple[Place, ...]] = {"row": ("columns",), "column": ("rows",), "total": ("rows", "columns")}
_NOT_PARTS = "These figures are not parts of a whole: they are shown as they are, not as percentages."
_OF_TOTALS = (
    "Percentages are of the published totals over all codes; these were protected too, so parts need not add up."
)
_OF_SUMS = "Percentages are of the sum of the figures in this table: no total over them is published."
_ERRORS = "Errors of percentages take the total for exact."


def percentages(
    question: ReaderQuestion,
    asked: Selection,
    *,
    totals: Sequence[int],
    placed: Mapping[Place, Sequence[int]],
    metrics: Sequence[Metric],
    values: Numbers,
) -> tuple[Numbers, list[str]]:
    """Values with their errors and bounds as percentages, and what is to be said of them.

    `values` have an axis for every dimension of `asked` that is not left out; those of `totals` end with a total.
    """
    if not any(metric.additive for metric in metrics if metric.kind == "value"):
        return values, [question.say(_NOT_PARTS)]
    over = [axis for place in _WHOLE[question.display.percent] for axis in placed[place]]
    base = published_total(question.table, asked, over, totals)
    notes = [question.say(_OF_SUMS if base is None else _OF_TOTALS), question.say(_ERRORS)]
    if base is None:
        base = _sums(question, asked, over, values)
    found = values.copy()
    places = {metric.code: at for at, metric in enumerate(metrics)}
    for at, metric in enumerate(metrics):
        of = places.get(metric.about or metric.code)
        if metric.kind in ("other", "rse") or of is None or not metrics[of].additive:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            share = 100 * values[..., at] / base[..., of]
        found[..., at] = np.where(np.isfinite(share), share, np.nan)
    return found, notes


def _sums(question: ReaderQuestion, asked: Selection, over: Sequence[int], values: Numbers) -> Numbers:
    """Sums of the published figures over some dimensions, without what is a total already."""
    kept = [axis for axis, places in enumerate(asked.places) if places is not None]
    for axis in over:
        dimension, places = question.dimensions[axis], asked.places[axis] or ()
        total = None if dimension.total is None else dimension.places[dimension.total]
        single = [at for at, place in enumerate(places) if place != total]
        # An added total is beyond the places that were asked for, and so is left out as well.
        at = kept.index(axis)
        values = np.nansum(np.take(values, single or [0], axis=at), axis=at, keepdims=True)
    return values


T = TypeVar("T", bound=np.generic)
UNSURE = [number for number, remark in enumerate(REMARKS) if remark.mark > 1]
"""What is said of values that are too uncertain for most uses."""
_TOTAL = "Total"
_GENERAL, _INDICATOR = "Value", "Indicator"
"""What figures of several kinds are called, and the variable that tells them apart."""


class Edge(NamedTuple):
    """One variable along an edge of the table: its entries, and which of them is the total."""

    label: str
    texts: tuple[str, ...]
    total: int | None
    time: bool
    members: tuple[tuple[str, ...], ...] = ()
    """Of every entry but an added total the single codes that it stands for."""
    geography: Projected | None = None
    """The map that the codes are on."""
    origin: bool = False
    """Whether it is where something comes from."""

    @property
    def single(self) -> list[int]:
        """The places of all entries but the total, or of the total where it is alone."""
        every = range(len(self.texts))
        return [at for at in every if at != self.total] or list(every)


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """What is shown: figures by row, column and metric, with everything that is said of them."""

    rows: tuple[Edge, ...]
    columns: tuple[Edge, ...]
    pages: tuple[Edge, ...]
    page: int
    """Which combination of the pages' entries, from 0."""
    metrics: tuple[Metric, ...]
    """Those that are shown, and after them those that marks and charts need."""
    shown: int
    """How many of the metrics are shown."""
    values: Numbers
    """By row, column and metric; not a number where there is no figure."""
    remarks: Marks
    """What is said of every figure, by its number in `status.REMARKS`."""
    order: tuple[int, ...]
    """The rows in the order in which they are shown."""
    percent: bool
    way: str
    """What figures are shown as, where not as themselves: percentages or changes."""
    notes: tuple[str, ...]
    rated: bool
    """Whether there are error figures that marks can be made from."""
    corner: tuple[int, int] = (0, 0)
    """The first row and the first column that are shown of a table too large for a page."""

    @property
    def page_count(self) -> int:
        """How many combinations of the filters' codes there are."""
        return prod(len(edge.texts) for edge in self.pages)

    @property
    def page_texts(self) -> tuple[tuple[str, str], ...]:
        """The variables of the filters with the code that is shown."""
        chosen = np.unravel_index(self.page, tuple(len(edge.texts) for edge in self.pages)) if self.pages else ()
        return tuple((edge.label, edge.texts[int(at)]) for edge, at in zip(self.pages, chosen, strict=True))

    @property
    def measured(self) -> str:
        """What the first figure is: of figures of several kinds the one that is chosen, or nothing."""
        label = self.metrics[self.first].label
        return label if label != _GENERAL else next((text for name, text in self.page_texts if name == _INDICATOR), "")

    @property
    def first(self) -> int:
        """The place of the metric that charts show and rows are ordered by."""
        return next((at for at, metric in enumerate(self.metrics[: self.shown]) if metric.kind == "value"), 0)

    def row_totals(self) -> Flags:
        """Which rows are totals over something."""
        return _totals(self.rows)

    def column_totals(self) -> Flags:
        """Which columns are totals over something."""
        return _totals(self.columns)


def view_of(question: ReaderQuestion, selection: Selection) -> View:
    """Answer a question and lay the answer out."""
    table, display = question.table, question.display
    metrics = _with_errors(table.metrics, selection.metrics)
    asked = replace(selection, metrics=metrics)
    axis_of = {dimension.name: axis for axis, dimension in enumerate(table.dimensions)}
    placed: dict[Place, list[int]] = {
        place: [axis_of[v.name] for v in question.placed(place) if asked.places[axis_of[v.name]] is not None]
        for place in ("filter", "rows", "columns")
    }
    totals: list[int] = []
    if display.totals:
        asked, totals = _with_totals(question.dimensions, asked, [*placed["rows"], *placed["columns"]])
    block = gather(table, asked, totals)
    notes = [*block.notes]
    kept = [axis for axis, places in enumerate(asked.places) if places is not None]
    edges = {
        axis: _edge(
            question.dimensions[axis],
            asked.places[axis] or (),
            table.dimensions[axis] if axis in totals else None,
            question.say,
        )
        for axis in kept
    }
    chosen = tuple(table.metrics[place] for place in metrics)
    shown_axes = (*placed["rows"], *placed["columns"])
    values = block.values
    remarks = block.remarks
    way = PERCENTAGES[display.percent] if display.percent != "none" else ""
    if display.percent in CHANGES:
        time = next((at for at, axis in enumerate(kept) if edges[axis].time and axis in shown_axes), None)
        if time is None or len(edges[kept[time]].texts) < 2:
            notes.append(question.say(NO_PERIODS))
            way = ""
        else:
            growth = display.percent == "growth"
            chosen = tuple(replace(metric, additive=metric.additive or growth) for metric in chosen)
            values, remarks, said = changes(chosen, values, remarks, time=time, percent=growth, say=question.say)
            notes += said
    elif display.percent != "none":
        values, said = percentages(question, asked, totals=totals, placed=placed, metrics=chosen, values=values)
        notes += said
        way = way if any(metric.additive for metric in chosen if metric.kind == "value") else ""
    order = [kept.index(axis) for axes in placed.values() for axis in axes]
    shape = tuple(prod(len(edges[axis].texts) for axis in axes) for axes in placed.values())
    page = min(display.page, shape[0]) - 1

    def laid_out(array: NDArray[T]) -> NDArray[T]:
        found: NDArray[T] = array.transpose([*order, array.ndim - 1]).reshape(*shape, array.shape[-1])[page]
        return found

    view = View(
        rows=tuple(edges[axis] for axis in placed["rows"]),
        columns=tuple(edges[axis] for axis in placed["columns"]),
        pages=tuple(edges[axis] for axis in placed["filter"]),
        page=page,
        metrics=chosen,
        shown=len(selection.metrics),
        values=laid_out(values),
        remarks=laid_out(remarks),
        order=tuple(range(shape[1])),
        percent=display.percent not in ("none", "change"),
        way=way,
        notes=tuple(notes),
        rated=any(table.rating[place] for place in metrics),
        corner=(display.row - 1, display.column - 1),
    )
    if display.unsure == "hidden":
        view = replace(view, values=_without_unsure(view))
    # Who asks for a ranking wants to read it in the table as well.
    order_asked = "largest" if (display.order, display.chart) == ("listed", "ranking") else display.order
    return view if order_asked == "listed" else replace(view, order=ranked(view, largest=order_asked == "largest"))


def _without_unsure(view: View) -> Numbers:
    """The figures without values that are too uncertain for most uses, and without what is said of such."""
    unsure = np.isin(view.remarks, UNSURE)
    places = {metric.code: at for at, metric in enumerate(view.metrics)}
    hidden = [unsure[..., places.get(metric.about or metric.code, at)] for at, metric in enumerate(view.metrics)]
    return np.where(np.stack(hidden, axis=-1), np.nan, view.values)


def ranked(view: View, *, largest: bool = True) -> tuple[int, ...]:
    """The rows by their first figure; those without a figure after the others, and totals at the end."""
    figures = view.values[:, 0, view.first] if view.values.size else np.zeros(0)
    figures = -figures if largest else figures
    keys = np.where(np.isnan(figures), np.inf, figures)
    return tuple(np.lexsort((keys, np.isnan(figures), view.row_totals())).tolist())


def _with_errors(metrics: Sequence[Metric], shown: Sequence[int]) -> tuple[int, ...]:
    """The metrics that are shown, then the errors and bounds of those values."""
    codes = {metrics[place].code for place in shown}
    about = [p for p, metric in enumerate(metrics) if metric.about in codes and p not in shown]
    return (*shown, *about)


def _with_totals(
    dimensions: Sequence[ServedDimension], asked: Selection, axes: Sequence[int]
) -> tuple[Selection, list[int]]:
    """The selection with the codes of totals, and the axes whose totals are answers of their own."""
    places, totals = list(asked.places), []
    for axis in axes:
        dimension, chosen = dimensions[axis], places[axis]
        if dimension.total is not None:
            places[axis] = tuple(sorted({*(chosen or ()), dimension.places[dimension.total]}))
        elif dimension.eliminable and len(chosen or ()) > 1 and dimension.places.get(TOTAL) not in (chosen or ()):
            totals.append(axis)  # a group of all codes is their total already
    return replace(asked, places=tuple(places)), totals


def _edge(dimension: ServedDimension, places: Sequence[int], added: ServedDimension | None, say: Language) -> Edge:
    """The labels of the codes that are shown, and of a total over the whole dimension if one is added."""
    texts = tuple(dimension.labels[place] for place in places)
    on_map = (tuple(map(dimension.members, places)), dimension.geography, bool(dimension.destination))
    if added is not None:
        single = sorted(code for place in places for code in dimension.members(place))
        everything = single == sorted(added.codes)
        whole = say(_TOTAL) if everything else say("Total of all {size}", size=say.number(len(added)))
        return Edge(dimension.label, (*texts, whole), len(texts), dimension.role == "time", *on_map)
    total = None if dimension.total is None else dimension.places[dimension.total]
    at = places.index(total) if total in places else None
    return Edge(dimension.label, texts, at, dimension.role == "time", *on_map)


def _totals(edges: Sequence[Edge]) -> Flags:
    flags = np.zeros(1, dtype=np.bool_)
    for edge in edges:
        here = np.zeros(len(edge.texts), dtype=np.bool_)
        if edge.total is not None:
            here[edge.total] = True
        flags = (flags[:, None] | here[None, :]).ravel()
    return flags
