"""Charts of a view: which one suits it, and what goes into it; matrices among them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.charts.plots import OPEN, Bar, Group, draw_bars, draw_lines
from sfumato.charts.svg import (
    ENGLISH,
    GRID,
    INK,
    SERIES,
    Wording,
    filled,
    in_common,
    moved,
    path,
    room,
    shortened,
    svg,
    wide,
    words,
)
from sfumato.serve.page import maps
from sfumato.serve.page.figures import format_figure
from sfumato.serve.page.language import Language
from sfumato.serve.page.question import ReaderQuestion, pair_of
from sfumato.serve.page.rating import Numbers, absolute_error
from sfumato.serve.page.view import UNSURE, View, ranked

# A matrix: flows between places, or any two variables; the larger the figure, the darker the square.

MOST_CODES = 60
CLASSES = 6
_WIDE, _LONGEST, _TALLEST = 560.0, 250.0, 150.0
_LARGEST, _SMALLEST = 30.0, 9.5
_LONG = 10_000
"""Figures from here on are written in short in the key."""


class _Plan(NamedTuple):
    """Where the squares lie: the corner, and the side of one."""

    left: float
    top: float
    size: float

    def at(self, row: float, column: float) -> str:
        """The corner of a square."""
        return f"{self.left + column * self.size:g} {self.top + row * self.size:g}"


def draw_matrix(
    values: Numbers,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    sides: tuple[str, str],
    name: str,
    text: Callable[[float], str],
    wording: Wording = ENGLISH,
) -> str:
    """Squares in as many shades as `CLASSES`, each for the same number of positive figures; `text` writes figures."""
    size = max(min(_WIDE / max(len(columns), len(rows), 1), _LARGEST), _SMALLEST)
    beside = min(wide(sides[0]) + 40, _LONGEST)
    plan = _Plan(max(room(rows, _LONGEST), beside), room(columns, _TALLEST) + 24, size)
    positive = values[np.isfinite(values) & (values > 0)]
    bounds = np.unique(np.quantile(positive, np.linspace(0, 1, CLASSES + 1))) if positive.size else np.array([0.0, 1.0])
    shades = max(len(bounds) - 1, 1)
    shade = np.clip(np.searchsorted(bounds, values, side="right"), 1, shades)
    parts = _labels(plan, rows, columns, sides)
    for level in range(1, shades + 1):
        chosen = (shade == level) & np.isfinite(values) & (values > 0)
        parts.append(_squares(np.argwhere(chosen), plan, _opacity(level, shades)))
    gone = "".join(f"M{plan.at(row + 0.5, column + 0.5)}h0.1" for row, column in np.argwhere(np.isnan(values)).tolist())
    if gone:
        parts.append(path(gone, kind="gone", stroke=INK))
    right, bottom = plan.left + len(columns) * size, plan.top + len(rows) * size
    parts.append(path(f"M{plan.at(0, 0)}H{right:g}V{bottom:g}H{plan.left:g}Z", kind="frame", stroke=GRID))
    width = max(right + 16, 760.0)
    key, end = _key(
        [_short(float(bound), text, wording) for bound in bounds], shades, bottom + 26, width, wording, gone=bool(gone)
    )
    return svg([*parts, *key], width=width, height=end + 12, name=name)


def _labels(plan: _Plan, rows: Sequence[str], columns: Sequence[str], sides: tuple[str, str]) -> list[str]:
    """The names of both sides, of rows to the left and of columns above, turned."""
    small = "label small" if plan.size < 12 else "label"
    parts = [
        words(plan.left, 14, f"{shortened(sides[1:], _WIDE)[0]} →", kind="tick", full=f"{sides[1]} →"),
        words(
            plan.left - 8,
            plan.top - 6,
            f"{shortened(sides[:1], plan.left - 24)[0]} ↓",
            anchor="end",
            kind="tick",
            full=f"{sides[0]} ↓",
        ),
    ]
    for at, (label, shown) in enumerate(zip(rows, shortened(rows, plan.left - 12), strict=True)):
        y = plan.top + (at + 0.5) * plan.size + 4
        parts.append(words(plan.left - 8, y, shown, anchor="end", kind=small, full=label))
    for at, (label, shown) in enumerate(zip(columns, shortened(columns, plan.top - 30), strict=True)):
        x = plan.left + (at + 0.5) * plan.size + 4
        turned = words(0, 0, shown, kind=small, full=label)
        parts.append(moved([turned], x, plan.top - 6, turned=-90))
    return parts


def _squares(places: NDArray[np.int64], plan: _Plan, opacity: float) -> str:
    """All squares of one shade, as one shape."""
    side = plan.size - 1
    shape = "".join(f"M{plan.at(row, column)}h{side:g}v{side:g}h{-side:g}z" for row, column in places.tolist())
    return f'<path d="{shape}" {filled(0)} fill-opacity="{opacity:g}"/>' if shape else ""


def _opacity(level: int, shades: int) -> float:
    return round(0.14 + 0.86 * level / shades, 2)


def _short(value: float, text: Callable[[float], str], wording: Wording) -> str:
    return wording.number(float(f"{value:.3g}")) if abs(value) >= _LONG else text(value)


def _key(
    bounds: Sequence[str], shades: int, y: float, width: float, wording: Wording, *, gone: bool
) -> tuple[list[str], float]:
    """What the shades stand for, in figures, and where that ends."""
    span, say = wording.say("{begin} to {end}"), wording.say
    texts = [span.format(begin=low, end=high) if low != high else low for low, high in pairwise(bounds)] or [*bounds]
    shapes = [(0.0, say("zero or below")), *((_opacity(at, shades), text) for at, text in enumerate(texts, start=1))]
    parts, x = [], 10.0
    for opacity, text in [*shapes, *([(-1.0, say("not published"))] if gone else [])]:
        if x > 10 and x + wide(text) + 40 > width:
            x, y = 10.0, y + 20
        square = f'x="{x:g}" y="{y - 11:g}" width="14" height="14"'
        if opacity >= 0:
            parts.append(f'<rect {square} {filled(0)} fill-opacity="{opacity:g}"/>')
        else:
            parts.append(path(f"M{x + 7:g} {y - 4:g}h0.1", kind="gone", stroke=INK))
        parts.append(f'<rect {square} class="frame" fill="none" stroke="{GRID}"/>')
        parts.append(words(x + 20, y, text, kind="tick"))
        x += wide(text) + 44
    return parts, y


MOST_BARS = 60
MOST_WHISKERS = 8
"""More bars side by side leave no room for the lines that show their uncertainty."""
MOST_SIDE_BY_SIDE = 5
"""With more columns a matrix is easier to read than bars."""
MOST_RANKS = 25
MOST_SERIES = len(SERIES)
MOST_UPRIGHT = 4
"""More lines side by side leave no room for those that show their uncertainty."""
_UNCERTAIN = "Lines through the bars show the uncertainty; ranks whose lines overlap may be the other way round."


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A drawing, and what is to be said of it."""

    kind: str
    title: str
    svg: str
    notes: tuple[str, ...] = ()


