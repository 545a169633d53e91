"""A matrix: flows between places, or any two variables; the larger the figure, the darker the square."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.page.drawing import GRID, INK, SERIES, number, path, room, svg, wide, words
from sfumato.serve.page.figures import Numbers
from sfumato.serve.page.labels import distinct

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
) -> str:
    """Squares in as many shades as `CLASSES`, each for the same number of positive figures; `text` writes figures."""
    size = max(min(_WIDE / max(len(columns), len(rows), 1), _LARGEST), _SMALLEST)
    plan = _Plan(room(rows, _LONGEST), room(columns, _TALLEST) + 24, size)
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
    key, end = _key([_short(float(bound), text) for bound in bounds], shades, bottom + 26, width, gone=bool(gone))
    return svg([*parts, *key], width=width, height=end + 12, name=name)


def _labels(plan: _Plan, rows: Sequence[str], columns: Sequence[str], sides: tuple[str, str]) -> list[str]:
    """The names of both sides, of rows to the left and of columns above, turned."""
    small = "label small" if plan.size < 12 else "label"
    parts = [
        words(plan.left, 14, f"{sides[1]} →", kind="tick"),
        words(plan.left - 8, plan.top - 6, f"{sides[0]} ↓", anchor="end", kind="tick"),
    ]
    for at, (label, shown) in enumerate(zip(rows, _shown(rows, plan.left - 12), strict=True)):
        y = plan.top + (at + 0.5) * plan.size + 4
        parts.append(words(plan.left - 8, y, shown, anchor="end", kind=small, full=label))
    for at, (label, shown) in enumerate(zip(columns, _shown(columns, plan.top - 30), strict=True)):
        x = plan.left + (at + 0.5) * plan.size + 4
        turned = words(0, 0, shown, kind=small, full=label)
        parts.append(f'<g transform="translate({x:g} {plan.top - 6:g}) rotate(-90)">{turned}</g>')
    return parts


def _shown(labels: Sequence[str], width: float) -> list[str]:
    return [" ".join(lines) for lines in distinct([(label,) for label in labels], width)]


def _squares(places: NDArray[np.int64], plan: _Plan, opacity: float) -> str:
    """All squares of one shade, as one shape."""
    side = plan.size - 1
    shape = "".join(f"M{plan.at(row, column)}h{side:g}v{side:g}h{-side:g}z" for row, column in places.tolist())
    return f'<path d="{shape}" class="s0" fill="{SERIES[0]}" fill-opacity="{opacity:g}"/>' if shape else ""


def _opacity(level: int, shades: int) -> float:
    return round(0.14 + 0.86 * level / shades, 2)


def _short(value: float, text: Callable[[float], str]) -> str:
    return number(float(f"{value:.3g}")) if abs(value) >= _LONG else text(value)


def _key(bounds: Sequence[str], shades: int, y: float, width: float, *, gone: bool) -> tuple[list[str], float]:
    """What the shades stand for, in figures, and where that ends."""
    texts = [f"{low} to {high}" if low != high else low for low, high in pairwise(bounds)] or [*bounds]
    shapes = [(0.0, "zero or below"), *((_opacity(at, shades), text) for at, text in enumerate(texts, start=1))]
    parts, x = [], 10.0
    for opacity, text in [*shapes, *([(-1.0, "not published")] if gone else [])]:
        if x > 10 and x + wide(text) + 40 > width:
            x, y = 10.0, y + 20
        square = f'x="{x:g}" y="{y - 11:g}" width="14" height="14"'
        if opacity >= 0:
            parts.append(f'<rect {square} class="s0" fill="{SERIES[0]}" fill-opacity="{opacity:g}"/>')
        else:
            parts.append(path(f"M{x + 7:g} {y - 4:g}h0.1", kind="gone", stroke=INK))
        parts.append(f'<rect {square} class="frame" fill="none" stroke="{GRID}"/>')
        parts.append(words(x + 20, y, text, kind="tick"))
        x += wide(text) + 44
    return parts, y
