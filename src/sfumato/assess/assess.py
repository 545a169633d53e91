"""Assess a release: tabulate the true cells again and compare them with the answers that were published."""

from dataclasses import dataclass
from pathlib import Path

from sfumato.assess.exposure import Exposure, measure_exposure
from sfumato.assess.report import write_report
from sfumato.assess.utility import Utility, measure_utility
from sfumato.check import Progress, checked, stored_answers
from sfumato.errors import LedgerError
from sfumato.plan import Plan
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The confidential findings about a release, and the page that shows them."""

    plan: Plan
    utilities: tuple[Utility, ...]
    exposures: tuple[Exposure, ...]
    report: Path


def assess(release: Release, report: Path | None = None, progress: Progress = lambda _: None) -> Assessment:
    """Write the confidential report of a release that was published; it charges nothing and publishes nothing."""
    with checked(release, progress) as ready:
        planned = {table.table.name: table for table in ready.plan.tables}
        answers, given = stored_answers(release), {}
        history = Ledger.open(release.ledger).history() if release.ledger.exists() else ()
        answered = {entry.question: entry.answer for entry in history if entry.kind == "answer"}
        for name, table in planned.items():
            question = table.digest(ready.fingerprint)
            if question not in answered:
                raise LedgerError(
                    f"table '{name}'",
                    expected="a table that was published from these data",
                    found="no stored answer",
                    do="publish the release first: sfumato run",
                )
            given[name] = answers.read(question, answered[question])
        progress("tabulate")
        counted = ready.count(planned)
        progress("assess")
        codelists = ready.plan.codelists
        utilities = tuple(
            measure_utility(table, counted[name], given[name], codelists) for name, table in planned.items()
        )
        exposures = tuple(measure_exposure(table, counted[name], given[name]) for name, table in planned.items())
        path = report or release.bundle.with_name(f"{release.bundle.name}-confidential") / "report.html"
        return Assessment(
            plan=ready.plan,
            utilities=utilities,
            exposures=exposures,
            report=write_report(ready.plan, utilities, exposures, path),
        )
