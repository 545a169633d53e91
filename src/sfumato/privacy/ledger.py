"""The ledger: which budgets were set and what was charged to them; docs/ledger.md explains it."""

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection

from sfumato.content import Content
from sfumato.errors import BudgetError, LedgerError
from sfumato.frame.periods import Length
from sfumato.privacy import account as spending
from sfumato.privacy.account import Account, Balance, Charge, in_words
from sfumato.privacy.blocks import noted
from sfumato.privacy.book import Book, OverPeriods, PeriodSpent
from sfumato.privacy.entries import Entry, LastMark, Mark
from sfumato.privacy.guarantee import EmployerEmployee
from sfumato.privacy.store import Store
from sfumato.privacy.windows import (
    Calendar,
    Window,
    account_of,
    noted_window,
    refuse_below_spent,
    refuse_beyond_window,
    where,
)

LOST = "lost ledger"
"""The release of an entry that stands for charges which were lost with an earlier ledger; its note names them."""


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """The entry that stands for each charge, in their order, and the identifiers of those written just now."""

    entries: tuple[Entry, ...]
    new: frozenset[str]


class Ledger:
    """Budgets and charges in one durable file, whose chain every operation verifies first.

    The chain must have the entry that the store beside the file noted last: an older copy of the file has not. One that
    `remembers` verifies the whole chain once and after that the entries that were added: a server charges often, and
    would wait for a long chain every time.
    """

    def __init__(self, store: Store, *, remembers: bool = False, lost: bool = False) -> None:
        self._store, self._remembers, self._lost = store, remembers, lost
        self._verified: tuple[Entry, ...] = ()
        self._mark = LastMark(store.path)

    @classmethod
    def open(cls, path: Path, *, create: bool = False, remembers: bool = False, lost: bool = False) -> "Ledger":
        """The ledger at `path`; only with `create` is a missing one created, readable by its owner alone.

        It is not created where a store shows that there was one, and an older copy of it is not used, unless it is
        `lost` and what it had charged is about to be recorded.
        """
        return cls(Store(path, create=create, lost=lost), remembers=remembers, lost=lost)

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self._store.path

    def verify(self, noted: str | None = None) -> str:
        """The hash of the last entry, once the chain is unbroken and contains a hash noted earlier."""
        with self._reading() as book:
            if noted is not None and noted not in {entry.hash for entry in book.entries}:
                raise LedgerError(
                    self._store.name,
                    expected=f"an entry with the noted hash {noted}",
                    found="a chain without it: the ledger was rewritten or replaced by an older copy",
                    do="restore the ledger from a backup that has this entry",
                )
            return book.last

    def set_budget(self, account: Account, budget: EmployerEmployee, note: str = "") -> Entry:
        """Open an account or change its budget, as a decision of the officer; never below what is spent."""
        spending.refuse_several_caps(account, budget)
        with self._writing() as book:
            after = spending.balance(account, budget, book.charged(account))
            if after.remaining_epsilon < 0 or after.remaining_delta < 0:
                raise BudgetError(
                    f"budget of {account}",
                    expected=f"at least what is spent: {in_words(after.spent_epsilon, after.spent_delta)}",
                    found=str(budget),
                    do="set the budget to what is spent or more; what is published cannot be taken back",
                )
            return book.append("budget", account, guarantee=budget, note=note)

    def set_window(self, population: str, window: Window, note: str = "") -> Entry:
        """Limit what consecutive periods spend together, or change that, as a decision of the officer.

        Never below what they have spent.
        """
        with self._writing() as book:
            refuse_below_spent(population, book.calendar(population, window))
            return _append_window(book, population, window, note)

    def lift_window(self, population: str, length: Length, note: str = "") -> Entry:
        """Limit consecutive years, quarters or months of a population no more, as a decision of the officer."""
        with self._writing() as book:
            if all(window.length != length for window in book.windows(population)):
                raise BudgetError(
                    f"budget of {population!r}",
                    expected=f"a window of {length}s, which is lifted",
                    found=", ".join(map(str, book.windows(population))) or "none",
                    do="look at the windows with `sfumato budget`",
                )
            return book.append("window", account_of(population, length), note=note)

    def ensure_budget(self, account: Account, budget: EmployerEmployee, data: str) -> Entry:
        """The budget in force, which must be the one a release states; opens a new account with it."""
        with self._writing() as book:
            return _ensure_budget(book, account, budget, data, book.names(account, None, [data]))

    def note_data(self, account: Account, content: Content, fingerprint: str) -> None:
        """Note that data with this content are those that were charged under the fingerprint of their bytes."""
        with self._writing() as book:
            book.note_data(account, content, (), fingerprint)

    def charge(
        self,
        account: Account,
        charges: Sequence[Charge],
        release: str,
        *,
        budget: EmployerEmployee | None = None,
        most: EmployerEmployee | None = None,
        content: Content | None = None,
        window: Window | None = None,
        many_periods: bool = False,
    ) -> Receipt:
        """Charge all or none; a question that was charged before is not charged again.

        With `budget` the account is opened, or its budget compared, in the same transaction: a refused charge opens
        nothing. With `most`, everything ever charged under the name of this release may cost no more than that.
        `content` is what the data are known by: it is noted beside the charges, and the same data are recognised by it.
        A `window` is opened or compared like the budget; whatever is stated, the windows that the population has hold.
        Data of `many_periods` are refused where a window would count them as one of these.
        """
        with self._writing() as book:
            names = book.names(account, content, (charge.data for charge in charges))
            if budget is not None:
                for data in dict.fromkeys(charge.data for charge in charges):
                    _ensure_budget(book, account, budget, data, names)
            opened = _refuse_other_window(book, account, window)
            new = self._admitted(book, account, charges, names, opened=opened, many_periods=many_periods)
            if opened is not None:
                _append_window(book, account.population, opened, "opened by a release")
            _refuse_beyond(book, account, new, release, most)
            known = {entry.question: entry for entry in book.of(account, "charge")}
            before = set(known)
            if content is not None and new:
                book.note_data(account, content, {charge.data for charge in new.values()})
            for charge in new.values():
                known[charge.question] = book.append(
                    "charge",
                    account,
                    release=release,
                    table=charge.table,
                    question=charge.question,
                    data=charge.data,
                    guarantee=charge.guarantee,
                    note=noted(charge.block, charge.note),
                )
            return Receipt(
                entries=tuple(known[charge.question] for charge in charges),
                new=frozenset(known[question].identifier for question in known.keys() - before),
            )

    def refusal(
        self,
        account: Account,
        charges: Sequence[Charge],
        budget: EmployerEmployee,
        *,
        release: str = "",
        most: EmployerEmployee | None = None,
        content: Content | None = None,
        window: Window | None = None,
        many_periods: bool = False,
    ) -> BudgetError | None:
        """What `charge` would raise for a release with this budget, without charging or opening anything."""
        with self._reading() as book:
            names = book.names(account, content, (charge.data for charge in charges))
            try:
                _refuse_other_budget(book, account, budget, names)
                opened = _refuse_other_window(book, account, window)
                new = self._admitted(book, account, charges, names, budget, opened=opened, many_periods=many_periods)
                _refuse_beyond(book, account, new, release, most)
            except BudgetError as error:
                return error
        return None

    def record_answer(self, account: Account, question: str, table: str, sha256: str) -> Entry:
        """Record the hash of the answer that a charged question got; it never gets another."""
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ValueError(f"not a SHA-256 in lower-case hexadecimal digits: {sha256!r}")
        with self._writing() as book:
            charged = [entry for entry in book.of(account, "charge") if entry.question == question]
            if not charged:
                raise LedgerError(
                    f"{self._store.name}, table {table!r}",
                    expected=f"a question charged to {account}",
                    found=f"no charge for question {question}",
                    do="charge the question before its answer is computed",
                )
            earlier = book.answer(question)
            if earlier is None:
                return book.append(
                    "answer",
                    account,
                    release=charged[0].release,
                    table=table,
                    question=question,
                    data=charged[0].data,
                    answer=sha256,
                )
            if earlier.answer != sha256:
                raise LedgerError(
                    f"{self._store.name}, table {table!r}",
                    expected=f"the answer recorded in entry {earlier.sequence}: {earlier.answer}",
                    found=f"another answer to the same question: {sha256}",
                    do="publish the stored answer; a second one would reveal more than was charged",
                )
            return earlier

    def note_end(self) -> None:
        """Note in the store how far the ledger goes, which a killed process or an earlier version did not."""
        with self._reading() as book:
            entries = book.entries
        if entries:
            self._mark.advance(entries[-1])

    def record_lost(self, account: Account, lost: EmployerEmployee, note: str, identifiers: Sequence[str]) -> Entry:
        """Charge an account for what an earlier ledger had charged to it, whatever its budget is, and go on from here.

        The note says why, and names the identifiers in published bundles that the entry stands for.
        """
        named = f"{note}; stands for {' '.join(identifiers)}" if identifiers else note
        with self._writing() as book:
            question = secrets.token_hex(32)
            entry = book.append(
                "charge", account, release=LOST, table="lost", question=question, guarantee=lost, note=named
            )
        self._mark.replace(entry)
        return entry

    def identifiers(self) -> frozenset[str]:
        """The identifiers of all charges, also of those that an entry for a lost ledger stands for."""
        charges = [entry for entry in self.history() if entry.kind == "charge"]
        stood_for = [found for e in charges if e.release == LOST for found in re.findall(r"[0-9a-f]{32}", e.note)]
        return frozenset([*(entry.identifier for entry in charges), *stood_for])

    def answer(self, question: str) -> str | None:
        """The SHA-256 of the answer a question got, or None while it has none."""
        with self._reading() as book:
            entry = book.answer(question)
            return entry.answer if entry else None

    def paid_by(self, account: Account, question: str) -> str | None:
        """The release under whose name an account paid for a question, which then costs nothing more; None if new."""
        with self._reading() as book:
            return next((entry.release for entry in book.of(account, "charge") if entry.question == question), None)

    def balance(self, account: Account) -> Balance:
        """What an account may spend, has spent and has left."""
        with self._reading() as book:
            return book.balance(account)

    def balance_of(self, account: Account, release: str, most: EmployerEmployee) -> Balance:
        """What is left of the most that everything charged under the name of a release may cost."""
        with self._reading() as book:
            return spending.balance(account, most, book.charged(account, release))

    def has_budget(self, account: Account) -> bool:
        """Whether a budget was ever set for an account; tables without a formal guarantee need none."""
        with self._reading() as book:
            return book.budget(account) is not None

    def accounts(self) -> tuple[Account, ...]:
        """Every account with an entry, in the order of their first."""
        with self._reading() as book:
            return book.accounts()

    def populations(self) -> tuple[str, ...]:
        """Every population with an account or a window, in the order of their first entry."""
        with self._reading() as book:
            return tuple(dict.fromkeys(entry.account.population for entry in book.entries))

    def windows(self, population: str) -> tuple[Window, ...]:
        """What consecutive periods of a population may spend together, as far as it is limited."""
        with self._reading() as book:
            return book.windows(population)

    def calendars(self, population: str, period: str = "", stated: Window | None = None) -> tuple[Calendar, ...]:
        """What every period spends of each window of a population, a period without any charge among them.

        A window that a release states counts where there is none of its length: a run would open it.
        """
        with self._reading() as book:
            known = {window.length: window for window in book.windows(population)}
            known = known if stated is None else {stated.length: stated, **known}
            return tuple(book.calendar(population, window, period) for window in known.values())

    def over_periods(self, population: str) -> OverPeriods:
        """What was charged about a population in every period."""
        with self._reading() as book:
            found = []
            for account in book.accounts(population):
                charged = book.charged(account)
                if charged:
                    balance = None if book.budget(account) is None else book.balance(account)
                    unbounded = sum(e.guarantee is not None and e.guarantee.bound is None for e in charged)
                    found.append(PeriodSpent.of(account.period, balance, unbounded=unbounded))
            windows = tuple(book.calendar(population, window) for window in book.windows(population))
            return OverPeriods(population=population, periods=tuple(found), windows=windows)

    def history(self, account: Account | None = None) -> tuple[Entry, ...]:
        """All entries in order, or those of one account."""
        with self._reading() as book:
            return tuple(entry for entry in book.entries if account in (None, entry.account))

    @contextmanager
    def _reading(self) -> Iterator[Book]:
        mark = self._noted()
        with self._store.reading() as connection:
            yield self._book(connection, mark)

    @contextmanager
    def _writing(self) -> Iterator[Book]:
        mark = self._noted()
        with self._store.writing() as connection:
            book = self._book(connection, mark)
            yield book
        if book.entries and not self._lost:  # written, and of no use to anybody before this is on the disk too
            self._mark.advance(book.entries[-1])

    def _noted(self) -> Mark | None:
        """The mark, read before the ledger: what other processes write meanwhile makes the ledger longer than that."""
        return None if self._lost else self._mark.read()

    def _book(self, connection: Connection, mark: Mark | None) -> Book:
        book = Book(self._store, connection, self._verified)
        if mark is not None:
            mark.refuse_older(book.entries, self._store.name)
        if self._remembers:
            self._verified = tuple(book.entries)  # before anything is appended that may be rolled back
        return book

    def _admitted(
        self,
        book: Book,
        account: Account,
        charges: Sequence[Charge],
        names: frozenset[str],
        unopened: EmployerEmployee | None = None,
        *,
        opened: Window | None = None,
        many_periods: bool = False,
    ) -> dict[str, Charge]:
        """The charges that are new, by question, once the balance allows them, and every window over time.

        An account and a window may be about to be opened.
        """
        known = {entry.question: entry for entry in book.of(account, "charge")}
        new: dict[str, Charge] = {}
        for charge in charges:
            first = known.get(charge.question) or new.setdefault(charge.question, charge)
            self._refuse_ambiguous(charge, first)
        formal = [c for c in new.values() if c.guarantee.bound is not None]
        if formal:
            book.refuse_renamed(account, names)
            budget = book.budget_in_force(account, unopened)
            spending.refuse_overdraft(account, budget, book.charged(account), formal)
            windows = (*book.windows(account.population), *([] if opened is None else [opened]))
            charged = book.charges(account.population) if windows else {}
            for window in windows:
                if many_periods and window.places(account.period) is not None:
                    raise _many_periods(account, window)
                refuse_beyond_window(window, account, charged, formal)
        return new

    def _refuse_ambiguous(self, charge: Charge, first: Charge | Entry) -> None:
        """One digest must mean one question, or a cheap charge would pay for a dear answer."""
        if first.data != charge.data or first.guarantee not in (charge.guarantee, *charge.charged_as):
            raise LedgerError(
                f"{self._store.name}, table {charge.table!r}",
                expected=f"question {charge.question} as it was charged: {first.guarantee}",
                found=f"the same digest for other data or another protection: {charge.guarantee}",
                do="let the digest of a question cover its data, its method and all parameters",
            )


