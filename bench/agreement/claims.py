"""The claims about published errors, and about tables that were made to agree."""

from collections.abc import Iterator
from typing import Any

from bench.agreement.measure import DRAWS
from bench.shared.report import Claim, Grid, Results, Section, another_size

_HELD, _RATIO, _BIAS, _WORSE = 0.9, 2.5, 0.1, 1.05


def agreement_section(results: Results) -> Section:
    """Every claim about errors and agreement."""
    lines = []
    for name, tables in results["releases"].items():
        finest = max(tables, key=lambda table: tables[table]["cells"])
        lines += [*_errors(name, tables, finest), *_agreed(tables)]
    return Section(
        name="agreement",
        heading="Published errors, and tables that were made to agree",
        lines=tuple(lines),
        grids=tuple(_grid(name, tables) for name, tables in results["releases"].items()),
        notes=(
            *another_size(results["draws"], DRAWS, "draws"),
            "Smooth Pareto at α = 0.1; jobs by place, industry and ownership, by industry and population of the place, "
            "and by place, with the epsilons that are named in this order. Every draw protects all tables anew. Errors "
            "are means of absolute differences from the true counts; published ones and intervals are those "
            f"of 50 draws, bias that of {results['draws']:,}.",
        ),
    )


def _errors(name: str, tables: dict[str, Any], finest: str) -> Iterator[Claim]:
    """What is published where tables are not made to agree."""
    held = {(t, c): one["apart"]["held"] for t, told in tables.items() for c, one in told["classes"].items()}
    least = min(held, key=lambda key: held[key])
    yield Claim(
        what=f"{name}: intervals hold the truth, in the table and class of cells where they do least",
        figure=f"{held[least]:.1%} ({least[0]}, {least[1]})",
        target=f"≥ {_HELD:.0%}",
        met=held[least] >= _HELD,
    )
    for table, told in tables.items():
        if table != finest and told["large_ratio"] is not None:
            yield Claim(
                what=f"…published over true error, median of cells of 1,000 jobs and more, {table}",
                figure=f"{told['large_ratio']:.1f}",
                target=f"≤ {_RATIO:g}",
                met=told["large_ratio"] <= _RATIO,
            )


def _agreed(tables: dict[str, Any]) -> Iterator[Claim]:
    """What agreeing does."""
    held = {(t, c): one["together"]["held"] for t, told in tables.items() for c, one in told["classes"].items()}
    least = min(held, key=lambda key: held[key])
    yield Claim(
        what="…of agreed values: intervals hold the truth, where they do least",
        figure=f"{held[least]:.1%} ({least[0]}, {least[1]})",
        target="≥ 88%",
        met=held[least] >= 0.88,
    )
    worst = max(tables, key=lambda table: tables[table]["together"]["error"] / tables[table]["apart"]["error"])
    ratio = tables[worst]["together"]["error"] / tables[worst]["apart"]["error"]
    yield Claim(
        what="…error after agreeing over the one before, in the table that gains least",
        figure=f"{ratio:.2f} ({worst})",
        target=f"≤ {_WORSE:g}",
        met=ratio <= _WORSE,
    )
    total = next(iter(tables.values()))["together"]
    share = abs(total["total_bias"]) / total["total_error"]
    chance = total["total_standard_error"] / total["total_error"]
    yield Claim(
        what="…bias of the agreed grand total, over its error",
        figure=f"{share:.2f} (by chance alone up to {2 * chance:.2f})",
        target=f"≤ {_BIAS:g}",
        met=share <= max(_BIAS, 2 * chance),
    )


def _grid(name: str, tables: dict[str, Any]) -> Grid:
    """Errors by size of cells, true and published, before and after agreeing."""
    rows = []
    for table, told in tables.items():
        for size, one in told["classes"].items():
            figures = [
                f"{one[how][what]:.1%}" if what == "held" else f"{one[how][what]:,.1f}"
                for how in ("apart", "together")
                for what in ("error", "published", "held")
            ]
            rows.append((table, size, f"{one['cells']:,}", *figures))
    columns = ("table", "true jobs", "cells", "error", "published", "held", "agreed: error", "published", "held")
    return Grid(heading=name, columns=columns, rows=tuple(rows))
