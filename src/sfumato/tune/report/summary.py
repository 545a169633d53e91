"""What `sfumato tune report` says: ε by year and table, their sum, and the lines to write."""

from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.methods.laplace import Laplace
from sfumato.privacy.guarantee import plain
from sfumato.publish.structure import number
from sfumato.reproduce.printed import printed_table, spaced
from sfumato.tune.release_lines import budget_line, protect_line
from sfumato.tune.report.tune import TunedReport, TunedTable

_LISTED = 8
"""So many different sizes are listed."""


def report_summary(tuned: TunedReport) -> tuple[RenderableType, dict[str, Any]]:
    """The finding as text for people and as data for machines."""
    terms = " + ".join(plain(table.period_epsilon) for table in tuned.tables)
    lines: list[RenderableType] = [
        Text(f"epsilon = {plain(tuned.epsilon)} in all is the least that meets: {tuned.target}.", style="bold"),
        Text(f"{tuned.cells.source}.", style="bold red" if tuned.cells.confidential else ""),
        _by_table(tuned),
        Text(f"{len(tuned.periods)} x ({terms}) = {plain(tuned.epsilon)}: a person may be in a cell of every period."),
        Text("To use it:\n" + "\n".join(f"{part}: {line}" for part, line in _lines(tuned).items())),
    ]
    return Group(*spaced(lines)), {
        "threshold": number(tuned.target.threshold),
        "share": number(tuned.target.share),
        "cells": {"number": len(tuned.cells), "text": tuned.cells.source, "confidential": tuned.cells.confidential},
        "periods": [
            {"period": period, "epsilon": {table.name: number(table.period_epsilon) for table in tuned.tables}}
            for period in tuned.periods
        ],
        "tables": [_table_data(table) for table in tuned.tables],
        "epsilon": number(tuned.epsilon),
        "lines": _lines(tuned),
    }


def _by_table(tuned: TunedReport) -> Table:
    shown = printed_table("table", "of", "epsilon a period", "periods", "in all", "cells within", numbers=4)
    for table in tuned.tables:
        shown.add_row(
            table.name,
            table.statistic,
            plain(table.period_epsilon),
            f"{len(tuned.periods)}",
            plain(table.epsilon),
            f"{table.share:.1%}",
        )
        if 1 < len(np.unique(tuned.cells.people)) <= _LISTED and len(table.within) == len(tuned.cells):
            for people in np.unique(tuned.cells.people):
                within = table.within[tuned.cells.people == people].mean()
                shown.add_row(f"  {people:,} people", "", "", "", "", f"{within:.1%}", style="dim")
    return shown


def _table_data(table: TunedTable) -> dict[str, Any]:
    return {
        "table": table.name,
        "statistic": table.statistic,
        "method": _written(table),
        "period_epsilon": number(table.period_epsilon),
        "periods": table.method.periods,
        "epsilon": number(table.epsilon),
        "share": table.share,
        "cells": len(table.within),
    }


def _lines(tuned: TunedReport) -> dict[str, str]:
    """The lines of the release file, by the section or the table they belong to."""
    protects = {table.name: protect_line(_written(table), table.epsilon, table.options) for table in tuned.tables}
    return {"[release]": budget_line(tuned.epsilon, conditional=tuned.conditional), **protects}


def _written(table: TunedTable) -> str:
    """The method as a release file names it."""
    return Laplace.name if isinstance(table.method, Laplace) else table.method.name
