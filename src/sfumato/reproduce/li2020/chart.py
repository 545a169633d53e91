"""The reduction of the noise variance by the dimension of the table, drawn to SVG without a browser."""

import altair as alt
import pyarrow as pa

from sfumato.reproduce.drawn import drawn
from sfumato.reproduce.li2020.published import TABLE_4
from sfumato.reproduce.li2020.reproduction import CALIBRATIONS, Reproduction
from sfumato.reproduce.li2020.simulate import VARIANTS

_COLOURS = {"published": "#8a8178", "raking": "#b5a642", "least-squares": "#c1440e", "theory": "#2f5d62"}
_DASHES = {"published": [5, 3], "raking": [1, 0], "least-squares": [1, 0], "theory": [1, 3]}


def reductions(found: Reproduction) -> str:
    """How much of the variance calibration takes away, one panel for each variant of the noise."""
    points: list[tuple[str, str, int, float]] = []
    for variant in VARIANTS:
        points += [("published", variant, size, printed[2]) for size, printed in TABLE_4.items()]
        points += [("theory", variant, size, share) for size, (_, share) in found.theory.items()]
        for calibration in CALIBRATIONS:
            points += [
                (calibration, variant, line.dimension, line.reduction)
                for line in found.lines(calibration, variant)
                if line.reduction is not None
            ]
    who, panels, sizes, shares = (list(column) for column in zip(*points, strict=True))
    data = pa.table({"who": who, "panel": panels, "dimension": sizes, "reduction": shares})
    lines = (
        alt.Chart()
        .mark_line(point=alt.OverlayMarkDef(size=22), strokeWidth=1.7)
        .encode(
            x=alt.X("dimension:O", title="dimensions of the table", axis=alt.Axis(labelAngle=0, grid=False)),
            y=alt.Y("reduction:Q", title="variance taken away", axis=alt.Axis(format=".0%", tickCount=6)),
            color=alt.Color(
                "who:N",
                scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
                title=None,
                legend=alt.Legend(orient="bottom", symbolType="stroke"),
            ),
            strokeDash=alt.StrokeDash(
                "who:N", scale=alt.Scale(domain=list(_DASHES), range=list(_DASHES.values())), title=None
            ),
        )
    )
    chart = (
        alt.layer(lines, data=data)
        .properties(width=320, height=240)
        .facet(column=alt.Column("panel:N", sort=list(VARIANTS), title=None))
        .properties(title="Reduction of the noise variance by calibration to all one-way tables")
    )
    return drawn(chart)
