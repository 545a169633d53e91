"""Charts: bars with their uncertainty, panels of points, lines, steps and columns, lines over time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

from sfumato.charts.svg import (
    ENGLISH,
    INK,
    LINE,
    PAPER,
    QUIET,
    SERIES,
    Kind,
    Scale,
    Wording,
    centred,
    distinct,
    filled,
    key,
    label,
    moved,
    number,
    path,
    room,
    scale,
    shortened,
    square,
    stroked,
    svg,
    wide,
    words,
)

# Horizontal bars in groups, with lines for the uncertainty of each.

OPEN = "Dashed arrows: the error has no limit, or is beyond its scale."
_WIDTH, _LABELS, _RIGHT = 760.0, 240.0, 96.0
_GAP = 8.0
_LINES = 2
_DASH = "4 3"
_HEAD = 5.0


class Bar(NamedTuple):
    """A figure, the ends of its uncertainty where it has any, infinite where there is no limit, and its text."""

    value: float
    low: float
    high: float
    text: str

    @property
    def ends(self) -> tuple[float, float] | tuple[()]:
        """The ends of the uncertainty."""
        return (self.low, self.high) if isfinite(self.value) and self.high > self.low else ()

    @property
    def is_open(self) -> bool:
        """Whether the uncertainty has no limit on a side."""
        return inf in map(abs, self.ends)


class Group(NamedTuple):
    """Bars with a label: its parts as far as they tell groups apart, what stands before them, and all in full."""

    parts: tuple[str, ...]
    bars: Sequence[Bar]
    full: str
    before: str = ""


def draw_bars(
    groups: Sequence[Group],
    series: Sequence[str],
    *,
    title: str,
    name: str,
    description: str = "",
    wording: Wording = ENGLISH,
) -> str:
    """Groups of bars with a label each; `series` names the bars of a group where there are several."""
    many = max((len(group.bars) for group in groups), default=1)
    every = [bar for group in groups for bar in group.bars]
    # What stands in place of a bar is a line of text.
    thick = 17.0 if many == 1 else 11.0 if all(isfinite(bar.value) for bar in every) else LINE
    before = max((len(group.before) for group in groups), default=0)
    left = room([group.before + ", ".join(group.parts) for group in groups], _LABELS)
    right = max(_RIGHT, max((wide(bar.text) for bar in every), default=0.0) + 14) if many == 1 else _RIGHT
    across = scale([end for bar in every for end in (bar.value, *bar.ends)], left, _WIDTH - right)
    parts, top = key(series, left, 14, _WIDTH - left) if series else ([], 6.0)
    labels = distinct([group.parts for group in groups], left - 12 - wide(" " * before), _LINES)
    heights = [max(many * thick, len(lines) * LINE) + _GAP for lines in labels]
    bottom = top + sum(heights)
    parts.append(path("".join(f"M{across.at(tick):g} {top:g}V{bottom:g}" for tick in across.ticks), kind="grid"))
    for group, lines, height in zip(groups, labels, heights, strict=True):
        y, middle = top + (height - len(group.bars) * thick) / 2, top + height / 2
        said = [group.before + lines[0], *lines[1:]] if lines else [group.before]
        parts.append(label(left - 10, middle, said, full=group.full))
        for at, bar in enumerate(group.bars):
            parts += _bar(bar, across, y + at * thick, thick - 2, at, text=many == 1)
        top += height
    parts.append(path(f"M{across.at(0):g} {bottom - sum(heights):g}V{bottom:g}", kind="zero", stroke=INK))
    parts += [
        words(across.at(tick), bottom + 16, wording.number(tick), anchor="middle", kind="tick")
        for tick in across.few(wording.number)
    ]
    titles, end = centred((left + _WIDTH - right) / 2, bottom + 36, title, _WIDTH)
    parts += titles
    bottom = end + 8
    if any(bar.is_open for bar in every):
        parts += [
            _whisker(left, left + 30, bottom + 8, 4, opened=(False, True)),
            words(left + 38, bottom + 12, wording.say(OPEN), kind="tick"),
        ]
        bottom += 20
    return svg(parts, width=_WIDTH, height=bottom, name=name, description=description)


def _bar(bar: Bar, across: Scale, y: float, thick: float, series: int, *, text: bool) -> list[str]:
    middle = y + thick / 2
    if not isfinite(bar.value):
        return [words(across.at(0) + 6, middle + 4, bar.text, kind="tick")]
    zero, end = across.at(0), across.at(bar.value)
    shape = f'x="{min(zero, end):g}" y="{y:g}" width="{max(abs(end - zero), 0.5):g}" height="{thick:g}"'
    parts = [f"<rect {shape} {filled(series)}/>"]
    furthest = end
    if bar.ends:
        low, high = (across.at(value) for value in bar.ends)
        parts.append(_whisker(low, high, middle, min(thick / 2, 4), opened=(bar.low == -inf, bar.high == inf)))
        furthest = max(end, high)
    return [*parts, words(max(furthest, zero) + 6, middle + 4, bar.text, kind="tick")] if text else parts


def _whisker(low: float, high: float, middle: float, cap: float, *, opened: tuple[bool, bool]) -> str:
    """A line with a cap at both ends; in dashes, with the head of an arrow in place of the cap where it is open."""
    caps = ""
    for x, is_open, inward in ((low, opened[0], _HEAD), (high, opened[1], -_HEAD)):
        head = f"M{x + inward:g} {middle - cap:g}L{x:g} {middle:g}L{x + inward:g} {middle + cap:g}"
        caps += head if is_open else f"M{x:g} {middle - cap:g}v{2 * cap:g}"
    line = f"M{low:g} {middle:g}H{high:g}"
    kind = "whisker open" if any(opened) else "whisker"
    return (
        path(line + caps, kind="halo", stroke="#ffffff")
        + path(line, kind=kind, stroke=INK, dash=_DASH if any(opened) else "")
        + path(caps, kind=kind, stroke=INK)
    )


# Panels of points, lines, steps, bands and columns, side by side where there are several.

Figures = Sequence[float] | NDArray[Any]
_DASHES = ("", "7 4", "2 3", "10 3 2 3", "4 4", "1 4", "12 4", "6 2 1 2")
_FEW = 40
"""Lines of more points have no marks on them, and more points than that are small."""
_LAYERS = 6
"""A cloud of points is in so many thin layers: it is darker where points lie close."""
_TURN, _COSINE, _SINE = -35.0, 0.82, 0.57
_LONGEST, _BETWEEN = 150.0, 20.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """One side of panels: numbers, or classes, whose places are 0, 1, 2 and so on.

    Panels that are given the same axis have the same ends. `constant` is where a symlog scale begins to bend.
    """

    title: str = ""
    kind: Kind = "linear"
    constant: float = 1.0
    zero: bool = True
    holds: Sequence[float] = ()
    """Numbers that are on the axis beside those drawn."""
    ticks: Sequence[float] = ()
    text: Callable[[float], str] = number
    classes: Sequence[str] = ()
    turned: bool = True
    """Whether names of classes below a panel are turned where they are too long; some are left out otherwise."""

    def scale(self, values: Sequence[float], begin: float, end: float, *, inside: bool = False) -> Scale:
        """Where numbers are between two pixels; the first and the last class lie at the ends, or inside of them."""
        if self.classes:
            last = len(self.classes) - 1
            beside = 0.5 if inside or not last else 0.0
            return Scale(-beside, last + beside, begin, end, tuple(range(last + 1)))
        found = scale([*values, *self.holds], begin, end, kind=self.kind, constant=self.constant, zero=self.zero)
        return found._replace(ticks=tuple(self.ticks)) if self.ticks else found

    def named(self, value: float) -> str:
        """What stands at a tick."""
        return self.classes[int(value)] if self.classes else self.text(value)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Points, a line, steps, columns, or a band from `y` to `top`: of one series, or in ink."""

    kind: Literal["points", "line", "steps", "columns", "band"]
    x: Figures
    y: Figures
    top: Figures = ()
    series: int | None = None
    dash: str | None = None
    texts: Sequence[str] = ()


