"""Tables that reproductions print."""

from collections.abc import Iterable

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.reproduce.finding import Finding


def printed_table(*headings: str, numbers: int = 0) -> Table:
    """An empty table, the last columns of which are numbers."""
    table = Table(box=box.SIMPLE_HEAD)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place >= len(headings) - numbers else "left")
    return table


def printed_findings(findings: Iterable[Finding], *, starred: bool = False) -> Table:
    """What was stated and what was found; those with a note, which the page has, may be starred."""
    table = printed_table("source", "what", "stated", "here", "agrees")
    for line in findings:
        mark = Text(line.verdict, style="green" if line.holds else "bold red")
        table.add_row(line.source, line.what + ("*" if starred and line.note else ""), line.stated, line.ours, mark)
    return table


def spaced(lines: Iterable[RenderableType]) -> list[RenderableType]:
    """An empty line between every two."""
    return [part for line in lines for part in (line, Text(""))][:-1]
