"""One line of the ledger, and how it is written in the file."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from sfumato.privacy.account import Account
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, NoFormalGuarantee

Kind = Literal["budget", "charge", "answer", "data"]
Row = dict[str, Any]

COLUMNS = (
    *("identifier", "kind", "population", "period", "release", "table", "question", "data"),
    *("definition", "alpha", "epsilon", "delta", "statement", "answer", "note", "time", "previous", "hash"),
)
"""The text columns of an entry after its sequence number; what does not apply is empty."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A budget that was set, a table that was charged, the answer that a charge paid for, or what data are known by.

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
    note: str
    time: str
    previous: str
    hash: str


def read_entry(row: Mapping[str, Any]) -> Entry:
    """The entry that a row of the file holds; ValueError when it holds none."""
    if row["kind"] not in get_args(Kind):
        raise ValueError(f"kind {row['kind']!r} is unknown")
    same = (
        *("identifier", "kind", "release", "table", "question"),
        *("data", "answer", "note", "time", "previous", "hash"),
    )
    return Entry(
        sequence=row["sequence"],
        account=Account(population=row["population"], period=row["period"]),
        guarantee=_read_guarantee(row),
        **{name: row[name] for name in same},
    )


def guarantee_columns(guarantee: Guarantee | None) -> dict[str, str]:
    """A guarantee as the file holds it, every number an exact fraction such as "1/10"."""
    columns = dict.fromkeys(("definition", "alpha", "epsilon", "delta", "statement"), "")
    match guarantee:
        case EmployerEmployee():
            numbers = {name: str(getattr(guarantee, name)) for name in ("alpha", "epsilon", "delta")}
            # A formal guarantee leaves the column empty: its entries read and hash as they did before conditions.
            return columns | {"definition": guarantee.definition, "statement": guarantee.condition} | numbers
        case NoFormalGuarantee():
            return columns | {"definition": "none", "statement": guarantee.statement}
        case None:
            return columns


def _read_guarantee(row: Mapping[str, Any]) -> Guarantee | None:
    match row["definition"]:
        case "strong" | "weak" | "individuals" as definition:
            numbers = {name: Fraction(row[name]) for name in ("alpha", "epsilon", "delta")}
            return EmployerEmployee(definition=definition, condition=row["statement"], **numbers)
        case "none":
            return NoFormalGuarantee(statement=row["statement"])
        case "":
            return None
        case other:
            raise ValueError(f"definition {other!r} is unknown")
