"""What `sfumato demo` says: the tour in a screenful."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.privacy.guarantee import at_most
from sfumato.publish.statement import meaning
from sfumato.terminal.assessment import assessment_summary, error_chart
from sfumato.terminal.layout import Summary, charge_of, columns, counted_tables, near, short, spaced, whole
from sfumato.terminal.run import run_summary

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.demo import Tour


def demo_summary(tour: "Tour") -> Summary:
    """The demo in a screenful: what was made, what it costs, what to try next."""
    made, published, assessment = tour.economy, tour.published, tour.assessment
    release = near(made.release)
    table = columns("published table", "cells", "guarantee", "charge", "mean error, jobs")
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
