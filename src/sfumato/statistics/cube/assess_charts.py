"""Charts of the part of the confidential report that is about cubes."""

from collections.abc import Callable, Sequence

import altair as alt
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.assess.drawing import svg
from sfumato.statistics.cube.assess import CubeAssessment, Dimensionality
from sfumato.statistics.cube.assess_measures import Beside, ReplicateErrors

_MOST_POINTS = 1_000
_STEPS = np.linspace(0.005, 0.995, 100)
_LEAST_CELLS = 5
"""Of fewer cells a distribution is not drawn."""
_ZEROS = 8
"""One in so many points may be a zero."""
_INK = "#33312e"
_SHORT = "abs(datum.value) < 1000 ? format(datum.value, '~g') : format(datum.value, '~s')"
_PERCENTS = [-10, -1, -0.1, 0, 0.1, 1, 10]


def figures_chart(by_dimension: Sequence[Dimensionality], figure: str) -> str:
    """Draw figures of one kind by true and published value, on scales of logarithms; on the line nothing changed."""
    parts = [(part.dimensions, kind.cells) for part in by_dimension for kind in part.figures if kind.figure == figure]
    share = max(_MOST_POINTS // max(len(parts), 1), 1)
    chosen = [(size, cells, _spread_out(cells.true, share)) for size, cells in parts]
    points = {
        "true": np.concatenate([cells.true[at] for _, cells, at in chosen]),
        "published": np.concatenate([cells.published[at] for _, cells, at in chosen]),
    }
    sizes = [str(size) for size, _, at in chosen for _ in at]
    some = np.abs(points["true"][points["true"] != 0])
    scale = alt.Scale(type="symlog", constant=float(np.quantile(some, 0.01)) if len(some) else 1.0)
    ends = [float(points["true"].min(initial=0)), float(points["true"].max(initial=0))]
    dots = (
        alt.Chart(pa.table({**points, "dimensions": sizes}))
        .mark_circle(size=14, opacity=0.4)
        .encode(
            x=alt.X("true:Q", title=f"true {figure}", scale=scale, axis=_axis(points["true"])),
            y=alt.Y("published:Q", title=f"published {figure}", scale=scale, axis=_axis(points["published"])),
            color=alt.Color("dimensions:N", title="dimensions", scale=alt.Scale(scheme="viridis")),
        )
    )
    return svg((dots + _line(ends)).properties(width=320, height=280, title=f"True and published {figure}"))


def differences_chart(by_dimension: Sequence[Dimensionality], figure: str) -> str:
    """Draw how differences from true figures are distributed, in standard errors of the noise, by dimension."""
    return _distributions(
        by_dimension,
        figure,
        lambda cells: cells.standardised,
        axis="difference, in expected standard errors of the noise",
        title=f"Differences of {figure}",
    )


def relative_chart(by_dimension: Sequence[Dimensionality], figure: str) -> str:
    """Draw how differences are distributed as a share of true figures, by dimension."""
    return _distributions(
        by_dimension,
        figure,
        lambda cells: cells.relative,
        axis="difference, as a share of the true figure",
        title=f"Relative differences of {figure}",
        shares=True,
    )


def errors_chart(by_dimension: Sequence[Dimensionality], figure: str) -> str:
    """Draw by how much published standard errors are above those before protection, by dimension."""
    return _distributions(
        by_dimension,
        figure,
        lambda cells: cells.error_differences,
        axis="published standard error above that of sampling",
        title=f"Differences of standard errors of {figure}",
        shares=True,
    )


def replicates_chart(replicates: Sequence[ReplicateErrors]) -> str:
    """Draw standard errors of weighted totals by replicate weights beside those published, on scales of logarithms."""
    totals = [part for part in replicates if part.figure == "weighted totals"]
    real = np.concatenate([part.errors for part in totals])
    told = np.concatenate([part.published_errors for part in totals])
    tables = [" and ".join(part.table) for part in totals for _ in part.errors]
    some = (real > 0) & (told > 0)
    at = np.flatnonzero(some)[_spread_out(real[some], _MOST_POINTS)]
    scale = alt.Scale(type="log")
    dots = (
        alt.Chart(pa.table({"real": real[at], "told": told[at], "table": [tables[place] for place in at]}))
        .mark_circle(size=18, opacity=0.5)
        .encode(
            x=alt.X("real:Q", title="standard error by replicate weights", scale=scale, axis=_axis()),
            y=alt.Y("told:Q", title="published standard error", scale=scale, axis=_axis()),
            color=alt.Color("table:N", title=None),
        )
    )
    ends = [float(real[at].min()), float(real[at].max())] if len(at) else [1.0, 1.0]
    return svg((dots + _line(ends)).properties(width=320, height=280, title="Standard errors of weighted totals"))


def charts_of(found: CubeAssessment) -> list[str]:
    """All charts of one cube."""
    parts = found.by_dimension
    kinds = list(dict.fromkeys(kind.figure for part in parts for kind in part.figures))
    charts = [figures_chart(parts, figure) for figure in kinds]
    charts += [differences_chart(parts, figure) for figure in kinds]
    charts += [relative_chart(parts, figure) for figure in kinds]
    sampled = [figure for figure in kinds if any(_has_errors(part, figure) for part in parts)]
    charts += [errors_chart(parts, figure) for figure in sampled]
    return charts + ([replicates_chart(found.replicates)] if found.replicates else [])


def _has_errors(part: Dimensionality, figure: str) -> bool:
    return any(kind.figure == figure and len(kind.cells.error_differences) >= _LEAST_CELLS for kind in part.figures)


def _distributions(
    by_dimension: Sequence[Dimensionality],
    figure: str,
    values: Callable[[Beside], Floats],
    *,
    axis: str,
    title: str,
    shares: bool = False,
) -> str:
    """The share of cells up to each difference, one line for each number of dimensions."""
    found = {
        str(part.dimensions): values(kind.cells)
        for part in by_dimension
        for kind in part.figures
        if kind.figure == figure
    }
    drawn = {size: np.quantile(some[np.isfinite(some)], _STEPS) for size, some in found.items() if _enough(some)}
    rows = pa.table(
        {
            "difference": np.concatenate([*drawn.values(), np.empty(0)]),
            "share": np.tile(_STEPS, len(drawn)),
            "dimensions": [size for size in drawn for _ in _STEPS],
        }
    )
    scale = alt.Scale(type="symlog", constant=0.05) if shares else alt.Scale()
    ticks = alt.Axis(values=_PERCENTS, format="+~%", gridOpacity=0.4) if shares else alt.Axis(gridOpacity=0.4)
    return svg(
        alt.Chart(rows)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("difference:Q", title=axis, axis=ticks, scale=scale),
            y=alt.Y("share:Q", title="share of cells up to it", axis=alt.Axis(format="%", gridOpacity=0.4)),
            color=alt.Color("dimensions:N", title="dimensions", scale=alt.Scale(scheme="viridis")),
            order="share:Q",
        )
        .properties(width=320, height=220, title=title)
    )


