"""What `sfumato reproduce chipperfield2019` says: published figures, ours, and what does not agree."""

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.reproduce.chipperfield2019.errata import errata
from sfumato.reproduce.chipperfield2019.layout import Laid, laid_out
from sfumato.reproduce.chipperfield2019.reproduction import PAPER, Reproduction, listed
from sfumato.reproduce.printed import printed_table


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as tables for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(f"{PAPER}: the keyed perturbation of business totals. Risks and losses are exact, not simulated."),
        _example(found),
        _figure_1(found),
        _table_2(found),
        _optima(found),
        Text(
            f"Tables like the paper's from a synthetic survey: {found.survey.businesses:,} businesses and "
            f"{found.survey.employees:,} employees. Cells are under one key and of other data than the paper's; what "
            "can be compared is utility by cell."
        ),
        *(_laid(table) for table in laid_out(found.survey)),
        Text("What does not agree with the paper's own definitions:", style="bold"),
        *(Text(f"- {sentence}") for sentence in errata(found)),
        Text(f"\nCharts: {page}\nAll figures: {table}"),
    ]
    return Group(*lines), {"paper": PAPER, "rows": list(found.rows()), "errata": errata(found)}


def _example(found: Reproduction) -> Table:
    table = printed_table("Table 1", "published", "here", numbers=2)
    for line in found.example:
        table.add_row(line.what, f"{line.published:,}", f"{line.ours:,}")
    return table


def _figure_1(found: Reproduction) -> Table:
    table = printed_table("Figure 1, m = " + listed(found.panels[0].ours.magnitudes), "published", "here", numbers=2)
    for panel in found.panels:
        shown = panel.published
        table.add_row(f"{shown.name}: {shown.contributors}, loss", f"{shown.loss:.2f}", f"{panel.ours.loss:.3f}")
        risk = panel.ours.verdicts[0].risk
        table.add_row(f"   risk of attack 2 within {shown.within:.0%}", f"{shown.risk:.2f}", f"{risk:.3f}")
    return table


def _table_2(found: Reproduction) -> Table:
    heads = ("loss", "attack 1", "attack 2", "attack 3", "2 with parity")
    table = printed_table("Table 2: risks at the published m", "m", *heads, numbers=len(heads))
    for line in found.optima:
        risks = [
            Text(f"{verdict.risk:.3f}", style="" if verdict.is_met else "bold red") for verdict in line.ours.verdicts
        ]
        table.add_row(
            line.published.contributors,
            listed(line.published.magnitudes),
            f"{line.ours.loss:.3f}",
            *risks,
            f"{line.with_parity:.3f}",
        )
    return table


def _optima(found: Reproduction) -> Table:
    table = printed_table("Optimal m, and its loss", "published", "all attacks", "never growing", "attack 2 alone")
    for line in found.optima:
        bests = (line.ours, line.under(1, 2, 3), line.under(1, 2, 3, falling=True), line.under(2))
        table.add_row(line.published.contributors, *(f"{listed(best.magnitudes)}\n{best.loss:.3f}" for best in bests))
    return table


def _laid(laid: Laid) -> Group:
    table = printed_table(*laid.heads, numbers=len(laid.heads) - laid.words)
    for row in laid.rows:
        table.add_row(*row)
    return Group(Text(laid.title, style="bold"), table)
