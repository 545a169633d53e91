"""`sfumato budget`: the balance of every privacy budget, and how one is set."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.bundle.structure import describe_periods
from sfumato.cli.screen import AsJson, Summary, printed_table, screen, show, spaced, typed_number
from sfumato.privacy.book import OverPeriods
from sfumato.privacy.guarantee import EmployerEmployee, at_least, at_most
from sfumato.statistic import KEY_NOTE
from sfumato.statistics.published import number

if TYPE_CHECKING:  # only names for types
    from sfumato.privacy.ledger import Ledger


# What `sfumato budget` says of a ledger.


def budget_summary(ledger: "Ledger") -> Summary:
    """Every account's balance, and the history of what was charged."""
    head = ledger.verify()
    accounts = printed_table("population", "period", "budget", "spent", "left")
    history = printed_table("time (UTC)", "account", "what", "epsilon", "note")
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
                "budget": balance.budget.described(),
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
        bound = None if entry.guarantee is None else entry.guarantee.bound
        epsilon = "none" if bound is None else at_most(bound.epsilon)
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
                "guarantee": None if entry.guarantee is None else entry.guarantee.described(),
            }
        )
    seal = Text(f"The chain of entries is whole. Its last hash, to note elsewhere: {head}", style="green")
    return Group(*spaced([accounts, *sums, history, seal])), data


def _in_all_periods(spent: OverPeriods) -> str:
    """What whoever is in the data of all periods of a population has lost."""
    together = spent.together()
    promised = "nothing is bounded, as their deltas add up to 1 or more" if together is None else str(together)
    return f"Whoever is in all {len(spent.formal)} periods of {spent.population!r}: {promised}."


budget_app = typer.Typer(
    help="Show the balance of every privacy budget and what it was spent on, or set one.\n\n"
    "The ledger's chain of entries is verified first.",
    invoke_without_command=True,
)

LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="A ledger, or a release file that names one; ledger.sqlite here.", metavar="PATH"),
]


class Definition(StrEnum):
    """Who is protected: employers against anyone, against weak attackers, or individuals only."""

    strong = "strong"
    weak = "weak"
    individuals = "individuals"


@budget_app.callback()
def budget(context: typer.Context, ledger: LedgerFile = None, as_json: AsJson = False) -> None:
    """Show the balance of every budget and what it was spent on."""

    context.obj = ledger
    if context.invoked_subcommand is None:
        show(budget_summary(_open_ledger(ledger, create=False)), as_json)


@budget_app.command("set")
def set_budget(
    context: typer.Context,
    population: Annotated[str, typer.Option(help="Whose budget it is, as in the release file.")],
    period: Annotated[str, typer.Option(help="The reference period, as in the release file.")],
    epsilon: Annotated[str, typer.Option(help="How much the log-odds may move in all.")],
    alpha: Annotated[
        str, typer.Option(help="Sizes within a factor 1+alpha are hard to tell apart; plays no part for individuals.")
    ] = "",
    delta: Annotated[str, typer.Option(help="The probability with which the bound may fail.")] = "0",
    definition: Annotated[
        Definition, typer.Option(help="Against whom size is protected; individuals: not at all.")
    ] = Definition.strong,
    conditional: Annotated[
        bool, typer.Option("--conditional", help="Allow tables that are not differentially private, such as mose.")
    ] = False,
    note: Annotated[str, typer.Option(help="Why, for the history.")] = "",
    ledger: LedgerFile = None,
    as_json: AsJson = False,
) -> None:
    """Open a budget or change it; the change is written to the ledger's history."""
    from sfumato.privacy.account import Account

    stated = _guarantee(definition, conditional=conditional, alpha=alpha, epsilon=epsilon, delta=delta)
    book = _open_ledger(ledger or context.obj, create=True)
    book.set_budget(Account(population=population, period=period), stated, note)
    show(budget_summary(book), as_json)


@budget_app.command()
def lost(
    context: typer.Context,
    population: Annotated[str, typer.Option(help="Whose budget was charged, as in the release file.")],
    period: Annotated[str, typer.Option(help="The reference period, as in the release file.")],
    epsilon: Annotated[str, typer.Option(help="What was charged in all and is not in the ledger; rather too much.")],
    note: Annotated[str, typer.Option(help="What happened, for the history.")],
    alpha: Annotated[str, typer.Option(help="At which alpha, that of the budget; plays no part for individuals.")] = "",
    delta: Annotated[str, typer.Option(help="What was charged of delta.")] = "0",
    definition: Annotated[
        Definition, typer.Option(help="Under which definition, that of the budget.")
    ] = Definition.strong,
    conditional: Annotated[
        bool, typer.Option("--conditional", help="Some tables were not differentially private, such as mose.")
    ] = False,
    bundle: Annotated[
        list[Path] | None, typer.Option(help="A published bundle whose charges the ledger lacks. May be repeated.")
    ] = None,
    ledger: LedgerFile = None,
    as_json: AsJson = False,
) -> None:
    """Record what a ledger that was lost, or an older copy of it, no longer knows, and go on with the one there is.

    Stored answers that it has no charge for are put aside: nothing gives them again. docs/ledger.md says when.
    """
    from sfumato.privacy.account import Account
    from sfumato.safeguards import record_lost

    done = record_lost(
        _ledger_path(ledger or context.obj),
        Account(population=population, period=period),
        _guarantee(definition, conditional=conditional, alpha=alpha, epsilon=epsilon, delta=delta),
        note,
        bundle or (),
    )
    text, data = budget_summary(done.ledger)
    if done.set_aside and not as_json:
        screen.print(f"Answers put aside in {done.folder}: {done.set_aside:,}.", soft_wrap=True)
    show((text, {**data, "recorded": done.entry.identifier, "answers_put_aside": done.set_aside}), as_json)


def _guarantee(definition: Definition, *, conditional: bool, alpha: str, **typed: str) -> Any:
    """The numbers typed, as a budget or a charge."""
    from sfumato.privacy.guarantee import CONDITIONAL, NO_ALPHA

    alpha = alpha or (str(NO_ALPHA) if definition is Definition.individuals else alpha)
    amounts = {name: typed_number(name, text) for name, text in {"alpha": alpha, **typed}.items()}
    return EmployerEmployee(definition=definition.value, condition=CONDITIONAL if conditional else "", **amounts)


def _open_ledger(path: Path | None, *, create: bool) -> Any:
    from sfumato.privacy.ledger import Ledger as Book

    return Book.open(_ledger_path(path), create=create)


def _ledger_path(path: Path | None) -> Path:
    """The ledger that is meant: a file, or the one that a release file names."""
    path = path or Path("ledger.sqlite")
    if path.suffix == ".toml":
        from sfumato.release import load

        return load(path).ledger
    return path
