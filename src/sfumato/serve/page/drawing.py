"""Charts drawn on the server as SVG: scales, labels that fit, bars and lines."""

from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from itertools import takewhile
from math import floor, inf, isfinite, log10
from textwrap import wrap
from typing import NamedTuple

# Parts of charts: scales with round numbers, texts that fit, and SVG that takes its colours from the page.

INK, QUIET, GRID = "#33312e", "#6b665f", "#d8d2c8"
SERIES = ("#2f6f76", "#b5562b", "#5a5aa8", "#8a7a1f", "#8b3a62", "#3f7d3f", "#4a6a8a", "#7a4a2f")
"""Colours of up to eight series, as far apart for colour-blind readers as eight can be; a page may set its own."""
_LETTER = 6.8
"""How wide a letter of 12 pixels is on average."""
LINE = 14.0
"""From one line of a text to the next."""


class Scale(NamedTuple):
    """From numbers to pixels, with ticks at round numbers."""

    low: float
    high: float
    begin: float
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The pixel of a number, within the scale."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)


def scale(values: Sequence[float], begin: float, end: float) -> Scale:
    """A scale that holds zero and all values, with about five ticks."""
    numbers = [value for value in values if isfinite(value)]
    low, high = min([0.0, *numbers]), max([0.0, *numbers])
    if low == high:
        high = 1.0
    step = _round((high - low) / 5)
    first, last = floor(low / step), -floor(-high / step)
    return Scale(first * step, last * step, begin, end, tuple(k * step for k in range(first, last + 1)))


def _round(step: float) -> float:
    size: float = 10.0 ** floor(log10(step))
    return next(size * nice for nice in (1, 2, 2.5, 5, 10) if size * nice >= step * 0.999)


def number(value: float) -> str:
    """A number at an axis, in short.

    >>> number(1500), number(2_500_000), number(0.25), number(3e9)
    ('1,500', '2.5 million', '0.25', '3 billion')
    """
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if abs(value) >= size:
            return f"{value / size:g} {word}"
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


def wide(text: str) -> float:
    """About how wide a text is."""
    return len(text) * _LETTER


def room(texts: Sequence[str], most: float) -> float:
    """How wide the longest of some texts is with a margin, up to a bound."""
    return min(max(map(wide, texts), default=0.0) + 14, most)


def letters(width: float) -> int:
    """How many letters fit into a width."""
    return max(int(width / _LETTER), 2)


def words(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "label", full: str | None = None) -> str:
    """A text; `full` is what it stands for where it was cut."""
    title = f"<title>{escape(full)}</title>" if full is not None and full != text else ""
    fill = QUIET if kind == "tick" else INK
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}" fill="{fill}">{escape(text)}{title}</text>'


def label(x: float, middle: float, lines: Sequence[str], *, full: str) -> str:
    """A text of one line or several that ends at a point, around a height; `full` is what it stands for."""
    top = middle + 4 - (len(lines) - 1) * LINE / 2
    if len(lines) < 2:
        return words(x, top, "".join(lines), anchor="end", full=full)
    spans = "".join(f'<tspan x="{x:g}" y="{top + at * LINE:g}">{escape(line)}</tspan>' for at, line in enumerate(lines))
    return f'<text text-anchor="end" class="label" fill="{INK}">{spans}<title>{escape(full)}</title></text>'


