"""The report: claims with their targets and verdicts, in the terminal and in the documentation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

Results = dict[str, Any]
"""What one part of the benchmark measured, as it stands in its file of results."""

FEWEST_ROUNDS = 3
"""Below this many rounds a figure is shown without a verdict."""
_COLOURS = {"met": "green", "missed": "bold red", "—": ""}


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


def another_size(found: int, wanted: int, what: str) -> Sequence[str]:
    """The note of a run that was not of the size that the targets are about."""
    return () if found == wanted else (f"The targets are for {wanted:,} {what}; this run had another size.",)


def print_report(console: Console, section: Section) -> None:
    """Show every claim beside its target."""
    table = Table(box=box.SIMPLE_HEAD, title=section.heading, title_justify="left")
    for column in ("measured", "figure", "target", ""):
        table.add_column(column)
    for line in section.lines:
        table.add_row(line.what, line.figure, line.target, line.verdict, style=_COLOURS[line.verdict])
    console.print(table)
    for grid in section.grids:
        shown = Table(*grid.columns, box=box.SIMPLE_HEAD, title=grid.heading, title_justify="left")
        for row in grid.rows:
            shown.add_row(*row)
        console.print(shown)
    for paragraph in section.notes:
        console.print(paragraph, highlight=False)


def update_page(page: Path, section: Section) -> None:
    """Put the figures between the two marks that a page has for them."""
    begin, end = f"<!-- {section.name}: written by bench/run.py -->", f"<!-- end of {section.name} -->"
    text = page.read_text(encoding="utf-8")
    rows = [f"| {line.what} | {line.figure} | {line.target} | {line.verdict} |" for line in section.lines]
    figures = "\n".join(
        [
            begin,
            "",
            f"**{section.heading}**",
            "",
            "| measured | figure | target | |",
            "|---|---|---|---|",
            *rows,
            "",
            *(line for grid in section.grids for line in _written(grid)),
            "\n\n".join(section.notes),
            "",
            end,
        ]
    )
    changed, times = re.subn(f"{re.escape(begin)}.*{re.escape(end)}", lambda _: figures, text, flags=re.DOTALL)
    if times != 1:
        raise ValueError(f"{page.name} must have the lines {begin} and {end} once")
    page.write_text(changed, encoding="utf-8")


def _written(grid: Grid) -> list[str]:
    lines = [grid.columns, ("---",) * len(grid.columns), *grid.rows]
    return [f"**{grid.heading}**", "", *(f"| {' | '.join(line)} |" for line in lines), ""]
