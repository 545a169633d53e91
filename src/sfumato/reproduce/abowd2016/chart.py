"""The dispersion of both tables by size class, published and measured, drawn to SVG without a browser."""

import altair as alt
import pyarrow as pa

from sfumato.reproduce.abowd2016.published import PUBLISHED, SIZE_CLASSES, TABLES
from sfumato.reproduce.abowd2016.reproduce import Reproduction
from sfumato.reproduce.drawn import drawn

_COLOURS = {"published": "#8a8178", "here": "#c1440e"}
_HEADS = {"edge": "edge table", "worker": "worker table"}


def dispersion(found: Reproduction) -> str:
    """The standard deviation of c in every class; the band is the range over the keys."""
    ours = [row for row in found.measured if row.quantity == "c_sd"]
    published = [(table, size, PUBLISHED["c_sd", table, size]) for table in TABLES for size in SIZE_CLASSES]
    data = pa.table(
        {
            "panel": [*(_HEADS[row.table] for row in ours), *(_HEADS[table] for table, _, _ in published)],
            "size": [*(row.size_class for row in ours), *(size for _, size, _ in published)],
            "who": ["here"] * len(ours) + ["published"] * len(published),
            "deviation": [*(row.ours for row in ours), *(value for _, _, value in published)],
            "low": [*(row.low for row in ours), *(value for _, _, value in published)],
            "high": [*(row.high for row in ours), *(value for _, _, value in published)],
        }
    )
    x = alt.X("size:O", sort=list(SIZE_CLASSES), title="edges in the cell", axis=alt.Axis(labelAngle=-40, grid=False))
    colour = alt.Color(
        "who:N",
        scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
        title=None,
        legend=alt.Legend(orient="bottom", symbolType="stroke"),
    )
    axis = alt.Axis(format="~g", tickCount=6)
    band = alt.Chart().mark_area(opacity=0.18).encode(x=x, y=alt.Y("low:Q", axis=axis), y2="high:Q", color=colour)
    lines = (
        alt.Chart()
        .mark_line(point=alt.OverlayMarkDef(size=18), strokeWidth=1.6)
        .encode(x=x, y=alt.Y("deviation:Q", title="standard deviation of c", axis=axis), color=colour)
    )
    panels = (
        alt.layer(band, lines, data=data)
        .properties(width=300, height=230)
        .facet(column=alt.Column("panel:N", sort=list(_HEADS.values()), title=None))
        .properties(title="Dispersion of the proportional difference c by size of the cell")
    )
    return drawn(panels)
