"""`sfumato run`: publish a release, once, whoever starts it and however often."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from sfumato.cli.calendar import calendar_data, left_words
from sfumato.cli.log import LogFile, Quiet, Verbose, log, under_cron
from sfumato.cli.release import ReleaseFile, data_changed, plan_data, reading_words, steps
from sfumato.cli.screen import (
    AsJson,
    Summary,
    counted_parts,
    counted_tables,
    messages,
    near,
    progress,
    show,
)
from sfumato.cli.series import (
    PeriodOption,
    unchanged_summary,
    version_data,
    version_words,
)
from sfumato.errors import BusyError
from sfumato.privacy.guarantee import at_least, at_most
from sfumato.privacy.meaning import why_charged_once
from sfumato.statistics.published import number

if TYPE_CHECKING:  # only names for types
    from sfumato.running import Published


def run_summary(published: "Published") -> Summary:
    """What a run published, charged and left over."""
    balance, version, period = published.balance, published.version, published.plan.release.about.period
    if published.unchanged and version is not None:
        return unchanged_summary(published, version)
    repeated = len(published.plan.statistics) - len(published.charged) - len(published.finished)
    words = [*reading_words(published.reading), published.totals.in_words()]
    words += [f"Published {counted_parts(published.plan)} in {near(published.bundle)}."]
    if version is not None:
        words += version_words(version)
    free = {one.name for one in published.plan.statistics if one.guarantee.bound is None}
    for heading, names in {
        "Charged": [name for name in published.charged if name not in free],
        "Charged before by a run that did not finish, and answered now at no further charge": [
            name for name in published.finished if name not in free
        ],
        "Published without a charge (no formal guarantee)": [
            name for name in (*published.charged, *published.finished) if name in free
        ],
    }.items():
        if names:
            words.append(f"{heading}: {', '.join(names)}.")
    if repeated:
        counted = f"{repeated} cubes or tables" if published.plan.cubes else counted_tables(repeated)
        words.append(f"{counted.capitalize()} answered from what is stored, at no charge.")
    words += [
        why_charged_once(found, published.charged_about_others).replace("`", "")
        for found in published.plan.charged_once
    ]
    if balance is not None:
        words.append(
            f"Budget of {balance.account}: epsilon {at_most(balance.spent_epsilon)} of "
            f"{at_most(balance.budget.epsilon)} spent, {at_least(balance.remaining_epsilon)} left."
        )
    words += left_words(published.calendars, period)
    if published.unchanged:
        words.append("Nothing changed: the bundle is the one that was there.")
    words += not_met(published)
    words += published.plan.operator_notes()
    words.append("Read statement.md in the bundle: it says in plain words what readers can and cannot learn.")
    return Text("\n".join(words)), {
        "bundle": str(published.bundle),
        **({} if version is None else version_data(version)),
        "read": published.totals.figures(),
        "reading": {table: guess.facts() for table, guess in published.reading.items()},
        "charged": list(published.charged),
        "charged_before": list(published.finished),
        "data_changed": list(published.changes),
        "unchanged": published.unchanged,
        "spent_epsilon": None if balance is None else number(balance.spent_epsilon),
        "remaining_epsilon": None if balance is None else number(balance.remaining_epsilon),
        **({"windows": calendar_data(published.calendars, period)} if published.calendars else {}),
        "controls_not_met": {
            name: {"calibration": found.method, "cycles": found.cycles, "largest_gap_in_parts": found.largest_gap}
            for name, found in published.unmet.items()
        },
        **plan_data(published.plan, published.charged_about_others),
    }


def not_met(published: "Published") -> list[str]:
    """Cubes that do not add up to their controls: somebody has to look."""
    cubes = {cube.name: cube for cube in published.plan.cubes}
    return [f"Cube {name}:{cubes[name].not_met(found)}".replace("**", "") for name, found in published.unmet.items()]


def run(
    file: ReleaseFile,
    period: PeriodOption = None,
    revise: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="Publish a period of a series again whose data or tables changed: both versions are kept, with the "
            "reason.",
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Publish over the bundle of another release, which is then gone.")
    ] = False,
    wait: Annotated[
        bool, typer.Option(help="Wait for another run that has the ledger; --no-wait ends with exit code 10.")
    ] = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
    _log: LogFile = None,
    verbose: Verbose = False,
) -> None:
    """Publish a release: charge the budget, tabulate, protect, write the bundle.

    The same file on the same data again publishes the stored answer, at no charge and without new noise. Of a series,
    `sfumato run release.toml --period 2026Q3` adds one period to the bundle, and leaves all others as they are.
    Of two runs at the same time the second waits for the first.
    """
    from sfumato.release import load
    from sfumato.running import run as run_release

    release = load(file, period)
    silent = quiet or (under_cron() and not verbose)
    with progress(hidden=as_json) as update:
        published = run_release(
            release,
            progress=steps(update),
            notice=lambda words: _notice(words, charged=release.budget is not None, silent=silent),
            revise=revise,
            replace=replace,
            busy=lambda: _busy(file, wait=wait),
        )
    balance = published.balance
    log.note(
        tables=len(published.plan.statistics),
        charged=len(published.charged),
        changed="no" if published.unchanged else "yes",
        left_epsilon=None if balance is None else at_least(balance.remaining_epsilon),
    )
    if as_json or not silent:
        show(run_summary(published), as_json)
    else:
        for words in not_met(published):
            messages.print(words)


def _notice(words: str, *, charged: bool, silent: bool) -> None:
    """What changed in the data: somebody has to look where that costs, and only then."""
    if charged or not silent:
        messages.print(data_changed(words, charged=charged))


def _busy(file: Path, *, wait: bool) -> None:
    """Another run has the ledger: say so, or do not wait."""
    if not wait:
        raise BusyError(
            str(file),
            expected="a ledger that no other run is using",
            found="one that a run or a live question is using",
            do="run it later, or without --no-wait; nothing was charged or changed",
        )
    messages.print("Another run is using the ledger. Waiting for it.")
    log.step("wait")