def _has_word(label: str, unit: str) -> bool:
    """Whether a label names the unit already: "Jobs per worker" the jobs, but "Output" no tons in t."""
    return re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", label, re.IGNORECASE) is not None


def chart_of(view: View, question: ReaderQuestion, name: str, *, linked: bool = True) -> Chart | None:
    """The chart that was asked for, or the one that suits the view; None where there is nothing to draw.

    Maps are `linked` with the table that they stand above.
    """
    kind = question.display.chart
    if kind == "auto":
        kind = _suited(view, question)
    if kind == "none" or not np.isfinite(view.values[..., view.first]).any():
        return None
    metric, say = view.metrics[view.first], question.say
    several = view.measured != metric.label  # figures of several kinds have no common unit
    unit = "%" if view.percent and metric.additive else "" if several and view.measured else metric.unit
    label = say.label(view.measured or metric.label)
    title = label if not unit or _has_word(metric.label, unit) else f"{label} ({say(unit)})"
    title = f"{title}: {say.within(say(view.way))}" if view.way else title
    if kind == "lines":
        return _lines(view, title, name, question) or _bars(view, title, name, say)
    if kind == "map":
        drawn = maps.draw(view, title=title, name=name, linked=linked, directed=question.directed, say=say)
        return (
            Chart(kind=kind, title=title, svg=drawn.svg, notes=drawn.notes) if drawn else _bars(view, title, name, say)
        )
    if kind == "matrix":
        return _matrix(view, title, name, say)
    return _ranking(view, title, name, say) if kind == "ranking" else _bars(view, title, name, say)


