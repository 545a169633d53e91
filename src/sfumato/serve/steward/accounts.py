"""Budgets as the steward sees them: what every account has left, and what was charged."""

from typing import Any

from pydantic import BaseModel, Field

from sfumato.live import FormalLive
from sfumato.live.formal import LIVE
from sfumato.privacy.account import Balance
from sfumato.privacy.entry import Entry
from sfumato.privacy.guarantee import EmployerEmployee, NoFormalGuarantee, at_most
from sfumato.privacy.ledger import Ledger
from sfumato.serve.live.desk import Desk

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
    spent: float
    left: float
    delta: float
    delta_left: float


class Budgets(BaseModel):
    """Every account with a budget, and the part of one that ad-hoc questions may use."""

    accounts: list[AccountLeft]
    live: AccountLeft | None = Field(description="what ad-hoc questions may cost together")


class Charged(BaseModel):
    """A line of the ledger."""

    time: str
    kind: str
    population: str
    period: str
    release: str
    table: str
    guarantee: str
    identifier: str
    note: str


def ledger_of(desk: Desk) -> Ledger | None:
    """The ledger of the release that is asked; a release of records may have none."""
    if isinstance(desk.live, FormalLive):
        return desk.live.ledger
    path = desk.live.release.ledger
    return Ledger.open(path) if path.exists() else None


def budgets(desk: Desk) -> Budgets:
    """What every account has left."""
    ledger = ledger_of(desk)
    known = [] if ledger is None else [a for a in ledger.accounts() if ledger.has_budget(a)]
    live = desk.live
    part = None
    if isinstance(live, FormalLive):
        spent = live.ledger.balance_of(live.release.account, LIVE, live.most)
        part = _left("Ad-hoc questions", spent)
    accounts = [_left(f"{a.population}, {a.period}", ledger.balance(a)) for a in known if ledger is not None]
    return Budgets(accounts=accounts, live=part)


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
        left=float(balance.remaining_epsilon),
        delta=float(budget.delta),
        delta_left=float(balance.remaining_delta),
    )


def history(desk: Desk, most: int = SHOWN) -> list[Charged]:
    """The latest entries of the ledger, the newest first."""
    ledger = ledger_of(desk)
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
    return f"{words}, {shown}{f'; {guarantee.condition}' if guarantee.condition else ''}"


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
    }
