"""Budgets over time: what any few consecutive periods of a population may spend together.

A unit that is in the data of several periods loses what they spent together. A window bounds that sum wherever the
periods lie in time: docs/ledger.md has the proof.
"""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato.errors import BudgetError, ReleaseError
from sfumato.frame.periods import Length, Period
from sfumato.privacy.account import Account, Charged, Overdraft, balance, in_words
from sfumato.privacy.guarantee import EmployerEmployee, at_least, at_most, caps_together, plain, rounded_up

_MONTHS: Mapping[Length, int] = {"year": 12, "quarter": 3, "month": 1}


@dataclass(frozen=True, kw_only=True)
class Window:
    """The most that any so many consecutive years, quarters or months of a population may spend together.

    >>> most = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(6))
    >>> print(Window(periods=4, length="quarter", most=most))
    any 4 consecutive quarters: strong, alpha = 0.1, epsilon = 6
    """

    periods: int
    length: Length
    most: EmployerEmployee
    """All their tables cost no more than that, at its alpha and under its definition."""
    first: str = ""
    """The period from which on they count; empty where all do."""

    def __post_init__(self) -> None:
        if self.periods < 2 or self.length not in _MONTHS:
            raise BudgetError(
                "window",
                expected="2 or more consecutive years, quarters or months",
                found=f"{self.periods} of {self.length}",
                do="state what a single period may spend as its budget",
            )
        found = _period(self.first)
        if self.first and (found is None or found.name != self.length or str(found) != self.first):
            raise BudgetError(
                "window, first",
                expected=f"a {self.length}, such as {_like(self.length)}",
                found=repr(self.first),
                do=f"name the first {self.length} that counts, or leave it out",
            )

    @property
    def _begin(self) -> int | None:
        """The number of the first period that counts."""
        found = _period(self.first)
        return None if found is None else found.number

    @property
    def words(self) -> str:
        """Which periods it is about."""
        since = f" from {self.first} on" if self.first else ""
        return f"any {self.periods} consecutive {self.length}s{since}"

    def __str__(self) -> str:
        return f"{self.words}: {self.most}"

    def facts(self) -> dict[str, Any]:
        """The same, for machines."""
        first = {"first": self.first} if self.first else {}
        return {"periods": self.periods, "length": self.length, **first, "guarantee": self.most.described()}

    def places(self, period: str) -> range | None:
        """The numbers of the years, quarters or months that a period has a part in; None where it is not known when.

        Those before the first that counts are left out.

        >>> most = EmployerEmployee(definition="strong", alpha=Fraction(1, 10), epsilon=Fraction(6))
        >>> quarters = Window(periods=4, length="quarter", most=most)
        >>> [len(quarters.places(period)) for period in ("2026-Q1", "2026-02", "2026")]
        [1, 1, 4]
        """
        found = _period(period)
        if found is None:
            return None
        months, own = 12 // found.in_a_year, _MONTHS[self.length]
        begin = found.number * months
        first = begin // own if self._begin is None else max(begin // own, self._begin)
        return range(first, (begin + months - 1) // own + 1)

    def counts(self, period: str) -> bool:
        """Whether what a period spends is part of any window; of one whose time is not known, part of every window."""
        places = self.places(period)
        return places is None or bool(places)

    def meets(self, one: str, other: str) -> bool:
        """Whether some window has two periods in it."""
        here, there = self.places(one), self.places(other)
        if here is None or there is None:
            return self.counts(one) and self.counts(other)
        return bool(here and there) and max(here[0], there[0]) - min(here[-1], there[-1]) < self.periods

    def name(self, number: int) -> str:
        """The period that has a number."""
        return str(Period(in_a_year=12 // _MONTHS[self.length], number=number))


def _period(text: str) -> Period | None:
    try:
        return Period.read(text)
    except ReleaseError:
        return None


def _like(length: Length) -> str:
    return {"year": "2026", "quarter": "2026-Q1", "month": "2026-01"}[length]


# A window in the ledger: an entry of its own kind, which an earlier version does not know and refuses to pass over.


def account_of(population: str, length: Length) -> Account:
    """What stands in the ledger for the years, quarters or months of a population in a row."""
    return Account(population=population, period=f"consecutive {length}s")


def noted_window(window: Window, note: str) -> str:
    """A note with what a window has beside its guarantee before it."""
    told = {"periods": window.periods, "length": window.length, "first": window.first}
    return f"{json.dumps(told, sort_keys=True, separators=(',', ':'))}{' ' if note else ''}{note}"


def read_window(text: str, most: EmployerEmployee) -> tuple[Window, str]:
    """The window that a note tells, and the rest of the note; ValueError when it tells none."""
    try:
        told, end = json.JSONDecoder().raw_decode(text)
        window = Window(periods=int(told["periods"]), length=told["length"], first=str(told["first"]), most=most)
    except (KeyError, TypeError) as error:
        raise ValueError(f"no window: {text!r}") from error
    return window, text[end:].removeprefix(" ")


# What is spent in a window, and what is left.


@dataclass(frozen=True, kw_only=True)
class PeriodCost:
    """What the charges of one period cost a window."""

    period: str
    epsilon: Fraction = Fraction(0)
    """Of the establishments that most was spent on."""
    delta: Fraction = Fraction(0)
    exact: bool = True
    """Whether what is spent is known exactly, or only bounded."""
    unbounded: str = ""
    """Why nothing bounds them at the alpha and under the definition of the window; empty where they are bounded."""

    @classmethod
    def of(cls, window: Window, account: Account, charged: Iterable[Charged]) -> "PeriodCost":
        """What was charged to an account, at the alpha of the window."""
        try:
            found = balance(account, window.most, charged)
        except BudgetError as error:
            return cls(period=account.period, unbounded=error.found)
        return cls(period=account.period, epsilon=found.spent_epsilon, delta=found.spent_delta, exact=found.exact)

    @property
    def words(self) -> str:
        """The period with what it cost."""
        if self.unbounded:
            return f"{self.period}, which nothing bounds here"
        return f"{self.period} {at_most(self.epsilon)}" + (f" (delta {at_most(self.delta)})" if self.delta else "")


@dataclass(frozen=True, kw_only=True)
class WindowSum:
    """What the periods of one window have spent together."""

    window: Window
    first: str
    last: str
    costs: tuple[PeriodCost, ...]
    """Of every period that has a part in the window, or whose time is not known."""

    @property
    def is_bounded(self) -> bool:
        """Whether all that was charged is bounded at the alpha and under the definition of the window."""
        return not any(cost.unbounded for cost in self.costs)

    @property
    def epsilon(self) -> Fraction:
        """The sum over the periods."""
        return sum((cost.epsilon for cost in self.costs), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The sum over the periods."""
        return sum((cost.delta for cost in self.costs), Fraction(0))

    @property
    def remaining_epsilon(self) -> Fraction:
        """The epsilon that further tables about these periods may cost; below 0 where more was spent."""
        return self.window.most.epsilon - self.epsilon

    @property
    def remaining_delta(self) -> Fraction:
        """The delta that further tables about these periods may cost."""
        return self.window.most.delta - self.delta

    @property
    def is_within(self) -> bool:
        """Whether no more was spent than the window allows."""
        return self.is_bounded and self.remaining_epsilon >= 0 and self.remaining_delta >= 0

    @property
    def words(self) -> str:
        """Where the window lies, and which periods spent what in it."""
        spent = ", ".join(cost.words for cost in self.costs if cost.epsilon or cost.delta or cost.unbounded)
        return f"{self.first} to {self.last} ({f'spent: {spent}' if spent else 'nothing spent'})"

    def facts(self) -> dict[str, Any]:
        """The same, for machines: what is spent is rounded up where it has no short decimals, and what is left down."""
        bounded = self.is_bounded
        return {
            "first": self.first,
            "last": self.last,
            "epsilon": rounded_up(self.epsilon) if bounded else None,
            "delta": rounded_up(self.delta) if bounded else None,
            "remaining_epsilon": -rounded_up(-self.remaining_epsilon) if bounded else None,
            "remaining_delta": -rounded_up(-self.remaining_delta) if bounded else None,
            "spent": [
                {"period": one.period, "epsilon": rounded_up(one.epsilon), "delta": rounded_up(one.delta)}
                for one in self.costs
                if not one.unbounded and (one.epsilon or one.delta)
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Calendar:
    """What every period of a population spends of a window, in the order of time."""

    window: Window
    costs: tuple[PeriodCost, ...]
    """Of the periods that count; those whose time is not known come last."""

    @classmethod
    def of(cls, window: Window, costs: Iterable[PeriodCost]) -> "Calendar":
        """The calendar of some periods."""

        def in_time(cost: PeriodCost) -> tuple[bool, int, int, str]:
            places = window.places(cost.period)
            return (True, 0, 0, cost.period) if places is None else (False, places[0], places[-1], cost.period)

        counted = [cost for cost in costs if window.counts(cost.period)]
        return cls(window=window, costs=tuple(sorted(counted, key=in_time)))

    @cached_property
    def sums(self) -> tuple[WindowSum, ...]:
        """For every period the window that ends when it begins, each once, in the order of time.

        All other windows have no more periods in them than one of these: a window may be moved back, until it ends at
        the latest beginning of its periods, and has all of them still.
        """
        places = {cost.period: self.window.places(cost.period) for cost in self.costs}
        ends = sorted({found[0] for found in places.values() if found is not None})
        sums = []
        for end in ends:
            first = end - self.window.periods + 1
            inside = [
                cost
                for cost in self.costs
                if (found := places[cost.period]) is None or (found[0] <= end and first <= found[-1])
            ]
            sums.append(self._sum(self.window.name(first), self.window.name(end), inside))
        if not ends and self.costs:  # nobody knows when any of them is
            sums.append(self._sum("any", "any", self.costs))
        return tuple(sums)

    def _sum(self, first: str, last: str, costs: Sequence[PeriodCost]) -> WindowSum:
        return WindowSum(window=self.window, first=first, last=last, costs=tuple(costs))

    @property
    def most_spent(self) -> WindowSum | None:
        """The window in which most was spent; None where nothing was charged."""
        return min(self.sums, key=_left, default=None)

    def with_period(self, period: str) -> WindowSum | None:
        """Of the windows with a period in them, the one that has least left; None where the period does not count."""
        having = [one for one in self.sums if any(cost.period == period for cost in one.costs)]
        return min(having, key=_left, default=None)

    def ending_with(self, period: str) -> WindowSum | None:
        """The window that ends when a period begins; None where it is not known when that is."""
        places = self.window.places(period)
        end = self.window.name(places[0]) if places else ""
        return next((one for one in self.sums if one.last == end), None)

    def facts(self) -> dict[str, Any]:
        """The window and its sums, for machines."""
        return {**self.window.facts(), "sums": [one.facts() for one in self.sums]}


def _left(one: WindowSum) -> tuple[bool, bool, Fraction, Fraction]:
    """Windows in order of what is left: first those that nothing bounds, then those beyond their epsilon or delta."""
    return (one.is_bounded, one.is_within, one.remaining_epsilon, one.remaining_delta)


# What is refused.


class WindowOverdraft(Overdraft):
    """A charge that costs more than a window has left; carries both, and nothing was charged."""

    def __init__(self, population: str, before: WindowSum, after: WindowSum, period: str) -> None:
        self.window, self.sum = before.window, before
        self.remaining, self.requested = before.remaining_epsilon, after.epsilon - before.epsilon
        self.remaining_delta, self.requested_delta = before.remaining_delta, after.delta - before.delta
        left = [max(amount, Fraction(0)) for amount in (self.remaining, self.remaining_delta)]
        exact = all(cost.exact for cost in after.costs)
        BudgetError.__init__(
            self,
            where(population, before.window),
            expected=f"at most what remains for {period} of epsilon = {plain(before.window.most.epsilon)} in "
            f"{before.words}: epsilon = {at_least(left[0])}, delta = {at_least(left[1])}",
            found=f"tables that cost {in_words(self.requested, self.requested_delta)}"
            + ("" if exact else ", which is only a bound: charges are about too many different blocks of codes"),
            do="leave out tables, lower their epsilon, or let the officer widen the window with `sfumato budget "
            "window`",
        )


def where(population: str, window: Window) -> str:
    """A window of a population, as messages name it."""
    return f"budget of {population!r} in {window.words}, at alpha = {plain(window.most.alpha)}"


def refuse_beyond_window(
    window: Window,
    account: Account,
    charged: Mapping[Account, Sequence[Charged]],
    new: Iterable[Charged],
) -> None:
    """Raise WindowOverdraft when new charges to an account bring a window beyond what it allows.

    `charged` is what was charged to every account of the population.
    """
    if not window.counts(account.period):
        return
    known = {**charged, account: charged.get(account, ())}
    costs = {
        one: PeriodCost.of(window, one, entries)
        for one, entries in known.items()
        if window.meets(account.period, one.period)
    }
    added = {**known, account: [*known[account], *new]}
    own = PeriodCost.of(window, account, added[account])
    for one, cost in (*costs.items(), (account, own)):
        if cost.unbounded:
            raise BudgetError(
                where(account.population, window),
                expected=f"tables that are bounded as the window is: {window.most}",
                found=f"of {cost.period}, {cost.unbounded}",
                do=_allow_totals(window, one, added[one])
                or "choose another method, or let the officer state the alpha and definition of these tables in the "
                "window: `sfumato budget window`",
            )
    before = Calendar.of(window, costs.values())
    after = Calendar.of(window, {**costs, account: own}.values())
    worst = after.with_period(account.period)
    if worst is not None and not worst.is_within:
        place = next(one for one in before.sums if (one.first, one.last) == (worst.first, worst.last))
        raise WindowOverdraft(account.population, place, worst, account.period)


def _allow_totals(window: Window, account: Account, charged: Iterable[Charged]) -> str:
    """How a window comes to allow what was charged where it lacks nothing but totals; empty where it lacks more."""
    charged = tuple(charged)
    bounds = [one.guarantee.bound for one in charged if one.guarantee is not None]
    caps = caps_together([window.most.caps, *(bound.caps for bound in bounds if bound is not None)])
    wider = replace(window, most=replace(window.most, caps=caps))
    if caps == window.most.caps or PeriodCost.of(wider, account, charged).unbounded:
        return ""
    options = " ".join(f"--totals {shlex.quote(f'{measure}={cap}')}" for measure, cap in caps)
    return (
        f"leave out the total, or let the officer allow it in the window: `sfumato budget window … {options}`, with "
        "its other figures as they are"
    )


def refuse_below_spent(population: str, calendar: Calendar) -> None:
    """Raise BudgetError when a window allows less than what some periods have already spent."""
    most = calendar.most_spent
    if most is None or most.is_within:
        return
    window = calendar.window
    found = (
        f"at least what was spent in {most.words}: {in_words(most.epsilon, most.delta)}"
        if most.is_bounded
        else f"a window that bounds what was charged: {most.words}"
    )
    raise BudgetError(
        where(population, window),
        expected=found,
        found=str(window.most),
        do="allow what is spent, which cannot be taken back; or name the first period that counts, with which a new "
        f'reckoning begins: first = "{_after(calendar)}", --first {_after(calendar)}',
    )


def _after(calendar: Calendar) -> str:
    """The period after all that have spent something."""
    ends = [found[-1] for cost in calendar.costs if (found := calendar.window.places(cost.period))]
    return calendar.window.name(max(ends) + 1) if ends else _like(calendar.window.length)
