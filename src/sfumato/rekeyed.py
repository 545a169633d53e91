"""Keep a table under the key and the rounding it was published with: readers would average or combine two of them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sfumato.errors import KeyFileError
from sfumato.identity import Identity
from sfumato.plan import KEY_NOTE, Plan, PlannedTable, RoundingNote
from sfumato.privacy.entry import Entry
from sfumato.privacy.ledger import Ledger


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
    return replace(plan, tables=tuple(_as_before(planned, identity, before) for planned in plan.tables))


def _as_before(
    planned: PlannedTable, identity: Identity, before: Iterable[tuple[Entry, str, RoundingNote, str]]
) -> PlannedTable:
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
            expected="the options of top-contributors that these records were published with: two perturbations of the "
            "same cells, made of the same directions and sizes, can be solved for the truth",
            found="other options",
            do="write the earlier options; or, if they must change, rotate the key and write rekeyed = true",
        )
