"""Charts by the dimension of the table, drawn to SVG without a browser."""

import altair as alt
import pyarrow as pa

from sfumato.reproduce.drawn import drawn
from sfumato.reproduce.li2020.levels import APPROACHES, NUMBERS, Levels
from sfumato.reproduce.li2020.published import TABLE_4
from sfumato.reproduce.li2020.reproduction import CALIBRATIONS, Reproduction
from sfumato.reproduce.li2020.simulate import VARIANTS

_GREY = "#8a8178"
_COLOURS = {"published": _GREY, "raking": "#b5a642", "least-squares": "#c1440e", "theory": "#2f5d62"}
_DASHES = {"published": [5, 3], "raking": [1, 0], "least-squares": [1, 0], "theory": [1, 3]}


def reductions(found: Reproduction) -> str:
    """How much of the variance calibration takes away, one panel for each variant of the noise."""
    points: list[tuple[str, str, int, float]] = []
    for variant in VARIANTS:
        points += [("published", variant, size, printed[2]) for size, printed in TABLE_4.items()]
        points += [("theory", variant, size, expected.reduction) for size, expected in found.theory.items()]
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


def level_errors(found: Levels) -> str:
    """The error of both approaches at the same budget, one panel for each epsilon and each survey."""
    kinds = [(error.approach, error.numbers) for error in found.errors]
    data = pa.table(
        {
            "who": [f"{approach}, {numbers}" for approach, numbers in kinds],
            "epsilon": [f"ε = {float(error.epsilon):g}" for error in found.errors],
            "records": [f"{error.records:,} records" for error in found.errors],
            "dimension": [error.dimension for error in found.errors],
            "error": [error.simulated for error in found.errors],
        }
    )
    names = [f"{approach}, {numbers}" for approach in APPROACHES for numbers in NUMBERS]
    lines = (
        alt.Chart()
        .mark_line(point=alt.OverlayMarkDef(size=22), strokeWidth=1.7)
        .encode(
            x=alt.X("dimension:O", title="dimensions of the table", axis=alt.Axis(labelAngle=0, grid=False)),
            y=alt.Y("error:Q", title="root mean square error, records", scale=alt.Scale(type="log")),
            color=alt.Color(
                "who:N",
                scale=alt.Scale(domain=names, range=[_GREY, "#b5a642", "#2f5d62", "#c1440e"]),
                title=None,
                legend=alt.Legend(orient="bottom", symbolType="stroke", columns=2, labelLimit=300),
            ),
        )
    )
    chart = (
        alt.layer(lines, data=data)
        .properties(width=320, height=200)
        .facet(column=alt.Column("epsilon:N", title=None), row=alt.Row("records:N", title=None))
        .resolve_scale(y="independent")
        .properties(title="Error at the same budget: the cube alone, and several levels")
    )
    return drawn(chart)
