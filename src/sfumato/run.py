"""Run a release: check, validate, charge, tabulate, protect, keep the answer, publish."""

from dataclasses import dataclass
from pathlib import Path

from sfumato.cells import Cells
from sfumato.check import Progress, checked, stored_answers
from sfumato.durable import alone
from sfumato.errors import LedgerError
from sfumato.plan import Plan
from sfumato.privacy.account import Balance
from sfumato.privacy.ledger import Ledger
from sfumato.publish.bundle import refuse_foreign, write_bundle
from sfumato.rekeyed import refuse_another_key
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
    balance: Balance | None
    """Of the account; None when nothing of the release costs a budget."""


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
        refuse_another_key(plan, data, ledger)
        charges = [planned.charge(data) for planned in plan.tables]
        receipt = ledger.charge(release.account, charges, release.about.title, budget=release.budget)
        questions = {planned.table.name: planned.digest(data) for planned in plan.tables}
        with alone(release.store / "lock"):  # of two runs of one release the second finds the answers of the first
            answered = {entry.question: entry.answer for entry in ledger.history() if entry.kind == "answer"}
            unanswered = {t.table.name: t for t in plan.distinct() if questions[t.table.name] not in answered}
            progress("tabulate")
            counted = ready.count(unanswered) if unanswered else {}
            progress("protect")
            for name, planned in unanswered.items():
                answers.forget(questions[name])
                protected = planned.method.protect(counted[name], planned.randomness(plan.secret, counted[name]))
                digest = answers.keep(questions[name], _with_public_columns(protected, counted[name]))
                ledger.record_answer(release.account, questions[name], name, digest)
                answered[questions[name]] = digest

        progress("publish")
        given = {name: answers.read(question, answered[question]) for name, question in questions.items()}
        paid = {planned.table.name: entry for planned, entry in zip(plan.tables, receipt.entries, strict=True)}
        identifiers = {name: entry.identifier for name, entry in paid.items()}
        bundle = write_bundle(plan, given, identifiers, release.bundle)
        return Published(
            bundle=bundle,
            plan=plan,
            charged=tuple(t.table.name for t in plan.distinct() if identifiers[t.table.name] in receipt.new),
            balance=None if release.budget is None else ledger.balance(release.account),
        )


def _with_public_columns(protected: Cells, counted: Cells) -> Cells:
    public = {name: counted[name] for name in ("establishments",) if name in counted.columns}
    return Cells(
        dimensions=protected.dimensions,
        positions=protected.positions,
        columns={**protected.columns, **public},
    )
