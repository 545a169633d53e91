"""The command `sfumato`: thin doors to the package, with plain words and no tracebacks."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
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

from sfumato import __version__
from sfumato.errors import SfumatoError

app = typer.Typer(
    help="Confidential employer-employee data in, protected tables out.\n\n"
    "New here? `sfumato demo` makes an economy, publishes tables from it and shows what protection costs. "
    "Then: `sfumato economy` for data of your own size, `sfumato check` to see what a release would cost, "
    "`sfumato run` to publish it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
budget_app = typer.Typer(
    help="Show the balance of every privacy budget and what it was spent on, or set one.\n\n"
    "The ledger's chain of entries is verified first.",
    invoke_without_command=True,
)
app.add_typer(budget_app, name="budget")

ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="The release file (TOML).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
# Titles and notes are text, whatever brackets they have.
screen = Console(markup=False, highlight=False)
messages = Console(stderr=True, markup=False, highlight=False)


class Definition(StrEnum):
    """Who is protected: employers against anyone, against weak attackers, or individuals only."""

    strong = "strong"
    weak = "weak"
    individuals = "individuals"


class Paper(StrEnum):
    """Evaluations that can be done again."""

    haney2017 = "haney2017"


def _print_version(wanted: bool) -> None:
    if wanted:
        screen.print(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder to work in.")] = Path("demo"),
    jobs: Annotated[int, typer.Option(help="Number of jobs in the economy.")] = 1_000_000,
    as_json: AsJson = False,
) -> None:
    """Make an economy, publish tables from it, and see what the protection costs: the ten-minute tour in one."""
    from sfumato.demo import run_demo
    from sfumato.terminal import demo_summary

    with _progress(hidden=as_json) as show:
        tour = run_demo(out, jobs=jobs, progress=show)
    _show(demo_summary(tour), as_json)


@app.command()
def economy(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to write to.")],
    jobs: Annotated[int, typer.Option(help="Number of jobs, from 10,000 to 150,000,000.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same economy.")] = 1,
    overwrite: Annotated[bool, typer.Option(help="Replace an economy that is already there.")] = False,
    shape: Annotated[bool, typer.Option(help="Measure its shape and print it beside the published one.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a synthetic economy (Parquet files, codelists, a release file) with the published shape of the real one."""
    from sfumato.economy.generate import generate
    from sfumato.economy.shape import measure
    from sfumato.terminal import economy_summary

    with _progress(hidden=as_json) as show:
        made = generate(
            out,
            jobs=jobs,
            seed=seed,
            overwrite=overwrite,
            progress=lambda done, total: show("making jobs", done, total),
        )
        measured = measure(out) if shape else None
    _show(economy_summary(made, measured), as_json)


@app.command()
def check(
    file: ReleaseFile,
    data: Annotated[bool, typer.Option(help="Also validate the data; --no-data opens the release file only.")] = True,
    as_json: AsJson = False,
) -> None:
    """Validate a release and show, per table and in total, the guarantee, the charge, the cells and the expected error.

    Nothing is charged and nothing is published.
    """
    from sfumato.check import check as check_release
    from sfumato.release_file import load
    from sfumato.terminal import plan_summary

    with _progress(hidden=as_json) as show:
        found = check_release(load(file), data=data, progress=_steps(show))
    _show(plan_summary(found), as_json)
    if found.refusal is not None:
        raise typer.Exit(1)


@app.command()
def run(file: ReleaseFile, as_json: AsJson = False) -> None:
    """Publish a release: charge the budget, tabulate, protect, write the bundle.

    The same file on the same data again publishes the stored answer, at no charge and without new noise.
    """
    from sfumato.release_file import load
    from sfumato.run import run as run_release
    from sfumato.terminal import run_summary

    with _progress(hidden=as_json) as show:
        published = run_release(load(file), progress=_steps(show))
    _show(run_summary(published), as_json)


