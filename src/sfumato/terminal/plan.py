"""What `sfumato check` says of a plan."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.cube.section import COUNT
from sfumato.engine.question import SampleQuestion
from sfumato.methods.method import LARGEST
from sfumato.methods.recommended_levels import Comparison, compared
from sfumato.methods.requirements import requirements
from sfumato.methods.truncated_laplace import TruncatedLaplace
from sfumato.privacy.guarantee import EmployerEmployee, at_least, at_most
from sfumato.publish.people import in_columns, operator_notes
from sfumato.publish.statement import meaning_of
from sfumato.publish.structure import describe, number
from sfumato.terminal.layout import Summary, charge_of, columns, short, spaced, whole

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.check import Findings
    from sfumato.plan import Plan, PlannedTable
    from sfumato.planned_cube import PlannedCube


def plan_summary(findings: "Findings") -> Summary:
    """The plan of a release: guarantee, charge, cells and expected error of every table and in total."""
    plan, balance = findings.plan, findings.balance
    budget = plan.release.budget
    free = {part.name for part in plan.parts} - {part.name for part in plan.distinct_parts()}
    table = columns("table", "cells", "guarantee", "charge", "small cells", "large cells")
    due = Fraction(0)
    for planned in plan.parts:
        charge = charge_of(planned.guarantee, budget)
        name = planned.name
        paid = "paid before" if name in findings.paid else "repeated" if name in free else ""
        due += 0 if paid else charge
        table.add_row(
            name, f"{planned.cells:,}", short(planned.guarantee), paid or at_most(charge), *_expected_errors(planned)
        )
    allowed = Fraction(0) if budget is None else budget.epsilon
    left = allowed if balance is None else balance.remaining_epsilon
    lines: list[RenderableType] = [
        Text(plan.release.about.title, style="bold"),
        table,
        *_what_is_large(plan),
        *_cube_errors(plan),
        Text("\n".join(_protected(plan))),
        Text(
            f"All tables together: {whole(plan.guarantee)}."
            + (
                f" To be charged: epsilon = {at_most(due)}; left in the budget of {plan.release.account}: "
                f"{at_least(left)}."
                if budget is not None
                else " Nothing is charged: these methods spend no budget."
            )
        ),
        *map(Text, meaning_of(plan)),
        *map(Text, operator_notes(plan)),
    ]
    lines += [Text(data_changed(words), style="yellow") for words in findings.changes]
    if findings.refusal is not None:
        lines.append(Text(f"`sfumato run` will refuse this release.\n{findings.refusal}", style="bold red"))
    elif due > left:
        lines.append(Text("This is more than is left: `sfumato run` will refuse it.", style="bold red"))
    read = findings.totals
    words = "The data were not opened." if read is None else f"{read.in_words()} The data match their description."
    lines.append(Text(f"{words} Nothing was charged.", style="green"))
    return Group(*spaced(lines)), plan_data(plan) | _cube_error_data(plan) | {
        "due_epsilon": number(due),
        "remaining_epsilon": number(left),
        "paid_before": sorted(findings.paid),
        "refusal": None if findings.refusal is None else str(findings.refusal),
        "data_validated": read is not None,
        "read": None if read is None else read.figures(),
        "data_changed": list(findings.changes),
        "notes": operator_notes(plan),
    }


def data_changed(words: str) -> str:
    """What is said of data that changed, and so make tables cost once more."""
    return f"The data changed, and tables are charged anew. {words[0].upper()}{words[1:]}."


def plan_data(plan: "Plan") -> dict[str, Any]:
    """A plan as numbers."""
    budget = plan.release.budget
    return {
        "title": plan.release.about.title,
        "guarantee": describe(plan.guarantee),
        "tables": [
            {
                "name": planned.table.name,
                "cells": planned.cells,
                "method": planned.method.name,
                "guarantee": describe(planned.guarantee),
                "charge_epsilon": number(charge_of(planned.guarantee, budget)),
                "protects": vars(requirements(planned.guarantee)),
                "planned_error": vars(planned.method.planned_error()),
            }
            for planned in plan.tables
        ],
        **({"cubes": [_cube_data(cube, budget) for cube in plan.cubes]} if plan.cubes else {}),
    }


def _cube_data(cube: "PlannedCube", budget: EmployerEmployee | None) -> dict[str, Any]:
    return {
        "name": cube.name,
        "cells": cube.cells,
        "method": cube.method.name,
        "guarantee": describe(cube.guarantee),
        "charge_epsilon": number(charge_of(cube.guarantee, budget)),
        "noise_variance": cube.method.counts.variance,
        "exact_controls": [list(control.by) for control in cube.method.exact_controls],
    }


def _expected_errors(planned: "PlannedTable | PlannedCube") -> tuple[str, str]:
    """The expected errors of small and of large cells, before any data are read."""
    if isinstance(planned.method, TruncatedLaplace):
        return f"{planned.method.counts.expected_magnitude:.2g} records", "the same"
    if isinstance(planned.question, SampleQuestion):
        return in_columns(planned)
    error = planned.method.planned_error()
    if error.share is None:
        return "secret", "secret"
    return f"{error.in_a_small_cell} jobs", error.in_a_large_cell


def _compared(cube: "PlannedCube") -> Comparison:
    public = [totals.by for totals in cube.totals if COUNT in totals.columns]
    return compared(cube.question.by, cube.method, public=public, calibrated=cube.section.calibration != "raking")


def _cube_errors(plan: "Plan") -> list[RenderableType]:
    """How far off tables of a cube are expected to be, and what the same budget would give in other ways."""
    lines: list[RenderableType] = []
    for cube in plan.cubes:
        found = _compared(cube)
        table = columns("dimensions", "as planned", "bottom-up", "several levels", "recommended")
        for size, error in found.planned.items():
            both = f"{found.bottom_up[size]:.3g}", f"{found.several_levels[size]:.3g}"
            table.add_row(str(size), f"{error:.3g}", *both, found.recommended[size])
        share = f"{float(found.levels.share):.0%} of epsilon for {found.levels.name}"
        words = (
            f"Counts of {cube.name} are expected to be off by, in records (root mean square), before any cell is kept "
            "from being negative; at the same budget with all of it for the cube alone, and at several levels "
            f"({share}):"
        )
        lines += [Text(words), table]
    return lines


def _cube_error_data(plan: "Plan") -> dict[str, Any]:
    found = {cube.name: _compared(cube) for cube in plan.cubes}
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
                }
                for size, error in comparison.planned.items()
            ],
        }
        for name, comparison in found.items()
    }
    return {"expected_cube_errors": errors} if errors else {}


def _what_is_large(plan: "Plan") -> list[RenderableType]:
    errors = [planned.method.planned_error() for planned in plan.tables]
    sizes = sorted({error.floor_size for error in errors if error.share and error.of == LARGEST})
    words = " or ".join(map(str, sizes))
    return [Text(f"A cell is large when its largest establishment has more than {words} workers.")] if sizes else []


def _protected(plan: "Plan") -> list[str]:
    """What is protected, once for all tables that protect the same."""
    tables: dict[str, list[str]] = {}
    for planned in plan.parts:
        cube = isinstance(planned.method, TruncatedLaplace)
        words = "single records" if cube else str(requirements(planned.guarantee))
        tables.setdefault(words, []).append(planned.name)
    return [
        f"Protected in {'all tables' if len(tables) == 1 and not plan.cubes else ', '.join(names)}: {words}."
        for words, names in tables.items()
    ]
