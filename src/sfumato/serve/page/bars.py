"""Horizontal bars in groups, with lines for the uncertainty of each."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from sfumato.serve.page.drawing import GRID, INK, SERIES, Scale, fitting, key, number, path, room, scale, svg, words

_WIDTH, _LABELS, _RIGHT = 760.0, 240.0, 96.0
_GAP = 8.0


class Bar(NamedTuple):
    """A figure, the ends of its uncertainty where it has any, and its text."""

    value: float
    low: float
    high: float
    text: str


def draw_bars(groups: Sequence[tuple[str, Sequence[Bar]]], series: Sequence[str], *, title: str, name: str) -> str:
    """Groups of bars with a label each; `series` names the bars of a group where there are several."""
    many = max((len(bars) for _, bars in groups), default=1)
    thick = 17.0 if many == 1 else 11.0
    every = [end for _, bars in groups for bar in bars for end in (bar.value, *_ends(bar))]
    left = room([label for label, _ in groups], _LABELS)
    across = scale(every, left, _WIDTH - _RIGHT)
    parts, top = key(series, left, 14, _WIDTH - left) if series else ([], 6.0)
    bottom = top + len(groups) * (many * thick + _GAP)
    parts += _grid(across, top, bottom)
    y = top + _GAP / 2
    for label, bars in groups:
        middle = y + len(bars) * thick / 2 + 4
        parts.append(words(left - 10, middle, fitting(label, left - 12), anchor="end", full=label))
        for at, bar in enumerate(bars):
            parts += _bar(bar, across, y + at * thick, thick - 2, at, text=many == 1)
        y += many * thick + _GAP
    parts.append(path(f"M{across.at(0):g} {top:g}V{bottom:g}", kind="zero", stroke=INK))
    parts += [words(across.at(tick), bottom + 16, number(tick), anchor="middle", kind="tick") for tick in _few(across)]
    parts.append(words((left + _WIDTH - _RIGHT) / 2, bottom + 36, title, anchor="middle", kind="tick"))
    return svg(parts, width=_WIDTH, height=bottom + 44, name=name)


def _bar(bar: Bar, across: Scale, y: float, thick: float, series: int, *, text: bool) -> list[str]:
    middle = y + thick / 2
    if not isfinite(bar.value):
        return [words(across.at(0) + 6, middle + 4, bar.text, kind="tick")]
    zero, end = across.at(0), across.at(bar.value)
    shape = f'x="{min(zero, end):g}" y="{y:g}" width="{max(abs(end - zero), 0.5):g}" height="{thick:g}"'
    parts = [f'<rect {shape} class="s{series}" fill="{SERIES[series]}"/>']
    furthest = end
    ends = _ends(bar)
    if ends:
        low, high = (across.at(value) for value in ends)
        cap = min(thick / 2, 4)
        whisker = (
            f"M{low:g} {middle:g}H{high:g}M{low:g} {middle - cap:g}v{2 * cap:g}M{high:g} {middle - cap:g}v{2 * cap:g}"
        )
        parts += [path(whisker, kind="halo", stroke="#ffffff"), path(whisker, kind="whisker", stroke=INK)]
        furthest = max(end, high)
    return [*parts, words(max(furthest, zero) + 6, middle + 4, bar.text, kind="tick")] if text else parts


def _ends(bar: Bar) -> tuple[float, float] | tuple[()]:
    """The ends of the uncertainty; none where it has no limit."""
    return (bar.low, bar.high) if isfinite(bar.low) and isfinite(bar.high) and bar.high > bar.low else ()


def _grid(across: Scale, top: float, bottom: float) -> list[str]:
    return [
        path("".join(f"M{across.at(tick):g} {top:g}V{bottom:g}" for tick in across.ticks), kind="grid", stroke=GRID)
    ]


def _few(across: Scale) -> Sequence[float]:
    """Every second tick where texts would touch."""
    widest = max(len(number(tick)) for tick in across.ticks) * 7.5
    room = (across.end - across.begin) / max(len(across.ticks) - 1, 1)
    return across.ticks if widest < room else across.ticks[::2]
