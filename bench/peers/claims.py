"""The claims about the peers: no ratio unless both sides finished with a right result; and their chart."""

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from bench.jobs.cases import JOBS
from bench.peers.gate import ratio
from bench.shared.report import FEWEST_ROUNDS, Claim, Grid, Results, Section, another_size, range_of
from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.charts.svg import on_paper

_FLOOR_LIMIT = 1.5
_FASTER = {"tumult": 10, "opendp-context": 3}
_MEASURES = {
    "inner_seconds": ("seen", "without imports and session start, files validated before"),
    "seconds": ("first", "whole process, first validation"),
}
"""What is timed: which of sfumato's runs stands for it, and its words."""
_MARGINALS = ("workplace", "worker")
_PACKAGES = {
    "opendp": ("opendp", "polars", "duckdb"),
    "tumult": ("tmlt.analytics", "tmlt.core", "pyspark"),
    "diffprivlib": ("diffprivlib", "duckdb", "pandas"),
    "ons": ("cell_key_perturbation", "pandas"),
    "pandas": ("pandas", "numpy"),
    "polars": ("polars", "numpy"),
}
_COLUMNS = (
    "",
    "whole process",
    "without imports and session",
    "beside the floor",
    "peak memory",
    "error per cell",
    "what is protected",
)
_KINDS = ("the floor", "sfumato", "others")
_PANELS = {
    "seconds, whole process": (lambda one: median(one["seconds"]), "{:.3g}"),
    "peak memory, GB": (lambda one: one["peak_bytes"] / 1e9, "{:.2f}"),
    "mean error per cell, jobs": (lambda one: one["errors"]["observed"] or None, "{:.3g}"),
}
Found = Mapping[str, Any]
"""A contestant as it stands in the file of results."""


def peers_section(results: Results) -> Section:
    """Ours beside everybody else's, with the targets, and a table of all for each kind of protection."""
    tables = results["tables"]
    limits = results["limits"]
    return Section(
        name="peers",
        heading=f"{results['jobs']:,} jobs, sfumato beside other tools",
        lines=tuple(line for name in _MARGINALS for line in _claims(tables[name])),
        grids=tuple(_grid(table) for table in tables.values()),
        notes=(
            *another_size(results["jobs"], JOBS, "jobs"),
            "Medians, with the fastest and the slowest, of whole processes run in turn, each round in another order. "
            "Each target about speed has two lines. *Without imports and session start* is the work alone, as told by "
            "the script: reading, joining, protecting, writing; sfumato's on files validated before, as beside the "
            "floor. *Whole process* is all that a user waits for: the interpreter, imports and Spark's session on "
            "either side, and in sfumato's the first validation of the files, which others do not make. Peak memory is "
            "that of the whole process with all it starts.",
            "Every result was checked: all cells are there, and the errors, in size and in sign, are those of the "
            "contestant's own noise, within 4.5 standard errors and what the largest cell adds. The "
            "expected error is in brackets. Whatever did not "
            f"finish within {limits['seconds'] / 60:.0f} minutes and {limits['peak_bytes'] / 1e9:.0f} GB, or was "
            "wrong, has no figures.",
            f"Versions: {_versions(results['environments'])}.",
        ),
    )


def _claims(table: Results) -> list[Claim]:
    found, where = table["contestants"], table["label"]
    beside = ratio(found["seen"]["inner_seconds"], found["floor"]["inner_seconds"])
    lines = [
        Claim(
            what=f"{where}: sfumato beside the floor, without imports, files validated before",
            figure=_none(found["seen"], found["floor"])
            if beside is None
            else f"{beside:.2f}× ({_beside(found['seen'], found['floor'], 'inner_seconds')})",
            target=f"≤ {_FLOOR_LIMIT:g}×",
            met=_met(
                found["seen"], found["floor"], beside is not None and beside <= _FLOOR_LIMIT, there=beside is not None
            ),
        )
    ]
    for name, times in _FASTER.items():
        lines += [_faster(found, name, times, what) for what in _MEASURES]
        lines.append(_lighter(found["first"], found[name]))
    return lines


