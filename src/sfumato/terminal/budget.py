"""What `sfumato budget` says of a ledger."""

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.plan import KEY_NOTE
from sfumato.privacy.guarantee import EmployerEmployee, at_least, at_most
from sfumato.privacy.over_periods import OverPeriods
from sfumato.publish.structure import describe, describe_periods, number
from sfumato.terminal.layout import Summary, columns, spaced

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.privacy.ledger import Ledger


def budget_summary(ledger: "Ledger") -> Summary:
    """Every account's balance, and the history of what was charged."""
    head = ledger.verify()
    accounts = columns("population", "period", "budget", "spent", "left")
    history = columns("time (UTC)", "account", "what", "epsilon", "note")
    data: dict[str, Any] = {"ledger": str(ledger.path), "head": head, "accounts": [], "populations": [], "history": []}
    sums: list[RenderableType] = []
    for account in ledger.accounts():
        if not ledger.has_budget(account):
            continue  # its tables have no formal guarantee and cost nothing; the history lists them
        balance = ledger.balance(account)
        spent, left = balance.spent_epsilon, balance.remaining_epsilon
        accounts.add_row(account.population, account.period, str(balance.budget), at_most(spent), at_least(left))
        data["accounts"].append(
            {
                "population": account.population,
                "period": account.period,
                "budget": describe(balance.budget),
                "spent_epsilon": number(spent),
                "remaining_epsilon": number(left),
                "spent_delta": number(balance.spent_delta),
                "remaining_delta": number(balance.remaining_delta),
            }
        )
    for population in dict.fromkeys(account.population for account in ledger.accounts()):
        periods = ledger.over_periods(population)
        data["populations"].append({"population": population, **describe_periods(periods)})
        if len(periods.formal) > 1:
            sums.append(Text(_in_all_periods(periods)))
    for entry in ledger.history():
        if entry.kind in ("answer", "data"):
            continue  # these only say that a charge was answered, and what data are known by
        what = "budget set" if entry.kind == "budget" else entry.table
        where = f"{entry.account.population}, {entry.account.period}"
        epsilon = at_most(entry.guarantee.epsilon) if isinstance(entry.guarantee, EmployerEmployee) else "none"
        time = entry.time.replace("T", " ").removesuffix("+00:00")
        note = " ".join(entry.note.split(" ")[:2]) if entry.note.startswith(KEY_NOTE) else entry.note
        history.add_row(time, where, what, epsilon, note)
        data["history"].append(
            {
                "sequence": entry.sequence,
                "identifier": entry.identifier,
                "time": entry.time,
                "kind": entry.kind,
                "population": entry.account.population,
                "period": entry.account.period,
                "release": entry.release,
                "table": entry.table,
                "note": entry.note,
                "guarantee": None if entry.guarantee is None else describe(entry.guarantee),
            }
        )
    seal = Text(f"The chain of entries is whole. Its last hash, to note elsewhere: {head}", style="green")
    return Group(*spaced([accounts, *sums, history, seal])), data


def _in_all_periods(spent: OverPeriods) -> str:
    """What whoever is in the data of all periods of a population has lost."""
    together = spent.together()
    promised = "nothing is bounded, as their deltas add up to 1 or more" if together is None else str(together)
    return f"Whoever is in all {len(spent.formal)} periods of {spent.population!r}: {promised}."
