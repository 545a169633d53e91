"""The chain of hashes that makes a changed, missing or inserted entry show."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from sfumato.errors import LedgerError

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
