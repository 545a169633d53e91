"""The envelope, the tails, and errors by size, drawn to SVG without a browser."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa

from sfumato.reproduce.drawn import drawn
from sfumato.reproduce.schmutte2020.methods_by_size import METHODS
from sfumato.reproduce.schmutte2020.percentiles import IMPROVED, PLAIN
from sfumato.reproduce.schmutte2020.reproduction import Reproduction

_INK, _POINT, _LINE = "#33312e", "#8a8178", "#c1440e"
_METHODS = dict(zip(METHODS, ("#c1440e", "#2f5d62", "#b5a642"), strict=True))
_CURVES = {
    PLAIN: "#8a8178",
    ("isotonic", 20): "#b5a642",
    ("hierarchical", 60): "#6a8d73",
    ("exponential", 60): "#5b4a3f",
    IMPROVED: "#c1440e",
}
"""Every curve with the number of bins that suits it."""
_MOST_POINTS = 1_500


def envelope_chart(found: Reproduction) -> str:
    """Sensitivity against people, and χ/n, one panel for each of the classes with the most groups."""
    edge = found.envelope
    rows: list[dict[str, Any]] = []
    for number in edge.largest_classes():
        own = np.flatnonzero(edge.classes == number)[:_MOST_POINTS]
        points = zip(edge.people[own].tolist(), edge.sensitivity[own].tolist(), edge.line[own].tolist(), strict=True)
        panel = edge.names[number]
        rows += [{"panel": panel, "people": n, "sensitivity": s, "line": line} for n, s, line in points]
    x = alt.X("people:Q", title="children in the group", scale=alt.Scale(type="log", nice=False), axis=_axis())
    dots = (
        alt.Chart()
        .mark_circle(size=14, opacity=0.5, color=_POINT)
        .encode(x=x, y=alt.Y("sensitivity:Q", title="ranks", scale=alt.Scale(type="log", nice=False), axis=_axis()))
    )
    line = alt.Chart().mark_line(color=_LINE, strokeWidth=1.6).encode(x=x, y=alt.Y("line:Q"))
    layered = alt.layer(dots, line, data=pa.Table.from_pylist(rows)).properties(width=300, height=210)
    panels = layered.facet(facet=alt.Facet("panel:N", title=None), columns=2)
    return drawn(panels.properties(title="Local sensitivity of every group, and χ/n of its class"))


def tails_chart(found: Reproduction) -> str:
    """The share of groups in a tail that each way to publish gives away rightly."""
    rows = [{"protection": line.protection, "found": line.found} for line in found.tails.classified]
    bars = (
        alt.Chart(pa.Table.from_pylist(rows))
        .mark_bar(color=_LINE)
        .encode(
            x=alt.X("found:Q", title="found, of all groups in a tail", axis=alt.Axis(format=".0%", tickCount=6)),
            y=alt.Y("protection:N", title=None, sort=[line.protection for line in found.tails.classified]),
        )
    )
    return drawn(bars.properties(width=480, height=150, title="Groups in the bottom and the top tenth"))


def methods_chart(found: Reproduction) -> str:
    """Errors of the three methods by size of the group."""
    rows = [
        {"who": line.method, "size": line.size_class, "error": line.error}
        for line in found.methods.lines
        if line.error is not None
    ]
    title = "Mean error of a prediction at the same nominal ε = 8"
    return _by_size(rows, found.methods.size_classes, _METHODS, axis="ranks", of="children in the group", title=title)


def percentiles_chart(found: Reproduction) -> str:
    """Errors of all curves by size of the cell."""
    names = {f"{curve}, {bins} bins": colour for (curve, bins), colour in _CURVES.items()}
    rows = [
        {"who": f"{curve}, {bins} bins", "size": size, "error": 100 * found.percentiles.of(curve, bins, size).error}
        for curve, bins in _CURVES
        for size in found.percentiles.size_classes
    ]
    title = "Mean error of the percentiles 25, 50 and 75 at ε = 1.5 a cell"
    return _by_size(
        rows, found.percentiles.size_classes, names, axis="per cent", of="graduates in the cell", title=title
    )


def _by_size(
    rows: list[dict[str, Any]], sizes: list[str], colours: Mapping[str, str], *, axis: str, of: str, title: str
) -> str:
    lines = (
        alt.Chart(pa.Table.from_pylist(rows))
        .mark_line(point=alt.OverlayMarkDef(size=24), strokeWidth=1.7)
        .encode(
            x=alt.X("size:O", sort=sizes, title=of, axis=alt.Axis(labelAngle=0, grid=False)),
            y=alt.Y("error:Q", title=axis, scale=alt.Scale(type="log", nice=False), axis=_axis()),
            color=alt.Color(
                "who:N",
                scale=alt.Scale(domain=list(colours), range=list(colours.values())),
                title=None,
                legend=alt.Legend(orient="bottom", columns=3, symbolType="stroke"),
            ),
        )
    )
    return drawn(lines.properties(width=560, height=260, title=title))


def _axis() -> alt.Axis:
    return alt.Axis(format="~g", tickCount=6, gridOpacity=0.3, labelColor=_INK)
