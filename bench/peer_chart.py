"""The chart of the peers: seconds, memory and error of every contestant side by side, on logarithmic scales."""

from pathlib import Path
from statistics import median
from typing import Any

import altair as alt
import pyarrow as pa
import vl_convert
from claims import Results

_MARGINALS = ("workplace", "worker")
_INK = "#33312e"
_COLOURS = {"the floor": "#2f5d62", "sfumato": "#a0522d", "others": "#8a8680"}
_PANELS = {
    "seconds": ("seconds, whole process", ".3~g"),
    "gigabytes": ("peak memory, GB", ".2f"),
    "error": ("mean error per cell, jobs", ".3~g"),
}


def draw_peers(path: Path, results: Results) -> None:
    """Write an SVG with a row of three panels for each marginal; who did not finish is named without a point."""
    tables = [results["tables"][name] for name in _MARGINALS]
    rows = [alt.hconcat(*_panels(table), spacing=16, title=table["label"]) for table in tables]
    drawn = (
        alt.vconcat(*rows, spacing=28)
        .properties(title=f"{results['jobs'] / 1e6:.1f} million jobs, protected and written", padding=12)
        .configure(font="system-ui, sans-serif", background="white")
        .configure_view(stroke=None)
        .configure_title(anchor="start")
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(vl_convert.vegalite_to_svg(drawn.to_json()), encoding="utf-8")


def _panels(table: Results) -> list[alt.LayerChart]:
    found = list(table["contestants"].values())
    order = [one["label"] for one in found]
    rows = pa.table(
        {
            "who": order,
            "kind": [_kind(name, one["ours"]) for name, one in table["contestants"].items()],
            "seconds": [_or_none(one, lambda one: median(one["seconds"])) for one in found],
            "gigabytes": [_or_none(one, lambda one: one["peak_bytes"] / 1e9) for one in found],
            "error": [_or_none(one, lambda one: one["errors"]["observed"] or None) for one in found],
        }
    )
    panels = []
    for number, (column, (title, shape)) in enumerate(_PANELS.items()):
        axis = alt.Axis(labelLimit=400, ticks=False, domain=False, grid=True, labels=number == 0)
        base = alt.Chart(rows).encode(
            x=alt.X(
                f"{column}:Q",
                scale=alt.Scale(type="log", nice=False, padding=30),
                axis=alt.Axis(tickCount=3, grid=False),
                title=title,
            ),
            y=alt.Y("who:N", sort=order, title=None, axis=axis),
        )
        points = base.mark_point(filled=True, size=70, opacity=1).encode(
            color=alt.Color(
                "kind:N", scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())), legend=None
            )
        )
        labels = base.mark_text(align="left", dx=7, color=_INK, fontSize=10).encode(text=alt.Text(column, format=shape))
        panels.append((points + labels).properties(width=190, height=19 * len(order)))
    return panels


def _kind(name: str, ours: bool) -> str:
    return "sfumato" if ours else "the floor" if name == "floor" else "others"


def _or_none(one: Results, figure: Any) -> float | None:
    return None if one["failure"] else figure(one)
