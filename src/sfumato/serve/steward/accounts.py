"""What stewards see: budgets, what was charged, who asks what, and what parameters would do."""

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from sfumato.charts.plots import draw_lines
from sfumato.errors import SfumatoError
from sfumato.live.charged import LIVE
from sfumato.method import Method
from sfumato.privacy.account import Balance
from sfumato.privacy.entries import Entry
from sfumato.privacy.guarantee import EmployerEmployee, NoFormalGuarantee, at_most, limited
from sfumato.privacy.ledger import Ledger
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.users import PUBLIC
from sfumato.serve.live.queue import LiveQueue
from sfumato.serve.page.assets import figure
from sfumato.statistics.registry import METHODS, build, is_free

SHOWN = 200
"""The latest entries of the history that are shown when nothing else is asked for."""


class AccountLeft(BaseModel):
    """What an account may spend, has spent and has left, at the alpha of its budget."""

    name: str
    population: str
    period: str
    definition: str
    alpha: float
    epsilon: float
    spent: float = Field(description="of the establishments that most was spent on")
    added: float = Field(description="what all charges add up to, also those about different establishments")
    left: float
    delta: float
    delta_left: float


class WindowLeft(BaseModel):
    """What consecutive periods may spend together, and where least is left of it."""

    name: str
    population: str
    first: str = Field(description="the first period of the window in which least is left")
    last: str
    epsilon: float
    spent: float | None = Field(description="null where charges hold under no such definition")
    left: float


class Budgets(BaseModel):
    """Every account with a budget, and the part of one that ad-hoc questions may use."""

    accounts: list[AccountLeft]
    live: AccountLeft | None = Field(description="what ad-hoc questions may cost together")
    windows: list[WindowLeft] = Field(
        [], description="what consecutive periods may spend together, where it is limited"
    )


class Charged(BaseModel):
    """A line of the ledger."""

    time: str
    kind: str
    population: str
    period: str
    release: str
    table: str
    guarantee: str
    about: str = Field(description="the public codes of the establishments that it is about; empty where it is all")
    identifier: str
    note: str


def budgets(queue: LiveQueue) -> Budgets:
    """What every account has left."""
    ledger = queue.live.opened_ledger
    known = [] if ledger is None else [a for a in ledger.accounts() if ledger.has_budget(a)]
    live = queue.live
    part = None
    if live.most is not None and ledger is not None:
        spent = ledger.balance_of(live.release.account, LIVE, live.most)
        part = _left("Ad-hoc questions", spent)
    accounts = [_left(f"{a.population}, {a.period}", ledger.balance(a)) for a in known if ledger is not None]
    windows = [] if ledger is None else [*_windows(ledger)]
    return Budgets(accounts=accounts, live=part, windows=windows)


def _windows(ledger: Ledger) -> Iterator[WindowLeft]:
    for population in ledger.populations():
        for calendar in ledger.calendars(population):
            row, window = calendar.most_spent, calendar.window
            if row is not None:
                yield WindowLeft(
                    name=f"{population}, {window.words}",
                    population=population,
                    first=row.first,
                    last=row.last,
                    epsilon=float(window.most.epsilon),
                    spent=float(row.epsilon) if row.is_bounded else None,
                    left=float(row.remaining_epsilon) if row.is_bounded else 0.0,
                )


def _left(name: str, balance: Balance) -> AccountLeft:
    budget = balance.budget
    return AccountLeft(
        name=name,
        population=balance.account.population,
        period=balance.account.period,
        definition=budget.definition,
        alpha=float(budget.alpha),
        epsilon=float(budget.epsilon),
        spent=float(balance.spent_epsilon),
        added=float(balance.added_epsilon),
        left=float(balance.remaining_epsilon),
        delta=float(budget.delta),
        delta_left=float(balance.remaining_delta),
    )


def history(queue: LiveQueue, most: int = SHOWN) -> list[Charged]:
    """The latest entries of the ledger, the newest first."""
    ledger = queue.live.opened_ledger
    entries = () if ledger is None else ledger.history()[-most:]
    return [Charged(**_line(entry)) for entry in reversed(entries)]


def _promised(guarantee: EmployerEmployee) -> str:
    """A guarantee with its numbers as people write them."""
    words = "individuals only" if guarantee.definition == "individuals" else guarantee.definition
    numbers = (
        ("α", guarantee.alpha),
        ("ε", guarantee.epsilon),
        *((("δ", guarantee.delta),) if guarantee.delta else ()),
    )
    shown = ", ".join(f"{letter} = {at_most(number)}" for letter, number in numbers)
    totals = limited(guarantee.caps)
    return f"{words}, {shown}{f'; {guarantee.condition}' if guarantee.condition else ''}{totals}"


def _line(entry: Entry) -> dict[str, Any]:
    match entry.guarantee:
        case EmployerEmployee():
            guarantee = _promised(entry.guarantee)
        case NoFormalGuarantee():
            guarantee = "no formal guarantee"
        case None:
            guarantee = ""
    same = ("time", "kind", "release", "table", "identifier", "note")
    return {
        **{name: getattr(entry, name) for name in same},
        "population": entry.account.population,
        "period": entry.account.period,
        "guarantee": guarantee,
        "about": entry.block.words,
    }


# Who asks what: counted from the end of the log of questions.

TAIL = 4_000_000
"""Bytes at the end of each file that are counted."""
TOP = 20
LATEST = 50