def refusal_of_new(
    account: Account, charges: Sequence[Charge], budget: EmployerEmployee, window: Window | None = None
) -> BudgetError | None:
    """What a ledger without any entry would raise for these charges."""
    distinct = {charge.question: charge for charge in charges}
    try:
        spending.refuse_overdraft(account, budget, [], distinct.values())
        if window is not None:
            refuse_beyond_window(window, account, {}, distinct.values())
    except BudgetError as error:
        return error
    return None


def charged_about_others(charges: Sequence[Charge], entries: Iterable[Entry]) -> frozenset[str]:
    """The tables whose questions were charged as if about other establishments: about all, by an earlier version."""
    charged = {entry.question: entry.block for entry in entries if entry.kind == "charge"}
    return frozenset(one.table for one in charges if charged.get(one.question, one.block) != one.block)


def _refuse_beyond(
    book: Book, account: Account, new: Mapping[str, Charge], release: str, most: EmployerEmployee | None
) -> None:
    """Raise Overdraft when new charges bring what a release was charged beyond the most it may cost."""
    if most is not None:
        spending.refuse_overdraft(account, most, book.charged(account, release), new.values())


def _ensure_budget(book: Book, account: Account, budget: EmployerEmployee, data: str, names: frozenset[str]) -> Entry:
    current = _refuse_other_budget(book, account, budget, names)
    return current or book.append("budget", account, guarantee=budget, data=data, note="opened by a release")


