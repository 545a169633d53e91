"""Shares side by side, row by row: what becomes of a whole as one bar, other shares beside it, and shaded grids."""

from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

from sfumato.charts.svg import GRID, INK, LINE, QUIET, SERIES, distinct, label, letters, path, svg, words

WIDTH = 900.0
_LABELS, _STACK, _BAR, _BETWEEN = 224.0, 292.0, 96.0, 28.0
_ROW, _THICK = 38.0, 20.0
_CELL, _WIDEST = 32.0, 120.0
_LINES = 2
_PARTS = ("#2f6f76", "#a8cbc9", "#e4ddd0")
"""Colours of the parts of a whole: dark is good to have, and all are told apart in print without colour."""
_BESIDE = SERIES[1]
_FIRST = "#f1ebe0"
"""Behind the first row, which others are compared with."""
_LEAST = 34.0
"""A part that is narrower has no text in it."""


class Row(NamedTuple):
    """A row: its label, the parts of the whole, which add up to 1, and other shares; None is one of nothing."""

    name: str
    parts: Sequence[float]
    beside: Sequence[float | None] = ()


def share_text(share: float) -> str:
    """A share in percent, never rounded to all or to nothing.

    >>> share_text(0.374), share_text(0.999), share_text(0.001), share_text(1)
    ('37%', 'over 99%', 'under 1%', '100%')
    """
    if 0 < share < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= share < 1 else f"{share:.0%}"


def draw_shares(
    rows: Sequence[Row],
    *,
    whole: str,
    parts: Sequence[str],
    name: str,
    above: str = "",
    beside: Sequence[str] = (),
    first: bool = True,
) -> str:
    """One bar for the parts of a whole in every row, and a bar for each of the other shares, under `above`.

    The `first` row is marked, where others are compared with it.
    """
    drawn = [words(_LABELS, 16, whole, kind="heading")]
    x, keys = _LABELS, 30.0
    for at, part in enumerate(parts):
        if not part:  # a colour that is not used
            continue
        drawn.append(f'<rect x="{x:g}" y="{keys - 2:g}" width="11" height="11" fill="{_PARTS[at]}"/>')
        drawn.append(words(x + 16, keys + 8, part, kind="tick"))
        keys += 16
    starts = [_LABELS + _STACK + _BETWEEN + at * (_BAR + _BETWEEN) for at in range(len(beside))]
    if beside:
        drawn.append(words(starts[0], 16, above, kind="heading"))
    heads = [wrap(title, letters(_BAR + _BETWEEN - 6)) for title in beside]
    for start, lines in zip(starts, heads, strict=True):
        drawn += [words(start, 38 + at * LINE, line, kind="tick") for at, line in enumerate(lines)]
    top = max([keys, *(38 + len(lines) * LINE for lines in heads)]) + 4
    bottom = top + len(rows) * _ROW
    if first:
        drawn.append(f'<rect x="0" y="{top:g}" width="{WIDTH:g}" height="{_ROW:g}" rx="4" fill="{_FIRST}"/>')
    ends = [(_LABELS, _STACK), *((start, _BAR) for start in starts)]
    drawn.append(
        path(
            "".join(f"M{x + half * wide:g} {top:g}V{bottom:g}" for x, wide in ends for half in (0, 0.5, 1)), kind="grid"
        )
    )
    for at, (row, lines) in enumerate(zip(rows, _labels(rows), strict=True)):
        middle = top + at * _ROW + _ROW / 2
        drawn.append(label(_LABELS - 12, middle, lines, full=row.name))
        drawn += _whole(row.parts, middle)
        for start, share in zip(starts, row.beside, strict=True):
            drawn += _beside(start, share, middle)
    for x, wide in ends:
        drawn += [
            words(x + wide * share, bottom + 15, text, anchor=anchor, kind="tick")
            for share, text, anchor in ((0.0, "0", "start"), (1.0, "100%", "end"))
        ]
    said = "; ".join(f"{row.name}: {', '.join(_said(row, parts, beside))}" for row in rows)
    width = WIDTH if beside else _LABELS + _STACK + _BETWEEN
    return svg(drawn, width=width, height=bottom + 22, name=name, description=f"{said}.")


def _labels(rows: Sequence[Row]) -> list[list[str]]:
    return distinct([(row.name,) for row in rows], _LABELS - 34, _LINES)


