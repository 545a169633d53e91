"""What `sfumato reproduce` says: published finding, then ours."""

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.reproduce.haney2017 import PAPER, Reproduction
from sfumato.reproduce.printed import printed_findings, printed_table, spaced


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as a table for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(
            f"{PAPER} on a synthetic economy of {found.jobs:,} jobs; {found.grid.trials} trials; workloads of "
            f"{', '.join(f'{cells:,}' for cells in found.cells.values())} cells. Errors are mean L1 errors as a ratio "
            "to the legacy protection, rankings rank correlations with it.",
            style="bold",
        ),
        # Figures and orders in tables of their own, so that figures stay narrow.
        printed_findings((line for line in found.findings if not line.is_order), starred=True),
        printed_findings((line for line in found.findings if line.is_order), starred=True),
    ]
    if any(line.note for line in found.findings):
        lines.append(Text("* drawn as the paper draws it; here its method guarantees nothing (the page says why)."))
    lines += [_attacks(found), Text(f"Charts: {page}\nAll figures: {table}")]
    return Group(*spaced(lines)), {"paper": PAPER, "rows": list(found.rows())}


def _attacks(found: Reproduction) -> Table:
    """The share of targets that each attack discloses, method by method."""
    rows = [row for row in found.rows() if row["quantity"] == "attack_success"]
    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    table = printed_table("targets disclosed by the attack on", *attacks)
    for method in dict.fromkeys(row["method"] for row in rows):
        shares = {row["attack"]: row["ours"] for row in rows if row["method"] == method}
        table.add_row(method, *(_percent(shares[a]) for a in attacks))
    guesses = {row["attack"]: row["guess"] for row in rows if row["method"] == rows[0]["method"]}
    table.add_row("a guess without the table", *(_percent(guesses[a]) for a in attacks), style="dim")
    return table


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