class Counted(BaseModel):
    """A question, and how often it was asked."""

    table: str
    asked: dict[str, Any]
    times: int
    users: list[str] = Field(description="who asked; `public` stands for everybody without a token")


class Latest(BaseModel):
    """One request of a user."""

    time: str
    user: str
    path: str
    table: str
    asked: dict[str, Any]
    status: int


class Queries(BaseModel):
    """What was asked most often, and by users lately, as far as the end of the log reaches."""

    since: str
    top: list[Counted]
    latest: list[Latest]


def queries(folder: Path | None) -> Queries:
    """Count the questions at the end of the log; without a log there is nothing to count."""
    entries = [] if folder is None else [*_end(folder / "public.jsonl"), *_end(folder / "users.jsonl")]
    times: Counter[tuple[str, str]] = Counter()
    users: dict[tuple[str, str], set[str]] = {}
    for entry in entries:
        if entry.get("table") and isinstance(entry.get("asked"), dict):
            key = (str(entry["table"]), json.dumps(entry["asked"], sort_keys=True))
            times[key] += 1
            users.setdefault(key, set()).add(str(entry.get("user")))
    latest = [entry for entry in entries if entry.get("user") != PUBLIC]
    return Queries(
        since=min((str(entry.get("time", "")) for entry in entries), default=""),
        top=[
            Counted(table=key[0], asked=json.loads(key[1]), times=number, users=sorted(users[key]))
            for key, number in times.most_common(TOP)
        ],
        latest=[_latest(entry) for entry in reversed(latest[-LATEST:])],
    )


def _latest(entry: dict[str, Any]) -> Latest:
    asked = entry.get("asked")
    return Latest(
        time=str(entry.get("time", "")),
        user=str(entry.get("user", "")),
        path=f"{entry.get('method', '')} {entry.get('path', '')}".strip(),
        table=str(entry.get("table", "")),
        asked=asked if isinstance(asked, dict) else {},
        status=int(entry.get("status", 0)),
    )


def _end(path: Path) -> Iterator[dict[str, Any]]:
    """The entries at the end of a file, in order; what is not whole is left out."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - TAIL, 0))
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines[1 if size > TAIL else 0 :]:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            yield entry


# What other parameters would do to errors: computed from the methods alone, nothing is charged and nothing is read.

ALPHAS = (Fraction(1, 2), Fraction(1), Fraction(2))
EPSILONS = tuple(Fraction(step) for step in ("1/4", "1/2", "3/4", "1", "3/2", "2", "3", "4"))
"""Multiples of the parameters that are asked for."""
WIDEST = 10
"""How many times the middle error may be in a chart."""


class Expected(BaseModel):
    """The mean absolute error of a cell at some parameters; nothing where the method does not exist there."""

    alpha: float
    epsilon: float
    error: float | None


class WhatIf(BaseModel):
    """Expected errors around some parameters."""

    method: str
    alpha: float
    epsilon: float
    size: int = Field(description="workers in the largest establishment of the cell, who are all its jobs")
    points: list[Expected]

    @property
    def alphas(self) -> list[float]:
        """The alphas, ascending."""
        return sorted({point.alpha for point in self.points})

    @property
    def epsilons(self) -> list[float]:
        """The epsilons, ascending."""
        return sorted({point.epsilon for point in self.points})

    def error(self, alpha: float, epsilon: float) -> float | None:
        """The error at one point."""
        return next(one.error for one in self.points if (one.alpha, one.epsilon) == (alpha, epsilon))

    @property
    def cut(self) -> float | None:
        """The error above which points would press all others flat in a chart; None where there are no such."""
        known = sorted(point.error for point in self.points if point.error is not None)
        most = WIDEST * known[len(known) // 2] if known else 0.0
        return most if known and known[-1] > most else None


def what_if(method: str, alpha: Fraction, epsilon: Fraction, delta: Fraction, size: int) -> WhatIf:
    """The expected errors of a cell at multiples of the parameters."""
    if is_free(method) or method not in METHODS:
        formal = ", ".join(name for name in METHODS if not is_free(name))
        raise RefusedError("method", expected=f"one of {formal}", found=method, do="choose one of them")
    return WhatIf(
        method=method,
        alpha=float(alpha),
        epsilon=float(epsilon),
        size=size,
        points=[
            Expected(
                alpha=float(a * alpha),
                epsilon=float(e * epsilon),
                error=_error(method, a * alpha, e * epsilon, delta, size),
            )
            for a in ALPHAS
            for e in EPSILONS
        ],
    )


def _error(name: str, alpha: Fraction, epsilon: Fraction, delta: Fraction, size: int) -> float | None:
    options = {"delta": delta} if name == "smooth-laplace" else {}
    try:
        method: Method = build(name, alpha=alpha, epsilon=epsilon, options=options)
    except SfumatoError:
        return None
    planned = method.planned_error()
    return planned.floor if size <= planned.floor_size else max(planned.floor, (planned.share or 0.0) * size)


def chart(found: WhatIf) -> str:
    """Errors by epsilon, a line for every alpha."""
    most = inf if found.cut is None else found.cut

    def shown(alpha: float, epsilon: float) -> float:
        error = found.error(alpha, epsilon)
        return nan if error is None or error > most else error

    series = [(f"α = {figure(alpha, 6)}", [shown(alpha, one) for one in found.epsilons]) for alpha in found.alphas]
    return draw_lines(
        series,
        [figure(epsilon, 6) for epsilon in found.epsilons],
        title="Expected error in jobs, by ε",
        name=f"Expected error of {found.method} by epsilon, for three alphas",
    )
