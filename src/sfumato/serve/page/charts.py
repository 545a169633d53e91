"""Charts of a view: which one suits it, and what goes into it; drawn on the server, beside the table it shows."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from sfumato.serve.page.bars import Bar, draw_bars
from sfumato.serve.page.drawing import SERIES
from sfumato.serve.page.figures import Numbers
from sfumato.serve.page.lines import draw_lines
from sfumato.serve.page.matrix import MOST_CODES, draw_matrix
from sfumato.serve.page.question import Question
from sfumato.serve.page.reading import pair_of
from sfumato.serve.page.sheet import written
from sfumato.serve.page.view import View, ranked

MOST_BARS = 60
MOST_WHISKERS = 3
"""More bars side by side leave no room for the lines that show their uncertainty."""
MOST_SIDE_BY_SIDE = 5
"""With more columns a matrix is easier to read than bars."""
MOST_RANKS = 25
MOST_SERIES = len(SERIES)
_UNCERTAIN = "Lines through the bars show the uncertainty; ranks whose lines overlap may be the other way round."


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing, and what is to be said of it."""

    kind: str
    title: str
    svg: str
    notes: tuple[str, ...] = ()


def chart_of(view: View, question: Question, name: str) -> Chart | None:
    """The chart that was asked for, or the one that suits the view; None where there is nothing to draw."""
    kind = question.display.chart
    if kind == "auto":
        kind = _suited(view, question)
    if kind == "none" or not np.isfinite(view.values[..., view.first]).any():
        return None
    metric = view.metrics[view.first]
    unit = "%" if view.percent and metric.additive else metric.unit
    title = metric.label if not unit or unit.lower() == metric.label.lower() else f"{metric.label} ({unit})"
    if kind == "lines":
        return _lines(view, title, name) or _bars(view, title, name)
    if kind == "matrix":
        return _matrix(view, title, name)
    return _ranking(view, title, name) if kind == "ranking" else _bars(view, title, name)


def _suited(view: View, question: Question) -> str:
    if any(edge.time and len(edge.texts) > 1 for edge in (*view.rows, *view.columns)):
        return "lines"
    placed = [variable.dimension for place in ("rows", "columns") for variable in question.placed(place)]
    columns = view.values.shape[1] - int(view.column_totals().sum())
    return "matrix" if (pair_of(placed) and columns > 1) or columns > MOST_SIDE_BY_SIDE else "bars"


def _labels(view: View) -> tuple[list[str], list[str]]:
    rows, columns = (
        [", ".join(texts) for texts in product(*(edge.texts for edge in edges))] for edges in (view.rows, view.columns)
    )
    return rows, columns


def _bounds(view: View) -> tuple[Numbers, Numbers] | None:
    """Both ends of the uncertainty of the first figure: its interval, or one error to both sides."""
    value = view.metrics[view.first]
    kinds = {metric.kind: at for at, metric in enumerate(view.metrics) if metric.about == value.code}
    if "low" in kinds and "high" in kinds:
        return view.values[..., kinds["low"]], view.values[..., kinds["high"]]
    if "error" in kinds:
        figures, errors = view.values[..., view.first], view.values[..., kinds["error"]]
        return figures - errors, figures + errors
    return None


def _bar(view: View, bounds: tuple[Numbers, Numbers] | None, row: int, column: int) -> Bar:
    value = float(view.values[row, column, view.first])
    metric = view.metrics[view.first]
    low, high = (float(ends[row, column]) for ends in bounds) if bounds else (np.nan, np.nan)
    text = written(value, metric, percent=view.percent) if np.isfinite(value) else "not published"
    return Bar(value, low, high, text)


