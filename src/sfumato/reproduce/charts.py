"""Charts of an evaluation, drawn to SVG without a browser or a network."""

from collections.abc import Sequence
from typing import Literal

import altair as alt
import pyarrow as pa

from sfumato.reproduce.drawn import drawn
from sfumato.reproduce.entrants import BASELINE, ENTRANTS, OURS, PAPER
from sfumato.reproduce.evaluate import Measured

_COLOURS = {
    "log-laplace": "#8a8178",
    "smooth-gamma": "#b5a642",
    "smooth-laplace": "#5b4a3f",
    "laplace": "#b8b0a4",
    "node-laplace": "#d2a679",
    "smooth-pareto": "#a0522d",
    "vector-pareto": "#c1440e",
    "log-box": "#6a8d73",
    "smooth-box": "#2f5d62",
    "auto": "#7b2d5b",
}
_DASHES = {PAPER: [5, 3], BASELINE: [1, 3], OURS: [1, 0]}
_AXES: dict[str, tuple[str, Literal["log", "linear"]]] = {
    "l1_ratio": ("error / error of the legacy", "log"),
    "spearman": ("rank correlation", "linear"),
}


def against_epsilon(rows: Sequence[Measured], *, quantity: str, by: str, heads: Sequence[str], title: str) -> str:
    """Draw a figure against ε, one line a method, one panel for each value of `by` (alpha or stratum)."""
    shown = [row for row in rows if row.quantity == quantity and row.ours is not None]
    table = pa.table(
        {
            "epsilon": [float(row.epsilon) for row in shown],
            "ours": [row.ours for row in shown],
            "method": [row.method for row in shown],
            "panel": [_panel(row, by) for row in shown],
        }
    )
    present = [entrant for entrant in ENTRANTS if any(row.method == entrant.name for row in shown)]
    names = [entrant.name for entrant in present]
    axis_title, kind = _AXES[quantity]
    ticks = sorted({float(row.epsilon) for row in shown})
    encoding = {
        "x": alt.X(
            "epsilon:Q",
            scale=alt.Scale(type="log", nice=False),
            title="ε",
            axis=alt.Axis(values=ticks, format="~g", grid=False, labelOverlap=True),
        ),
        "y": alt.Y(
            "ours:Q", scale=alt.Scale(type=kind, zero=False), title=axis_title, axis=alt.Axis(format="~g", tickCount=5)
        ),
        "color": alt.Color(
            "method:N",
            scale=alt.Scale(domain=names, range=[_COLOURS[name] for name in names]),
            title=None,
            legend=alt.Legend(orient="bottom", columns=5, symbolType="stroke"),
        ),
        "strokeDash": alt.StrokeDash(
            "method:N",
            scale=alt.Scale(domain=names, range=[_DASHES[entrant.kind] for entrant in present]),
            title=None,
        ),
    }
    lines = alt.Chart().mark_line(point=alt.OverlayMarkDef(size=16), strokeWidth=1.6).encode(**encoding)
    layers: list[alt.Chart] = [lines]
    if quantity == "l1_ratio":
        one = alt.Chart().mark_rule(color="#33312e", opacity=0.5).encode(y=alt.datum(1))
        layers.insert(0, one)
    panels = (
        alt.layer(*layers, data=table)
        .properties(width=150, height=190)
        .facet(column=alt.Column("panel:N", sort=list(heads), title=None))
        .properties(title=title)
    )
    return drawn(panels)


def _panel(row: Measured, by: str) -> str:
    return f"α = {float(row.alpha):g}" if by == "alpha" else row.stratum
