"""What `sfumato budget` says of a ledger."""

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from sfumato.plan import KEY_NOTE
from sfumato.privacy.guarantee import EmployerEmployee, plain
from sfumato.publish.structure import describe, number
from sfumato.terminal.layout import Summary, columns, spaced

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.privacy.ledger import Ledger


def budget_summary(ledger: "Ledger") -> Summary:
    """Every account's balance, and the history of what was charged."""
    head = ledger.verify()
    accounts = columns("population", "period", "budget", "spent", "left")
    history = columns("time (UTC)", "account", "what", "epsilon", "note")
    data: dict[str, Any] = {"ledger": str(ledger.path), "head": head, "accounts": [], "history": []}
    for account in ledger.accounts():
        if not ledger.has_budget(account):
            continue  # its tables have no formal guarantee and cost nothing; the history lists them
        balance = ledger.balance(account)
        spent, left = balance.spent_epsilon, balance.remaining_epsilon
        accounts.add_row(account.population, account.period, str(balance.budget), plain(spent), plain(left))
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
    for entry in ledger.history():
        if entry.kind in ("answer", "data"):
            continue  # these only say that a charge was answered, and what data are known by
        what = "budget set" if entry.kind == "budget" else entry.table
        where = f"{entry.account.population}, {entry.account.period}"
        epsilon = plain(entry.guarantee.epsilon) if isinstance(entry.guarantee, EmployerEmployee) else "none"
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
    return Group(*spaced([accounts, history, seal])), data
