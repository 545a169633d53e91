"""Scales with round numbers, labels that fit, and the pieces of a drawing."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from html import escape
from itertools import count, pairwise, takewhile
from math import copysign, floor, isfinite, log1p, log10
from pathlib import Path
from textwrap import wrap
from typing import Literal, NamedTuple

from sfumato.durable import write_durably
from sfumato.errors import MethodError
from sfumato.paths import refuse_other

# Scales: straight, logarithmic, or logarithmic on both sides of zero.

Kind = Literal["linear", "log", "symlog"]


class Scale(NamedTuple):
    """From numbers to pixels, with ticks at round numbers."""

    low: float
    high: float
    begin: float
    end: float
    ticks: tuple[float, ...]
    bend: Callable[[float], float] = float
    """What pixels are proportional to."""

    def at(self, value: float) -> float:
        """The pixel of a number, within the scale."""
        low, here, high = map(self.bend, (self.low, min(max(value, self.low), self.high), self.high))
        return round(self.begin + (here - low) / (high - low) * (self.end - self.begin), 1)

    def few(self, text: Callable[[float], str], *, across: bool = True) -> Sequence[float]:
        """The ticks whose texts, side by side or one above the other, do not touch."""

        def apart(one: float, other: float) -> bool:
            needed = (wide(text(one)) + wide(text(other))) / 2 + 8 if across else LINE
            return abs(self.at(one) - self.at(other)) >= needed

        if self.bend is float:
            every = (self.ticks[::step] for step in count(1))
            return next(some for some in every if all(apart(*pair) for pair in pairwise(some)))
        if all(apart(*pair) for pair in pairwise(self.ticks)):
            return self.ticks
        kept: list[float] = []
        for tick in sorted(self.ticks, key=_roundness):
            if len(kept) > 1 and _roundness(tick) > 2:
                break  # twos and fives in some places only would be hard to read
            kept += [tick] if all(apart(tick, other) for other in kept) else []
        return sorted(kept)


def scale(
    values: Sequence[float],
    begin: float,
    end: float,
    *,
    kind: Kind = "linear",
    constant: float = 1.0,
    zero: bool = True,
) -> Scale:
    """A scale that holds all values with ticks at round numbers; `constant` is where symlog begins to bend.

    Scales that are not logarithmic hold zero, unless it is not asked for.

    >>> scale([3, 1800], 0, 300, kind="log").ticks
    (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
    """
    numbers = [float(value) for value in values if isfinite(value) and (kind != "log" or value > 0)]
    if kind != "log" and (zero or not numbers):
        numbers.append(0.0)
    low, high = min(numbers, default=1.0), max(numbers, default=1.0)
    if kind == "linear":
        high = high if high > low else low + 1.0
        step = _round((high - low) / 5)
        first, last = floor(low / step), -floor(-high / step)
        return Scale(first * step, last * step, begin, end, tuple(k * step for k in range(first, last + 1)))
    low, high = -_rounded(-low), _rounded(high)
    if kind == "log":
        high = high if high > low else 10 * low
        every = [nice * 10.0**power for power in range(floor(log10(low)), floor(log10(high)) + 1) for nice in (1, 2, 5)]
        return Scale(low, high, begin, end, tuple(tick for tick in every if low * 0.999 <= tick <= high * 1.001), log10)
    high = high if high > low else constant
    powers = [10.0**power for power in range(floor(log10(constant)), 19) if 10.0**power >= constant]
    ticks = tuple(tick for tick in (*(-power for power in reversed(powers)), 0.0, *powers) if low <= tick <= high)
    return Scale(low, high, begin, end, ticks, lambda value: copysign(log1p(abs(value) / constant), value))


def _round(step: float) -> float:
    size: float = 10.0 ** floor(log10(step))
    return next(size * nice for nice in (1, 2, 2.5, 5, 10) if size * nice >= step * 0.999)


def _rounded(value: float) -> float:
    """The next number of 1, 2 or 5 and zeros, upwards."""
    if not value:
        return 0.0
    size = 10.0 ** floor(log10(abs(value)))
    if value > 0:
        return next(size * nice for nice in (1, 2, 5, 10) if size * nice >= value * 0.999)
    return -next(size * nice for nice in (5, 2, 1) if size * nice <= -value * 1.001)


def _roundness(tick: float) -> int:
    """Zero is roundest, then thousands and thousandths, then other powers of ten."""
    power = round(log10(abs(tick)), 6) if tick else 0.0
    return 0 if not tick else 1 if power % 3 == 0 else 2 if power % 1 == 0 else 3


def number(value: float) -> str:
    """A number at an axis, in short.

    >>> number(1500), number(2_500_000), number(0.25), number(3e9)
    ('1,500', '2.5 million', '0.25', '3 billion')
    """
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if abs(value) >= size:
            return f"{value / size:g} {word}"
    return f"{value:,.0f}" if value == round(value) else f"{value:g}"


class Wording(NamedTuple):
    """How a drawing says what it says by itself: texts and figures of another language, if they are given."""

    say: Callable[[str], str] = str
    figures: Callable[[str], str] = str

    def number(self, value: float) -> str:
        """A number at an axis, in short."""
        text, _, word = number(value).partition(" ")
        return " ".join(filter(None, (self.figures(text), self.say(word) if word else "")))


ENGLISH = Wording()


def percent(share: float) -> str:
    """A share at an axis.

    >>> percent(0.3), percent(0.025)
    ('30%', '2.5%')
    """
    return f"{100 * share:g}%"


# Pieces of SVG. Each has a colour that suits white paper, and a class by which a page may give it another one.

INK, QUIET, GRID, PAPER = "#33312e", "#6b665f", "#d8d2c8", "#fffdf9"
SERIES = ("#2f6f76", "#b5562b", "#4b2d87", "#9687c3", "#b48778", "#781e3c", "#7887f0", "#87000f")
"""Colours of eight series, told apart with any kind of colour blindness, the first ones best."""
LINE = 14.0
"""From one line of a text to the next."""
_LETTER = 6.8
"""How wide a letter of 12 pixels is on average."""
_NARROWEST = 24.0
"""Letters may be wider than on average: there is room for two of the widest."""


def wide(text: str) -> float:
    """About how wide a text is."""
    return len(text) * _LETTER


def room(texts: Sequence[str], most: float) -> float:
    """How wide the longest of some texts is with a margin, up to a bound."""
    widest = max(map(wide, texts), default=0.0)
    return min((max(widest, _NARROWEST) if widest else 0.0) + 14, most)


def letters(width: float) -> int:
    """How many letters fit into a width."""
    return max(int(width / _LETTER), 2)


def words(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "label", full: str | None = None) -> str:
    """A text; `full` is what it stands for where it was cut."""
    title = f"<title>{escape(full)}</title>" if full is not None and full != text else ""
    fill = QUIET if kind == "tick" else INK
    heavy = ' font-weight="600"' if kind == "heading" else ""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{kind}" fill="{fill}"{heavy}>{escape(text)}{title}'
        "</text>"
    )


def centred(middle: float, y: float, text: str, width: float) -> tuple[list[str], float]:
    """A text around a place, in as many lines as it needs within a drawing of a width, and how far down it goes."""
    room = 2 * min(middle, width - middle) - 8
    lines = wrap(text, letters(room), break_long_words=False) or [""]
    parts = [words(middle, y + at * LINE, line, anchor="middle", kind="tick") for at, line in enumerate(lines)]
    return parts, y + (len(lines) - 1) * LINE


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


def filled(series: int | None) -> str:
    """The attributes of an area in the colour of a series, or in ink."""
    at = None if series is None else series % len(SERIES)
    return f'class="ink" fill="{INK}"' if at is None else f'class="s{at}" fill="{SERIES[at]}"'


def stroked(series: int | None) -> str:
    """The attributes of a line in the colour of a series, or in ink."""
    at = None if series is None else series % len(SERIES)
    return f'class="zero" stroke="{INK}"' if at is None else f'class="l{at}" stroke="{SERIES[at]}"'


def square(series: int, x: float, y: float) -> str:
    """What stands for a series of areas in a key."""
    return f'<rect x="{x:g}" y="{y - 10:g}" width="12" height="12" {filled(series)}/>'


def key(
    names: Sequence[str],
    x: float,
    y: float,
    width: float,
    symbol: Callable[[int, float, float], str] = square,
) -> tuple[list[str], float]:
    """A key of series in lines of a width, and where it ends; `symbol` draws what stands for a series at a place."""
    parts, across = [], x
    for at, (name, text) in enumerate(zip(names, shortened(names, width - 30), strict=True)):
        needed = 42 + wide(text)
        if across > x and across + needed > x + width:
            across, y = x, y + 20
        parts += [symbol(at, across, y), words(across + 18, y, text, full=name)]
        across += needed
    return parts, y + 20


def moved(parts: Sequence[str], x: float, y: float, *, turned: float = 0) -> str:
    """Some pieces at another place, turned by so many degrees."""
    rotation = f" rotate({turned:g})" if turned else ""
    return f'<g transform="translate({x:g} {y:g}){rotation}">{"".join(parts)}</g>'


def svg(
    parts: Sequence[str], *, width: float, height: float, name: str, description: str = "", kind: str = "chart"
) -> str:
    """A drawing with a name that screen readers say, and a description in words.

    Readers go into a drawing of another kind than a chart: its parts have names of their own.
    """
    role = "img" if kind == "chart" else "group"
    described = f"<desc>{escape(description)}</desc>" if description else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="{role}" aria-label="{escape(name)}" class="{kind}" '
        f'font-family="system-ui, sans-serif" font-size="12"><title>{escape(name)}</title>{described}'
        f"{''.join(parts)}</svg>"
    )


def on_paper(drawing: str) -> str:
    """A drawing as a file of its own: on light paper, because no page gives it colours for a dark one."""
    return drawing.replace("<title>", f'<rect width="100%" height="100%" fill="{PAPER}"/><title>', 1)


def by_itself(drawing: str, *, title: str, source: str) -> str:
    """A drawing as a file that tells what it shows: on light paper, below its title and above where it is from."""
    begin = drawing.index("<title>")
    last = "</desc>" if drawing[drawing.index("</title>") :].startswith("</title><desc>") else "</title>"
    end = drawing.index(last) + len(last)
    width, height = (float(size) for size in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing[:begin])[0])
    heads, feet = (wrap(text, letters(width)) for text in (title, source))
    top = len(heads) * LINE + 16
    across, down = width + 24, top + height + len(feet) * LINE + 12
    size = f'viewBox="0 0 {across:g} {down:g}" width="{across:g}" height="{down:g}"'
    opening = re.sub(r'viewBox="[^"]*" width="[^"]*" height="[^"]*"', size, drawing[:begin], count=1)
    texts = [words(12, 18 + at * LINE, line, kind="heading") for at, line in enumerate(heads)]
    texts += [words(12, top + height + 14 + at * LINE, line, kind="tick") for at, line in enumerate(feet)]
    paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    return f"{opening}{drawing[begin:end]}{paper}{''.join(texts)}{moved([drawing[end:-6]], 12, top)}</svg>"


def write_drawing(drawing: str, file: Path, *, title: str) -> Path:
    """Write a drawing as an SVG picture, or as an HTML page with it."""
    if file.suffix not in (".svg", ".html"):
        raise MethodError(
            str(file), expected="a file that ends in .svg or .html", found=file.suffix or "no ending", do="rename it"
        )
    refuse_other(file, "--chart", "chart", b"<svg" if file.suffix == ".svg" else b"<!doctype html>")
    drawn = on_paper(drawing)
    if file.suffix == ".html":
        head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
        drawn = f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{drawn}</body></html>\n'
    write_durably(file, drawn.encode())
    return file


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


def shortened(labels: Sequence[str], width: float) -> Sequence[str]:
    """Labels of one line each; where all are empty they stay so."""
    return [" ".join(lines) for lines in distinct([(label,) for label in labels], width)] if any(labels) else labels


def in_common(labels: Sequence[Sequence[str]]) -> list[bool]:
    """Which parts are the same in all of several labels."""
    several = len(labels) > 1
    return [several and len(set(texts)) == 1 for texts in zip(*labels, strict=True)]


def _shortened(texts: Sequence[str], longest: int) -> dict[str, str]:
    """The texts cut to a length in the first way that keeps them apart; those that are short enough stay."""
    long = [text for text in texts if len(text) > longest]
    if not long:
        return {}
    words = zip(*(text.split(" ") for text in texts), strict=False) if len(texts) > 1 else iter(())
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

    def seen(lines: list[str]) -> str:  # drawings show blanks once
        return " ".join(" ".join(lines).split())

    many = Counter(map(seen, labels))
    taken, numbers = set(many), Counter[str]()
    found = []
    for label in labels:
        text, looks = seen(label), label
        while many[text] > 1 and seen(looks) in taken:
            numbers[text] += 1
            end = f" ({numbers[text]})"
            looks = [*label[:-1], _head(label[-1], max(most - len(end), 2)) + end] if label else [end.strip()]
        taken.add(seen(looks))
        found.append(looks)
    return found