def path(shape: str, *, kind: str, stroke: str = GRID, dash: str = "") -> str:
    """A line of any shape, in dashes if wanted."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="{shape}" class="{kind}" fill="none" stroke="{stroke}"{dashed}/>'


def key(names: Sequence[str], shown: Sequence[str], x: float, y: float, width: float) -> tuple[list[str], float]:
    """A key of series in lines of a width, each name as it is shown, and where it ends."""
    parts, across = [], x
    for at, (name, text) in enumerate(zip(names, shown, strict=True)):
        needed = 34 + wide(text)
        if across > x and across + needed > x + width:
            across, y = x, y + 20
        parts += [
            f'<rect x="{across:g}" y="{y - 10:g}" width="12" height="12" class="s{at}" fill="{SERIES[at]}"/>',
            words(across + 18, y, text, full=name),
        ]
        across += needed
    return parts, y + 20


def svg(parts: Sequence[str], *, width: float, height: float, name: str, told: str = "") -> str:
    """A drawing with a name that screen readers say, and what is told of it in words."""
    description = f"<desc>{escape(told)}</desc>" if told else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(name)}" class="chart" '
        f'font-family="system-ui, sans-serif" font-size="12">{description}{"".join(parts)}</svg>'
    )


# Labels that fit into a width and still tell apart what they name: what all have in common is shortened first.

_CUT = "…"
_SHORTEST = 4
"""Of a text that is cut, no fewer letters are left."""


def distinct(labels: Sequence[Sequence[str]], width: float, lines: int = 1) -> list[list[str]]:
    """The lines of every label, given in parts; no two labels look the same.

    Parts are shortened as far as needed, the longest first, by what tells them apart from the same part of others.

    >>> distinct([("Growing of cereals",), ("Growing of grapes",)], 80)
    [['…cereals'], ['…grapes']]
    """
    most = letters(width)
    labels = [[" ".join(text.split()) for text in parts] for parts in labels]  # as drawings show them
    every = [[*dict.fromkeys(filter(None, texts))] for texts in zip(*labels, strict=True)]

    def written(longest: int) -> list[list[str]]:
        short = [_shortened(texts, longest) for texts in every]
        return [
            wrap(", ".join(short[at].get(text, text) for at, text in enumerate(parts) if text), most)
            for parts in labels
        ]

    def fits(longest: int) -> bool:
        return all(len(found) <= lines for found in written(longest))

    low, high = _SHORTEST, max((len(text) for texts in every for text in texts), default=_SHORTEST)
    if not fits(high):
        while low < high - 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        high = low
    return _numbered([_ended(found, most, lines) for found in written(high)], most)


def in_common(labels: Sequence[Sequence[str]]) -> list[bool]:
    """Which parts are the same in all of several labels."""
    several = len(labels) > 1
    return [several and len(set(texts)) == 1 for texts in zip(*labels, strict=True)]


def _shortened(texts: Sequence[str], longest: int) -> dict[str, str]:
    """The texts cut to a length in the first way that keeps them apart; those that are short enough stay."""
    long = [text for text in texts if len(text) > longest]
    if not long:
        return {}
    words = zip(*(text.split(" ") for text in texts), strict=False)
    begin = sum(len(some[0]) + 1 for some in takewhile(lambda some: len(set(some)) == 1, words))
    ways: list[Callable[[str], str]] = [
        lambda text: _head(text, longest),
        lambda text: _head(_CUT + text[begin:], longest),
        lambda text: _tail(text, longest),
        lambda text: _middle(text, longest),
    ]
    if 2 * begin >= longest:  # a beginning that is mostly the same says little
        ways[:2] = [ways[1], ways[0]]
    kept = {text for text in texts if len(text) <= longest}
    for way in ways:
        found = {text: way(text) for text in long}
        if len({*found.values()} | kept) == len(texts):
            return found
    return found


def _head(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip(' ,')}{_CUT}"


def _tail(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{_CUT}{text[1 - longest :].lstrip(' ,')}"


def _middle(text: str, longest: int) -> str:
    end = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[: longest - 1 - end].rstrip()}{_CUT}{text[-end:].lstrip()}"


def _ended(found: list[str], most: int, lines: int) -> list[str]:
    """At most so many lines, the last of them cut where there were more."""
    return found if len(found) <= lines else [*found[: lines - 1], _head(" ".join(found[lines - 1 :]), most)]


def _numbered(labels: list[list[str]], most: int) -> list[list[str]]:
    """The labels, with a number at the end of those that look like another one."""
    many = Counter(map(" ".join, labels))
    taken, numbers = set(many), Counter[str]()
    found = []
    for label in labels:
        text, looks = " ".join(label), label
        while many[text] > 1 and " ".join(looks) in taken:
            numbers[text] += 1
            end = f" ({numbers[text]})"
            looks = [*label[:-1], _head(label[-1], max(most - len(end), 2)) + end] if label else [end.strip()]
        taken.add(" ".join(looks))
        found.append(looks)
    return found


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


def draw_bars(groups: Sequence[Group], series: Sequence[str], *, title: str, name: str, told: str = "") -> str:
    """Groups of bars with a label each; `series` names the bars of a group where there are several."""
    many = max((len(group.bars) for group in groups), default=1)
    thick = 17.0 if many == 1 else 11.0
    every = [bar for group in groups for bar in group.bars]
    before = max((len(group.before) for group in groups), default=0)
    left = room([group.before + ", ".join(group.parts) for group in groups], _LABELS)
    across = scale([end for bar in every for end in (bar.value, *bar.ends)], left, _WIDTH - _RIGHT)
    shown = [" ".join(lines) for lines in distinct([(one,) for one in series], _WIDTH - left - 30)]
    parts, top = key(series, shown, left, 14, _WIDTH - left) if series else ([], 6.0)
    labels = distinct([group.parts for group in groups], left - 12 - wide(" " * before), _LINES)
    heights = [max(many * thick, len(lines) * LINE) + _GAP for lines in labels]
    bottom = top + sum(heights)
    parts += _grid(across, top, bottom)
    for group, lines, height in zip(groups, labels, heights, strict=True):
        y, middle = top + (height - len(group.bars) * thick) / 2, top + height / 2
        said = [group.before + lines[0], *lines[1:]] if lines else [group.before]
        parts.append(label(left - 10, middle, said, full=group.full))
        for at, bar in enumerate(group.bars):
            parts += _bar(bar, across, y + at * thick, thick - 2, at, text=many == 1)
        top += height
    parts.append(path(f"M{across.at(0):g} {bottom - sum(heights):g}V{bottom:g}", kind="zero", stroke=INK))
    parts += [words(across.at(tick), bottom + 16, number(tick), anchor="middle", kind="tick") for tick in _few(across)]
    parts.append(words((left + _WIDTH - _RIGHT) / 2, bottom + 36, title, anchor="middle", kind="tick"))
    bottom += 44
    if any(bar.is_open for bar in every):
        parts += [
            _whisker(left, left + 30, bottom + 8, 4, opened=(False, True)),
            words(left + 38, bottom + 12, OPEN, kind="tick"),
        ]
        bottom += 20
    return svg(parts, width=_WIDTH, height=bottom, name=name, told=told)


def _bar(bar: Bar, across: Scale, y: float, thick: float, series: int, *, text: bool) -> list[str]:
    middle = y + thick / 2
    if not isfinite(bar.value):
        return [words(across.at(0) + 6, middle + 4, bar.text, kind="tick")]
    zero, end = across.at(0), across.at(bar.value)
    shape = f'x="{min(zero, end):g}" y="{y:g}" width="{max(abs(end - zero), 0.5):g}" height="{thick:g}"'
    parts = [f'<rect {shape} class="s{series}" fill="{SERIES[series]}"/>']
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


def _grid(across: Scale, top: float, bottom: float) -> list[str]:
    return [
        path("".join(f"M{across.at(tick):g} {top:g}V{bottom:g}" for tick in across.ticks), kind="grid", stroke=GRID)
    ]


def _few(across: Scale) -> Sequence[float]:
    """Every second tick where texts would touch."""
    widest = max(len(number(tick)) for tick in across.ticks) * 7.5
    room = (across.end - across.begin) / max(len(across.ticks) - 1, 1)
    return across.ticks if widest < room else across.ticks[::2]


# Lines over time: each with a colour, a pattern and a mark of its own, named at its end.

_WIDTH_LINES, _LEFT, _NAMES = 760.0, 84.0, 190.0
_TOP, _BOTTOM = 16.0, 300.0
_DASHES = ("", "7 4", "2 3", "10 3 2 3", "4 4", "1 4", "12 4", "6 2 1 2")
_APART = 15.0


def draw_lines(series: Sequence[tuple[str, Sequence[float]]], periods: Sequence[str], *, title: str, name: str) -> str:
    """A line for each series; a gap where there is no figure."""
    right = _WIDTH_LINES - _NAMES
    up = scale([value for _, values in series for value in values], _BOTTOM, _TOP)
    step = (right - _LEFT) / max(len(periods) - 1, 1)
    parts = [path("".join(f"M{_LEFT:g} {up.at(tick):g}H{right:g}" for tick in up.ticks), kind="grid", stroke=GRID)]
    parts += [words(_LEFT - 8, up.at(tick) + 4, number(tick), anchor="end", kind="tick") for tick in up.ticks]
    parts.append(path(f"M{_LEFT:g} {up.at(0):g}H{right:g}", kind="zero", stroke=INK))
    every = max(-(-len(periods) * 62 // int(right - _LEFT)), 1)
    for at in range(0, len(periods), every):
        parts.append(words(_LEFT + at * step, _BOTTOM + 20, periods[at], anchor="middle", kind="tick"))
    for at, (_, values) in enumerate(series):
        points = [(round(_LEFT + x * step, 1), up.at(v), v) for x, v in enumerate(values)]
        parts.append(_line(points, at))
    parts += _names(series, up, right)
    parts.append(words(_LEFT - 8, _BOTTOM + 42, title, kind="tick"))
    return svg(parts, width=_WIDTH_LINES, height=_BOTTOM + 50, name=name)


def _line(points: Sequence[tuple[float, float, float]], series: int) -> str:
    shape, pen = "", "M"
    for x, y, value in points:
        if not isfinite(value):
            pen = "M"
            continue
        shape += f"{pen}{x:g} {y:g}"
        pen = "L"
    dots = "".join(f'<circle cx="{x:g}" cy="{y:g}" r="3"/>' for x, y, value in points if isfinite(value))
    colour, dash = SERIES[series], f' stroke-dasharray="{_DASHES[series]}"' if _DASHES[series] else ""
    return (
        f'<g class="l{series}" fill="{colour}" stroke="{colour}"><path d="{shape}" fill="none" stroke-width="2"{dash}/>'
        f"{dots}</g>"
    )


def _names(series: Sequence[tuple[str, Sequence[float]]], up: Scale, right: float) -> list[str]:
    """The names of lines at their ends, moved apart where they would touch, joined to the lines they belong to."""
    last = [next((value for value in reversed(values) if isfinite(value)), 0.0) for _, values in series]
    order = sorted(range(len(series)), key=lambda at: -last[at])
    places = _apart([up.at(last[at]) for at in order])
    parts = []
    shown = distinct([(name,) for name, _ in series], _NAMES - 24)
    for at, place in zip(order, places, strict=True):
        joint = f"M{right + 5:g} {up.at(last[at]):g}L{right + 16:g} {place:g}"
        parts.append(path(joint, kind=f"joint l{at}", stroke=SERIES[at]))
        parts.append(words(right + 20, place + 4, " ".join(shown[at]), full=series[at][0]))
    return parts


def _apart(places: Sequence[float]) -> list[float]:
    """Places from top to bottom, moved down where they are too close, and back up where that leaves the chart."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + _APART) if moved else place)
    floor = _BOTTOM + 4
    for at in range(len(moved) - 1, -1, -1):
        moved[at] = min(moved[at], floor)
        floor = moved[at] - _APART
    return moved
