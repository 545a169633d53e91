"""What every command shares: the two consoles, results for people and machines, progress, and how it fails."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from sfumato.errors import SfumatoError

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


def number(name: str, text: str) -> Any:
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
