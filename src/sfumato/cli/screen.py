"""What every command shares: consoles, results for people and machines, progress, and how summaries look."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from sfumato.cli.log import log
from sfumato.errors import SfumatoError, UsageError

if TYPE_CHECKING:  # only names for types
    from sfumato.plan import Plan
    from sfumato.privacy.guarantee import EmployerEmployee, Guarantee


# How summaries look: tables, counts, paths and empty lines.

Summary = tuple[RenderableType, dict[str, Any]]
"""What a command says: as text for people, and as data for machines."""


UNLIMITED = 100_000
"""The width of what is no terminal: a file, or another program."""


class Table(RichTable):
    """A table that cuts no word and no number, however narrow the screen.

    Cells and headings are wrapped between words. Where that is not enough, columns go below each other, each time
    after those that name the rows.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, or its parts one below the other."""
        unlimited = options.update(width=UNLIMITED)
        # Of every column, how wide its longest word is and how wide it would like to be.
        wide = [
            [Measurement.get(console, unlimited, cell) for cell in (column.header, *column.cells)]
            for column in self.columns
        ]
        least = [max((cell.minimum for cell in cells), default=0) for cells in wide]
        most = [max((cell.maximum for cell in cells), default=0) for cells in wide]

        def piece(places: list[int], widths: list[int]) -> RichTable:
            found = copy(self)
            found.columns = [
                replace(self.columns[place], _index=at, width=widths[place], overflow="fold", no_wrap=False)
                for at, place in enumerate(places)
            ]
            return found

        def width(places: list[int], widths: list[int]) -> int:
            return console.measure(piece(places, widths), options=unlimited).maximum

        for at, places in enumerate(self._parts(lambda places: width(places, least) <= options.max_width)):
            spare = options.max_width - width(places, least)
            widths = list(least)
            for place in sorted(places, key=lambda place: most[place] - least[place]):
                widths[place] += max(min(spare, most[place] - least[place]), 0)
                spare -= widths[place] - least[place]
            part = piece(places, widths)
            part.title = self.title if at == 0 else None
            yield from RichTable.__rich_console__(part, console, options)

    def _parts(self, fits: Callable[[list[int]], bool]) -> Iterator[list[int]]:
        """Which columns go side by side; those that name the rows are in every part."""
        every = list(range(len(self.columns)))
        if fits(every):
            yield every
            return
        figures = [at for at in every if self.columns[at].justify == "right"]
        names = every[: min(figures, default=1)] or every[:1]
        naming = names if all(fits([*names, at]) for at in every[len(names) :]) else every[:1]
        part = list(naming)
        for at in every[len(naming) :]:
            if len(part) > len(naming) and not fits([*part, at]):
                yield part
                part = list(naming)
            part.append(at)
        yield part


def printed_table(*headings: str, numbers: int = 0) -> Table:
    """An empty table, the last columns of which are numbers."""
    table = Table(box=box.SIMPLE_HEAD)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place >= len(headings) - numbers else "left")
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
    from sfumato.privacy.guarantee import plain, totals_in  # only now: a start that prints help needs no arithmetic

    bound = guarantee.bound
    if bound is None:
        return "none"
    condition = ", on a condition" if bound.condition else ""
    totals = ", with totals" if totals_in(bound.caps) else ", of jobs at a period" if bound.caps else ""
    return f"{bound.definition}, alpha {plain(bound.alpha)}{condition}{totals}"


def whole(guarantee: "Guarantee") -> str:
    """A guarantee in a sentence."""
    return "no formal guarantee" if guarantee.bound is None else str(guarantee)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
# Titles and notes are text, whatever brackets they have.
screen = Console(markup=False, highlight=False)
messages = Console(stderr=True, markup=False, highlight=False)
stopped_by: list[signal.Signals] = []
"""The signal that told this process to end: a library that was at work may have turned it into an error, or lost it."""


def end_if_stopped() -> None:
    """End with the code of the signal that told this process to, if one did."""
    if stopped_by:
        sys.exit(128 + stopped_by[0])


for _console in (screen, messages):
    if not _console.is_terminal:
        _console.width = UNLIMITED


def show(summary: tuple[Any, dict[str, Any]], as_json: bool) -> None:
    """Print a summary: its text for people or its data for machines."""
    text, data = summary
    if as_json:
        print(json.dumps(data, ensure_ascii=False), flush=True)  # also where the command goes on, as a server does
    else:
        screen.print(text)


def fail(error: SfumatoError, code: int | None = None) -> NoReturn:
    """Print an error, as JSON too where JSON was asked for, and stop with its exit code."""
    code = error.exit_code if code is None else code
    log.note(error=type(error).__name__)
    if "--json" in sys.argv:
        fields = {name: getattr(error, name) for name in ("where", "expected", "found", "do")}
        print(json.dumps({"error": {"kind": type(error).__name__, "exit_code": code, **fields}}, ensure_ascii=False))
    messages.print(str(error), style="red")
    sys.exit(code)


def typed_number(name: str, text: str) -> Any:
    """The exact number typed after an option."""
    from sfumato.description import exact

    try:
        return exact(text)
    except ValueError as error:
        raise UsageError(
            f"--{name}", expected="a number such as 0.1, 2 or 1/3", found=text, do="correct the number"
        ) from error


PERCENT = 100
"""The total of what is told in per cent."""


@contextmanager
def progress(*, hidden: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar that names the step; it disappears when the work is done, and is silent where nobody looks."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[reached]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=messages, transient=True, disable=hidden or not messages.is_terminal) as bar:
        task = bar.add_task("starting", total=None, reached="")

        def update(step: str, done: int, total: int) -> None:
            end_if_stopped()
            log.step(step)
            reached = f"{done} %" if total == PERCENT else f"{done}/{total}"
            bar.update(task, description=step, completed=done, total=total, reached=reached)

        yield update
        log.step("")
