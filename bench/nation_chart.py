"""The chart of a nation: seconds against jobs, ours and the floor's, on scales that show proportions."""

from pathlib import Path

from claims import Results
from nation_claims import seconds

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.svg import on_paper

_NAMES = {"workplace": "place × industry × ownership", "worker": "… × sex × education", "seven": "seven tables"}
_WHO = {"floor": "DuckDB alone (the floor)", "seen": "sfumato, protected and written"}


def draw_nation(path: Path, results: Results) -> None:
    """Write an SVG with one panel for each release."""
    sizes = sorted(results["sizes"], key=lambda size: size["jobs"])
    jobs = [size["jobs"] / 1e6 for size in sizes]
    x, y = Axis(title="million jobs", kind="log"), Axis(title="seconds", kind="log")
    panels = [
        Panel(
            x,
            y,
            [
                Mark(kind="line", x=jobs, y=[seconds(size, of, release) for size in sizes], series=at)
                for at, of in enumerate(_WHO)
            ],
            name,
        )
        for release, name in _NAMES.items()
    ]
    drawn = draw_panels(panels, title="Seconds against jobs", series=list(_WHO.values()), size=(220, 220))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(on_paper(drawn), encoding="utf-8")
