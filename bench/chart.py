"""The chart: seconds of the floor and of sfumato, as bars with their range."""

from pathlib import Path
from statistics import median

import altair as alt
import pyarrow as pa
import vl_convert
from claims import Results

_SHOWN = ("floor", "seen", "first")
_INK, _FLOOR, _OURS = "#33312e", "#2f5d62", "#a0522d"


def draw_chart(path: Path, results: Results) -> None:
    """Write an SVG of the medians, each with a line from the fastest to the slowest run."""
    runs = {name: results["seconds"][name] for name in _SHOWN}
    order = [results["labels"][name] for name in _SHOWN]
    rows = pa.table(
        {
            "case": order,
            "seconds": [median(seconds) for seconds in runs.values()],
            "fastest": [min(seconds) for seconds in runs.values()],
            "slowest": [max(seconds) for seconds in runs.values()],
            "text": [
                f"{median(s):.2f} s" + ("" if name == "floor" else f"  ({median(s) / median(runs['floor']):.2f}×)")
                for name, s in runs.items()
            ],
        }
    )
    case = alt.Y("case:N", sort=order, title=None, axis=alt.Axis(labelLimit=300, ticks=False, domain=False))
    chart = alt.Chart(rows).encode(y=case)
    colours = alt.Scale(domain=order, range=[_FLOOR, _OURS, _OURS])
    bars = chart.mark_bar(height=24).encode(
        x=alt.X("seconds:Q", title="seconds, median and range"),
        color=alt.Color("case:N", scale=colours, legend=None),
    )
    spread = chart.mark_rule(color=_INK, strokeWidth=1.5).encode(x="fastest:Q", x2="slowest:Q")
    labels = chart.mark_text(align="left", dx=8, color=_INK).encode(x="slowest:Q", text="text:N")
    title = f"One protected table of {results['jobs'] / 1e6:.1f} million jobs"
    drawn = (
        (bars + spread + labels)
        .properties(width=420, height=140, title=title, padding=12)
        .configure(font="system-ui, sans-serif", background="white")
        .configure_view(stroke=None)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(vl_convert.vegalite_to_svg(drawn.to_json()), encoding="utf-8")
