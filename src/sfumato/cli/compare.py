"""The command `sfumato compare`: ways to protect a release side by side, on the office's own data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.cli.log import LogFile, Verbose
from sfumato.cli.preview import numbers
from sfumato.cli.release import ReleaseFile
from sfumato.cli.screen import PERCENT, AsJson, Summary, near, printed_table, progress, show, spaced
from sfumato.cli.series import PeriodOption

if TYPE_CHECKING:  # only names for types
    from sfumato.report.compare_page import Comparison


def compare(
    file: ReleaseFile,
    period: PeriodOption = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A method with its options, as `protect` has them: `'suppression, minimum_units = 3, p = 15'`; "
            "repeatable. One of each way when not given."
        ),
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="A file of candidates: sections `[[candidate]]` with the same keys.")
    ] = None,
    alpha: Annotated[
        str | None, typer.Option(help="Of methods with a guarantee, such as `0.05,0.1`: sizes so alike look alike.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="Of the same, what all tables together may cost, such as `1,4`.")
    ] = None,
    legacy: Annotated[
        str | None,
        typer.Option(help="The candidate, or method, that errors are ratios to; permanent factors when not given."),
    ] = None,
    within: Annotated[
        float, typer.Option(help="A cell is usable if it is off by no more than so many percent of its value.")
    ] = 10,
    by: Annotated[
        list[str] | None, typer.Option(help="Break figures down by this public attribute; repeatable.")
    ] = None,
    trials: Annotated[int, typer.Option(help="How often methods with chance are tried.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same trials.")] = 1,
    report: Annotated[Path | None, typer.Option(help="Where to write the page.")] = None,
    as_json: AsJson = False,
    _log: LogFile = None,
    _verbose: Verbose = False,
) -> None:
    """Show what noise, permanent factors, suppression, rounding and coarsening would cost: for the office alone.

    The same tables are protected by each method on trial: error, cells withheld, cells that can be used, ranks, and
    what the same attacks find out. True data are counted once. Nothing is charged, nothing can be published from it,
    and nothing is written but the page, which its owner alone can read.

    Choosing a method after looking at true figures is not covered by a guarantee: docs/compare.md says what to do.
    """
    from sfumato.release import load
    from sfumato.report.candidates import candidates_in
    from sfumato.report.compare import compare as compare_release

    listed = [] if candidates is None else candidates_in(candidates)
    with progress(hidden=as_json) as update:
        made = compare_release(
            load(file, period),
            report,
            lambda step: update(step, round(PERCENT * getattr(step, "share", 0.0)), PERCENT),
            methods=[*listed, *(method or ())],
            alphas=numbers("alpha", alpha),
            epsilons=numbers("epsilon", epsilon),
            legacy=legacy,
            accuracy=within / 100,
            by=by or (),
            trials=trials,
            seed=seed,
        )
    show(comparison_summary(made), as_json)


def comparison_summary(made: "Comparison") -> Summary:
    """Candidates side by side, table by table; confidential."""
    from sfumato.report.compare_page import (
        CHOOSING,
        HEADINGS,
        NOTE,
        TRIED_ON_ALL,
        attack_rows,
        explanations,
        loss_row,
        losses_of,
    )

    lines: list[RenderableType] = [Text(NOTE, style="bold red"), Text(CHOOSING, style="yellow")]
    lines += [Text(words) for words in explanations(made)]
    for name, title in made.tables.items():
        found = losses_of(made, name)
        table = printed_table("candidate", *HEADINGS, numbers=len(HEADINGS))
        for outcome, loss in found:
            table.add_row(outcome.label, *loss_row(loss.all))
        lines += [Text(title, style="bold"), table]
        attacks, rates = attack_rows(found)
        if attacks:
            tried = printed_table("candidate", *attacks, numbers=len(attacks))
            for row in rates:
                tried.add_row(*row)
            lines += [Text(f"{title}: {TRIED_ON_ALL[0].lower()}{TRIED_ON_ALL[1:]}"), tried]
        for what in made.strata:
            rows = [(one.label, part) for one, loss in found for part in loss.losses.get(what, ())]
            parts = printed_table("candidate", what, *HEADINGS, numbers=len(HEADINGS))
            for label, part in rows:
                parts.add_row(label, part.label, *loss_row(part))
            lines += [Text(f"{title}, by {what}", style="bold"), parts] if rows else []
    left = [
        f"{one.label}, {name}: left out, because {why}." for one in made.outcomes for name, why in one.left_out.items()
    ]
    left += [f"{label} could not be made: {why}." for label, why in made.not_made.items()]
    lines += [Text(words) for words in left]
    lines.append(Text(f"The whole comparison, with charts: {near(made.report)}. Nothing was charged.", style="green"))
    return Group(*spaced(lines)), made.data()
