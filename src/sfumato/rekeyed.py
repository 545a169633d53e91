"""Refuse to publish the same table under another key: readers would average the two."""

from sfumato.errors import KeyFileError
from sfumato.plan import KEY_NOTE, Plan
from sfumato.privacy.entry import Entry
from sfumato.privacy.ledger import Ledger


def refuse_another_key(plan: Plan, data: str, ledger: Ledger) -> None:
    """Raise KeyFileError when a table was answered from these data with another key than the one in force.

    The office may want that all the same, when the old key leaked, and says so by `rekeyed = true`.
    """
    asked = {planned.digest(data, any_key=True): planned for planned in plan.tables if planned.key}
    for entry in ledger.history():
        if entry.kind != "charge" or not entry.note.startswith(KEY_NOTE):
            continue
        fingerprint, question, noise = entry.note.removeprefix(KEY_NOTE).split(" ")
        _refuse_another_noise(plan, entry, data, fingerprint, noise)
        planned = asked.get(question)
        if planned is not None and planned.key != fingerprint and not plan.release.about.rekeyed:
            raise KeyFileError(
                f"table '{planned.table.name}'",
                expected=f"the key it was published with, {fingerprint}: a reader who has the table under two keys can "
                "average them",
                found=f"the key {planned.key}",
                do=f'write key_fingerprint = "{fingerprint}" under [release] to use the earlier key; or, if that one '
                "leaked, rekeyed = true",
            )


def _refuse_another_noise(plan: Plan, entry: Entry, data: str, fingerprint: str, noise: str) -> None:
    """Refuse other options of a perturbation of the same records with the same key."""
    changed = [p for p in plan.tables if p.noise and noise and p.key == fingerprint and p.noise != noise]
    if changed and entry.data == data:
        raise KeyFileError(
            f"table '{changed[0].table.name}'",
            expected="the options of top-contributors that these records were published with: two perturbations of the "
            "same cells, made of the same directions and sizes, can be solved for the truth",
            found="other options",
            do="write the earlier options; or, if they must change, rotate the key and write rekeyed = true",
        )
