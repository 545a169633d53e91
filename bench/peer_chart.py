"""The chart of the peers: seconds, memory and error of every contestant side by side, on logarithmic scales."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from claims import Results

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.svg import on_paper

_MARGINALS = ("workplace", "worker")
_KINDS = ("the floor", "sfumato", "others")
_PANELS = {
    "seconds, whole process": (lambda one: median(one["seconds"]), "{:.3g}"),
    "peak memory, GB": (lambda one: one["peak_bytes"] / 1e9, "{:.2f}"),
    "mean error per cell, jobs": (lambda one: one["errors"]["observed"] or None, "{:.3g}"),
}


def draw_peers(path: Path, results: Results) -> None:
    """Write an SVG with a row of three panels for each marginal; who did not finish is named without a point."""
    panels = [panel for name in _MARGINALS for panel in _panels(results["tables"][name])]
    most = max(len(results["tables"][name]["contestants"]) for name in _MARGINALS)
    title = f"{results['jobs'] / 1e6:.1f} million jobs, protected and written"
    drawn = draw_panels(panels, title=title, series=_KINDS, columns=len(_PANELS), size=(230, 19.0 * most))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(on_paper(drawn), encoding="utf-8")


def _panels(table: Results) -> Iterator[Panel]:
    """The contestants from top to bottom, named beside the first panel only."""
    contestants = [*table["contestants"].items()][::-1]
    names = [one["label"] for _, one in contestants]
    for number, (title, (figure, shape)) in enumerate(_PANELS.items()):
        found = [None if one["failure"] else figure(one) for _, one in contestants]
        kinds = [_kind(name, ours=one["ours"]) for name, one in contestants]
        marks = []
        for series in range(len(_KINDS)):
            own = [(at, value) for at, value in enumerate(found) if value is not None and kinds[at] == series]
            texts = [shape.format(value) for _, value in own]
            marks.append(
                Mark(kind="points", x=[v for _, v in own], y=[at for at, _ in own], series=series, texts=texts)
            )
        x = Axis(title=title, kind="log", holds=[value * 2 for value in found if value])
        yield Panel(
            x, Axis(classes=names if number == 0 else [""] * len(names)), marks, "" if number else table["label"]
        )


def _kind(name: str, *, ours: Any) -> int:
    return 1 if ours else 0 if name == "floor" else 2
