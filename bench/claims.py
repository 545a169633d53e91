"""The claims: what is promised, what was measured, and whether the one holds the other."""

from dataclasses import dataclass
from statistics import median
from typing import Any

Results = dict[str, Any]
"""What one part of the benchmark measured, as it stands in its file of results."""

JOBS = 10_900_000
"""The size of economy that the targets are about."""
WARMED = (
    "Imports and the page cache were warmed by one round that is not counted; "
    "the floor and the cases then ran in turn, each round in another order, in one process."
)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One line of the report."""

    what: str
    figure: str
    target: str = "—"
    met: bool | None = None

    @property
    def verdict(self) -> str:
        """In one word."""
        return {None: "—", True: "met", False: "missed"}[self.met]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of figures that are no claims, such as those of other tools."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of the report, in the terminal and in the documentation."""

    name: str
    heading: str
    lines: tuple[Claim, ...]
    notes: tuple[str, ...]
    grids: tuple[Grid, ...] = ()


def foundation_section(results: Results) -> Section:
    """Every claim about counts of jobs, of a run whose results passed the gate."""
    errors = results["mean_error"]
    rounds = len(results["seconds"]["floor"])
    elsewhere = [] if results["jobs"] == JOBS else [f"The targets are for {JOBS:,} jobs; this run had another size."]
    return Section(
        name="figures",
        heading=f"{results['jobs']:,} jobs, {results['cells']:,} cells with an establishment",
        lines=(*_warm(results), *_memory(results), *_commands(results), *_others(results)),
        notes=(
            *elsewhere,
            f"Medians of {rounds} rounds, with the fastest and the slowest; ratios of medians, to DuckDB alone. "
            f"{WARMED}",
            "Every result was checked: the floor's cells equal the true ones, and the published values of the last run "
            f"are {errors['observed']:.3f} jobs from them on average, where {errors['expected']:.3f} is expected.",
            f"Measured {results['about']}",
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
    return [
        Claim(
            what=f"Whole command, with interpreter start: {labels[name]}",
            figure=range_of(seconds) if name == "floor" else ratio_of(seconds, runs["floor"])[1],
        )
        for name, seconds in runs.items()
    ]


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


FEWEST_ROUNDS = 3
"""Below this many rounds a figure is shown without a verdict."""


def limited(what: str, value: float, figure: str, limit: float | None, unit: str) -> Claim:
    """A line with its verdict, where there is a limit."""
    if limit is None:
        return Claim(what=what, figure=figure)
    return Claim(what=what, figure=figure, target=f"≤ {limit:g}{unit}", met=value <= limit)


def ratio_of(seconds: list[float], floor: list[float]) -> tuple[float, str]:
    """The ratio of the medians; and in words, with how far the ratios of single rounds spread."""
    ratio = median(seconds) / median(floor)
    rounds = [ours / theirs for ours, theirs in zip(seconds, floor, strict=True)]
    return ratio, f"{ratio:.2f}×, by round {min(rounds):.2f}–{max(rounds):.2f} ({range_of(seconds)})"


def judged(what: str, seconds: list[float], floor: list[float], limit: float) -> Claim:
    """The ratio of the medians with the spread of both, and with a verdict if there were rounds enough."""
    ratio, rounds = median(seconds) / median(floor), min(len(seconds), len(floor))
    several = f"{rounds} rounds" if rounds > 1 else "one round"
    figure = f"{ratio:.2f}× ({range_of(seconds)}; the floor {range_of(floor)}; {several})"
    return Claim(
        what=what,
        figure=figure,
        target=f"≤ {limit:g}×",
        met=ratio <= limit if rounds >= FEWEST_ROUNDS else None,
    )


def range_of(seconds: list[float]) -> str:
    """The median in words, with the fastest and the slowest."""
    return f"{median(seconds):.2f} s, {min(seconds):.2f}–{max(seconds):.2f}"
