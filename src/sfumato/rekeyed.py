"""Refuse to publish the same table under another key: readers would average the two."""

from sfumato.errors import KeyFileError
from sfumato.identity import Identity
from sfumato.plan import KEY_NOTE, Plan
from sfumato.privacy.entry import Entry
from sfumato.privacy.ledger import Ledger


def refuse_another_key(plan: Plan, identity: Identity, ledger: Ledger) -> None:
    """Raise KeyFileError when a table was answered from these data with another key than the one in force.

    The office may want that all the same, when the old key leaked, and says so by `rekeyed = true`.
    """
    keyed = [planned for planned in plan.tables if planned.key]
    for entry in ledger.history():
        if entry.kind != "charge" or not entry.note.startswith(KEY_NOTE):
            continue
        fingerprint, question, noise = entry.note.removeprefix(KEY_NOTE).split(" ")
        _refuse_another_noise(plan, entry, identity, fingerprint, noise)
        another = [planned for planned in keyed if planned.key != fingerprint and not plan.release.about.rekeyed]
        planned = next((planned for planned in another if identity.asks(planned, entry, question)), None)
        if planned is not None:
            raise KeyFileError(
                f"table '{planned.table.name}'",
                expected=f"the key it was published with, {fingerprint}: a reader who has the table under two keys can "
                "average them",
                found=f"the key {planned.key}",
                do=f'write key_fingerprint = "{fingerprint}" under [release] to use the earlier key; or, if that one '
                "leaked, rekeyed = true",
            )


def _refuse_another_noise(plan: Plan, entry: Entry, identity: Identity, fingerprint: str, noise: str) -> None:
    """Refuse other options of a perturbation of the same records with the same key."""
    changed = [p for p in plan.tables if p.noise and noise and p.key == fingerprint and p.noise != noise]
    if changed and entry.data in identity.names:
        raise KeyFileError(
            f"table '{changed[0].table.name}'",
            expected="the options of top-contributors that these records were published with: two perturbations of the "
            "same cells, made of the same directions and sizes, can be solved for the truth",
            found="other options",
            do="write the earlier options; or, if they must change, rotate the key and write rekeyed = true",
        )
