"""What `sfumato reproduce` says: published finding, then ours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.reproduce.findings import Finding
from sfumato.reproduce.haney2017 import PAPER, Reproduction


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as a table for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(
            f"{PAPER} on a synthetic economy of {found.jobs:,} jobs; {found.grid.trials} trials; workloads of "
            f"{', '.join(f'{cells:,}' for cells in found.cells.values())} cells. Errors are mean L1 errors as a ratio "
            "to the legacy protection, rankings rank correlations with it.",
            style="bold",
        ),
        _findings([line for line in found.findings if not line.is_order]),
        _findings([line for line in found.findings if line.is_order]),
    ]
    if any(line.note for line in found.findings):
        lines.append(Text("* drawn as the paper draws it; here its method guarantees nothing (the page says why)."))
    lines += [_attacks(found), Text(f"Charts: {page}\nAll figures: {table}")]
    spaced = [part for line in lines for part in (line, Text(""))][:-1]
    return Group(*spaced), {"paper": PAPER, "rows": list(found.rows())}


def _findings(lines: Sequence[Finding]) -> Table:
    """What was stated and what was found; figures and orders in tables of their own, so that figures stay narrow."""
    table = _table("source", "what", "stated", "here", "agrees")
    for line in lines:
        mark = Text("" if line.holds is None else "yes" if line.holds else "no")
        mark.stylize("green" if line.holds else "bold red")
        table.add_row(line.source, line.what + ("*" if line.note else ""), line.stated, line.ours, mark)
    return table


def _attacks(found: Reproduction) -> Table:
    """The share of targets that each attack discloses, method by method."""
    rows = [row for row in found.rows() if row["quantity"] == "attack_success"]
    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    table = _table("targets disclosed by the attack on", *attacks)
    for method in dict.fromkeys(row["method"] for row in rows):
        shares = {row["attack"]: row["ours"] for row in rows if row["method"] == method}
        table.add_row(method, *(_percent(shares[a]) for a in attacks))
    guesses = {row["attack"]: row["guess"] for row in rows if row["method"] == rows[0]["method"]}
    table.add_row("a guess without the table", *(_percent(guesses[a]) for a in attacks), style="dim")
    return table


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading)
    return table
