"""The commands that take a release file: `sfumato check`, `run` and `assess`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.screen import AsJson, messages, progress, show

ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="The release file (TOML).")]


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
    from sfumato.terminal.plan import plan_summary

    with progress(hidden=as_json) as update:
        found = check_release(load(file), data=data, progress=_steps(update))
    show(plan_summary(found), as_json)
    if found.refusal is not None:
        raise typer.Exit(1)


def run(file: ReleaseFile, as_json: AsJson = False) -> None:
    """Publish a release: charge the budget, tabulate, protect, write the bundle.

    The same file on the same data again publishes the stored answer, at no charge and without new noise.
    """
    from sfumato.release_file import load
    from sfumato.run import run as run_release
    from sfumato.terminal.plan import data_changed
    from sfumato.terminal.run import run_summary

    with progress(hidden=as_json) as update:
        published = run_release(
            load(file), progress=_steps(update), notice=lambda words: messages.print(data_changed(words))
        )
    show(run_summary(published), as_json)


def assess(
    file: ReleaseFile,
    report: Annotated[Path | None, typer.Option(help="Where to write the page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the confidential report of a published release: true against protected values, error by size of cell."""
    from sfumato.assess.assess import assess as assess_release
    from sfumato.release_file import load
    from sfumato.terminal.assessment import assessment_summary

    with progress(hidden=as_json) as update:
        assessment = assess_release(load(file), report, progress=_steps(update))
    show(assessment_summary(assessment), as_json)


def _steps(update: Callable[[str, int, int], None]) -> Callable[[str], None]:
    """Show named steps as they come, in the order in which a run takes them."""
    from sfumato.run import STEPS

    return lambda step: update(step, STEPS.index(step) if step in STEPS else len(STEPS), len(STEPS))
