"""What `sfumato reproduce abowd2016` says: the paper's Table 1, published and ours."""

from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.reproduce.abowd2016.published import ALL, SIZE_CLASSES, TABLES
from sfumato.reproduce.abowd2016.reproduce import PAPER, Reproduction
from sfumato.reproduce.printed import printed_findings, spaced


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as tables for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(
            f"{PAPER} on a synthetic federal workforce: {found.edges:,} pairs of {found.employers:,} employers share "
            f"{found.workers:,} workers, in {found.cells:,} pairs of states. Here: means over {found.keys} keys, since "
            "one key is one draw; the paper had one.",
            style="bold",
        ),
        *(_table_1(found, table) for table in TABLES),
        printed_findings(found.findings),
        Text(f"Chart: {page}\nAll figures: {table}"),
    ]
    return Group(*spaced(lines)), {"paper": PAPER, "rows": list(found.rows())}


def _table_1(found: Reproduction, table: str) -> Table:
    """Published and measured side by side, for each size class of one of the two tables."""
    rows = {(row["quantity"], row["size_class"]): row for row in found.rows() if row["table"] == table}
    shown = Table(box=box.SIMPLE_HEAD)
    shown.add_column(f"{table} table: edges", min_width=23)
    for heading in ("mean", "here", "st. dev.", "here", "range"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for size in SIZE_CLASSES:
        mean, deviation = rows["c_mean", size], rows["c_sd", size]
        shown.add_row(size, *_parts(mean)[:2], *_parts(deviation))
    for quantity, words in (("jsd", "Jensen-Shannon distance"), ("rimse", "Root integrated MSE")):
        shown.add_row(words, "", "", *_parts(rows[quantity, ALL]))
    return shown


def _parts(row: dict[str, Any]) -> tuple[str, str, str]:
    """Published, ours, and the range of ours over the keys."""
    published = f"{row['published']:.3f}"
    if row["ours"] is None:
        return published, "", ""
    return published, f"{row['ours']:.3f}", f"{row['low']:.3f}-{row['high']:.3f}"