def _bars(view: View, title: str, name: str) -> Chart:
    """Bars for the rows, one for each column; totals are left out, because they dwarf the rest."""
    rows = _without_totals(view.order, view.row_totals().tolist())
    columns = _without_totals(range(view.values.shape[1]), view.column_totals().tolist())
    series = columns[:MOST_SERIES]
    kept = rows[: max(MOST_BARS // len(series), 1)]
    row_texts, column_texts = _labels(view)
    bounds = _bounds(view) if len(series) <= MOST_WHISKERS else None
    groups = [(row_texts[row] or title, [_bar(view, bounds, row, column) for column in series]) for row in kept]
    notes = _cut(len(kept), len(rows), "rows") + _cut(len(series), len(columns), "columns")
    names = [column_texts[column] for column in series] if len(columns) > 1 else []
    return Chart(kind="bars", title=title, svg=draw_bars(groups, names, title=title, name=name), notes=notes)


def _ranking(view: View, title: str, name: str) -> Chart:
    """The largest figures of the whole table, with their ranks."""
    rows = _without_totals(ranked(view), view.row_totals().tolist())
    columns = _without_totals(range(view.values.shape[1]), view.column_totals().tolist())
    places = [(row, column) for row in rows for column in columns if np.isfinite(view.values[row, column, view.first])]
    places.sort(key=lambda place: -view.values[place[0], place[1], view.first])
    row_texts, column_texts = _labels(view)
    bounds = _bounds(view)
    groups = []
    for rank, (row, column) in enumerate(places[:MOST_RANKS], start=1):
        text = ", ".join(filter(None, (row_texts[row], column_texts[column] if len(columns) > 1 else "")))
        groups.append((f"{rank}. {text}", [_bar(view, bounds, row, column)]))
    notes = _cut(len(groups), len(places), "figures") + ((_UNCERTAIN,) if bounds else ())
    return Chart(kind="ranking", title=title, svg=draw_bars(groups, [], title=title, name=name), notes=notes)


def _lines(view: View, title: str, name: str) -> Chart | None:
    """Lines over time for the other variables; None where time is not among rows and columns."""
    edges = (*view.rows, *view.columns)
    time = next((at for at, edge in enumerate(edges) if edge.time and len(edge.texts) > 1), None)
    if time is None:
        return None
    shape = tuple(len(edge.texts) for edge in edges)
    figures = np.moveaxis(view.values[..., view.first].reshape(shape), time, -1).reshape(-1, shape[time])
    others = [edge for at, edge in enumerate(edges) if at != time]
    names = [", ".join(texts) for texts in product(*(edge.texts for edge in others))]
    # Of many lines the highest are drawn; those that are all gaps say nothing.
    heights = np.nanmax(np.where(np.isfinite(figures), np.abs(figures), -1.0), axis=1)
    highest = np.argsort(-heights, kind="stable")[:MOST_SERIES]
    series = [(names[at] or title, figures[at].tolist()) for at in sorted(highest.tolist()) if heights[at] >= 0]
    drawn = draw_lines(series, edges[time].texts, title=title, name=name)
    notes = (f"The chart shows the {len(series)} highest of {len(names):,} lines.",) if len(series) < len(names) else ()
    return Chart(kind="lines", title=title, svg=drawn, notes=notes)


def _matrix(view: View, title: str, name: str) -> Chart:
    """A square for every row and column, the darker the larger the figure."""
    rows = _without_totals(view.order, view.row_totals().tolist())
    columns = _without_totals(range(view.values.shape[1]), view.column_totals().tolist())
    row_texts, column_texts = _labels(view)
    shown_rows, shown_columns = rows[:MOST_CODES], columns[:MOST_CODES]
    drawn = draw_matrix(
        view.values[np.ix_(shown_rows, shown_columns)][..., view.first],
        [row_texts[row] for row in shown_rows],
        [column_texts[column] for column in shown_columns],
        sides=(", ".join(edge.label for edge in view.rows), ", ".join(edge.label for edge in view.columns)),
        name=name,
        text=lambda value: written(value, view.metrics[view.first], percent=view.percent),
    )
    notes = _cut(len(shown_rows), len(rows), "rows") + _cut(len(shown_columns), len(columns), "columns")
    return Chart(kind="matrix", title=title, svg=drawn, notes=notes)


def _without_totals(places: object, totals: list[bool]) -> list[int]:
    every = list(places)  # type: ignore[call-overload]
    return [place for place in every if not totals[place]] or every


def _cut(shown: int, there: int, what: str) -> tuple[str, ...]:
    return (f"The chart shows {shown:,} of {there:,} {what}.",) if shown < there else ()
