"""The verified entries of a ledger as one transaction sees them, and what follows from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import get_args
from uuid import uuid4

from sqlalchemy import Connection

from sfumato.content import Content
from sfumato.errors import BudgetError, LedgerError, SfumatoError
from sfumato.frame.periods import Length
from sfumato.privacy.account import Account, Balance, sequential
from sfumato.privacy.account import balance as balance_of
from sfumato.privacy.entries import START, Entry, Kind, Row, digest, guarantee_columns, read_entry, verify
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee
from sfumato.privacy.store import Store
from sfumato.privacy.windows import Calendar, PeriodCost, Window, account_of

# What the ledger knows data by: every name under which they were charged, and the content these names stand for.


@dataclass(frozen=True, kw_only=True)
class KnownData:
    """An entry of the ledger that says what data are known by."""

    entry: Entry
    content: Content
    names: frozenset[str]
    """What charges call parts of these data: the columns that a question looks at."""
    fingerprint: str
    """Of the bytes of their files, by which they were charged before they were known by content; empty if never."""

    @classmethod
    def of(cls, entry: Entry) -> "KnownData":
        """What an entry says."""
        content, more = Content.read(entry.note)
        return cls(
            entry=entry, content=content, names=frozenset(more["names"]), fingerprint=str(more.get("fingerprint", ""))
        )

    @property
    def all_names(self) -> frozenset[str]:
        """Every name of these data in charges."""
        return self.names | {self.fingerprint} - {""}


def known_data(entries: Iterable[Entry]) -> tuple[KnownData, ...]:
    """What the entries of a ledger say of data, in their order."""
    return tuple(KnownData.of(entry) for entry in entries if entry.kind == "data")


def names_of(content: Content, known: Iterable[KnownData]) -> frozenset[str]:
    """Every name under which the same data were charged."""
    return frozenset().union(*(one.all_names for one in known if one.content.same_as(content)))


def old_names(entries: Sequence[Entry]) -> frozenset[str]:
    """The names of data in charges that were made before data were known by content: fingerprints of bytes."""
    by_content = frozenset().union(*(one.names for one in known_data(entries)))
    # A charge that stands for those of a lost ledger names no data.
    return frozenset(entry.data for entry in entries if entry.kind == "charge" and entry.data) - by_content


def note(content: Content, names: Iterable[str], fingerprint: str = "") -> str:
    """What an entry says of data, as its note."""
    return content.text(names=sorted(names), **({"fingerprint": fingerprint} if fingerprint else {}))


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
        self.last = verify(rows, written=store.written(connection), where=store.name, known=known, previous=previous)
        self.entries = [*verified, *(self._read(row) for row in rows)]

    def of(self, account: Account, kind: Kind) -> list[Entry]:
        """One account's entries of one kind, in order."""
        return [entry for entry in self.entries if entry.kind == kind and entry.account == account]

    def budget(self, account: Account) -> Entry | None:
        """The entry that set the budget in force."""
        budgets = self.of(account, "budget")
        return budgets[-1] if budgets else None

    def charged(self, account: Account, release: str | None = None) -> list[Entry]:
        """The charges so far, or those under the name of one release."""
        return [entry for entry in self.of(account, "charge") if release in (None, entry.release)]

    def balance(self, account: Account) -> Balance:
        """What the account has left; BudgetError when it was never opened."""
        return balance_of(account, self.budget_in_force(account), self.charged(account))

    def budget_in_force(self, account: Account, unopened: EmployerEmployee | None = None) -> EmployerEmployee:
        """The budget of an account; of one that was never opened, what would open it, or there is a BudgetError."""
        entry = self.budget(account)
        budget = unopened if entry is None or entry.guarantee is None else entry.guarantee.bound
        if budget is None:
            raise BudgetError(
                self._store.name,
                expected=f"a budget for {account}",
                found="none",
                do="state one in the release file, or open the account with `sfumato budget set`",
            )
        return budget

    def accounts(self, population: str | None = None) -> tuple[Account, ...]:
        """Every account with an entry, in the order of their first; or those of one population."""
        entries = (entry for entry in self.entries if entry.kind != "window")
        found = dict.fromkeys(entry.account for entry in entries)
        return tuple(account for account in found if population in (None, account.population))

    def charges(self, population: str) -> dict[Account, list[Entry]]:
        """The charges to every account of a population; an account without any has none."""
        found: dict[Account, list[Entry]] = {account: [] for account in self.accounts(population)}
        for entry in self.entries:
            if entry.kind == "charge" and entry.account in found:
                found[entry.account].append(entry)
        return found

    def windows(self, population: str) -> tuple[Window, ...]:
        """What consecutive years, quarters and months of a population may spend together, as far as it is set."""
        found = (self.of(account_of(population, length), "window") for length in get_args(Length))
        return tuple(entries[-1].window for entries in found if entries and entries[-1].window is not None)

    def calendar(self, population: str, window: Window, period: str = "") -> Calendar:
        """What every period of a population spends of a window, and of one that may have no charge yet."""
        asked = {Account(population=population, period=period): list[Entry]()} if period else {}
        charged = {**asked, **self.charges(population)}
        counted = {one: entries for one, entries in charged.items() if entries or one in asked}
        return Calendar.of(window, [PeriodCost.of(window, one, entries) for one, entries in counted.items()])

    def answer(self, question: str) -> Entry | None:
        """The entry that recorded a question's answer, whichever account paid for it."""
        return next((e for e in self.entries if e.kind == "answer" and e.question == question), None)

    def names(self, account: Account, content: Content | None, data: Iterable[str]) -> frozenset[str]:
        """Every name of some data in this ledger, those of the same data among them where their content is known.

        A register may have the workers of every year in a column of its own: those of another period of a population
        are other data, although the establishments are the same.
        """
        if content is None:
            return frozenset(data)
        known = (
            one
            for one in known_data(self.entries)
            if one.entry.account.population != account.population
            or one.entry.account == account
            or not content.counts_others(one.content)
        )
        return frozenset(data) | names_of(content, known)

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
            if entry.kind == "charge"
            and entry.data in names
            and entry.guarantee is not None
            and entry.guarantee.bound is not None
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


