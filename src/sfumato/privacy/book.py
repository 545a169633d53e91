"""The verified entries of a ledger as one transaction sees them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import Connection

from sfumato.content import Content
from sfumato.errors import BudgetError, LedgerError, SfumatoError
from sfumato.privacy.spending import balance as balance_of
from sfumato.privacy.account import Account, Balance
from sfumato.privacy.chain import START, digest, verify
from sfumato.privacy.entry import Entry, Kind, Row, guarantee_columns, read_entry
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee
from sfumato.privacy.known_data import known_data, names_of, note
from sfumato.privacy.store import Store


class Book:
    """All entries, read and verified when the transaction began, and those it appends.

    Entries that this process `verified` before are not read again; the chain must go on from the last of them.
    """

    def __init__(self, store: Store, connection: Connection, verified: Sequence[Entry] = ()) -> None:
        self._store, self._connection = store, connection
        rows = store.rows(connection, after=max(len(verified) - 1, 0))
        known, previous = len(verified), verified[-1].hash if verified else START
        if verified and (not rows or rows.pop(0)["hash"] != previous):
            rows, known, previous, verified = store.rows(connection), 0, START, ()
        self.last = verify(
            rows, written=store.written(connection), where=store.name, known=known, previous=previous
        )
        self.entries = [*verified, *(self._read(row) for row in rows)]

    def of(self, account: Account, kind: Kind) -> list[Entry]:
        """One account's entries of one kind, in order."""
        return [entry for entry in self.entries if entry.kind == kind and entry.account == account]

    def budget(self, account: Account) -> Entry | None:
        """The entry that set the budget in force."""
        budgets = self.of(account, "budget")
        return budgets[-1] if budgets else None

    def charged(self, account: Account, release: str | None = None) -> list[Guarantee]:
        """The guarantees charged so far, or those charged under the name of one release."""
        return [
            entry.guarantee
            for entry in self.of(account, "charge")
            if entry.guarantee is not None and release in (None, entry.release)
        ]

    def balance(self, account: Account) -> Balance:
        """What the account has left; BudgetError when it was never opened."""
        entry = self.budget(account)
        if entry is None or not isinstance(entry.guarantee, EmployerEmployee):
            raise BudgetError(
                self._store.name,
                expected=f"a budget for {account}",
                found="none",
                do="state one in the release file, or open the account with `sfumato budget set`",
            )
        return balance_of(account, entry.guarantee, self.charged(account))

    def answer(self, question: str) -> Entry | None:
        """The entry that recorded a question's answer, whichever account paid for it."""
        return next((e for e in self.entries if e.kind == "answer" and e.question == question), None)

    def names(self, content: Content | None, data: Iterable[str]) -> frozenset[str]:
        """Every name of some data in this ledger, those of the same data among them where their content is known."""
        return frozenset(data) | (frozenset() if content is None else names_of(content, known_data(self.entries)))

    def note_data(self, account: Account, content: Content, names: Iterable[str], fingerprint: str = "") -> None:
        """Note what data are known by, unless it is noted already."""
        for known in known_data(self.of(account, "data")):
            if known.content == content and known.names >= set(names) and fingerprint in ("", known.fingerprint):
                return
        self.append("data", account, data=content.digest, note=note(content, names, fingerprint))

    def refuse_renamed(self, account: Account, names: frozenset[str]) -> None:
        """Raise BudgetError when data of these names already spent another account's budget.

        A population under a new name would start with a full budget. The officer may want just that and says
        so by setting the budget; what a release opens by itself carries a name of its data and does not count.
        """
        paying = {
            entry.account
            for entry in self.entries
            if entry.kind == "charge" and entry.data in names and isinstance(entry.guarantee, EmployerEmployee)
        }
        deliberate = any(not entry.data for entry in self.of(account, "budget"))
        if paying and account not in paying and not deliberate:
            raise BudgetError(
                f"budget of {account}",
                expected=f"the account these data were charged to: {', '.join(sorted(map(str, paying)))}",
                found="another account, whose budget would protect the same people and employers once more",
                do="name that population and period in the release file; to open this account all the same"
                " use `sfumato budget set`",
            )

    def append(
        self,
        kind: Kind,
        account: Account,
        *,
        guarantee: Guarantee | None = None,
        release: str = "",
        table: str = "",
        question: str = "",
        data: str = "",
        answer: str = "",
        note: str = "",
    ) -> Entry:
        """Write the next entry of the chain under a new random identifier."""
        row: Row = {
            "sequence": len(self.entries) + 1,
            "identifier": uuid4().hex,
            "kind": kind,
            "population": account.population,
            "period": account.period,
            "release": release,
            "table": table,
            "question": question,
            "data": data,
            **guarantee_columns(guarantee),
            "answer": answer,
            "note": note,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "previous": self.last,
        }
        row["hash"] = digest(row)
        self._store.append(self._connection, row)
        entry = self._read(row)
        self.entries.append(entry)
        self.last = entry.hash
        return entry

    def _read(self, row: Row) -> Entry:
        try:
            return read_entry(row)
        except (ValueError, TypeError, ZeroDivisionError, SfumatoError) as error:
            raise LedgerError(
                f"{self._store.name}, entry {row['sequence']}",
                expected="an entry that sfumato wrote",
                found=str(error),
                do="find out who changed the file, and restore it from a backup",
            ) from error
