"""How far a ledger went, noted in the store beside it, so that an older copy of the ledger shows.

The note is on the disk after every entry: after a charge and before anything is drawn, after an answer and before it is
published. It lags behind by what a killed process wrote last, of which nobody has seen anything.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sfumato.durable import alone, private_folder, write_durably
from sfumato.errors import LedgerError
from sfumato.privacy.entry import Entry

_FILE = "mark.json"


def store_of(ledger: Path) -> Path:
    """The folder beside a ledger that keeps answers and what is known about files."""
    return ledger.with_name(f"{ledger.name.removesuffix('.sqlite')}.store")


def answers_of(ledger: Path) -> Path:
    """The folder in it that keeps answers."""
    return store_of(ledger) / "answers"


def was_charged(ledger: Path) -> bool:
    """Whether the store beside a ledger shows that something was charged to it, wherever the ledger is now."""
    answers = answers_of(ledger)
    try:
        return (store_of(ledger) / _FILE).exists() or (answers.is_dir() and any(answers.iterdir()))
    except PermissionError:  # the store of somebody else
        return True


def gone(ledger: Path, *, beside: str) -> LedgerError:
    """The error of a ledger that is not there, although something beside it was charged to it."""
    return LedgerError(
        f"ledger {ledger}",
        expected="the ledger that was charged",
        found=f"no file, and beside it {beside}",
        do="restore the ledger from its backup: in a new one the budget would start anew; if there is none, see "
        "docs/ledger.md, A ledger that is lost",
    )


def refuse_charged(ledger: Path) -> None:
    """Raise LedgerError when a new ledger would take the place of one that the store shows."""
    if was_charged(ledger):
        raise gone(ledger, beside=f"the folder {store_of(ledger).name} of what was charged to it")


@dataclass(frozen=True, kw_only=True)
class Mark:
    """The number and the hash of an entry, which stand for the whole chain up to it."""

    sequence: int
    hash: str

    @classmethod
    def of(cls, entry: Entry) -> "Mark":
        """The mark of an entry."""
        return cls(sequence=entry.sequence, hash=entry.hash)

    def refuse_older(self, entries: Sequence[Entry], where: str) -> None:
        """Raise LedgerError when this entry is not among those of a ledger."""
        if len(entries) >= self.sequence and entries[self.sequence - 1].hash == self.hash:
            return
        raise LedgerError(
            where,
            expected=f"the ledger that the store beside it belongs to, with its entry {self.sequence}",
            found=f"{len(entries):,} entries" if len(entries) < self.sequence else "another entry with this number",
            do="restore the newest copy of the ledger: what an older one has forgotten would be charged and drawn "
            "again; if there is none, see docs/ledger.md, A ledger that is lost",
        )


class LastMark:
    """The mark of the newest entry that any process noted."""

    def __init__(self, ledger: Path) -> None:
        self._folder = store_of(ledger)

    def read(self) -> Mark | None:
        """What was noted; None beside a new ledger, and in a store of a version that noted nothing."""
        path = self._folder / _FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return Mark(sequence=int(found["sequence"]), hash=str(found["hash"]))
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                str(path),
                expected="the number and the hash of an entry of the ledger",
                found="something else",
                do="restore the folder from its backup",
            ) from error

    def advance(self, entry: Entry) -> None:
        """Note an entry, unless a later one was noted meanwhile."""
        known = self.read()
        if known is None or known.sequence < entry.sequence:
            private_folder(self._folder)
            with alone(self._folder / "mark.lock"):
                known = self.read()
                if known is None or known.sequence < entry.sequence:
                    self._write(entry)

    def replace(self, entry: Entry) -> None:
        """Note an entry of another ledger, which takes the place of one that was lost."""
        private_folder(self._folder)
        with alone(self._folder / "mark.lock"):
            self._write(entry)

    def _write(self, entry: Entry) -> None:
        write_durably(self._folder / _FILE, json.dumps(asdict(Mark.of(entry))).encode())
