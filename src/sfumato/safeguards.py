"""What must not be forgotten: charges in a ledger, the key and the rounding a table was published with."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.bundle.manifest import MANIFEST, read_manifest
from sfumato.errors import BudgetError, KeyFileError, LedgerError
from sfumato.identity import Identity
from sfumato.plan import Plan
from sfumato.privacy.account import Account, balance, in_words
from sfumato.privacy.answers import Answers
from sfumato.privacy.entries import Entry, answers_of, gone, refuse_charged, store_of
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee
from sfumato.privacy.ledger import Ledger
from sfumato.release import Release
from sfumato.statistic import KEY_NOTE, RoundingNote
from sfumato.statistics.published import PublishedTable

# Keep a table under the key and the rounding it was published with: readers would average or combine two of them.


def refuse_another_key(plan: Plan, identity: Identity, ledger: Ledger) -> None:
    """Raise KeyFileError when a table was answered from these data with another key than the one in force.

    The office may want that all the same, when the old key leaked, and says so by `rekeyed = true`.
    """
    keyed = [planned for planned in plan.tables if planned.key]
    for entry, fingerprint, note, noise in _answered_with_keys(ledger.history()):
        _refuse_another_noise(plan, entry, identity, fingerprint, noise)
        another = [planned for planned in keyed if planned.key != fingerprint and not plan.release.about.rekeyed]
        planned = next((one for one in another if identity.asks(one.in_whole_numbers(), entry, note.question)), None)
        if planned is not None:
            raise KeyFileError(
                f"table '{planned.table.name}'",
                expected=f"the key it was published with, {fingerprint}: a reader who has the table under two keys can "
                "average them",
                found=f"the key {planned.key}",
                do=f'write key_fingerprint = "{fingerprint}" under [release] to use the earlier key; or, if that one '
                "leaked, rekeyed = true",
            )


def as_rounded_before(plan: Plan, identity: Identity) -> Plan:
    """The plan with the rounding that its tables were published with from these data, under the same key.

    A table whose release file asks for another one is refused: two roundings of one number tell more than either.
    """
    before = list(_answered_with_keys(identity.history))
    rounded = tuple(_as_before(table, identity, before) for table in plan.tables)
    return replace(plan, statistics=(*rounded, *plan.published_as("cubes")))


def _as_before(
    planned: PublishedTable, identity: Identity, before: Iterable[tuple[Entry, str, RoundingNote, str]]
) -> PublishedTable:
    if planned.roundings is None:
        return planned
    same = (
        note.bases
        for entry, fingerprint, note, _ in before
        if fingerprint == planned.key and identity.asks(planned.in_whole_numbers(), entry, note.question)
    )
    bases = next(same, planned.roundings)
    if bases == planned.roundings:
        return planned
    said = {"rounding", "earnings_rounding"} & planned.table.protect.options.keys()
    if said:
        raise KeyFileError(
            f"table '{planned.table.name}'",
            expected=f"the rounding it was published with, {bases[0]:,} for jobs"
            + (f" and {bases[1]:,} for earnings" if bases[1] > 1 else "")
            + ": a reader who has two roundings of one number knows more than either tells",
            found=f"another {' and '.join(sorted(said))}",
            do="leave it out; or, if the rounding must change, rotate the key and write rekeyed = true",
        )
    return planned.at_rounding(*bases)


def _answered_with_keys(history: Iterable[Entry]) -> Iterator[tuple[Entry, str, RoundingNote, str]]:
    """The charges of tables with a key: the entry, the key's fingerprint, the rounding, and the perturbation."""
    for entry in history:
        if entry.kind == "charge" and entry.note.startswith(KEY_NOTE):
            fingerprint, question, noise = entry.note.removeprefix(KEY_NOTE).split(" ")
            yield entry, fingerprint, RoundingNote.read(question, noise), noise


def _refuse_another_noise(plan: Plan, entry: Entry, identity: Identity, fingerprint: str, noise: str) -> None:
    """Refuse other options of a perturbation of the same records with the same key."""
    changed = [p for p in plan.tables if p.noise and noise and p.key == fingerprint and p.noise != noise]
    if changed and entry.data in identity.names:
        raise KeyFileError(
            f"table '{changed[0].table.name}'",
            expected="the method and options that these records were published with: two perturbations of the "
            "same cells, made of the same directions and sizes, can be solved for the truth",
            found="others",
            do="write the earlier ones; or, if they must change, rotate the key and write rekeyed = true",
        )


# Refuse a ledger that has forgotten what was published: an older copy of it, or a new one in its place.
#
# The ledger itself compares its end with what the store noted. Here it is compared with the answers in the store, which
# also shows a store of a version that noted nothing, and with the bundle that is to be replaced.


def refuse_gone(release: Release) -> None:
    """Raise LedgerError when there is no ledger, and a store or a bundle shows that there was one."""
    if release.ledger.exists():
        return
    refuse_charged(release.ledger)
    if named := charges_of(release.bundle):
        raise gone(release.ledger, beside=f"the bundle {release.bundle}, which names {len(named)} charges")


def refuse_rolled_back(release: Release, ledger: Ledger) -> None:
    """Raise LedgerError when the ledger lacks charges of answers in its store, or of the bundle to be replaced."""
    kept = Answers(answers_of(ledger.path)).questions()  # read first: what is drawn meanwhile is charged before that
    history = ledger.history()
    charged = {entry.question for entry in history if entry.kind == "charge"}
    answered = {entry.question: entry.answer for entry in history if entry.kind == "answer"}
    unpaid = kept.keys() - charged
    other = [
        question
        for question, digests in kept.items()
        if (digests - {answered[question]} if question in answered else len(digests) > 1)
    ]
    lacking = charges_of(release.bundle) - ledger.identifiers()
    for wrong, found in (
        (unpaid, "stored answers to questions that it has no charge for"),
        (other, "stored answers that are not those it recorded"),
        (lacking, f"charges, named by the bundle {release.bundle}, that it does not have"),
    ):
        if wrong:
            raise LedgerError(
                f"ledger {ledger.path}",
                expected="the ledger that everything beside it was charged to",
                found=f"{len(wrong):,} {found}: it is older, or another",
                do="restore the newest copy of the ledger, or name the right one in the release file: what it has "
                "forgotten would be charged and drawn again; if there is none, see docs/ledger.md, A ledger that is "
                "lost",
            )


def charges_of(bundle: Path) -> frozenset[str]:
    """The identifiers of the charges that a bundle names; none where there is no bundle."""
    try:
        manifest = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
        return frozenset(map(str, manifest["charges"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()  # no bundle of ours, which is refused elsewhere


# Go on after a ledger was lost: record what it had charged, and put aside the answers that nothing pays for now.


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
    after = balance(account, lost, [guarantee for guarantee in told if guarantee is not None])
    before = balance(account, lost, kept)
    epsilon, delta = after.spent_epsilon - before.spent_epsilon, after.spent_delta - before.spent_delta
    if epsilon > lost.epsilon or delta > lost.delta:
        raise BudgetError(
            f"charges lost of {account}",
            expected=f"at least what the bundles cost and the ledger lacks: {in_words(epsilon, delta)}",
            found=in_words(lost.epsilon, lost.delta),
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