def _whole(parts: Sequence[float], middle: float) -> list[str]:
    drawn, x = [], _LABELS
    for at, part in enumerate(parts):
        wide = part * _STACK
        if wide <= 0:
            continue
        drawn.append(_rect(x, middle, wide, _PARTS[at]))
        if wide >= _LEAST:
            ink = "#ffffff" if at == 0 else INK
            drawn.append(_within(x + wide / 2, middle + 4, f"{part:.0%}", ink))
        x += wide
    return drawn


def _beside(start: float, share: float | None, middle: float) -> list[str]:
    if share is None:
        return [words(start + 2, middle + 4, "no target", kind="tick")]
    wide = share * _BAR
    bar = _rect(start, middle, max(wide, 1), _BESIDE)
    text = share_text(share)
    if wide > _BAR / 2:
        return [bar, _within(start + wide / 2, middle + 4, text, "#ffffff")]
    return [bar, words(start + max(wide, 1) + 5, middle + 4, text, kind="tick")]


def _said(row: Row, parts: Sequence[str], beside: Sequence[str]) -> list[str]:
    """The same in words, for who cannot see it."""
    shares = [*zip(parts, row.parts, strict=True), *zip(beside, row.beside, strict=True)]
    return [f"{what} {'no target' if share is None else share_text(share)}" for what, share in shares if what]


def _rect(x: float, middle: float, wide: float, colour: str) -> str:
    edge = f'stroke="{QUIET}" stroke-width="0.5"'  # pale parts have an end on white paper too
    return (
        f'<rect x="{x:g}" y="{middle - _THICK / 2:g}" width="{wide:.1f}" height="{_THICK:g}" fill="{colour}" {edge}/>'
    )


def _within(x: float, y: float, text: str, ink: str) -> str:
    return f'<text x="{x:.1f}" y="{y:g}" text-anchor="middle" class="figure" fill="{ink}">{text}</text>'


# Shares of rows in columns, dark where they are large.


def draw_grid(
    rows: Sequence[tuple[str, Sequence[float | None]]],
    columns: Sequence[str],
    *,
    title: str,
    over: str,
    name: str,
    wanted: bool = True,
) -> str:
    """A grid of shares with a shade and a text each; `over` says what the columns are.

    Shares that are not `wanted`, such as errors, have the other colour, and are as dark as can be from one half on.
    """
    labels = distinct([(row,) for row, _ in rows], _LABELS - 34, _LINES)
    cell = min((WIDTH - _LABELS) / max(len(columns), 1), _WIDEST)
    heads = [wrap(column, letters(cell - 6)) for column in columns]
    drawn = [words(_LABELS, 16, title, kind="heading"), words(_LABELS, 34, over, kind="tick")]
    top = 46 + max(len(lines) for lines in heads) * LINE
    for at, lines in enumerate(heads):
        x = _LABELS + (at + 0.5) * cell
        drawn += [words(x, 52 + line * LINE, text, anchor="middle") for line, text in enumerate(lines)]
    for at, ((row, shares), lines) in enumerate(zip(rows, labels, strict=True)):
        y = top + at * _CELL
        drawn.append(label(_LABELS - 12, y + _CELL / 2 - 1, lines, full=row))
        for place, share in enumerate(shares):
            drawn += _shade(_LABELS + place * cell, y, cell - 2, share, wanted=wanted)
    said = "; ".join(f"{row}: {', '.join(_named(columns, shares))}" for row, shares in rows)
    return svg(drawn, width=WIDTH, height=top + len(rows) * _CELL + 4, name=name, description=f"{said}.")


def _named(columns: Sequence[str], shares: Sequence[float | None]) -> list[str]:
    return [f"{column} {share_text(share)}" for column, share in zip(columns, shares, strict=True) if share is not None]


def _shade(x: float, y: float, wide: float, share: float | None, *, wanted: bool) -> list[str]:
    size = f'x="{x:g}" y="{y:g}" width="{wide:g}" height="{_CELL - 2:g}"'
    if share is None:
        return [f'<rect {size} fill="none" stroke="{GRID}" stroke-dasharray="3 3"/>']
    dark = min(share if wanted else 2 * share, 1.0)
    return [
        f'<rect {size} fill="{_PARTS[2]}" fill-opacity="0.5"/>',
        f'<rect {size} fill="{_PARTS[0] if wanted else _BESIDE}" fill-opacity="{dark:.2f}"/>',
        _within(x + wide / 2, y + _CELL / 2 + 3, share_text(share), "#ffffff" if dark > 0.55 else INK),
    ]
