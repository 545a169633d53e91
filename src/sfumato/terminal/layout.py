"""How summaries look: tables, counts, paths and empty lines."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, plain

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.plan import Plan

Summary = tuple[RenderableType, dict[str, Any]]
"""What a command says: as text for people, and as data for machines."""


def columns(*headings: str) -> Table:
    """A table with these headings."""
    table = Table(box=box.SIMPLE_HEAD)
    for place, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", no_wrap=place == 0 and heading == "table")
    return table


def spaced(lines: list[RenderableType]) -> list[RenderableType]:
    """The same lines with an empty one between any two."""
    return [part for line in lines for part in (line, Text(""))][:-1]


def near(path: Path) -> str:
    """A path as a person would type it from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def counted_tables(number: int) -> str:
    """How many tables there are."""
    return f"{number} table" if number == 1 else f"{number} tables"


def counted_parts(plan: "Plan") -> str:
    """How many tables and cubes there are."""
    counted = {"table": len(plan.tables), "cube": len(plan.cubes)}
    return " and ".join(f"{n} {what}{'s' if n > 1 else ''}" for what, n in counted.items() if n)


def charge_of(guarantee: Guarantee, budget: EmployerEmployee | None) -> Fraction:
    """The epsilon that a guarantee costs a budget."""
    if budget is None or not isinstance(guarantee, EmployerEmployee):
        return Fraction(0)
    return guarantee.within(budget).epsilon


def short(guarantee: Guarantee) -> str:
    """A guarantee in a column."""
    if not isinstance(guarantee, EmployerEmployee):
        return "none"
    condition = ", on a condition" if guarantee.condition else ""
    return f"{guarantee.definition}, alpha {plain(guarantee.alpha)}{condition}"


def whole(guarantee: Guarantee) -> str:
    """A guarantee in a sentence."""
    return str(guarantee) if isinstance(guarantee, EmployerEmployee) else "no formal guarantee"
