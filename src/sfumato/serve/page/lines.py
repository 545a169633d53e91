"""Lines over time: each with a colour, a pattern and a mark of its own, named at its end."""

from collections.abc import Sequence
from math import isfinite

from sfumato.serve.page.drawing import GRID, INK, SERIES, Scale, number, path, scale, svg, words
from sfumato.serve.page.labels import distinct

_WIDTH, _LEFT, _NAMES = 760.0, 84.0, 190.0
_TOP, _BOTTOM = 16.0, 300.0
_DASHES = ("", "7 4", "2 3", "10 3 2 3", "4 4", "1 4", "12 4", "6 2 1 2")
_APART = 15.0


def draw_lines(series: Sequence[tuple[str, Sequence[float]]], periods: Sequence[str], *, title: str, name: str) -> str:
    """A line for each series; a gap where there is no figure."""
    right = _WIDTH - _NAMES
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
    return svg(parts, width=_WIDTH, height=_BOTTOM + 50, name=name)


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
