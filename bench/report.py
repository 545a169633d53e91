"""The report: a table in the terminal, and the same figures in the documentation."""

import re
from pathlib import Path

from claims import JOBS, WARMED, Claim, Results
from rich import box
from rich.console import Console
from rich.table import Table

_BEGIN = "<!-- figures: written by bench/run.py -->"
_END = "<!-- end of figures -->"
_COLOURS = {"met": "green", "missed": "bold red", "—": ""}


def print_report(console: Console, results: Results, lines: list[Claim]) -> None:
    """Show every claim beside its target."""
    table = Table(box=box.SIMPLE_HEAD, title=_heading(results), title_justify="left")
    for column in ("measured", "figure", "target", ""):
        table.add_column(column)
    for line in lines:
        table.add_row(line.what, line.figure, line.target, line.verdict, style=_COLOURS[line.verdict])
    console.print(table)
    for paragraph in _notes(results):
        console.print(paragraph, highlight=False)


def update_page(page: Path, results: Results, lines: list[Claim]) -> None:
    """Put the figures between the two marks of a page, which must have them."""
    text = page.read_text(encoding="utf-8")
    rows = [f"| {line.what} | {line.figure} | {line.target} | {line.verdict} |" for line in lines]
    figures = "\n".join(
        [
            _BEGIN,
            "",
            f"**{_heading(results)}**",
            "",
            "| measured | figure | target | |",
            "|---|---|---|---|",
            *rows,
            "",
            "\n\n".join(_notes(results)),
            "",
            _END,
        ]
    )
    changed, times = re.subn(f"{re.escape(_BEGIN)}.*{re.escape(_END)}", lambda _: figures, text, flags=re.DOTALL)
    if times != 1:
        raise ValueError(f"{page.name} must have the lines {_BEGIN} and {_END} once")
    page.write_text(changed, encoding="utf-8")


def _heading(results: Results) -> str:
    return f"{results['jobs']:,} jobs, {results['cells']:,} cells with an establishment"


def _notes(results: Results) -> list[str]:
    errors = results["mean_error"]
    rounds = len(results["seconds"]["floor"])
    elsewhere = [] if results["jobs"] == JOBS else [f"The targets are for {JOBS:,} jobs; this run had another size."]
    return [
        *elsewhere,
        f"Medians of {rounds} rounds, with the fastest and the slowest; ratios of medians, to DuckDB alone. {WARMED}",
        "Every result was checked: the floor's cells equal the true ones, and the published values of the last run are "
        f"{errors['observed']:.3f} jobs from them on average, where {errors['expected']:.3f} is expected.",
        f"Measured {results['about']}",
    ]
