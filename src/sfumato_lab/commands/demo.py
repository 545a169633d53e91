"""`sfumato demo`: an economy, a release of several tables, and the confidential report, in one go."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.bundle.statement import meaning
from sfumato.cli.release import assessment_summary, error_chart
from sfumato.cli.run import run_summary
from sfumato.cli.screen import (
    AsJson,
    Summary,
    Table,
    charge_of,
    counted_tables,
    near,
    printed_table,
    progress,
    short,
    show,
    spaced,
    whole,
)
from sfumato.durable import write_durably
from sfumato.errors import SfumatoError
from sfumato.privacy.guarantee import at_most
from sfumato.release import load
from sfumato.report.assess import assess
from sfumato.report.assessment import Assessment
from sfumato.running import STEPS, Published, run
from sfumato_lab.economy.jobs.generate import Economy, generate

# The demo: an economy, a release of several tables, and the confidential report, in one go.

_MARK = "demo.json"


@dataclass(frozen=True, kw_only=True)
class Tour:
    """What the demo made."""

    economy: Economy
    published: Published
    assessment: Assessment


def run_demo(
    folder: Path, *, jobs: int = 1_000_000, progress: Callable[[str, int, int], None] = lambda *_: None
) -> Tour:
    """Make an economy in a folder, publish its release and assess it.

    Run again in the same folder, it uses the economy that is there and gets the stored answers, at no charge.
    """
    made = _made_before(folder, jobs)
    if made is None:
        made = generate(folder, jobs=jobs, progress=lambda done, total: progress("making an economy", done, total))
        counts = {name: value for name, value in asdict(made).items() if name != "folder"}
        write_durably(folder / _MARK, json.dumps(counts).encode())
    release = load(made.release)
    published = run(release, progress=lambda step: progress(step, STEPS.index(step), len(STEPS)))
    assessment = assess(release, progress=lambda step: progress(f"report: {step}", len(STEPS), len(STEPS)))
    return Tour(economy=made, published=published, assessment=assessment)


def _made_before(folder: Path, jobs: int) -> Economy | None:
    """The economy of an earlier demo of this size; anything else in the folder is not the demo's to touch."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        made = Economy(folder=folder, **json.loads((folder / _MARK).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        made = None
    if made is not None and made.jobs == jobs:
        return made
    raise SfumatoError(
        f"demo folder {folder}",
        expected=f"a new folder, or a demo of {jobs:,} jobs",
        found="other files" if made is None else f"a demo of {made.jobs:,} jobs, whose budget is spent on other data",
        do="choose another folder with --out",
    )


# What `sfumato demo` says: the tour in a screenful.


def demo_summary(tour: "Tour") -> Summary:
    """The demo in a screenful: what was made, what it costs, what to try next."""
    made, published, assessment = tour.economy, tour.published, tour.assessment
    release = near(made.release)
    table = printed_table("published table", "cells", "guarantee", "charge", "mean error, jobs")
    for planned, utility in zip(published.plan.tables, assessment.utilities, strict=True):
        charge = at_most(charge_of(planned.guarantee, published.plan.release.budget))
        table.add_row(
            utility.title, f"{utility.cells:,}", short(planned.guarantee), charge, f"{utility.mean_error:,.2f}"
        )
    steps = Table(box=None, show_header=False, padding=(0, 2))
    for command, purpose in (
        (f"sfumato check {release}", "what the release guarantees and costs"),
        (f"sfumato run {release}", "again: the stored answer, at no charge"),
        (f"sfumato budget --ledger {release}", "what is left, and the history"),
        (near(assessment.report), "charts of true and protected values (confidential)"),
        (near(published.bundle / "statement.md"), "what readers are told"),
        (f"sfumato serve {near(published.bundle)}", "the tables in a browser, for R, Python and Excel"),
    ):
        steps.add_row(Text(command, style="bold"), purpose)
    lines: list[RenderableType] = [
        Text(
            f"An economy of {made.jobs:,} jobs in {made.establishments:,} establishments and {made.places:,} places, "
            f"published as {counted_tables(len(published.plan.tables))}.",
            style="bold",
        ),
        table,
        error_chart(assessment.utilities[0]),
        Text(f"All tables together: {whole(published.plan.guarantee)}. {meaning(published.plan.guarantee)[0]}"),
        Text("What to try next:"),
        steps,
    ]
    data = {
        "economy": made.data(),
        "run": run_summary(published)[1],
        "assessment": assessment_summary(assessment)[1],
    }
    return Group(*spaced(lines)), data


# `sfumato demo`: the whole tour in one command.


def demo(
    out: Annotated[Path, typer.Option(help="Folder to work in.")] = Path("demo"),
    jobs: Annotated[int, typer.Option(help="Number of jobs in the economy.")] = 1_000_000,
    as_json: AsJson = False,
) -> None:
    """Make an economy, publish tables from it, and see what the protection costs: the ten-minute tour in one."""

    with progress(hidden=as_json) as update:
        tour = run_demo(out, jobs=jobs, progress=update)
    show(demo_summary(tour), as_json)