def _faster(found: Found, name: str, times: int, what: str) -> Claim:
    case, words = _MEASURES[what]
    ours, peer = found[case], found[name]
    faster = ratio(peer[what], ours[what])
    return Claim(
        what=f"…how much faster than {peer['label']}, {words}",
        figure=_none(ours, peer) if faster is None else f"{faster:.1f}× ({_beside(ours, peer, what)})",
        target=f"≥ {times}×",
        met=_met(ours, peer, faster is not None and faster >= times, there=faster is not None),
    )


def _lighter(ours: Found, peer: Found) -> Claim:
    there = not (ours["failure"] or peer["failure"])
    return Claim(
        what=f"…its peak memory beside {peer['label']}, whole process, first validation",
        figure=f"{ours['peak_bytes'] / 1e9:.2f} GB beside {peer['peak_bytes'] / 1e9:.2f} GB"
        if there
        else _none(ours, peer),
        target="less",
        met=_met(ours, peer, ours["peak_bytes"] < peer["peak_bytes"], there=there),
    )


def _met(ours: Found, theirs: Found, holds: bool, *, there: bool) -> bool | None:
    """Without a ratio there is no verdict, unless it was sfumato that failed; nor with too few rounds."""
    if not there:
        return False if ours["failure"] else None
    return holds if min(len(ours["seconds"]), len(theirs["seconds"])) >= FEWEST_ROUNDS else None


def _none(ours: Found, theirs: Found) -> str:
    failed = ours if ours["failure"] else theirs
    return f"no ratio: {failed['label']}: {failed['failure']}"


def _beside(ours: Found, theirs: Found, what: str) -> str:
    rounds = min(len(ours[what]), len(theirs[what]))
    several = f"{rounds} rounds" if rounds > 1 else "one round"
    return f"{range_of(ours[what])} beside {range_of(theirs[what])}; {several}"


def _grid(table: Results) -> Grid:
    found = table["contestants"]
    return Grid(
        heading=f"{table['label']}: {table['cells']:,} cells",
        columns=_COLUMNS,
        rows=tuple(_row(one, found["floor"]) for one in found.values()),
    )


def _row(one: Found, floor: Found) -> tuple[str, ...]:
    times = ratio(one["inner_seconds"], floor["inner_seconds"])
    if one["failure"] or times is None:
        return (one["label"], one["failure"], "—", "—", "—", "—", one["guarantee"])
    errors = one["errors"]
    exact = "none" if errors["expected"] == 0 else f"{errors['observed']:,.3g} ({errors['expected']:,.3g})"
    kept_back = f", {one['withheld']:,} cells withheld" if one["withheld"] else ""
    return (
        one["label"],
        range_of(one["seconds"]),
        range_of(one["inner_seconds"]),
        f"{times:.2f}×",
        f"{one['peak_bytes'] / 1e9:.2f} GB",
        exact + kept_back,
        one["guarantee"],
    )


def _versions(environments: Mapping[str, Any]) -> str:
    made = {name: found for name, found in environments.items() if not found["failure"]}
    return "; ".join(
        f"{name}: " + ", ".join(f"{package} {made[name]['versions'].get(package, 'absent')}" for package in packages)
        for name, packages in _PACKAGES.items()
        if name in made
    )


def draw_peers(results: Results) -> str:
    """An SVG with a row of three panels for each marginal; who did not finish is named without a point."""
    panels = [panel for name in _MARGINALS for panel in _panels(results["tables"][name])]
    most = max(len(results["tables"][name]["contestants"]) for name in _MARGINALS)
    title = f"{results['jobs'] / 1e6:.1f} million jobs, protected and written"
    return on_paper(draw_panels(panels, title=title, series=_KINDS, columns=len(_PANELS), size=(230, 19.0 * most)))


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
