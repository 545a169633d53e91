"""Horizontal bars in groups, with lines for the uncertainty of each."""

from collections.abc import Sequence
from math import inf, isfinite
from typing import NamedTuple

from sfumato.serve.page.drawing import (
    GRID,
    INK,
    LINE,
    SERIES,
    Scale,
    key,
    label,
    number,
    path,
    room,
    scale,
    svg,
    wide,
    words,
)
from sfumato.serve.page.labels import distinct

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
