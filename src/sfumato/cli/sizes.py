"""What `sfumato check --sizes` says of two sizes of an establishment, by the guarantees alone."""

from dataclasses import asdict
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.cli.screen import Summary, near, printed_table
from sfumato.errors import ReleaseError

if TYPE_CHECKING:  # only names for types
    from sfumato.measures.risk import SizeOdds
    from sfumato.plan import Plan

MOST_WORKERS = 10**7
"""Of an establishment whose size is compared."""


def two_sizes(text: str | None, chart: Path | None) -> tuple[int, int] | None:
    """Two numbers of workers, from `100,150`."""
    words = [] if text is None else [word.strip() for word in text.split(",")]
    if text is None and chart is None:
        return None
    if len(words) != 2 or not all(word.isdecimal() and 0 < int(word) <= MOST_WORKERS for word in words):
        raise ReleaseError(
            "--sizes",
            expected=f"two numbers of workers from 1 to {MOST_WORKERS:,}, such as 100,150",
            found="none" if text is None else repr(text),
            do="write --sizes 100,150",
        )
    return int(words[0]), int(words[1])


def odds_summary(plan: "Plan", pair: tuple[int, int], chart: Path | None) -> Summary:
    """By how much the odds between two sizes of an establishment can change, of each table and of all together."""
    from sfumato.charts.svg import write_drawing
    from sfumato.measures.drawing import odds_by_size
    from sfumato.measures.risk import size_odds

    if not plan.release.data.of_jobs:
        raise ReleaseError(
            "--sizes", expected="tables of jobs, which have establishments", found="records", do="leave it out"
        )
    low, high = sorted(pair)
    guarantees = {one.name: one.guarantee for one in plan.statistics} | {"all tables together": plan.guarantee}
    found = {name: size_odds(guarantee, smaller=low, larger=high) for name, guarantee in guarantees.items()}
    table = printed_table("table", "neighbour steps", "the odds change at most by a factor of", "50% becomes at most")
    for name, odds in found.items():
        bounded = odds.steps is not None and odds.delta < 1
        factor = f"{ceil(100 * odds.factor) / 100:,.2f}" if odds.factor < 10**6 else f"over {10**6:,}"
        failing = f", but for a probability of {odds.delta:.2g}" if odds.delta else ""
        words = (factor + failing, f"{ceil(10_000 * odds.belief) / 100:.2f}%") if bounded else ("no bound", "100%")
        table.add_row(name, str(odds.steps or "") if bounded else "", *words)
    title = f"An establishment of {pair[0]:,} workers, or of {pair[1]:,}"
    lines: list[RenderableType] = [Text(title, style="bold"), table]
    drawn = "" if chart is None else odds_by_size(plan.guarantee, *pair, title=f"{title}: all tables together")
    if chart is not None and drawn:
        lines.append(Text(f"Drawn to {near(write_drawing(drawn, chart, title=title))}."))
    elif chart is not None:
        lines.append(Text("Nothing is drawn: without a formal guarantee there is no bound."))
    facts = [{"table": name, **odds_data(odds)} for name, odds in found.items()]
    return Group(*lines), {"sizes": list(pair), "odds": facts, "chart": str(chart) if drawn else None}


def odds_data(odds: "SizeOdds") -> dict[str, Any]:
    """The bound between two sizes for machines; a factor without any bound is null."""
    return asdict(odds) | {"factor": odds.factor if isfinite(odds.factor) else None, "belief": odds.belief}
