"""The chart of a nation: seconds against jobs, ours and the floor's, on scales that show proportions."""

from pathlib import Path

import altair as alt
import pyarrow as pa
import vl_convert
from claims import Results
from nation_claims import seconds

_FLOOR, _OURS = "#2f5d62", "#a0522d"
_NAMES = {"workplace": "place × industry × ownership", "worker": "… × sex × education", "seven": "seven tables"}
_WHO = {"floor": "DuckDB alone (the floor)", "seen": "sfumato, protected and written"}


def draw_nation(path: Path, results: Results) -> None:
    """Write an SVG with one panel for each release."""
    rows = [
        {"jobs": size["jobs"] / 1e6, "seconds": seconds(size, of, release), "who": who, "release": name}
        for size in results["sizes"]
        for of, who in _WHO.items()
        for release, name in _NAMES.items()
    ]
    chart = alt.Chart(pa.Table.from_pylist(rows)).encode(
        x=alt.X("jobs:Q", scale=alt.Scale(type="log"), title="million jobs", axis=alt.Axis(values=[1, 10, 50, 150])),
        y=alt.Y("seconds:Q", scale=alt.Scale(type="log"), title="seconds"),
        color=alt.Color(
            "who:N",
            scale=alt.Scale(domain=list(_WHO.values()), range=[_FLOOR, _OURS]),
            title=None,
            legend=alt.Legend(orient="bottom"),
        ),
        shape=alt.Shape("who:N", title=None, scale=alt.Scale(domain=list(_WHO.values()))),
    )
    drawn = (
        (chart.mark_line(strokeWidth=2) + chart.mark_point(size=60, filled=True))
        .properties(width=220, height=220)
        .facet(facet=alt.Facet("release:N", title=None, sort=list(_NAMES.values())), columns=3)
        .configure(font="system-ui, sans-serif", background="white", padding=12)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(vl_convert.vegalite_to_svg(drawn.to_json()), encoding="utf-8")
