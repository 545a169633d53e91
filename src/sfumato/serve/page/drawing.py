"""Parts of charts: scales with round numbers, texts that fit, and SVG that takes its colours from the page."""

from collections.abc import Sequence
from html import escape
from math import floor, isfinite, log10
from typing import NamedTuple

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
