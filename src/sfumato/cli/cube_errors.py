"""What tables of a cube are expected to be off by, and what the same budget would give in other ways."""

from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from sfumato.cli.screen import printed_table

if TYPE_CHECKING:  # only names for types
    from sfumato.checking import Findings

_ASKED = (
    "So many tables would be more accurate if each were asked by itself, with its part of the budget, and would not "
    "add up:"
)
_ASKED_WEIGHTED = (
    "So many tables of weighted counts would be more accurate if each were asked by itself, with its part of the "
    "budget and noise for a record of the largest weight allowed, and would not add up:"
)
_UNKNOWN = (
    "How many tables would be more accurate if each were asked by itself is told where the data are read and the "
    "release states a `largest_weight` for weighted counts, in a table or under [live]:"
)


def cube_errors(findings: "Findings") -> list[RenderableType]:
    """How far off tables of a cube are expected to be, and what the same budget would give in other ways."""
    lines: list[RenderableType] = []
    for cube in findings.plan.cubes:
        found = cube.compared_errors(findings.heaviest)
        table = printed_table(
            "dimensions", "as planned", "bottom-up", "several levels", "recommended", "tables better alone"
        )
        for size, error in found.planned.items():
            both = f"{found.bottom_up[size]:.3g}", f"{found.several_levels[size]:.3g}"
            better = found.by_themselves[size]
            asked = "" if better is None else f"{better:,}"
            table.add_row(str(size), f"{error:.3g}", *both, found.recommended[size], asked)
        share = f"{float(found.levels.share):.0%} of epsilon for {found.levels.name}"
        words = (
            f"Counts of {cube.name} are expected to be off by, in records (root mean square), before any cell is kept "
            "from being negative; at the same budget with all of it for the cube alone, and at several levels "
            f"({share}). "
        )
        words += _UNKNOWN if None in found.by_themselves.values() else _ASKED_WEIGHTED if cube.weighted else _ASKED
        lines += [Text(words), table]
    return lines


def cube_error_data(findings: "Findings") -> dict[str, Any]:
    """The same for machines."""
    found = {cube.name: cube.compared_errors(findings.heaviest) for cube in findings.plan.cubes}
    errors = {
        name: {
            "levels": comparison.levels.name,
            "share": float(comparison.levels.share),
            "by_dimension": [
                {
                    "dimension": size,
                    "planned": error,
                    "bottom_up": comparison.bottom_up[size],
                    "several_levels": comparison.several_levels[size],
                    "recommended": comparison.recommended[size],
                    "better_by_themselves": comparison.by_themselves[size],
                }
                for size, error in comparison.planned.items()
            ],
        }
        for name, comparison in found.items()
    }
    return {"expected_cube_errors": errors} if errors else {}
