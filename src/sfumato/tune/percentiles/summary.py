"""What `sfumato tune percentiles` says: expected errors by size and ε, and the curve to choose."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.methods.percentile_curves import CURVES
from sfumato.privacy.guarantee import plain
from sfumato.publish.structure import number
from sfumato.reproduce.printed import printed_table, spaced
from sfumato.tune.percentiles.tune import TunedPercentiles
from sfumato.tune.release_lines import protect_line


def percentiles_summary(tuned: TunedPercentiles) -> tuple[RenderableType, dict[str, Any]]:
    """The finding as text for people and as data for machines."""
    line = protect_line(tuned.method.name, tuned.method.epsilon, tuned.options | {"curve": tuned.recommended})
    lines: list[RenderableType] = [
        Text(f"Expected error of a percentile as a share of it, and the curve with the least: {tuned.table}."),
        Text(
            f"Assumed, not read off any data: log-normal cells as the {len(tuned.method.bins)} bins lead one to "
            "expect. Epsilon is that of a cell, which is what one period has."
        ),
        _by_size(tuned),
        Text(
            f"Over these sizes {tuned.recommended} has the least error at the release's epsilon of "
            f"{plain(tuned.period_epsilon)} a cell: {line}"
        ),
    ]
    return Group(*spaced(lines)), {
        "table": tuned.table,
        "bins": len(tuned.method.bins),
        "rows": [
            {
                "people": row.people,
                "epsilon": number(row.epsilon),
                "curve": row.best.curve,
                "error": row.best.error,
                "by_percentile": {
                    plain(place): error for place, error in zip(tuned.method.at, row.best.errors, strict=True)
                },
                "by_curve": {curve: row.error(curve) for curve in CURVES},
            }
            for row in tuned.expected
        ],
        "recommended": tuned.recommended,
        "lines": {tuned.table: line},
    }


def _by_size(tuned: TunedPercentiles) -> Table:
    epsilons = list(dict.fromkeys(row.epsilon for row in tuned.expected))
    table = printed_table("people", *(f"epsilon {plain(epsilon)}" for epsilon in epsilons), numbers=len(epsilons) + 1)
    for people in dict.fromkeys(row.people for row in tuned.expected):
        rows = [row for row in tuned.expected if row.people == people]
        table.add_row(f"{people:,}", *(f"{row.best.error:.1%} {row.best.curve}" for row in rows))
    return table