class Panel(NamedTuple):
    """Marks between two axes."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    title: str = ""


class _Drawn(NamedTuple):
    """A panel with its upper left corner at 0, 0, and the room it needs around."""

    parts: list[str]
    left: float
    above: float
    below: float


def draw_panels(
    panels: Sequence[Panel],
    *,
    title: str,
    series: Sequence[str] = (),
    columns: int = 4,
    size: tuple[float, float] = (320.0, 240.0),
) -> str:
    """Panels in rows, below a title and a key of the series."""
    drawn = [_panel(panel, *_scales(panel, panels, size)) for panel in panels]
    rows = [drawn[at : at + columns] for at in range(0, len(drawn), columns)]
    lefts = [max(row[at].left for row in rows if at < len(row)) for at in range(len(rows[0]))]
    width = max(sum(lefts) + len(lefts) * (size[0] + _BETWEEN), wide(title) + _BETWEEN)
    parts, y = [words(8, 18, title, kind="heading")] if title else [], 40.0 if title else 18.0
    if series:
        first = {
            mark.series: mark for panel in reversed(panels) for mark in reversed(panel.marks) if mark.kind != "band"
        }
        named, y = key(series, 8, y, width - 16, lambda at, x, y: _symbol(first.get(at), at, x, y))
        parts += named
    for row in rows:
        x, y = 0.0, y + max(one.above for one in row) - 12
        for left, one in zip(lefts, row, strict=False):
            parts.append(moved(one.parts, x + left, y))
            x += left + size[0] + _BETWEEN
        y += size[1] + max(one.below for one in row) + 20
    return svg(parts, width=width, height=y - 12, name=title, description=_described(panels, series))


def _described(panels: Sequence[Panel], series: Sequence[str]) -> str:
    sides = dict.fromkeys(" by ".join(filter(None, (panel.y.title, panel.x.title))) for panel in panels)
    titles = ", ".join(dict.fromkeys(panel.title for panel in panels if panel.title))
    said = (*sides, f"series: {', '.join(series)}" if series else "", f"panels: {titles}" if titles else "")
    return "; ".join(filter(None, said)) + "."


def _scales(panel: Panel, panels: Sequence[Panel], size: tuple[float, float]) -> tuple[Scale, Scale]:
    xs = [x for one in panels if one.x is panel.x for mark in one.marks for x in mark.x]
    ys = [y for one in panels if one.y is panel.y for mark in one.marks for y in (*mark.y, *mark.top)]
    inside = any(mark.kind == "columns" for mark in panel.marks)
    return panel.x.scale(xs, 0, size[0], inside=inside), panel.y.scale(ys, size[1], 0, inside=True)


def _panel(panel: Panel, across: Scale, up: Scale) -> _Drawn:
    """The grid, what is said at both sides, and the marks."""
    right, bottom = across.end, up.begin
    ticks = up.few(panel.y.named, across=False)
    names = shortened([panel.y.named(tick) for tick in ticks], 2 * _LONGEST)
    left = room(names, 2 * _LONGEST) + 4
    below, overhang, parts = _below(panel.x, across, bottom)
    left = max(left, overhang)
    lines = [f"M0 {up.at(tick):g}H{right:g}" for tick in ticks]
    lines += [] if panel.x.classes else [f"M{across.at(tick):g} 0V{bottom:g}" for tick in across.few(panel.x.named)]
    parts.insert(0, path("".join(lines), kind="grid"))
    parts += [
        words(-8, up.at(tick) + 4, name, anchor="end", kind="tick", full=panel.y.named(tick))
        for tick, name in zip(ticks, names, strict=True)
    ]
    if up.low <= 0 <= up.high and not panel.y.classes:
        parts.append(path(f"M0 {up.at(0):g}H{right:g}", kind="zero", stroke=QUIET))
    said = [(panel.y.title, "tick"), (panel.title, "label")]
    above = 13.0
    for text, kind in said:
        parts += [words(8 - left if kind == "tick" else 0, -above, text, kind=kind)] if text else []
        above += 18 if text else 0
    many = sum(mark.kind == "columns" for mark in panel.marks)
    column = iter(range(many))
    for mark in panel.marks:
        parts.append(
            _columns(mark, across, up, next(column), many) if mark.kind == "columns" else _mark(mark, across, up)
        )
    return _Drawn(parts, left, above + 8, below)


def _below(axis: Axis, across: Scale, bottom: float) -> tuple[float, float, list[str]]:
    """What is said below a panel: how high that is, how far it reaches to the left, and its texts."""
    ticks: Sequence[float] = across.few(axis.named)
    parts, below, overhang = [], 18.0, 0.0
    if axis.classes and axis.turned and len(ticks) < len(axis.classes):
        names = shortened(axis.classes, _LONGEST)
        for tick, name in enumerate(names):
            text = words(0, 0, name, anchor="end", kind="tick", full=axis.classes[tick])
            parts.append(moved([text], across.at(tick) + 4, bottom + 14, turned=_TURN))
            overhang = max(overhang, wide(name) * _COSINE - across.at(tick) + 4)
        below += max(map(wide, names)) * _SINE
    else:
        parts += [words(across.at(tick), bottom + 18, axis.named(tick), anchor="middle", kind="tick") for tick in ticks]
    if axis.title:
        below += 18
        parts.append(words(across.end / 2, bottom + below, axis.title, anchor="middle", kind="tick"))
    return below, overhang, parts


def _mark(mark: Mark, across: Scale, up: Scale) -> str:
    points = [
        (across.at(x), up.at(y)) if isfinite(y) and not isnan(x) else None for x, y in zip(mark.x, mark.y, strict=True)
    ]
    if mark.kind == "points":
        return _points(mark, [point for point in points if point])
    if mark.kind == "band":
        back = [f"{across.at(x):g} {up.at(y):g}" for x, y in zip(mark.x, mark.top, strict=True)]
        there = [f"{x:g} {y:g}" for x, y in filter(None, points)]
        return f'<path d="M{"L".join([*there, *reversed(back)])}z" {filled(mark.series)} fill-opacity="0.2"/>'
    shape, pen = "", "M"
    for point in points:
        step = f"H{point[0]:g}V{point[1]:g}" if point and mark.kind == "steps" and pen == "L" else ""
        shape += step or (f"{pen}{point[0]:g} {point[1]:g}" if point else "")
        pen = "L" if point else "M"
    dots = [point for point in points if point] if mark.kind == "line" and mark.series is not None else []
    dots = dots if len(points) <= _FEW else []
    return _line(shape, mark) + (_shapes(dots, mark.series, 3) if dots else "")


def _line(shape: str, mark: Mark) -> str:
    dash = mark.dash if mark.dash is not None else _DASHES[(mark.series or 0) % len(_DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    thick = 1 if mark.series is None else 2
    return f'<path d="{shape}" {stroked(mark.series)} fill="none" stroke-width="{thick}"{dashed}/>'


def _points(mark: Mark, points: Sequence[tuple[float, float]]) -> str:
    if len(points) > _FEW:
        layers = [_shapes(points[at::_LAYERS], mark.series, 1.8, opacity=0.4) for at in range(_LAYERS)]
        return "".join(layers)
    texts = "".join(words(x + 8, y + 4, text) for (x, y), text in zip(points, mark.texts, strict=False))
    halo = f'<g class="halo" stroke="{PAPER}" stroke-width="3" paint-order="stroke">{texts}</g>' if texts else ""
    return _shapes(points, mark.series, 4) + halo


def _shapes(points: Sequence[tuple[float, float]], series: int | None, radius: float, *, opacity: float = 1) -> str:
    """Circles, squares, triangles, diamonds or hats, by the series."""
    r, o = radius, radius * 1.3
    shape = (
        f"m{-r:g} 0a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0z",
        f"m{-r:g} {-r:g}h{2 * r:g}v{2 * r:g}h{-2 * r:g}z",
        f"m0 {-o:g}l{o:g} {2 * r:g}h{-2 * o:g}z",
        f"m0 {-o:g}l{o:g} {o:g} {-o:g} {o:g} {-o:g} {-o:g}z",
        f"m0 {o:g}l{o:g} {-2 * r:g}h{-2 * o:g}z",
    )[(series or 0) % 5]
    thin = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<path d="{"".join(f"M{x:g} {y:g}{shape}" for x, y in points)}" {filled(series)}{thin}/>'


def _columns(mark: Mark, across: Scale, up: Scale, place: int, many: int) -> str:
    """Columns of one series, beside those of the others in each class."""
    slot = (across.at(1) - across.at(0) if len(across.ticks) > 1 else across.end) * 0.8
    zero, thick = up.at(0), slot / many
    shapes = [
        f"M{across.at(x) - slot / 2 + place * thick:g} {zero:g}V{up.at(y):g}h{thick - 1:g}V{zero:g}z"
        for x, y in zip(mark.x, mark.y, strict=True)
        if isfinite(y)
    ]
    return f'<path d="{"".join(shapes)}" {filled(mark.series)}/>'


def _symbol(mark: Mark | None, series: int, x: float, y: float) -> str:
    """What stands for a series in the key."""
    if mark is None or mark.kind == "columns":
        return square(series, x, y)
    dot = _shapes([(x + 6, y - 4)], series, 3.5) if mark.kind != "steps" else ""
    return dot if mark.kind == "points" else _line(f"M{x - 4:g} {y - 4:g}h19", mark) + dot


# Lines over time, named at their ends.

_NAMES, _APART = 190.0, 15.0


def draw_lines(
    series: Sequence[tuple[str, Sequence[float]]],
    periods: Sequence[str],
    *,
    title: str,
    name: str,
    ends: Sequence[Sequence[tuple[float, float]]] = (),
    wording: Wording = ENGLISH,
) -> str:
    """A line for each series; a gap where there is no figure. `ends` are those of uncertainty, by series and period."""
    marks = [Mark(kind="line", x=range(len(periods)), y=values, series=at) for at, (_, values) in enumerate(series)]
    held = [end for own in ends for pair in own for end in pair if isfinite(end)]
    panel = Panel(Axis(classes=periods, turned=False), Axis(title=title, text=wording.number, holds=held), marks)
    across, up = _scales(panel, [panel], (_WIDTH - _NAMES - 84, 284.0))
    drawn = _panel(panel, across, up)
    bars = [_upright(at, series[at][1], own, across, up, many=len(ends)) for at, own in enumerate(ends)]
    parts = moved([*drawn.parts, *bars, *_names(series, up, across.end)], _WIDTH - _NAMES - across.end, drawn.above)
    return svg([parts], width=_WIDTH, height=drawn.above + up.begin + drawn.below + 8, name=name)


def _upright(
    at: int, values: Sequence[float], ends: Sequence[tuple[float, float]], across: Scale, up: Scale, *, many: int
) -> str:
    """The uncertainty of the figures of a line, beside that of other lines; an end without a limit has no cap."""
    aside = 5.0 * (at - (many - 1) / 2)
    shape = ""
    for place, (value, (low, high)) in enumerate(zip(values, ends, strict=True)):
        if not isfinite(value) or isnan(low) or isnan(high) or low >= high:
            continue
        x = across.at(place) + aside
        bottom, top = (up.at(min(max(end, up.low), up.high)) for end in (low, high))
        caps = "".join(f"M{x - 3:g} {y:g}h6" for end, y in ((low, bottom), (high, top)) if isfinite(end))
        shape += f"M{x:g} {bottom:g}V{top:g}{caps}"
    return path(shape, kind=f"whisker l{at}", stroke=SERIES[at % len(SERIES)]) if shape else ""


def _names(series: Sequence[tuple[str, Sequence[float]]], up: Scale, right: float) -> list[str]:
    """The names of lines at their ends, moved apart where they would touch, joined to the lines they belong to."""
    last = [next((value for value in reversed(values) if isfinite(value)), 0.0) for _, values in series]
    order = sorted(range(len(series)), key=lambda at: -last[at])
    places = _apart([up.at(last[at]) for at in order], up.begin + 4)
    parts = []
    shown = shortened([name for name, _ in series], _NAMES - 24)
    for at, place in zip(order, places, strict=True):
        joint = f"M{right + 5:g} {up.at(last[at]):g}L{right + 16:g} {place:g}"
        parts.append(path(joint, kind=f"joint l{at}", stroke=SERIES[at]))
        parts.append(words(right + 20, place + 4, shown[at], full=series[at][0]))
    return parts


def _apart(places: Sequence[float], lowest: float) -> list[float]:
    """Places from top to bottom, moved down where they are too close, and back up where that leaves the chart."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + _APART) if moved else place)
    for at in range(len(moved) - 1, -1, -1):
        moved[at] = min(moved[at], lowest)
        lowest = moved[at] - _APART
    return moved
