"""The report: a table in the terminal, and the same figures in the documentation."""

import re
from pathlib import Path

from claims import Grid, Section
from rich import box
from rich.console import Console
from rich.table import Table

_COLOURS = {"met": "green", "missed": "bold red", "—": ""}


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
