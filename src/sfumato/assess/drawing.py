"""Tables and charts of the confidential report, drawn without a browser or a network."""

from collections.abc import Iterable, Sequence
from html import escape
from math import isnan
from typing import Literal

import altair as alt
import numpy as np
import pyarrow as pa
import vl_convert

from sfumato.assess.attacks import AttackResult
from sfumato.assess.utility import ClassUtility, Stratification, Utility

# Tables of the confidential report.


def table(caption: str, headings: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names the rows."""
    head = "".join(f"<th scope='col'>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        f"<tr><th scope='row'>{escape(row[0])}</th>{''.join(f'<td>{escape(figure)}</td>' for figure in row[1:])}</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def attacks_table(
    caption: str, attacks: Sequence[AttackResult], *, guess: str = "right by guessing without the release"
) -> str:
    """What attacks disclose, beside what `guess` says; nothing where there were none."""
    rows = (
        (found.attack, f"{found.targets:,}", _rate(found.success_rate), _rate(found.baseline_rate)) for found in attacks
    )
    headings = ("attack", "targets", "disclosed", guess)
    return table(caption, headings, rows) if attacks else ""


def _rate(rate: float) -> str:
    return "no target" if isnan(rate) else f"{rate:.1%}"


# Charts of the confidential report, drawn to SVG without a browser or a network.

_INK, _PROTECTED, _EXPECTED = "#33312e", "#a0522d", "#2f5d62"
_MOST_POINTS = 2_500
_SYMLOG = alt.Scale(type="symlog", constant=1)
_LARGE = 10**6
"""Axes that reach further have ticks at every thousandfold only, written in short."""


def true_against_protected(utility: Utility) -> str:
    """Draw cells by their true count and their protected value; on the line nothing was changed."""
    chosen = np.unique(np.linspace(0, utility.cells - 1, min(utility.cells, _MOST_POINTS)).astype(int))
    by_size = np.argsort(utility.true, kind="stable")[chosen]
    points = pa.table({"true": utility.true[by_size], "protected": utility.protected[by_size]})
    top = float(max(utility.true.max(initial=1), utility.protected.max(initial=1), 10))
    least = float(min(utility.true.min(initial=0), 0))
    bottom = float(min(utility.protected.min(initial=0), least))
    axis = _axis(bottom, top, first=10)
    line = alt.Chart(pa.table({"x": [0.0, top], "y": [0.0, top]})).mark_line(color=_INK, strokeWidth=1, opacity=0.6)
    dots = alt.Chart(points).mark_circle(size=14, opacity=0.35, color=_PROTECTED)
    return svg(
        (
            dots.encode(
                x=alt.X("true:Q", title=f"true {utility.unit}", scale=_symlog(least, top), axis=axis),
                y=alt.Y("protected:Q", title=f"published {utility.unit}", scale=_symlog(bottom, top), axis=axis),
            )
            + line.encode(x="x:Q", y="y:Q")
        ).properties(
            width=340, height=300, title=f"True and published {'counts' if utility.counts else 'values'}, cell by cell"
        )
    )


def error_by_size(utility: Utility) -> str:
    """Draw the mean error of cells by their true count, beside the error that was expected."""
    return _errors(
        utility.by_size,
        unit=utility.unit,
        title="Error by size of the cell",
        axis=f"true {utility.sizes}",
        angle=0,
        legend="top-left",
    )


def error_by_stratum(stratification: Stratification, label: str, unit: str) -> str:
    """Draw the mean error of cells by the codes of one public attribute, beside the error that was expected."""
    return _errors(
        stratification.strata, unit=unit, title=f"Error by {label.lower()}", axis=label, angle=-30, legend="top"
    )


def _errors(
    classes: Sequence[ClassUtility],
    *,
    unit: str,
    title: str,
    axis: str,
    angle: int,
    legend: Literal["top", "top-left"],
) -> str:
    order = [c.label for c in classes]
    rows = pa.table(
        {
            "class": [*order, *order],
            "error": [*(c.mean_error for c in classes), *(c.expected_error for c in classes)],
            "kind": ["observed"] * len(order) + ["expected"] * len(order),
        }
    )
    top = max((c.mean_error for c in classes), default=0.0), max((c.expected_error for c in classes), default=0.0)
    colours = alt.Scale(domain=["observed", "expected"], range=[_PROTECTED, _EXPECTED])
    return svg(
        alt.Chart(rows)
        .mark_bar(cornerRadiusTopLeft=2, cornerRadiusTopRight=2)
        .encode(
            x=alt.X("class:N", sort=order, title=axis, axis=alt.Axis(labelAngle=angle)),
            xOffset=alt.XOffset("kind:N", sort=["observed", "expected"]),
            y=alt.Y("error:Q", title=f"mean absolute error, {unit}", scale=_SYMLOG, axis=_axis(0, max(*top, 10_000))),
            color=alt.Color("kind:N", scale=colours, title=None, legend=alt.Legend(orient=legend)),
        )
        .properties(width=400, height=300, title=title)
    )


def _axis(low: float, high: float, *, first: int = 1) -> alt.Axis:
    """Ticks at powers of ten on both sides of zero."""
    large = max(high, -low) > _LARGE
    powers = [10**k for k in range(3 if large else 0, 19, 3 if large else 1) if large or 10**k >= first]
    ticks = [tick for tick in (*(-power for power in reversed(powers)), 0, *powers) if low <= tick <= high]
    if large:
        return alt.Axis(values=ticks, labelExpr="replace(format(datum.value, '~s'), 'G', ' bn')", gridOpacity=0.4)
    return alt.Axis(values=ticks, format=",d", gridOpacity=0.4)


def _symlog(low: float, high: float) -> alt.Scale:
    """A scale for counts from a little below zero to millions."""
    return alt.Scale(type="symlog", constant=3, domain=[low, high], nice=False)


def svg(chart: alt.LayerChart | alt.Chart) -> str:
    """A chart as the text of an SVG."""
    styled = chart.configure(font="system-ui, sans-serif", background="transparent").configure_view(stroke=None)
    return vl_convert.vegalite_to_svg(styled.to_json())
