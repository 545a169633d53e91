"""What `sfumato reproduce li2020` says: published figures, ours, and what was found."""

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.reproduce.li2020.findings import findings
from sfumato.reproduce.li2020.page import shown
from sfumato.reproduce.li2020.published import TABLE_2, TABLE_4
from sfumato.reproduce.li2020.reproduction import CALIBRATIONS, PAPER, Reproduction
from sfumato.reproduce.li2020.simulate import VARIANTS
from sfumato.reproduce.printed import printed_table


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as tables for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(f"{PAPER}: the bottom-up hypercube, {found.runs:,} runs."),
        _table_2(found),
        _table_4(found),
        *(Text(f"- {sentence}") for sentence in findings(found)),
        Text(f"\nChart: {page}\nAll figures: {table}"),
    ]
    return Group(*lines), {"paper": PAPER, "rows": list(found.rows()), "findings": findings(found)}


def _table_2(found: Reproduction) -> Table:
    table = printed_table("Table 2", "published", "here", numbers=2)
    for row in found.rows():
        if row["quantity"] == "noise_probability":
            table.add_row(f"±{row['j']}", TABLE_2[row["j"]], f"{row['ours']:.9f}")
    return table


def _table_4(found: Reproduction) -> Table:
    columns = [(calibration, variant) for variant in VARIANTS for calibration in CALIBRATIONS]
    heads = ("published", *(f"{calibration}\n{variant}" for calibration, variant in columns))
    table = printed_table("Table 4", *heads, numbers=len(heads))
    lines = [found.lines(calibration, variant) for calibration, variant in columns]
    for place, (size, printed) in enumerate(TABLE_4.items()):
        ours = (column[place] for column in lines)
        cells = (shown(line.plain, line.calibrated, line.reduction) for line in ours)
        table.add_row(str(size), shown(*printed), *cells)
    converged = [f"{found.converged(calibration, variant):,} runs" for calibration, variant in columns]
    table.add_row("met", "224 of 1,000", *converged)
    return table
