"""Refuse to publish the same table under another key: readers would average the two."""

from sfumato.errors import KeyFileError
from sfumato.plan import KEY_NOTE, Plan
from sfumato.privacy.ledger import Ledger


def refuse_another_key(plan: Plan, data: str, ledger: Ledger) -> None:
    """Raise KeyFileError when a table was answered from these data with another key than the one in force.

    The office may want that all the same, when the old key leaked, and says so by `rekeyed = true`.
    """
    if plan.release.about.rekeyed:
        return
    asked = {planned.digest(data, any_key=True): planned for planned in plan.tables if planned.key}
    for entry in ledger.history():
        fingerprint, _, question = entry.note.removeprefix(KEY_NOTE).partition(" ")
        planned = asked.get(question) if entry.kind == "charge" and entry.note.startswith(KEY_NOTE) else None
        if planned is not None and planned.key != fingerprint:
            raise KeyFileError(
                f"table '{planned.table.name}'",
                expected=f"the key it was published with, {fingerprint}: a reader who has the table under two keys can "
                "average them",
                found=f"the key {planned.key}",
                do=f'write key_fingerprint = "{fingerprint}" under [release] to use the earlier key; or, if that one '
                "leaked, rekeyed = true",
            )
