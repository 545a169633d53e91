"""Risk against loss of utility for many magnitudes, as in the paper's Figure 1, drawn to SVG without a browser."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pyarrow as pa

from sfumato.methods.contributor_calibration import Tried, frontier
from sfumato.reproduce.drawn import drawn

_INK, _POINT, _LINE, _MARK = "#33312e", "#b8b0a4", "#2f5d62", "#a0522d"
_MOST_POINTS = 2_000


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Magnitudes to be pointed out in a chart."""

    label: str
    loss: float
    risk: float


def risk_against_loss(tried: Tried, *, title: str, marks: Sequence[Mark] = ()) -> str:
    """Draw every set of magnitudes by its mean loss and its worst risk, and a line through those that nothing beats."""
    best = frontier(tried)
    farthest = max([float(best.loss.max()) * 1.5, *(mark.loss * 1.2 for mark in marks)])
    near = np.flatnonzero(tried.loss <= farthest)
    shown = near[np.unique(np.linspace(0, len(near) - 1, min(len(near), _MOST_POINTS)).astype(int))]
    x = alt.X(
        "loss:Q", title="mean loss, share of the total", axis=alt.Axis(format=".0%", gridOpacity=0.3, tickCount=6)
    )
    y = alt.Y(
        "risk:Q",
        title="probability of disclosure",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="~g", gridOpacity=0.3),
    )
    points = pa.table({"loss": tried.loss[shown], "risk": tried.worst_risk[shown]})
    line = pa.table({"loss": best.loss, "risk": best.worst_risk})
    layers: list[alt.Chart] = [
        alt.Chart(points).mark_circle(size=10, opacity=0.35, color=_POINT).encode(x=x, y=y),
        alt.Chart(line).mark_line(color=_LINE, interpolate="step-after", strokeWidth=1.8).encode(x=x, y=y),
    ]
    for limit in sorted({attack.limit for attack in tried.attacks}):
        rule = alt.Chart(pa.table({"risk": [limit]})).mark_rule(color=_INK, strokeDash=[4, 3], opacity=0.6)
        layers.append(rule.encode(y=y))
    if marks:
        told = pa.table({name: [getattr(mark, name) for mark in marks] for name in ("label", "loss", "risk")})
        layers.append(alt.Chart(told).mark_circle(size=70, color=_MARK, opacity=1).encode(x=x, y=y))
        text = alt.Chart(told).mark_text(align="left", dx=8, dy=-7, color=_INK)
        layers.append(text.encode(x=x, y=y, text="label:N"))
    chart = alt.layer(*layers).properties(width=380, height=260, title=title)
    return drawn(chart)
