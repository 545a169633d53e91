"""Run a release: check, validate, charge, tabulate, protect, keep the answer, publish."""

from dataclasses import dataclass
from pathlib import Path

from sfumato.cells import Cells
from sfumato.check import Progress, checked, stored_answers
from sfumato.errors import LedgerError
from sfumato.noise.randomness import OperatingSystem
from sfumato.plan import Plan
from sfumato.privacy.account import Balance
from sfumato.privacy.ledger import Ledger
from sfumato.publish.bundle import refuse_foreign, write_bundle
from sfumato.release import Release

STEPS = ("read", "fingerprint", "validate", "charge", "tabulate", "protect", "publish")
"""The steps a run reports, in order."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a run did."""

    bundle: Path
    plan: Plan
    charged: tuple[str, ...]
    """Tables that were charged by this run; the others were answered from what is stored."""
    balance: Balance


def run(release: Release, progress: Progress = lambda _: None) -> Published:
    """Publish a release.

    The budget is charged, durably, before any table is tabulated; a run that is killed at any moment leaves no charge,
    or a charge and a release that the next run finishes without a second one.
    """
    answers = stored_answers(release)
    refuse_foreign(release.bundle)
    with checked(release, progress) as ready:
        plan, data = ready.plan, ready.fingerprint
        progress("charge")
        if answers and not release.ledger.exists():
            raise LedgerError(
                f"ledger {release.ledger}",
                expected="the ledger that the stored answers beside it were charged to",
                found="no file",
                do="restore the ledger from its backup; without it the budget would start anew",
            )
        ledger = Ledger.open(release.ledger, create=True)
        ledger.ensure_budget(release.account, release.about.budget.guarantee(), data)
        before = {entry.identifier for entry in ledger.history(release.account)}
        charges = [planned.charge(data) for planned in plan.tables]
        entries = ledger.charge(release.account, charges, release.about.title)

        open_questions = {}
        for planned in plan.tables:
            digest = planned.digest(data)
            if answers.find(digest, sha256=ledger.answer(digest)) is None:
                open_questions[planned.table.name] = planned
        progress("tabulate")
        counted = ready.count(open_questions) if open_questions else {}
        progress("protect")
        for name, planned in open_questions.items():
            protected = planned.method.protect(counted[name], OperatingSystem())
            answers.keep(planned.digest(data), _with_public_columns(protected, counted[name]))

        progress("publish")
        given = {}
        for planned in plan.tables:
            digest = planned.digest(data)
            found = answers.find(digest, sha256=ledger.answer(digest))
            assert found is not None  # kept above, or found above
            given[planned.table.name], sha256 = found
            ledger.record_answer(release.account, digest, planned.table.name, sha256)
        identifiers = {entry.table: entry.identifier for entry in entries}
        bundle = write_bundle(plan, given, identifiers, release.bundle)
        return Published(
            bundle=bundle,
            plan=plan,
            charged=tuple(entry.table for entry in entries if entry.identifier not in before),
            balance=ledger.balance(release.account),
        )


def _with_public_columns(protected: Cells, counted: Cells) -> Cells:
    public = {name: counted[name] for name in ("establishments",) if name in counted.columns}
    return Cells(
        dimensions=protected.dimensions,
        positions=protected.positions,
        columns={**protected.columns, **public},
    )