# What was spent on one population over all its periods: whoever is in the data of several loses the sum.


@dataclass(frozen=True, kw_only=True)
class PeriodSpent:
    """What was charged to the account of one period."""

    period: str
    guarantee: EmployerEmployee | None
    """What all its tables with a guarantee promise together, at the alpha of its budget; None when there are none."""
    unbounded: int = 0
    """How many of its tables have no formal guarantee."""

    @classmethod
    def of(cls, period: str, balance: Balance | None, *, unbounded: int) -> "PeriodSpent":
        """What an account with this balance, None without a budget, has spent.

        A budget for individuals counts what tables cost individuals: it tells nothing of sizes at its alpha, whatever
        definition they keep to.
        """
        return cls(
            period=period,
            guarantee=None
            if balance is None or not balance.charged
            else EmployerEmployee(
                definition="individuals" if balance.budget.definition == "individuals" else balance.definition,
                alpha=balance.budget.alpha,
                epsilon=balance.spent_epsilon,
                delta=balance.spent_delta,
                condition=balance.condition,
                caps=balance.caps,
            ),
            unbounded=unbounded,
        )


@dataclass(frozen=True, kw_only=True)
class OverPeriods:
    """Everything charged about one population in one ledger."""

    population: str
    periods: tuple[PeriodSpent, ...]
    """In the order of their first entries in the ledger; those without any charge are left out."""
    windows: tuple[Calendar, ...] = ()
    """What consecutive periods may spend together, where that is limited, and what they spent of it."""

    @property
    def formal(self) -> tuple[EmployerEmployee, ...]:
        """What each period with formal tables promises."""
        return tuple(spent.guarantee for spent in self.periods if spent.guarantee is not None)

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The periods with tables that have no formal guarantee, which no sum covers."""
        return tuple(spent.period for spent in self.periods if spent.unbounded)

    @property
    def composes(self) -> bool:
        """Whether all guarantees are about the values of units, or none is."""
        return len({each.definition == "units" for each in self.formal}) < 2

    def together(self) -> EmployerEmployee | None:
        """What all formal tables of all periods promise together; None when there are none, or when they bound nothing.

        At the smallest alpha that sizes are compared at: every guarantee holds at a narrower one at no further cost. It
        holds under the weakest definition and on all conditions, and bounds nothing once the deltas add up to 1. For
        individuals totals are tables like others: one job more adds at most the cap. Guarantees of units and others
        bound nothing together.
        """
        formal = self.formal
        if not formal or sum((each.delta for each in formal), Fraction(0)) >= 1 or not self.composes:
            return None
        alphas = [each.alpha for each in formal if each.definition != "individuals"] or [formal[0].alpha]
        found = sequential([each.at(min(alphas)) for each in formal])
        return replace(found, caps=()) if found.definition == "individuals" else found
