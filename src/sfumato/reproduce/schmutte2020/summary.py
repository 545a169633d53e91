"""What `sfumato reproduce schmutte2020` says: tables, findings, and what does not hold."""

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.reproduce.printed import printed_findings, printed_table, spaced
from sfumato.reproduce.schmutte2020.findings import errata, findings
from sfumato.reproduce.schmutte2020.reproduction import PAPER, Reproduction
from sfumato.reproduce.schmutte2020.tables import TextTable, text_tables


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as tables for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(
            f"{PAPER} on synthetic data: {found.children:,} children, {found.percentiles.cells:,} cells of graduates; "
            f"noise drawn {found.draws} times.",
            style="bold",
        ),
        *map(_printed, text_tables(found)),
        printed_findings(findings(found)),
        Text("What does not hold:\n" + "\n".join(f"- {sentence}" for sentence in errata(found))),
        Text(f"Charts: {page}\nAll figures: {table}"),
    ]
    return Group(*spaced(lines)), {"paper": PAPER, "rows": list(found.rows()), "errata": errata(found)}


def _printed(table: TextTable) -> Group:
    shown = printed_table(*table.heads, numbers=len(table.heads) - 1)
    for row in table.rows:
        shown.add_row(*row)
    return Group(Text(table.title, style="bold"), shown)
