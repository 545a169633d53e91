"""Charts of the part of the confidential report that is about cubes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats
from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.svg import percent
from sfumato.statistics.cube.assess import CubeAssessment, Dimensionality
from sfumato.statistics.cube.assess_measures import ReplicateErrors

_MOST_POINTS = 1_000
_STEPS = np.linspace(0.005, 0.995, 100)
_LEAST_CELLS = 5
"""Of fewer cells a distribution is not drawn."""
_ZEROS = 8
"""One in so many points may be a zero."""


def figures_chart(by_dimension: Sequence[Dimensionality], figure: str) -> str:
    """Draw figures of one kind by true and published value, on scales of logarithms; on the line nothing changed."""
    parts = [(part.dimensions, kind.cells) for part in by_dimension for kind in part.figures if kind.figure == figure]
    share = max(_MOST_POINTS // max(len(parts), 1), 1)
    chosen = [(cells, _spread_out(cells.true, share)) for _, cells in parts]
    points = [(cells.true[at], cells.published[at]) for cells, at in chosen]
    true = np.concatenate([some for some, _ in points])
    some = np.abs(true[true != 0])
    bend = float(np.quantile(some, 0.01)) if len(some) else 1.0
    sides = [Axis(title=f"{word} {figure}", kind="symlog", constant=bend) for word in ("true", "published")]
    return _beside(points, [_dimensions(size) for size, _ in parts], sides, title=f"True and published {figure}")


def replicates_chart(replicates: Sequence[ReplicateErrors]) -> str:
    """Draw standard errors of weighted totals by replicate weights beside those published, on scales of logarithms."""
    totals = [part for part in replicates if part.figure == "weighted totals"]
    points = []
    for part in totals:
        some = np.flatnonzero((part.errors > 0) & (part.published_errors > 0))
        at = some[_spread_out(part.errors[some], _MOST_POINTS // len(totals))]
        points.append((part.errors[at], part.published_errors[at]))
    titles = ("standard error by replicate weights", "published standard error")
    sides = [Axis(title=title, kind="log") for title in titles]
    tables = [" and ".join(part.table) for part in totals]
    return _beside(points, tables, sides, title="Standard errors of weighted totals")


def _beside(points: Sequence[tuple[Floats, Floats]], names: Sequence[str], sides: Sequence[Axis], *, title: str) -> str:
    """Points of several series, and the line where nothing was changed."""
    marks = [Mark(kind="points", x=x, y=y, series=at) for at, (x, y) in enumerate(points)]
    ends = [end for x, _ in points if len(x) for end in (float(x.min()), float(x.max()))] or [0.0]
    line = Mark(kind="line", x=(min(ends), max(ends)), y=(min(ends), max(ends)))
    return draw_panels([Panel(sides[0], sides[1], [*marks, line])], title=title, series=names, size=(320, 280))


def charts_of(found: CubeAssessment) -> list[str]:
    """All charts of one cube."""
    parts = found.by_dimension
    kinds = list(dict.fromkeys(kind.figure for part in parts for kind in part.figures))
    charts = [figures_chart(parts, figure) for figure in kinds]
    charts += [distributions_chart(parts, figure, values) for values in _SPREADS for figure in kinds]
    charts += [replicates_chart(found.replicates)] if found.replicates else []
    return [*filter(None, charts)]


def distributions_chart(by_dimension: Sequence[Dimensionality], figure: str, values: str) -> str:
    """Draw the share of cells up to each difference, one line for each number of dimensions; none for too few cells."""
    every = [(part.dimensions, kind.cells) for part in by_dimension for kind in part.figures if kind.figure == figure]
    finite = {_dimensions(size): some[np.isfinite(some)] for size, cells in every for some in [getattr(cells, values)]}
    drawn = {size: np.quantile(some, _STEPS) for size, some in finite.items() if len(some) >= _LEAST_CELLS}
    marks = [Mark(kind="steps", x=some, y=_STEPS, series=at) for at, some in enumerate(drawn.values())]
    title, across = _SPREADS[values]
    panel = Panel(across, Axis(title="share of cells up to it", text=percent), marks)
    return draw_panels([panel], title=f"{title} of {figure}", series=list(drawn), size=(320, 220)) if drawn else ""


def _signed(share: float) -> str:
    return f"+{percent(share)}" if share > 0 else percent(share)


def _share(title: str) -> Axis:
    return Axis(title=title, kind="symlog", constant=0.05, text=_signed)


_SPREADS = {
    "standardised": ("Differences", Axis(title="difference, in expected standard errors of the noise")),
    "relative": ("Relative differences", _share("difference, as a share of the true figure")),
    "error_differences": ("Differences of standard errors", _share("published standard error above that of sampling")),
}
"""What is drawn of how cells differ, by the name of their differences."""


def _dimensions(size: int) -> str:
    return f"{size} dimension{'' if size == 1 else 's'}"


def _spread_out(values: Floats, most: int) -> NDArray[np.intp]:
    """The places of some values, from the smallest to the largest; of zeros, which may be nearly all, a few."""
    chosen = []
    for places, share in ((np.flatnonzero(values != 0), most), (np.flatnonzero(values == 0), most // _ZEROS)):
        order = places[np.argsort(values[places], kind="stable")]
        chosen.append(order[np.unique(np.linspace(0, max(len(order) - 1, 0), min(len(order), share)).astype(int))])
    return np.concatenate(chosen)
