"""The claims at the size of a nation, and their chart: seconds against jobs, on scales that show proportions."""

from statistics import median
from typing import Any

from bench.nation.releases import NAMES
from bench.shared.report import FEWEST_ROUNDS, Claim, Results, Section, judged, limited
from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.svg import on_paper

_CLAIMED = NAMES | {"seven": "seven tables in one scan"}
_WHO = {"floor": "DuckDB alone (the floor)", "seen": "sfumato, protected and written"}
_RATIO, _PEAK = 1.5, 8.0


def nation_section(results: Results) -> Section:
    """Growth from the smallest to the largest economy, ours and the floor's."""
    sizes = results["sizes"]
    largest = sizes[-1]
    return Section(
        name="nation",
        heading=f"{largest['jobs']:,} jobs in {largest['establishments']:,} establishments on one machine, "
        f"DuckDB limited to {results['memory']} GB",
        lines=tuple(line for size in sizes for line in _of_size(size)) + tuple(_growth(results)),
        notes=(
            "Seconds of releases whose files were validated before, each in a fresh process, imports not counted; "
            "medians of the rounds with the fastest and the slowest, the floor and sfumato in turn. The floor of seven "
            "tables is seven queries, one after the other; sfumato scans the jobs once for all of them. They take so "
            "long in a large economy that they run once there, and one round has no verdict.",
            "Every table was checked: DuckDB alone counted every job in it; all cells that have an establishment are "
            "published, and nothing else; and their errors, in size, in sign and with every cell counting alike, are "
            "those of the method's noise, within 4.5 standard errors and what the cell with the largest noise adds.",
        ),
    )


def seconds(size: dict[str, Any], of: str, release: str) -> float:
    """The median of the rounds."""
    return median(_rounds(size, of, release))


def _rounds(size: dict[str, Any], of: str, release: str) -> list[float]:
    return [run["seconds"] for run in size[of][release]]


def _of_size(size: dict[str, Any]) -> list[Claim]:
    about = f"{size['jobs'] / 1e6:g} million jobs"
    lines = [
        Claim(
            what=f"{about}: `sfumato economy`",
            figure=f"{size['economy']['seconds']:.0f} s, peak {size['economy']['peak'] / 1e9:.2f} GB, "
            f"{size['bytes'] / 1e9:.2f} GB of Parquet",
        )
    ]
    for release, name in _CLAIMED.items():
        ours, floor = _rounds(size, "seen", release), _rounds(size, "floor", release)
        lines.append(judged(f"{about}: {name}", ours, floor, _RATIO))
    peak = max(run["peak"] for runs in size["seen"].values() for run in runs)
    peak = max(peak, size["first"]["peak"])
    floor_peak = max(run["peak"] for runs in size["floor"].values() for run in runs)
    figure = f"{peak / 1e9:.2f} GB (the floor {floor_peak / 1e9:.2f} GB)"
    lines.append(limited(f"{about}: peak memory, first validation included", peak / 1e9, figure, _PEAK, " GB"))
    lines.append(Claim(what=f"{about}: seven tables, first validation", figure=f"{size['first']['seconds']:.1f} s"))
    return lines


def _fewest(size: dict[str, Any], release: str) -> int:
    return min(len(size["seen"][release]), len(size["floor"][release]))


def _growth(results: Results) -> list[Claim]:
    """How many times as long the largest economy takes as one of ten million jobs."""
    sizes = {size["jobs"]: size for size in results["sizes"]}
    small, large = sizes.get(10_000_000), results["sizes"][-1]
    if small is None or small is large:
        return []
    lines = []
    for release, name in _CLAIMED.items():
        ours = seconds(large, "seen", release) / seconds(small, "seen", release)
        floor = seconds(large, "floor", release) / seconds(small, "floor", release)
        lines.append(
            Claim(
                what=f"Growth from 10 to {large['jobs'] / 1e6:g} million jobs: {name}",
                figure=f"{ours:.1f}×; the floor {floor:.1f}×",
                target="≤ the floor's",
                met=ours <= floor if min(_fewest(small, release), _fewest(large, release)) >= FEWEST_ROUNDS else None,
            )
        )
    return lines


def draw_nation(results: Results) -> str:
    """An SVG with one panel for each release."""
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
        for release, name in NAMES.items()
    ]
    return on_paper(draw_panels(panels, title="Seconds against jobs", series=list(_WHO.values()), size=(220, 220)))
