"""Go on after a ledger was lost: record what it had charged, and put aside the answers that nothing pays for now."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.errors import BudgetError, LedgerError
from sfumato.manifest import read_manifest
from sfumato.privacy import spending
from sfumato.privacy.account import Account
from sfumato.privacy.answers import Answers
from sfumato.privacy.entry import Entry
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.mark import answers_of, store_of


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What was done about a lost ledger."""

    ledger: Ledger
    entry: Entry
    set_aside: int
    """Answers that the ledger has no charge for, or that are not those it recorded."""
    folder: Path
    """Where they are now."""


def record_lost(
    path: Path, account: Account, lost: EmployerEmployee, note: str, bundles: Sequence[Path] = ()
) -> Recorded:
    """Charge an account for what a lost ledger had charged to it, and make the ledger at `path` the one in force.

    `lost` is at least what the bundles say they cost, but for charges that an older ledger still has. No answer is
    deleted, and none is given again: a release that asks the same is charged and drawn anew.
    """
    if not note.strip():
        raise LedgerError(
            "note", expected="why charges have to be recorded again", found="none", do="say it, for the history"
        )
    identifiers = [name for bundle in bundles for name in read_manifest(bundle)["charges"].values()]
    _refuse_less(account, lost, bundles, _kept(path, account, frozenset(identifiers)))
    ledger = Ledger.open(path, create=True, lost=True)
    entry = ledger.record_lost(account, lost, note.strip(), identifiers)
    aside = store_of(ledger.path) / f"lost-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{entry.sequence}"
    moved = _set_aside(Answers(answers_of(ledger.path)), ledger, aside)
    return Recorded(ledger=Ledger.open(path), entry=entry, set_aside=moved, folder=aside)


def _set_aside(answers: Answers, ledger: Ledger, folder: Path) -> int:
    history = ledger.history()
    charged = {entry.question for entry in history if entry.kind == "charge"}
    answered = {entry.question: entry.answer for entry in history if entry.kind == "answer"}
    moved = 0
    for question, digests in answers.questions().items():
        if question not in charged:
            answers.sweep(question)
        good = {answered[question]} if question in answered else digests if question in charged else frozenset()
        for digest in digests - good:
            answers.set_aside(question, digest, folder)
            moved += 1
    return moved


def _kept(path: Path, account: Account, identifiers: frozenset[str]) -> list[Guarantee]:
    """What an account is charged, out of some charges, in a ledger that is older and yet has them."""
    if not path.exists():
        return []
    entries = Ledger.open(path, lost=True).history(account)
    charges = [entry for entry in entries if entry.kind == "charge" and entry.identifier in identifiers]
    return [entry.guarantee for entry in charges if entry.guarantee is not None]


def _refuse_less(account: Account, lost: EmployerEmployee, bundles: Sequence[Path], kept: Sequence[Guarantee]) -> None:
    """Refuse to record less than what published bundles cost beyond what is still charged for them."""
    told = [_told(bundle, account) for bundle in bundles]
    after = spending.balance(account, lost, [guarantee for guarantee in told if guarantee is not None])
    before = spending.balance(account, lost, kept)
    epsilon, delta = after.spent_epsilon - before.spent_epsilon, after.spent_delta - before.spent_delta
    if epsilon > lost.epsilon or delta > lost.delta:
        raise BudgetError(
            f"charges lost of {account}",
            expected=f"at least what the bundles cost and the ledger lacks: {spending.in_words(epsilon, delta)}",
            found=spending.in_words(lost.epsilon, lost.delta),
            do="add what was charged for other tables and for live questions; when in doubt, the whole budget",
        )


def _told(bundle: Path, account: Account) -> EmployerEmployee | None:
    """What a bundle says all its tables reveal at most; None when it promises nothing."""
    told: dict[str, Any] = json.loads((bundle / "structure.json").read_text(encoding="utf-8"))
    if (told["population"], told["period"]) != (account.population, account.period):
        raise LedgerError(
            f"bundle {bundle}",
            expected=f"a bundle of {account}",
            found=f"one of {Account(population=told['population'], period=told['period'])}",
            do="record the charges of every population and period by a command of its own",
        )
    promised = told["guarantee"]
    if promised["definition"] == "none":
        return None
    numbers = {name: _exact(promised[name]) for name in ("alpha", "epsilon", "delta")}
    return EmployerEmployee(definition=promised["definition"], condition=promised.get("condition", ""), **numbers)


def _exact(number: int | float) -> Fraction:
    """The fraction that a bundle's number was written from.

    >>> _exact(7 / 3), _exact(1e-12)
    (Fraction(7, 3), Fraction(1, 1000000000000))
    """
    written = Fraction(str(number))
    short = written.limit_denominator(1_000_000)
    return short if float(short) == number else written
