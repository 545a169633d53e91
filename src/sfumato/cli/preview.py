"""The command `sfumato preview`: candidates side by side, before anything is charged."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.cli.log import LogFile, Verbose
from sfumato.cli.release import ReleaseFile, steps
from sfumato.cli.screen import AsJson, Summary, near, printed_table, progress, show, spaced, typed_number
from sfumato.cli.series import PeriodOption
from sfumato.privacy.guarantee import at_least, at_most

if TYPE_CHECKING:  # only names for types
    from sfumato.report.preview import Preview


def preview(
    file: ReleaseFile,
    period: PeriodOption = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="What all tables together may cost, such as `1,2,4`: one candidate for each, shares kept."),
    ] = None,
    alpha: Annotated[
        str | None, typer.Option(help="The alpha of the budget and of every table, such as `0.05,0.1`, likewise.")
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(help="Another release file of the same data, such as one with another method; repeatable."),
    ] = None,
    accuracy: Annotated[
        float, typer.Option(help="A cell that is expected to be off by more than this share of its value is unusable.")
    ] = 0.1,
    report: Annotated[Path | None, typer.Option(help="Where to write the page.")] = None,
    as_json: AsJson = False,
    _log: LogFile = None,
    _verbose: Verbose = False,
) -> None:
    """Show what a run would cost, lose and reveal, before anything is charged: for the office alone.

    The true data are counted, answers are drawn on trial and thrown away. Nothing is charged, and nothing is written
    but the page, which its owner alone can read. Methods with a key have one answer: the one a run would publish.

    Choosing parameters after looking at true figures is not covered by the guarantee: docs/preview.md says what to do.
    """
    from sfumato.release import load
    from sfumato.report.preview import preview as preview_release

    with progress(hidden=as_json) as update:
        made = preview_release(
            load(file, period),
            report,
            steps(update),
            epsilons=numbers("epsilon", epsilon),
            alphas=numbers("alpha", alpha),
            beside={path.stem: load(path, period) for path in beside or ()},
            accuracy=accuracy,
        )
    show(preview_summary(made), as_json)


def numbers(option: str, text: str | None) -> list[Fraction]:
    """Numbers above 0, from `1,2,4`."""
    return [] if text is None else [typed_number(option, word.strip()) for word in text.split(",")]


def preview_summary(made: "Preview") -> Summary:
    """Candidates side by side; confidential."""
    from sfumato.measures.usability import HEADINGS, usability_rows
    from sfumato.report.preview import NOTE

    costs = printed_table("candidate", "epsilon", "to be charged", "left before", "would run", numbers=3)
    for found in made.candidates:
        costs.add_row(
            found.label,
            at_most(found.epsilon),
            at_most(found.findings.due),
            at_least(found.findings.left),
            "yes" if found.would_run else "no",
        )
    lines: list[RenderableType] = [Text(NOTE, style="bold red"), Text(made.choosing, style="yellow"), costs]
    lines += [Text(f"{found.label} would not run. {found.why_not}") for found in made.candidates if found.why_not]
    for title in made.titles:
        named = made.usability(title)
        table = printed_table("candidate", named[0][1].sizes, *HEADINGS, numbers=len(HEADINGS) + 1)
        for label, one in named:
            for row in usability_rows(one):
                table.add_row(label, *row)
        lines += [Text(named[0][1].caption, style="bold"), table]
    tried = printed_table("attack", "candidate", "targets", "disclosed", "by guessing", numbers=3)
    for found in made.candidates:
        for title, attack in found.assessment.attacks():
            if attack.targets:
                rates = f"{attack.success_rate:.1%}", f"{attack.baseline_rate:.1%}"
                tried.add_row(f"{title}: {attack.attack}", found.label, f"{attack.targets:,}", *rates)
    if tried.row_count:
        lines += [Text("Attacks", style="bold"), tried]
    for found in made.candidates:
        lines += [
            Text(f"{found.label}, {one.title}: {one.words} is off by {one.mean_error:.2f} points on average.")
            for one in found.assessment.growth
        ]
    lines.append(Text(f"The whole preview, with charts: {near(made.report)}. Nothing was charged.", style="green"))
    return Group(*spaced(lines)), made.data()