def _suited(view: View, question: ReaderQuestion) -> str:
    if any(edge.time and len(edge.texts) > 1 for edge in (*view.rows, *view.columns)):
        return "lines"
    if maps.suits_map(view):
        return "map"
    placed = [variable.dimension for place in ("rows", "columns") for variable in question.placed(place)]
    columns = view.values.shape[1] - int(view.column_totals().sum())
    return "matrix" if (pair_of(placed) and columns > 1) or columns > MOST_SIDE_BY_SIDE else "bars"


def _parts(view: View) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The texts of every row and of every column, one for each variable."""
    rows, columns = (list(product(*(edge.texts for edge in edges))) for edges in (view.rows, view.columns))
    return rows, columns


def _joined_labels(view: View) -> tuple[list[str], list[str]]:
    rows, columns = ([", ".join(parts) for parts in every] for every in _parts(view))
    return rows, columns


def _bounds(view: View) -> tuple[Numbers, Numbers] | None:
    """Both ends of the uncertainty of the first figure: its interval, or one error to both sides; infinite if open."""
    value = view.metrics[view.first]
    kinds = {metric.kind: at for at, metric in enumerate(view.metrics) if metric.about == value.code}
    figures = view.values[..., view.first]
    if "low" in kinds and "high" in kinds:
        low, high = (view.values[..., kinds[end]] for end in ("low", "high"))
    else:
        errors = absolute_error(view.metrics, view.values, view.first)
        if errors is None:
            return None
        low, high = figures - errors, figures + errors
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _bar(view: View, bounds: tuple[Numbers, Numbers] | None, row: int, column: int, say: Language) -> Bar:
    value = float(view.values[row, column, view.first])
    metric = view.metrics[view.first]
    low, high = (float(ends[row, column]) for ends in bounds) if bounds else (np.nan, np.nan)
    text = say.figures(format_figure(value, metric, percent=view.percent))
    if not np.isfinite(value):
        unsure = view.remarks[row, column, view.first] in UNSURE
        text = say("left out: too uncertain") if unsure else say("not published")
    return Bar(value, low, high, text)


def _bars(view: View, title: str, name: str, say: Language) -> Chart:
    """Bars for the rows, one for each column; totals are left out, because they dwarf the rest."""
    rows = _without_totals(view.order, view.row_totals().tolist())
    columns = _without_totals(range(view.values.shape[1]), view.column_totals().tolist())
    series = columns[:MOST_SERIES]
    kept = rows[: max(MOST_BARS // len(series), 1)]
    row_parts, column_parts = _parts(view)
    bounds = _bounds(view) if len(series) <= MOST_WHISKERS else None
    parts, shared = _told_apart([row_parts[row] or (title,) for row in kept])
    groups = [
        Group(own, [_bar(view, bounds, row, column, say) for column in series], ", ".join(row_parts[row]) or title)
        for own, row in zip(parts, kept, strict=True)
    ]
    notes = _cut(len(kept), len(rows), "row", say) + _cut(len(series), len(columns), "column", say)
    names = [", ".join(column_parts[column]) for column in series] if len(columns) > 1 else []
    title = f"{title}: {shared}" if shared else title
    opened = [
        f"{group.full}, {one}" if names else group.full
        for group in groups
        for one, bar in zip(names or [""], group.bars, strict=True)
        if bar.is_open
    ]
    untold = say("No limit to the error, or none that can be told: {figures}.", figures="; ".join(opened))
    drawn = draw_bars(
        groups, names, title=title, name=name, description=untold if opened else "", wording=_wording(say)
    )
    return Chart(kind="bars", title=title, svg=drawn, notes=notes + _open(len(opened), say))


def _ranking(view: View, title: str, name: str, say: Language) -> Chart:
    """The largest figures of the whole table, with their ranks."""
    rows = _without_totals(ranked(view), view.row_totals().tolist())
    columns = _without_totals(range(view.values.shape[1]), view.column_totals().tolist())
    places = [(row, column) for row in rows for column in columns if np.isfinite(view.values[row, column, view.first])]
    places.sort(key=lambda place: -view.values[place[0], place[1], view.first])
    row_parts, column_parts = _parts(view)
    bounds, shown = _bounds(view), places[:MOST_RANKS]
    full = [(*row_parts[row], *column_parts[column]) for row, column in shown]
    parts, shared = _told_apart(full)
    groups = [
        Group(own, [_bar(view, bounds, *place, say)], f"{rank}. {', '.join(every)}", f"{rank}. ")
        for rank, (own, every, place) in enumerate(zip(parts, full, shown, strict=True), start=1)
    ]
    notes = _cut(len(groups), len(places), "figure", say) + ((say(_UNCERTAIN),) if bounds else ())
    title = f"{title}: {shared}" if shared else title
    description = "; ".join(f"{group.full}: {_read_out(group.bars[0], say)}" for group in groups)
    drawn = draw_bars(groups, [], title=title, name=name, description=description, wording=_wording(say))
    opened = sum(group.bars[0].is_open for group in groups)
    return Chart(kind="ranking", title=title, svg=drawn, notes=notes + _open(opened, say))


def _told_apart(labels: list[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], str]:
    """The parts of labels that differ, and those that all of them share, in one text."""
    same = in_common(labels)
    if all(same):
        return labels, ""
    differing = [tuple(text for text, shared in zip(parts, same, strict=True) if not shared) for parts in labels]
    return differing, ", ".join(text for text, shared in zip(labels[0], same, strict=True) if shared)


def _read_out(bar: Bar, say: Language) -> str:
    """A figure, and whether its error can be told."""
    return say("{figure}, no limit to the error", figure=bar.text) if bar.is_open else bar.text


def _open(count: int, say: Language) -> tuple[str, ...]:
    many = say("There is one.") if count == 1 else say("There are {count}.", count=count)
    return (f"{say(OPEN)} {many}",) if count else ()


def _wording(say: Language) -> Wording:
    """The language of a reader for drawings."""
    return Wording(say=say, figures=say.figures)


def _lines(view: View, title: str, name: str, question: ReaderQuestion) -> Chart | None:
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
    say, bounds = question.say, _bounds(view) if len(series) <= MOST_UPRIGHT else None
    ends: list[list[tuple[float, float]]] = []
    if bounds:
        low, high = (np.moveaxis(end.reshape(shape), time, -1).reshape(-1, shape[time]) for end in bounds)
        kept = [at for at in sorted(highest.tolist()) if heights[at] >= 0]
        ends = [list(zip(low[at].tolist(), high[at].tolist(), strict=True)) for at in kept]
    drawn = draw_lines(series, edges[time].texts, title=title, name=name, ends=ends, wording=_wording(say))
    there = int((heights >= 0).sum())
    text = say("The chart shows the {shown} highest of {all} lines.", shown=len(series), all=say.number(there))
    notes = (text,) if len(series) < there else ()
    return Chart(kind="lines", title=title, svg=drawn, notes=notes)


def _matrix(view: View, title: str, name: str, say: Language) -> Chart:
    """A square for every row and column, the darker the larger the figure."""
    rows = _without_totals(view.order, view.row_totals().tolist())
    columns = _without_totals(range(view.values.shape[1]), view.column_totals().tolist())
    row_texts, column_texts = _joined_labels(view)
    shown_rows, shown_columns = rows[:MOST_CODES], columns[:MOST_CODES]
    drawn = draw_matrix(
        view.values[np.ix_(shown_rows, shown_columns)][..., view.first],
        [row_texts[row] for row in shown_rows],
        [column_texts[column] for column in shown_columns],
        sides=(", ".join(edge.label for edge in view.rows), ", ".join(edge.label for edge in view.columns)),
        name=name,
        text=lambda value: say.figures(format_figure(value, view.metrics[view.first], percent=view.percent)),
        wording=_wording(say),
    )
    notes = _cut(len(shown_rows), len(rows), "row", say) + _cut(len(shown_columns), len(columns), "column", say)
    return Chart(kind="matrix", title=title, svg=drawn, notes=notes)


def _without_totals(places: object, totals: list[bool]) -> list[int]:
    every = list(places)  # type: ignore[call-overload]
    return [place for place in every if not totals[place]] or every


def _cut(shown: int, there: int, what: str, say: Language) -> tuple[str, ...]:
    text = say("The chart shows {shown} of {all}.", shown=say.number(shown), all=say.count(there, what))
    return (text,) if shown < there else ()
