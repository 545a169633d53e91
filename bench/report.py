"""The report: a table in the terminal, and the same figures in the documentation."""

import re
from pathlib import Path

from claims import Section
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
            "\n\n".join(section.notes),
            "",
            end,
        ]
    )
    changed, times = re.subn(f"{re.escape(begin)}.*{re.escape(end)}", lambda _: figures, text, flags=re.DOTALL)
    if times != 1:
        raise ValueError(f"{page.name} must have the lines {begin} and {end} once")
    page.write_text(changed, encoding="utf-8")
