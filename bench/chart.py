"""The chart: seconds of the floor and of sfumato, as bars with their range."""

from pathlib import Path
from statistics import median

from claims import Results

from sfumato.charts.plots import Bar, Group, draw_bars
from sfumato.charts.svg import on_paper

_SHOWN = ("floor", "seen", "first")


def draw_chart(path: Path, results: Results) -> None:
    """Write an SVG of the medians, each with a line from the fastest to the slowest run."""
    runs = {name: results["seconds"][name] for name in _SHOWN}
    floor = median(runs["floor"])
    groups = []
    for name, seconds in runs.items():
        beside = "" if name == "floor" else f" ({median(seconds) / floor:.2f}×)"
        bar = Bar(median(seconds), min(seconds), max(seconds), f"{median(seconds):.2f} s{beside}")
        groups.append(Group((results["labels"][name],), [bar], results["labels"][name]))
    title = f"One protected table of {results['jobs'] / 1e6:.1f} million jobs"
    drawn = draw_bars(groups, [], title=f"{title}: seconds, median and range", name=title)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(on_paper(drawn), encoding="utf-8")
