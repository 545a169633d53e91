"""Maps: areas shaded by their figures, hatched where these are uncertain, and flows between areas as arrows."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import hypot, isfinite, sqrt
from typing import NamedTuple

import numpy as np

from sfumato.arrays import Floats
from sfumato.charts.svg import ENGLISH, GRID, INK, PAPER, QUIET, SERIES, Wording, number, shortened, svg, wide, words
from sfumato.geography.areas import Polygon
from sfumato.geography.project import Projected

# Classes of figures.

MOST_CLASSES = 5
_BOTH_SIDES = 0.15
"""From this share of figures below zero on, classes have their own colours on both sides of it."""
COLOURS = {
    "q1": "#e2efe8",
    "q2": "#b4d6cb",
    "q3": "#7cb4ac",
    "q4": "#448b8d",
    "q5": "#1d5662",
    "n1": "#f4dfd0",
    "n2": "#dfa684",
    "n3": "#b5562b",
}
"""Colours on light paper of classes from low to high, and of those below zero."""
_RAMPS = {1: ("q3",), 2: ("q2", "q4"), 3: ("q1", "q3", "q5"), 4: ("q1", "q2", "q4", "q5"), 5: tuple(COLOURS)[:5]}
_BELOW = {1: ("n2",), 2: ("n3", "n1"), 3: ("n3", "n2", "n1")}
_DEEP, _PALE = ("q4", "q5", "n3"), ("q1", "q2", "n1")


class Classes(NamedTuple):
    """Classes of figures: the numbers between them, both ends, and the name of a colour for each."""

    breaks: tuple[float, ...]
    ends: tuple[float, float]
    colours: tuple[str, ...]

    def of(self, value: float) -> str:
        """The colour of a figure; a number between two classes belongs to the upper one."""
        return self.colours[int(np.searchsorted(self.breaks, value, side="right"))]


def classify(values: Sequence[float]) -> Classes:
    """Classes with about as many figures each, between round numbers; on both sides of zero where it matters.

    >>> classify([1, 2, 3, 4, 11, 12, 13, 140, 150, 1600]).breaks
    (2.8, 7.2, 12.0, 46.0)
    """
    figures = np.array([value for value in values if isfinite(value)])
    low, high = (float(figures.min()), float(figures.max())) if len(figures) else (0.0, 0.0)
    below = figures < 0
    if high > 0 and below.sum() >= _BOTH_SIDES * len(figures) and -figures[below].sum() > figures.sum() / 10:
        under = _breaks(figures[below], 3, (low, 0.0))
        over = _breaks(figures[~below], 3, (0.0, high))
        return Classes((*under, 0.0, *over), (low, high), (*_BELOW[len(under) + 1], *_RAMPS[len(over) + 1]))
    breaks = _breaks(figures, MOST_CLASSES, (low, high))
    return Classes(breaks, (low, high), _RAMPS[len(breaks) + 1])


def _breaks(figures: Floats, most: int, within: tuple[float, float]) -> tuple[float, ...]:
    """Round numbers that divide figures into as many classes as there are different figures, up to a number."""
    different = np.unique(figures)
    classes = min(most, len(different))
    if classes < 2:
        return ()

    def between(some: Floats) -> tuple[float, ...]:
        found = np.quantile(some, np.linspace(0, 1, classes + 1)[1:-1]).tolist()
        rounded = dict.fromkeys(float(f"{value:.2g}") for value in found)
        return tuple(sorted(value for value in rounded if within[0] < value < within[1]))

    breaks = between(figures)
    # Where most figures are the same, such as 0, the others are told apart.
    return breaks if len(breaks) >= (classes - 1) / 2 else between(different)


# Areas.

MOST_AREAS = 5_000
_WIDTH, _TALLEST, _BETWEEN, _MARGIN = 760.0, 520.0, 16.0, 6.0
_ZOOM = 0.7
"""A map whose chosen areas lie within this share of it shows these larger."""
_TAGGED, _TAG = 60, 3
"""Up to so many areas, with codes of so many letters, have their codes written on them."""
_SMALL = 16.0
"""Areas that are not as wide as this are small."""
SURE, CAUTION, UNCERTAIN = 0, 1, 2
HATCHED = {CAUTION: "use with caution", UNCERTAIN: "too uncertain for most uses"}
NOT_PUBLISHED, NOT_CHOSEN = "not published", "not selected"


class Area(NamedTuple):
    """What is shown of an area: its figure, how far it can be relied on, all that is said of it, and its row."""

    value: float
    mark: int
    text: str
    link: str = ""


class MapPanel(NamedTuple):
    """One map: areas by their codes, in the order of the table."""

    title: str
    areas: Mapping[str, Area]


def draw_map(
    projected: Projected,
    panels: Sequence[MapPanel],
    *,
    title: str,
    name: str,
    description: str,
    text: Callable[[float], str] = number,
    wording: Wording = ENGLISH,
) -> str:
    """Maps with the same classes, side by side where there are several, above a key; `text` writes a figure."""
    every = [area for panel in panels for area in panel.areas.values()]
    classes = classify([area.value for area in every])
    sheet = _Sheet.of(projected, [code for panel in panels for code in panel.areas], len(panels))
    parts = [_patterns(classes.colours, fine=sheet.fine)]
    for at, panel in enumerate(panels):
        shapes = [_area(sheet, code, area, classes) for code, area in panel.areas.items()]
        tags = [_tag(sheet, code, _colour(area, classes)) for code, area in panel.areas.items()] if sheet.tagged else []
        parts += sheet.placed(at, panel.title, [*sheet.ground(sheet.around), *shapes, *tags])
    kinds = {_kind(area) for area in every}
    also = [(wording.say(HATCHED[mark]), f"h{mark}-q3") for mark in HATCHED if str(mark) in kinds]
    also += [(wording.say(NOT_PUBLISHED), "gone")] if NOT_PUBLISHED in kinds else []
    also += [(wording.say(NOT_CHOSEN), "ground")] if sheet.around else []
    key, bottom = _key(classes, sheet.bottom + 20, title, text, also, wording=wording)
    return svg([*parts, *key], width=_WIDTH, height=bottom, name=name, description=description, kind="chart map")


class _Sheet(NamedTuple):
    """Where maps lie: their scale and size, and what is drawn around the areas that were asked for."""

    projected: Projected
    scale: float
    corner: tuple[float, float]
    size: tuple[float, float]
    across: int
    panels: int
    around: tuple[str, ...]
    tagged: bool
    fine: bool
    """Whether areas are so small that borders and hatching are finer."""

    @classmethod
    def of(cls, projected: Projected, codes: Sequence[str], count: int) -> "_Sheet":
        every, chosen = projected.boxes, {code for code in codes if code in projected.boxes}
        own = _hull([every[code] for code in chosen] or list(every.values()))
        whole = _hull(list(every.values())) if len(every) <= MOST_AREAS else own
        zoomed = max(own[2] - own[0], own[3] - own[1]) < _ZOOM * max(whole[2] - whole[0], whole[3] - whole[1])
        left, top, right, bottom = own if zoomed else whole
        columns = 1 if count == 1 else 2 if count <= 4 else 3
        room = (_WIDTH - (columns - 1) * _BETWEEN) / columns
        tall = _TALLEST if columns == 1 else room
        width, height = max(right - left, 1e-12), max(bottom - top, 1e-12)
        scale = min((room - 2 * _MARGIN) / width, (tall - 2 * _MARGIN) / height)
        size = (room, height * scale + 2 * _MARGIN)
        corner = (left - (room / scale - width) / 2, top - _MARGIN / scale)
        around = [code for code in every if code not in chosen] if len(every) <= MOST_AREAS else []
        narrowest = min(box[2] - box[0] for box in every.values()) * scale
        tagged = len(every) <= _TAGGED and max(map(len, every)) <= _TAG and narrowest > wide("m" * (_TAG + 1))
        fine = float(np.median([every[code][2] - every[code][0] for code in chosen or every])) * scale < _SMALL
        return cls(projected, scale, corner, size, columns, count, tuple(around), tagged, fine)

    @property
    def headed(self) -> float:
        return 22.0 if self.panels > 1 else 0.0

    @property
    def bottom(self) -> float:
        """Where the last row of maps ends."""
        rows = -(-self.panels // self.across)
        return rows * (self.size[1] + self.headed + _BETWEEN) - _BETWEEN

    def placed(self, at: int, title: str, parts: Sequence[str]) -> list[str]:
        """A map in its place, cut off at its edges, below its title."""
        row, column = divmod(at, self.across)
        x = column * (self.size[0] + _BETWEEN)
        y = row * (self.size[1] + self.headed + _BETWEEN) + self.headed
        shown = shortened([title], self.size[0])[0] if title else ""
        heading = [words(x + self.size[0] / 2, y - 8, shown, anchor="middle", full=title)] if self.headed else []
        box = f'x="{x:g}" y="{y:g}" width="{self.size[0]:g}" height="{self.size[1]:g}"'
        return [*heading, f'<svg {box}>{"".join(parts)}<path class="spot" fill="none" d=""/></svg>']

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        """Where a point of the map lies on it."""
        x, y = ((place - begin) * self.scale for place, begin in zip(point, self.corner, strict=True))
        return x, y

    def shape(self, code: str) -> str:
        """The outline of an area; tenths of a pixel are enough."""
        return "".join(_outline(p, self.corner, self.scale) for p in self.projected.geography.areas[code])

    def ground(self, codes: Sequence[str]) -> list[str]:
        """Areas that nothing is shown of, as one shape."""
        shape = "".join(self.shape(code) for code in codes)
        return [f'<path class="ground" d="{shape}" {_GROUND}/>'] if shape else []


_GROUND = f'fill="#f1eee8" stroke="{GRID}" stroke-width="0.7" fill-rule="evenodd"'
_BORDER = f'stroke="{PAPER}" stroke-linejoin="round" fill-rule="evenodd"'


def _hull(boxes: Sequence[tuple[float, float, float, float]]) -> tuple[float, float, float, float]:
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def _outline(polygon: Polygon, corner: tuple[float, float], scale: float) -> str:
    shape = ""
    for ring in polygon:
        tenths = np.rint((ring - corner) * (scale * 10)).astype(np.int64)
        steps = np.diff(tenths, axis=0)
        steps = steps[(steps != 0).any(axis=1)]
        begin = f"M{tenths[0][0] / 10:g} {tenths[0][1] / 10:g}"
        shape += begin + "".join(f"l{x / 10:g} {y / 10:g}" for x, y in steps.tolist()) + "z"
    return shape


def _kind(area: Area) -> str:
    return NOT_PUBLISHED if not isfinite(area.value) else str(area.mark)


def _colour(area: Area, classes: Classes) -> str:
    return classes.of(area.value) if isfinite(area.value) else "gone"


def _area(sheet: _Sheet, code: str, area: Area, classes: Classes) -> str:
    colour = _colour(area, classes)
    fill = _filled(colour if area.mark == SURE or colour == "gone" else f"h{area.mark}-{colour}")
    thin = "0.3" if sheet.fine else "0.8"
    return _linked(area, "area", f'<path d="{sheet.shape(code)}" {fill} stroke-width="{thin}" {_BORDER}/>')


def _linked(what: "Area | Flow", kind: str, parts: str) -> str:
    """A shape that leads to its row, or stands for itself in a file of its own."""
    said = escape(what.text)
    if not what.link:
        return f'<g class="{kind}" role="img" aria-label="{said}"><title>{said}</title>{parts}</g>'
    return f'<a class="{kind}" href="#{what.link}" aria-label="{said}"><title>{said}</title>{parts}</a>'


def _filled(colour: str) -> str:
    """The attributes of an area in a colour, hatched or dotted: a pattern has colours of its own."""
    return f'class="{colour}" fill="{COLOURS[colour]}"' if colour in COLOURS else f'fill="url(#map-{colour})"'


def _tag(sheet: _Sheet, code: str, colour: str) -> str:
    """The code of an area, written on it; a rim keeps it apart from hatching and lines."""
    x, y = sheet.at(sheet.projected.middles[code])
    deep = colour in _DEEP
    ink, rim = (PAPER, COLOURS["q5"]) if deep else (INK, PAPER)
    return (
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" class="tag{" deep" if deep else ""}" fill="{ink}" '
        f'stroke="{rim}" stroke-width="3" stroke-opacity="0.6" paint-order="stroke" aria-hidden="true">{escape(code)}'
        "</text>"
    )


def _patterns(colours: Sequence[str], *, fine: bool) -> str:
    """Hatched colours, wide and narrow, and dots for areas without a figure."""
    gone = (
        f'<pattern id="map-gone" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" '
        f'class="ground" fill="#f1eee8"/><circle cx="2.5" cy="2.5" r="0.8" class="dots" fill="{QUIET}"/></pattern>'
    )
    found = [
        f'<pattern id="map-h{mark}-{colour}" width="{width}" height="{width}" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="{width}" height="{width}" {_filled(colour)}/>'
        f'<rect width="{width / 4:g}" height="{width}" {_hatch(colour)}/></pattern>'
        for mark, width in ((CAUTION, 5 if fine else 7), (UNCERTAIN, 2.5 if fine else 3.5))
        for colour in dict.fromkeys([*colours, "q3"])
    ]
    return f"<defs>{gone}{''.join(found)}</defs>"


def _hatch(colour: str) -> str:
    """The attributes of lines that are seen on a colour."""
    return f'class="dots" fill="{QUIET}" fill-opacity="0.55"' if colour in _PALE else f'class="hatch" fill="{PAPER}"'


def _key(
    classes: Classes,
    top: float,
    title: str,
    text: Callable[[float], str],
    also: Sequence[tuple[str, str]],
    *,
    wording: Wording,
) -> tuple[list[str], float]:
    """A bar of the classes with the numbers between them, what else there is beside it, and where that ends."""
    bounds = [classes.ends[0], *classes.breaks, classes.ends[1]]
    texts = [wording.number(float(f"{bound:.3g}")) if abs(bound) >= _LONG else text(bound) for bound in bounds]
    step = max(58.0, max(map(wide, texts)) + 10)
    parts, x, y = [words(0, top, title, kind="tick")], wide(texts[0]) / 2, top + 10
    for at, colour in enumerate(classes.colours):
        parts.append(f'<rect x="{x + at * step:g}" y="{y:g}" width="{step - 1:g}" height="12" {_filled(colour)}/>')
    parts += [
        words(x + at * step, y + 27, said, anchor="middle", kind="tick")
        for at, said in enumerate(texts)
        if bounds[0] < bounds[-1] or not at
    ]
    right = x + len(classes.colours) * step + wide(texts[-1]) / 2 + 24
    begin = right if right + max((wide(said) for said, _ in also), default=0) + 40 < _WIDTH else 0.0
    across, line = begin, y if begin else y + 44
    for said, colour in also:
        if across > begin and across + wide(said) + 40 > _WIDTH:
            across, line = begin, line + 20
        fill = f'class="{colour}" {_GROUND}' if colour == "ground" else _filled(colour)
        parts.append(f'<rect x="{across:g}" y="{line:g}" width="16" height="12" {fill}/>')
        parts.append(words(across + 22, line + 11, said, kind="tick"))
        across += wide(said) + 44
    return parts, max(y + 27, line + 12) + 10


_LONG = 10_000
"""Figures from here on are written in short in the key."""


# Flows.

MOST_FLOWS = 40
_THICKEST, _THINNEST = 8.0, 0.8
_LARGEST = 15.0
"""The radius of the largest circle, which stands for what stays in an area."""
_BEND = 0.16
_SHORT = 11.0
"""Arrows end so far from the middle of an area, whose code may be there."""
_HEAD = 2.1
"""Arrow heads are so many times as wide as their lines."""


class Flow(NamedTuple):
    """What goes from one area to another, or stays in one."""

    origin: str
    destination: str
    value: float
    text: str
    link: str = ""


def draw_flows(
    projected: Projected,
    flows: Sequence[Flow],
    *,
    codes: Sequence[str],
    directed: bool,
    title: str,
    name: str,
    description: str,
    text: Callable[[float], str] = number,
    wording: Wording = ENGLISH,
) -> str:
    """Arrows between areas, as wide as their figures are large; circles for what stays within one.

    Arrows bend to the left of where they go, so that there and back are two. `codes` are the areas asked for.
    """
    sheet = _Sheet.of(projected, codes, 1)
    there = [flow for flow in flows if flow.origin != flow.destination]
    loops = [flow for flow in flows if flow.origin == flow.destination]
    most = max((flow.value for flow in there), default=1.0)
    largest = max((flow.value for flow in loops), default=1.0)
    parts = sheet.ground([*codes, *sheet.around])
    parts += [_loop(sheet, flow, largest) for flow in sorted(loops, key=lambda flow: -flow.value)]
    parts += [_arrow(sheet, flow, most, directed=directed) for flow in sorted(there, key=lambda flow: -flow.value)]
    parts += [_tag(sheet, code, "ground") for code in (*codes, *sheet.around)] if sheet.tagged else []
    placed = sheet.placed(0, "", parts)
    key, bottom = _flow_key(
        sheet.bottom + 20, title, text, most if there else 0, largest if loops else 0, wording=wording
    )
    return svg([*placed, *key], width=_WIDTH, height=bottom, name=name, description=description, kind="chart map")


def _thick(value: float, most: float) -> float:
    return max(_THICKEST * value / most, _THINNEST)


def _arrow(sheet: _Sheet, flow: Flow, most: float, *, directed: bool) -> str:
    thick = _thick(flow.value, most)
    (x, y), (right, down) = (sheet.at(sheet.projected.middles[end]) for end in (flow.origin, flow.destination))
    length = hypot(right - x, down - y) or 1.0
    bend = _BEND if directed else 0.0
    middle = ((x + right) / 2 + bend * (down - y), (y + down) / 2 - bend * (right - x))
    # The head lies along the line's last direction, and the line ends where it begins.
    along = ((right - middle[0]) / (length / 2), (down - middle[1]) / (length / 2))
    size = hypot(*along) or 1.0
    along = (along[0] / size, along[1] / size)
    head = _HEAD * thick + 4 if directed else 0.0
    short = min(_SHORT, length / 6)
    tip = (right - short * along[0], down - short * along[1])
    end = (tip[0] - head * along[0], tip[1] - head * along[1])
    line = f"M{x:.1f} {y:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    shape = f'<path d="{line}" class="l0 stream" stroke="{SERIES[0]}" stroke-width="{thick:.1f}" fill="none"/>'
    if directed:
        half = (_HEAD * thick + 3) / 2
        left, other = ((end[0] - side * along[1], end[1] + side * along[0]) for side in (half, -half))
        corners = "L".join(f"{px:.1f} {py:.1f}" for px, py in (tip, left, other))
        shape += f'<path d="M{corners}z" class="s0" fill="{SERIES[0]}"/>'
    return _linked(flow, "flow", shape)


def _loop(sheet: _Sheet, flow: Flow, largest: float) -> str:
    x, y = sheet.at(sheet.projected.middles[flow.origin])
    radius = max(_LARGEST * sqrt(max(flow.value, 0) / largest), 1.5)
    return _linked(flow, "flow", _circle(x, y, radius))


def _circle(x: float, y: float, radius: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="s1" fill="{SERIES[1]}" fill-opacity="0.45"/>'


def _flow_key(
    top: float, title: str, text: Callable[[float], str], most: float, largest: float, *, wording: Wording
) -> tuple[list[str], float]:
    """Three lines and a circle with their figures, and where that ends."""
    parts, x, y = [words(0, top, title, kind="tick")], 0.0, top + 22
    for share in (1, 0.5, 0.1) if most else ():
        value = float(f"{most * share:.2g}")
        said = text(value)
        line = f'd="M{x:g} {y - 4:g}h34" stroke-width="{_thick(value, most):.1f}" fill="none"'
        parts += [f'<path {line} class="l0 stream" stroke="{SERIES[0]}"/>', words(x + 42, y, said, kind="tick")]
        x += wide(said) + 66
    if largest:
        said = wording.say("{figure} within one area").format(figure=text(largest))
        parts += [_circle(x + 15, y - 4, _LARGEST), words(x + 38, y, said, kind="tick")]
    return parts, y + 18