def _enough(values: Floats) -> bool:
    return int(np.isfinite(values).sum()) >= _LEAST_CELLS


def _spread_out(values: Floats, most: int) -> NDArray[np.intp]:
    """The places of some values, from the smallest to the largest; of zeros, which may be nearly all, a few."""
    chosen = []
    for places, share in ((np.flatnonzero(values != 0), most), (np.flatnonzero(values == 0), most // _ZEROS)):
        order = places[np.argsort(values[places], kind="stable")]
        chosen.append(order[np.unique(np.linspace(0, max(len(order) - 1, 0), min(len(order), share)).astype(int))])
    return np.concatenate(chosen)


def _line(ends: Sequence[float]) -> alt.Chart:
    """Where nothing was changed: straight, since both scales are the same."""
    rows = pa.table({"x": list(ends), "y": list(ends)})
    line: alt.Chart = alt.Chart(rows).mark_line(color=_INK, strokeWidth=1, opacity=0.6).encode(x="x:Q", y="y:Q")
    return line


def _axis(values: Floats | None = None) -> alt.Axis:
    """Ticks at powers of ten, on both sides of 0; without values a logarithmic scale finds them itself."""
    if values is None:
        return alt.Axis(format="~s", gridOpacity=0.4, tickCount=5, labelOverlap=True)
    least, most = float(values.min(initial=0)), float(values.max(initial=0))
    powers = [10.0**power for power in range(-4, 16, 2)]
    ticks = [tick for tick in (*(-power for power in powers), 0.0, *powers) if least <= tick <= most]
    return alt.Axis(values=ticks, labelExpr=_SHORT, gridOpacity=0.4, labelOverlap=True)
