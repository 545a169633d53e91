"""Refuse a ledger that has forgotten what was published: an older copy of it, or a new one in its place.

The ledger itself compares its end with what the store noted. Here it is compared with the answers in the store, which
also shows a store of a version that noted nothing, and with the bundle that is to be replaced.
"""

import json
from pathlib import Path

from sfumato.errors import LedgerError
from sfumato.manifest import MANIFEST
from sfumato.privacy.answers import Answers
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.mark import answers_of, gone, refuse_charged
from sfumato.release import Release


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
