"""The lines of the ledger: how they are written, chained by hashes, and how far they went."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from sfumato.durable import alone, private_folder, write_durably
from sfumato.errors import LedgerError
from sfumato.privacy.account import Account
from sfumato.privacy.blocks import EVERYTHING, Block, read_noted
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, NoFormalGuarantee
from sfumato.privacy.windows import Window, read_window

# One line of the ledger, and how it is written in the file.

Kind = Literal["budget", "charge", "answer", "data", "window"]
Row = dict[str, Any]

COLUMNS = (
    *("identifier", "kind", "population", "period", "release", "table", "question", "data"),
    *("definition", "alpha", "epsilon", "delta", "statement", "answer", "note", "time", "previous", "hash"),
)
"""The text columns of an entry after its sequence number; what does not apply is empty."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A budget that was set, a table that was charged, the answer that a charge paid for, or what data are known by.

    Or a window over several periods that was set: an earlier version does not know this kind, and uses no ledger with
    one, rather than pass over it.

    Only `identifier`, drawn at random, may be published, and what all charges of an account add up to, which statements
    give: every other field says something about the data or about how often they were asked.
    """

    sequence: int
    identifier: str
    kind: Kind
    account: Account
    release: str
    table: str
    question: str
    data: str
    guarantee: Guarantee | None
    """The budget, or what the table is protected by; None for an answer and for data."""
    answer: str
    """The SHA-256 of the published table, for an answer."""
    block: Block
    """The establishments that a charged table is about."""
    note: str
    time: str
    previous: str
    hash: str
    window: Window | None = None
    """What consecutive periods of the population may spend together, where an entry sets that; None lifts it."""


def read_entry(row: Mapping[str, Any]) -> Entry:
    """The entry that a row of the file holds; ValueError when it holds none."""
    if row["kind"] not in get_args(Kind):
        raise ValueError(f"kind {row['kind']!r} is unknown")
    same = (
        *("identifier", "kind", "release", "table", "question"),
        *("data", "answer", "time", "previous", "hash"),
    )
    # A charge without data stands for a lost ledger: its note is what somebody typed.
    is_of_table = row["kind"] == "charge" and row["data"]
    block, note = read_noted(row["note"]) if is_of_table else (EVERYTHING, row["note"])
    guarantee, window = _read_guarantee(row), None
    if row["kind"] == "window" and guarantee is not None:
        if guarantee.bound is None:
            raise ValueError("a window without a bound")
        window, note = read_window(row["note"], guarantee.bound)
    return Entry(
        sequence=row["sequence"],
        account=Account(population=row["population"], period=row["period"]),
        guarantee=guarantee,
        window=window,
        block=block,
        note=note,
        **{name: row[name] for name in same},
    )


def guarantee_columns(guarantee: Guarantee | None) -> dict[str, str]:
    """A guarantee as the file holds it, every number an exact fraction such as "1/10"."""
    columns = dict.fromkeys(("definition", "alpha", "epsilon", "delta", "statement"), "")
    match guarantee:
        case EmployerEmployee():
            numbers = {name: str(getattr(guarantee, name)) for name in ("alpha", "epsilon", "delta")}
            # A formal guarantee leaves the column empty: its entries read and hash as they did before conditions.
            # Without totals the definition is one word: they read and hash as they did before these.
            return columns | {"definition": _defined(guarantee), "statement": guarantee.condition} | numbers
        case NoFormalGuarantee():
            return columns | {"definition": "none", "statement": guarantee.statement}
        case None:
            return columns


def _defined(guarantee: EmployerEmployee) -> str:
    """The definition, with the totals that narrow it: strong [["earnings", 120000]]."""
    caps = json.dumps(guarantee.caps, ensure_ascii=False)
    return f"{guarantee.definition} {caps}" if guarantee.caps else guarantee.definition


def _read_guarantee(row: Mapping[str, Any]) -> Guarantee | None:
    definition, _, totals = row["definition"].partition(" ")
    match definition:
        case "strong" | "weak" | "individuals" | "units":
            numbers = {name: Fraction(row[name]) for name in ("alpha", "epsilon", "delta")}
            caps = tuple((str(measure), int(cap)) for measure, cap in json.loads(totals)) if totals else ()
            return EmployerEmployee(definition=definition, condition=row["statement"], caps=caps, **numbers)
        case "none":
            return NoFormalGuarantee(statement=row["statement"])
        case "":
            return None
        case other:
            raise ValueError(f"definition {other!r} is unknown")


# The chain of hashes that makes a changed, missing or inserted entry show.

REVISED = "; revised: "
"""What the name of a release has before the reason of its revision."""
START = "0" * 64
"""What stands for the previous hash in the first entry."""


def digest(row: Mapping[str, Any]) -> str:
    """The SHA-256 of all columns but the hash itself, the previous entry's hash among them.

    Canonical JSON keeps the columns apart, which mere concatenation would not.
    """
    fields = {name: value for name, value in row.items() if name != "hash"}
    # A value that is not text or a number was not written by us; its repr differs from anything that was.
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), default=repr)
    return sha256(text.encode("ascii")).hexdigest()


def verify(
    rows: Iterable[Mapping[str, Any]], *, written: int, where: str, known: int = 0, previous: str = START
) -> str:
    """The hash of the last entry of an unbroken chain; LedgerError names the first bad entry.

    `written` is the file's own count of the entries it ever held, which shows when the end was cut off. Rows may begin
    after a number of `known` entries, the last of which has the hash `previous`.
    """
    count = known
    for count, row in enumerate(rows, start=known + 1):
        if row["sequence"] != count:
            raise _broken(where, count, f"it is missing: the next one is entry {row['sequence']}")
        if row["previous"] != previous:
            raise _broken(where, count, f"it does not follow from entry {count - 1}")
        if row["hash"] != digest(row):
            raise _broken(where, count, "its contents do not match its hash")
        previous = row["hash"]
    if written != count:
        raise _broken(where, count + 1, f"{count} entries where the file counts {written} written")
    return previous


def _broken(where: str, entry: int, found: str) -> LedgerError:
    return LedgerError(
        f"{where}, entry {entry}",
        expected="an unbroken chain of entries, none changed and none missing",
        found=found,
        do="find out who changed the file; restore it from a backup, nothing is charged until then",
    )


# How far a ledger went, noted in the store beside it, so that an older copy of the ledger shows.
#
# The note is on the disk after every entry: after a charge and before anything is drawn, after an answer and before it
# is published. It lags behind by what a killed process wrote last, of which nobody has seen anything.

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
