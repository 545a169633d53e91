"""The claims about counts of jobs, and their chart: seconds of the floor and of sfumato, as bars with their range."""

from statistics import median

from bench.jobs.cases import JOBS
from bench.shared.report import Claim, Results, Section, another_size, limited, range_of, ratio_of
from sfumato.charts.plots import Bar, Group, draw_bars
from sfumato.charts.svg import on_paper

_SHOWN = ("floor", "seen", "first")


def foundation_section(results: Results) -> Section:
    """Every claim about counts of jobs, of a run whose results passed the gate."""
    errors = results["mean_error"]
    rounds = len(results["seconds"]["floor"])
    return Section(
        name="figures",
        heading=f"{results['jobs']:,} jobs, {results['cells']:,} cells with an establishment",
        lines=(*_warm(results), *_memory(results), *_commands(results), *_others(results)),
        notes=(
            *another_size(results["jobs"], JOBS, "jobs"),
            f"Medians of {rounds} rounds, with the fastest and the slowest; ratios of medians, to DuckDB alone. "
            "Imports and the page cache were warmed by one round that is not counted; "
            "the floor and the cases then ran in turn, each round in another order, in one process.",
            "Every result was checked: the floor's cells equal the true ones, and the published values of the last run "
            f"are {errors['observed']:.3f} jobs from them on average, where {errors['expected']:.3f} is expected.",
        ),
    )


def _warm(results: Results) -> list[Claim]:
    runs, labels = results["seconds"], results["labels"]
    targets = {"seen": 1.5, "first": 2.5}
    lines = [Claim(what=labels["floor"], figure=range_of(runs["floor"]))]
    for name in runs:
        if name != "floor":
            ratio, figure = ratio_of(runs[name], runs["floor"])
            lines.append(limited(labels[name], ratio, figure, targets.get(name), "×"))
    return lines


def _memory(results: Results) -> list[Claim]:
    lines = []
    for name, peak in results["peak_bytes"].items():
        limit = None if name == "floor" else 1.5
        figure = f"{peak / 1e9:.2f} GB"
        lines.append(limited(f"Peak memory: {results['labels'][name]}", peak / 1e9, figure, limit, " GB"))
    return lines


def _commands(results: Results) -> list[Claim]:
    runs, labels = results["command_seconds"], results["labels"]
    lines = []
    for name, seconds in runs.items():
        what = f"Whole command, with interpreter start: {labels[name]}"
        if name == "floor":
            lines.append(Claim(what=what, figure=range_of(seconds)))
        else:
            ratio, figure = ratio_of(seconds, runs["floor"])
            lines.append(limited(what, ratio, figure, 2.5, "×"))
    return lines


def _others(results: Results) -> list[Claim]:
    imports = results["import_seconds"]
    lines = [
        limited(f"`{command}`", seconds, f"{seconds:.1f} s", 60, " s")
        for command, seconds in (
            (f"sfumato economy --jobs {results['jobs']}", results["economy_seconds"]),
            ("sfumato demo", results["demo_seconds"]),
        )
    ]
    lines += [
        limited(f"`{code}`, net of Python's start", seconds, f"{seconds:.3f} s", limit, " s")
        for code, seconds, limit in (
            ("import sfumato", imports["sfumato"], 0.3),
            ("import sfumato.release, sfumato.running", imports["what publishing needs"], None),
        )
    ]
    return lines


def draw_foundation(results: Results) -> str:
    """An SVG of the medians, each with a line from the fastest to the slowest run."""
    runs = {name: results["seconds"][name] for name in _SHOWN}
    floor = median(runs["floor"])
    groups = []
    for name, seconds in runs.items():
        beside = "" if name == "floor" else f" ({median(seconds) / floor:.2f}×)"
        bar = Bar(median(seconds), min(seconds), max(seconds), f"{median(seconds):.2f} s{beside}")
        groups.append(Group((results["labels"][name],), [bar], results["labels"][name]))
    title = f"One protected table of {results['jobs'] / 1e6:.1f} million jobs"
    return on_paper(draw_bars(groups, [], title=f"{title}: seconds, median and range", name=title))