def _refuse_other_budget(book: Book, account: Account, budget: EmployerEmployee, names: frozenset[str]) -> Entry | None:
    """The budget in force, if any; BudgetError when it is not the one a release states."""
    book.refuse_renamed(account, names)
    current = book.budget(account)
    if current is not None and current.guarantee != budget:
        totals = "--definition units " if budget.definition == "units" else ""
        totals += "".join(f"--totals '{measure}={cap}' " for measure, cap in budget.caps)
        raise BudgetError(
            f"budget of {account}",
            expected=f"the budget in the ledger: {current.guarantee}",
            found=f"in the release file: {budget}",
            do="write the ledger's figures into the release file"
            + (", of measures under [data.measures] their cap, column and factor" if budget.caps else "")
            + "; or let the officer change the budget with `sfumato budget set --population … --period … --alpha … "
            f"--epsilon … {totals}--ledger …` and then write those",
        )
    return current


def _refuse_other_window(book: Book, account: Account, stated: Window | None) -> Window | None:
    """The window that a release states and has to be opened; BudgetError when the ledger has another one.

    A release that states none keeps to those that there are, and one that has some of its totals leaves out others.
    """
    if stated is None:
        return None
    current = next((one for one in book.windows(account.population) if one.length == stated.length), None)
    if current is None:
        refuse_below_spent(account.population, book.calendar(account.population, stated))
        return stated
    known = set(stated.most.caps) <= set(current.most.caps)
    if current != (replace(stated, most=replace(stated.most, caps=current.most.caps)) if known else stated):
        totals = " --totals …" if current.most.caps or stated.most.caps else ""
        raise BudgetError(
            f"window of {account.population!r}",
            expected=f"the window in the ledger: {current}",
            found=f"in the release file: {stated}",
            do="write the ledger's figures into the release file, or leave the window out: it holds all the same; or "
            "let the officer change it with `sfumato budget window --population … --length … --periods … --alpha … "
            f"--epsilon …{totals} --ledger …` and then write those",
        )
    return None


def _append_window(book: Book, population: str, window: Window, note: str) -> Entry:
    return book.append(
        "window", account_of(population, window.length), guarantee=window.most, note=noted_window(window, note)
    )


def _many_periods(account: Account, window: Window) -> BudgetError:
    """The refusal of data that have several periods where a window would count them as one."""
    return BudgetError(
        where(account.population, window),
        expected="data of one period at a time, each charged to its own account",
        found=f"data that have a `period` of their own, all of them charged to {account}",
        do='publish the periods as a [series]; or say in [release] period which these are, such as "2019 to 2025", '
        "which counts in every window",
    )