@app.command()
def assess(
    file: ReleaseFile,
    report: Annotated[Path | None, typer.Option(help="Where to write the page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the confidential report of a published release: true against protected values, error by size of cell."""
    from sfumato.assess.assess import assess as assess_release
    from sfumato.release_file import load
    from sfumato.terminal import assessment_summary

    with _progress(hidden=as_json) as show:
        assessment = assess_release(load(file), report, progress=_steps(show))
    _show(assessment_summary(assessment), as_json)


@app.command()
def tune(
    file: ReleaseFile,
    accuracy: Annotated[
        str, typer.Option(help="Such as `90% of cells of at least 100 jobs within 10%`, or `mean error below 5%`.")
    ],
    table: Annotated[str | None, typer.Option(help="The table; not needed where there is only one.")] = None,
    method: Annotated[str | None, typer.Option(help="Another method than the table names.")] = None,
    largest_share: Annotated[
        str, typer.Option(help="Share of a cell's jobs in its largest establishment; 1 is the worst case.")
    ] = "1",
    as_json: AsJson = False,
) -> None:
    """Find the smallest epsilon that gives a table a stated accuracy.

    It is found from public assumptions, which are printed; no data are read and nothing is charged.
    """
    from sfumato.release_file import load
    from sfumato.tune.accuracy import read_accuracy
    from sfumato.tune.summary import tuned_summary
    from sfumato.tune.table import find_table, tune_table

    release, wanted, share = load(file), read_accuracy(accuracy), _number("largest-share", largest_share)
    tuned = tune_table(release, table, accuracy=wanted, method=method, largest_share=share)
    _show(tuned_summary(tuned, find_table(release, table).name), as_json)


@app.command()
def reproduce(
    paper: Annotated[Paper, typer.Argument(metavar="PAPER", help="Which evaluation: haney2017.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings and trials, on as many jobs.")] = False,
    jobs: Annotated[int, typer.Option(help="Number of jobs in the economy.")] = 10_900_000,
    data: Annotated[
        Path | None, typer.Option(help="Folder of an economy to use; made there if it holds none.", metavar="FOLDER")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the page and the CSV file.", metavar="FOLDER")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same figures.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Do a published evaluation again on a synthetic economy, and print what was published beside what is found."""
    from sfumato.reproduce.haney2017 import QUICK, WHOLE
    from sfumato.reproduce.haney2017 import reproduce as reproduce_paper
    from sfumato.reproduce.page import write_reproduction
    from sfumato.reproduce.summary import reproduction_summary

    with _progress(hidden=as_json) as show:
        found = reproduce_paper(data=data, jobs=jobs, grid=QUICK if quick else WHOLE, seed=seed, progress=show)
        show("drawing charts", 0, 1)
        written = write_reproduction(found, out or Path(paper.value))
    _show(reproduction_summary(found, *written), as_json)


Ledger = Annotated[
    Path | None,
    typer.Option("--ledger", help="A ledger, or a release file that names one; ledger.sqlite here.", metavar="PATH"),
]


@budget_app.callback()
def budget(context: typer.Context, ledger: Ledger = None, as_json: AsJson = False) -> None:
    """Show the balance of every budget and what it was spent on."""
    from sfumato.terminal import budget_summary

    context.obj = ledger
    if context.invoked_subcommand is None:
        _show(budget_summary(_open_ledger(ledger, create=False)), as_json)


@budget_app.command("set")
def set_budget(
    context: typer.Context,
    population: Annotated[str, typer.Option(help="Whose budget it is, as in the release file.")],
    period: Annotated[str, typer.Option(help="The reference period, as in the release file.")],
    alpha: Annotated[str, typer.Option(help="Sizes within a factor 1+alpha are hard to tell apart.")],
    epsilon: Annotated[str, typer.Option(help="How much the log-odds may move in all.")],
    delta: Annotated[str, typer.Option(help="The probability with which the bound may fail.")] = "0",
    definition: Annotated[
        Definition, typer.Option(help="Against whom size is protected; individuals: not at all.")
    ] = Definition.strong,
    note: Annotated[str, typer.Option(help="Why, for the history.")] = "",
    ledger: Ledger = None,
    as_json: AsJson = False,
) -> None:
    """Open a budget or change it; the change is written to the ledger's history."""
    from sfumato.privacy.account import Account
    from sfumato.privacy.guarantee import EmployerEmployee
    from sfumato.terminal import budget_summary

    amounts = {name: _number(name, text) for name, text in (("alpha", alpha), ("epsilon", epsilon), ("delta", delta))}
    book = _open_ledger(ledger or context.obj, create=True)
    book.set_budget(
        Account(population=population, period=period),
        EmployerEmployee(definition=definition.value, **amounts),
        note,
    )
    _show(budget_summary(book), as_json)


def main() -> None:
    """Run the command; an error of sfumato is printed as it is, without a traceback."""
    signal.signal(signal.SIGINT, _stop)
    try:
        app()
    except SfumatoError as error:
        if os.environ.get("SFUMATO_TRACEBACK"):
            raise
        _fail(error)
    except OSError as error:
        _fail(
            SfumatoError(
                str(error.filename or "file system"),
                expected="a file or folder that can be read or written",
                found=error.strerror or str(error),
                do="check that it exists, that you may use it, and that the disk is not full",
            )
        )
    except Exception as error:
        # The text of a foreign error may quote a record, so it is shown only to someone who asks for it.
        if os.environ.get("SFUMATO_TRACEBACK"):
            raise
        _fail(
            SfumatoError(
                "sfumato",
                expected="this never to happen",
                found=f"an error of type {type(error).__name__}",
                do="set SFUMATO_TRACEBACK=1 and run again to see it (it may show confidential values), and report it",
            )
        )


def _stop(*_: object) -> NoReturn:
    messages.print("\nStopped. Nothing was half-written; what was charged stays charged, and the next run goes on.")
    sys.exit(130)


def _fail(error: SfumatoError) -> NoReturn:
    if "--json" in sys.argv:
        fields = {name: getattr(error, name) for name in ("where", "expected", "found", "do")}
        print(json.dumps({"error": {"kind": type(error).__name__, **fields}}))
    messages.print(str(error), style="red")
    sys.exit(1)


def _open_ledger(path: Path | None, *, create: bool) -> Any:
    from sfumato.privacy.ledger import Ledger as Book

    path = path or Path("ledger.sqlite")
    if path.suffix == ".toml":
        from sfumato.release_file import load

        path = load(path).ledger
    return Book.open(path, create=create)


def _number(name: str, text: str) -> Any:
    from sfumato.frame import exact

    try:
        return exact(text)
    except ValueError as error:
        raise SfumatoError(
            f"--{name}", expected="a number such as 0.1, 2 or 1/3", found=text, do="correct the number"
        ) from error


def _show(summary: tuple[Any, dict[str, Any]], as_json: bool) -> None:
    text, data = summary
    if as_json:
        print(json.dumps(data, ensure_ascii=False))
    else:
        screen.print(text)


def _steps(show: Callable[[str, int, int], None]) -> Callable[[str], None]:
    """Show named steps as they come, in the order in which a run takes them."""
    from sfumato.run import STEPS

    return lambda step: show(step, STEPS.index(step) if step in STEPS else len(STEPS), len(STEPS))


@contextmanager
def _progress(*, hidden: bool) -> Iterator[Callable[[str, int, int], None]]:
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

        def show(step: str, done: int, total: int) -> None:
            bar.update(task, description=step, completed=done, total=total)

        yield show
