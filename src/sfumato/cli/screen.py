"""What every command shares: consoles, results for people and machines, progress, and how summaries look."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from sfumato.errors import SfumatoError

if TYPE_CHECKING:  # only names for types
    from sfumato.plan import Plan
    from sfumato.privacy.guarantee import EmployerEmployee, Guarantee


# How summaries look: tables, counts, paths and empty lines.

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


def charge_of(guarantee: "Guarantee", budget: "EmployerEmployee | None") -> Fraction:
    """The epsilon that a guarantee costs a budget."""
    bound = guarantee.bound
    return Fraction(0) if budget is None or bound is None else bound.within(budget).epsilon


def short(guarantee: "Guarantee") -> str:
    """A guarantee in a column."""
    from sfumato.privacy.guarantee import plain  # only now: a start that prints help needs no arithmetic

    bound = guarantee.bound
    if bound is None:
        return "none"
    condition = ", on a condition" if bound.condition else ""
    return f"{bound.definition}, alpha {plain(bound.alpha)}{condition}"


def whole(guarantee: "Guarantee") -> str:
    """A guarantee in a sentence."""
    return "no formal guarantee" if guarantee.bound is None else str(guarantee)


# Groups of commands in which one need not be named.


def group_with_default(name: str) -> type[TyperGroup]:
    """A group that takes whatever names none of its commands as arguments of the default one."""

    class Group(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
                args = [name, *args]
            return super().parse_args(ctx, args)

    return Group


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
# Titles and notes are text, whatever brackets they have.
screen = Console(markup=False, highlight=False)
messages = Console(stderr=True, markup=False, highlight=False)


def show(summary: tuple[Any, dict[str, Any]], as_json: bool) -> None:
    """Print a summary: its text for people or its data for machines."""
    text, data = summary
    if as_json:
        print(json.dumps(data, ensure_ascii=False))
    else:
        screen.print(text)


def fail(error: SfumatoError) -> NoReturn:
    """Print an error, as JSON too where JSON was asked for, and stop with exit code 1."""
    if "--json" in sys.argv:
        fields = {name: getattr(error, name) for name in ("where", "expected", "found", "do")}
        print(json.dumps({"error": {"kind": type(error).__name__, **fields}}))
    messages.print(str(error), style="red")
    sys.exit(1)


def typed_number(name: str, text: str) -> Any:
    """The exact number typed after an option."""
    from sfumato.frame import exact

    try:
        return exact(text)
    except ValueError as error:
        raise SfumatoError(
            f"--{name}", expected="a number such as 0.1, 2 or 1/3", found=text, do="correct the number"
        ) from error


@contextmanager
def progress(*, hidden: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar that names the step; it disappears when the work is done, and is silent where nobody looks."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=messages, transient=True, disable=hidden or not messages.is_terminal) as bar:
        task = bar.add_task("starting", total=None)

        def update(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total)

        yield update


def printed_table(*headings: str, numbers: int = 0) -> Table:
    """An empty table, the last columns of which are numbers."""
    table = Table(box=box.SIMPLE_HEAD)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place >= len(headings) - numbers else "left")
    return table
