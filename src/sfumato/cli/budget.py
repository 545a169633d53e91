"""`sfumato budget`: the balance of every privacy budget, and how one is set."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.screen import AsJson, number, show

budget_app = typer.Typer(
    help="Show the balance of every privacy budget and what it was spent on, or set one.\n\n"
    "The ledger's chain of entries is verified first.",
    invoke_without_command=True,
)

Ledger = Annotated[
    Path | None,
    typer.Option("--ledger", help="A ledger, or a release file that names one; ledger.sqlite here.", metavar="PATH"),
]


class Definition(StrEnum):
    """Who is protected: employers against anyone, against weak attackers, or individuals only."""

    strong = "strong"
    weak = "weak"
    individuals = "individuals"


@budget_app.callback()
def budget(context: typer.Context, ledger: Ledger = None, as_json: AsJson = False) -> None:
    """Show the balance of every budget and what it was spent on."""
    from sfumato.terminal.budget import budget_summary

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
    ledger: Ledger = None,
    as_json: AsJson = False,
) -> None:
    """Open a budget or change it; the change is written to the ledger's history."""
    from sfumato.privacy.account import Account
    from sfumato.privacy.guarantee import CONDITIONAL, NO_ALPHA, EmployerEmployee
    from sfumato.terminal.budget import budget_summary

    alpha = alpha or (str(NO_ALPHA) if definition is Definition.individuals else alpha)
    amounts = {name: number(name, text) for name, text in (("alpha", alpha), ("epsilon", epsilon), ("delta", delta))}
    book = _open_ledger(ledger or context.obj, create=True)
    book.set_budget(
        Account(population=population, period=period),
        EmployerEmployee(definition=definition.value, condition=CONDITIONAL if conditional else "", **amounts),
        note,
    )
    show(budget_summary(book), as_json)


def _open_ledger(path: Path | None, *, create: bool) -> Any:
    from sfumato.privacy.ledger import Ledger as Book

    path = path or Path("ledger.sqlite")
    if path.suffix == ".toml":
        from sfumato.release_file import load

        path = load(path).ledger
    return Book.open(path, create=create)
