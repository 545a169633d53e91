"""`sfumato budget`: the balance of every privacy budget, and how one is set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.bundle.structure import describe_periods
from sfumato.cli.calendar import calendar_table
from sfumato.cli.screen import AsJson, Summary, Table, near, printed_table, screen, show, spaced, typed_number
from sfumato.cli.usage import Commands
from sfumato.errors import SfumatoError
from sfumato.frame.periods import in_time
from sfumato.privacy.account import Balance
from sfumato.privacy.blocks import EVERYTHING, most_spent
from sfumato.privacy.book import OverPeriods
from sfumato.privacy.entries import REVISED
from sfumato.privacy.guarantee import EmployerEmployee, at_least, at_most, rounded_up
from sfumato.statistic import KEY_NOTE
from sfumato.statistics.published import number

if TYPE_CHECKING:  # only names for types
    from sfumato.privacy.ledger import Ledger
    from sfumato.privacy.windows import Calendar


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
        if balance.added_epsilon > spent:
            sums.append(Text(_once(balance)))
        data["accounts"].append(
            {
                "population": account.population,
                "period": account.period,
                "budget": balance.budget.described(),
                "spent_epsilon": number(spent),
                "added_epsilon": number(balance.added_epsilon),
                "spent_is_exact": balance.exact,
                "remaining_epsilon": number(left),
                "spent_delta": number(balance.spent_delta),
                "remaining_delta": number(balance.remaining_delta),
            }
        )
    for population in ledger.populations():
        periods = ledger.over_periods(population)
        rows = _in_time(ledger, periods)
        sofar = [{"period": row.period, "epsilon": row.epsilon, "sum_epsilon": row.sum} for row in rows]
        data["populations"].append({"population": population, **describe_periods(periods), "over_time": sofar})
        if len(periods.formal) > 1:
            sums += [_bars(rows), Text(_in_all_periods(periods))]
        for calendar in periods.windows:
            heading, table = calendar_table(calendar)
            sums += [Text(f"Population {population!r}. ") + heading, *([table] if calendar.costs else [])]
    for entry in ledger.history():
        if entry.kind in ("answer", "data"):
            continue  # these only say that a charge was answered, and what data are known by
        set_or_lifted = "window lifted" if entry.window is None else f"{entry.window.words}: at most"
        what = {"budget": "budget set", "window": set_or_lifted}.get(entry.kind, entry.table)
        where = f"{entry.account.population}, {entry.account.period}"
        bound = None if entry.guarantee is None else entry.guarantee.bound
        epsilon = "none" if bound is None else at_most(bound.epsilon)
        time = entry.time.replace("T", " ").removesuffix("+00:00")
        note = " ".join(entry.note.split(" ")[:2]) if entry.note.startswith(KEY_NOTE) else entry.note
        _, revised, reason = entry.release.partition(REVISED)
        about = f"about {entry.block.words}" if entry.block != EVERYTHING else ""
        note = "; ".join(filter(None, [f"revision: {reason}" if revised else "", about, note]))
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
                "about": entry.block.facts(),
                "note": entry.note,
                "guarantee": None if entry.guarantee is None else entry.guarantee.described(),
                **({} if entry.window is None else {"window": entry.window.facts()}),
            }
        )
    seal = Text(f"The chain of entries is whole. Its last hash, to note elsewhere: {head}", style="green")
    return Group(*spaced([accounts, *sums, history, seal])), data


def _once(balance: Balance) -> str:
    """Why less is spent than all charges of an account add up to."""
    bounded = "" if balance.exact else " They are about so many different blocks that what is spent is only a bound."
    return (
        f"Of {balance.account}: charges about different establishments are counted once, where their entries say which "
        "these are; others count for all establishments. What is spent is that of the establishments that cost most; "
        f"all charges add up to epsilon = {at_most(balance.added_epsilon)}.{bounded}"
    )


def _in_all_periods(spent: OverPeriods) -> str:
    """What whoever is in the data of all periods of a population has lost."""
    together = spent.together()
    promised = "nothing is bounded, as their deltas add up to 1 or more" if together is None else str(together)
    return f"Whoever is in all {len(spent.formal)} periods of {spent.population!r}: {promised}."


# What was charged period by period, and what that adds up to.

_BAR = 32


@dataclass(frozen=True, kw_only=True)
class _PeriodRow:
    """A period: what was charged for it, and for all up to it."""

    period: str
    epsilon: float
    revised: float
    """The part of it that revisions of the period cost."""
    sum: float | None
    """For whoever is in all of them; None once deltas add up to 1, and nothing is bounded."""


def _revised(ledger: "Ledger", period: str, spent: OverPeriods) -> Fraction:
    """The epsilon that revisions of a period were charged."""
    bounds = [
        (entry.block, entry.guarantee.bound)
        for entry in ledger.history()
        if entry.kind == "charge"
        and entry.guarantee is not None
        and REVISED in entry.release
        and (entry.account.population, entry.account.period) == (spent.population, period)
    ]
    return most_spent((block, bound.epsilon) for block, bound in bounds if bound is not None).amount


def _in_time(ledger: "Ledger", spent: OverPeriods) -> list[_PeriodRow]:
    """The periods with a formal charge in the order of time, or of the ledger where their names are no periods."""
    charged = [each for each in spent.periods if each.guarantee is not None]
    if in_time(sorted(each.period for each in charged)):
        charged.sort(key=lambda each: each.period)
    rows = []
    for at, each in enumerate(charged, start=1):
        together = replace(spent, periods=tuple(charged[:at])).together()
        epsilon = Fraction(0) if each.guarantee is None else each.guarantee.epsilon
        rows.append(
            _PeriodRow(
                period=each.period,
                epsilon=rounded_up(epsilon),
                revised=min(rounded_up(_revised(ledger, each.period, spent)), rounded_up(epsilon)),
                sum=None if together is None else rounded_up(together.epsilon),
            )
        )
    return rows


def _bars(rows: Sequence[_PeriodRow]) -> RenderableType:
    """Bars of what was charged for each period, after what all before it cost."""
    table = Table(box=None)
    for heading in ("period", "epsilon", "sum so far", ""):
        table.add_column(heading, justify="left" if heading in ("period", "") else "right", no_wrap=True)
    top = max([row.sum or 0 for row in rows] + [row.epsilon for row in rows]) or 1
    for row in rows:
        whole = round((row.sum or 0) / top * _BAR)
        own = min(max(round(row.epsilon / top * _BAR), 1), max(whole, 1))
        again = round(own * row.revised / row.epsilon) if row.epsilon else 0
        bar = Text("░" * (whole - own), style="dim") + Text("█" * (own - again), style="dark_orange3")
        bar += Text("▒" * again, style="dark_orange3")
        bar += Text(f" {row.revised:g} of it by revisions" if row.revised else "", style="dim")
        table.add_row(row.period, f"{row.epsilon:g}", "no bound" if row.sum is None else f"{row.sum:g}", bar)
    return table


def _draw(ledger: "Ledger", file: Path) -> Path:
    """Draw what was charged for each period, and the sum, for every population: to an SVG or HTML file."""
    from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
    from sfumato.charts.svg import write_drawing

    panels, windows = [], False
    for population in ledger.populations():
        spent = ledger.over_periods(population)
        rows = _in_time(ledger, spent)
        places = range(len(rows))
        own = Mark(kind="columns", x=places, y=[row.epsilon for row in rows], series=0)
        sums = Mark(kind="line", x=places, y=[nan if row.sum is None else row.sum for row in rows], series=1)
        if rows:
            across = Axis(title="period", classes=[row.period for row in rows])
            revised = Mark(kind="columns", x=places, y=[row.revised for row in rows], series=2)
            limits = [mark for one in spent.windows for mark in _window_marks(one, rows)]
            windows |= bool(limits)
            panels.append(Panel(across, Axis(title="epsilon"), [own, revised, sums, *limits], title=population))
    if not panels:
        raise SfumatoError(
            "--chart",
            expected="a ledger with charges that have a formal guarantee",
            found="none",
            do="leave --chart out, or name another ledger with --ledger",
        )
    title = "Privacy budget by period"
    series = ["charged for the period", "sum, for whoever is in all periods so far", "of it revisions"]
    series += ["in the window that ends with the period", "most that a window may spend"] if windows else []
    return write_drawing(
        draw_panels(panels, title=title, series=series, columns=1, size=(640.0, 240.0)), file, title=title
    )


def _window_marks(calendar: "Calendar", rows: Sequence[_PeriodRow]) -> list[Any]:
    """What the window that ends with each period has spent, and the most that it may."""
    from sfumato.charts.plots import Mark

    ending = [calendar.ending_with(row.period) for row in rows]
    spent = [nan if one is None or not one.is_bounded else rounded_up(one.epsilon) for one in ending]
    places = range(len(rows))
    most = [rounded_up(calendar.window.most.epsilon)] * len(rows)
    return [Mark(kind="line", x=places, y=spent, series=3), Mark(kind="line", x=places, y=most, series=4)]


budget_app = typer.Typer(
    help="Show the balance of every privacy budget and what it was spent on, or set one.\n\n"
    "The ledger's chain of entries is verified first.",
    invoke_without_command=True,
    cls=Commands,
)

LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="A ledger, or a release file that names one; ledger.sqlite here.", metavar="PATH"),
]


class Definition(StrEnum):
    """Who is protected: employers against anyone, against weak attackers, individuals only, or values of units."""

    strong = "strong"
    weak = "weak"
    individuals = "individuals"
    units = "units"


@budget_app.callback()
def budget(
    context: typer.Context,
    ledger: LedgerFile = None,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw what each period cost, and the sum, to this SVG or HTML file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the balance of every budget and what it was spent on."""

    context.obj = ledger
    if context.invoked_subcommand is None:
        book = _open_ledger(ledger, create=False)
        text, data = budget_summary(book)
        if chart is not None:
            drawn = near(_draw(book, chart))
            text, data = Group(text, Text(f"\nDrawn to {drawn}.")), {**data, "chart": str(chart)}
        show((text, data), as_json)


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
        Definition,
        typer.Option(help="Against whom size is protected; individuals: not at all; units: values of businesses."),
    ] = Definition.strong,
    conditional: Annotated[
        bool, typer.Option("--conditional", help="Allow tables that are not differentially private, such as mose.")
    ] = False,
    totals: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=CAP",
            help="Allow totals of a measure, such as earnings=120000 or 'earnings[column=pay2, factor=100]=120000'; of "
            "records, with the protected unit and the floor, 'sales[unit=firm]=1000'. May be repeated.",
        ),
    ] = None,
    note: Annotated[str, typer.Option(help="Why, for the history.")] = "",
    ledger: LedgerFile = None,
    as_json: AsJson = False,
) -> None:
    """Open a budget or change it; the change is written to the ledger's history."""
    from sfumato.privacy.account import Account

    stated = _guarantee(definition, totals, conditional=conditional, alpha=alpha, epsilon=epsilon, delta=delta)
    book = _open_ledger(ledger or context.obj, create=True)
    book.set_budget(Account(population=population, period=period), stated, note)
    show(budget_summary(book), as_json)


class PeriodLength(StrEnum):
    """How long the periods are that follow each other."""

    year = "year"
    quarter = "quarter"
    month = "month"


@budget_app.command()
def window(
    context: typer.Context,
    population: Annotated[str, typer.Option(help="Whose budget it is, as in the release file.")],
    length: Annotated[PeriodLength, typer.Option(help="How long a period is.")],
    periods: Annotated[int, typer.Option(help="How many of them in a row.")] = 0,
    epsilon: Annotated[str, typer.Option(help="How much the log-odds may move in all of them together.")] = "",
    alpha: Annotated[str, typer.Option(help="At which alpha they are added up; plays no part for individuals.")] = "",
    delta: Annotated[str, typer.Option(help="The probability with which the bound may fail.")] = "0",
    definition: Annotated[
        Definition,
        typer.Option(help="Against whom size is protected; individuals: not at all; units: values of businesses."),
    ] = Definition.strong,
    conditional: Annotated[
        bool, typer.Option("--conditional", help="Allow tables that are not differentially private, such as mose.")
    ] = False,
    totals: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=CAP",
            help="Allow totals of a measure, such as earnings=120000 or 'earnings[column=pay2, factor=100]=120000'; of "
            "records, with the protected unit and the floor, 'sales[unit=firm]=1000'. May be repeated.",
        ),
    ] = None,
    first: Annotated[
        str, typer.Option(help="The first period that counts, where those before it have spent more; all if not given.")
    ] = "",
    lift: Annotated[bool, typer.Option("--lift", help="Limit these periods no more.")] = False,
    note: Annotated[str, typer.Option(help="Why, for the history.")] = "",
    ledger: LedgerFile = None,
    as_json: AsJson = False,
) -> None:
    """Limit what any few consecutive periods of a population may spend together, or change that.

    The change is written to the ledger's history. A window is never smaller than what was spent in it.
    """
    from sfumato.frame.periods import Period
    from sfumato.privacy.windows import Window

    book = _open_ledger(ledger or context.obj, create=True)
    if lift:
        book.lift_window(population, length.value, note)
    else:
        most = _guarantee(definition, totals, conditional=conditional, alpha=alpha, epsilon=epsilon, delta=delta)
        begins = str(Period.read(first, "--first")) if first else ""
        book.set_window(population, Window(periods=periods, length=length.value, first=begins, most=most), note)
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
    totals: Annotated[
        list[str] | None,
        typer.Option(metavar="MEASURE=CAP", help="Some tables were totals of a measure. May be repeated."),
    ] = None,
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
        _guarantee(definition, totals, conditional=conditional, alpha=alpha, epsilon=epsilon, delta=delta),
        note,
        bundle or (),
    )
    text, data = budget_summary(done.ledger)
    if done.set_aside and not as_json:
        screen.print(f"Answers put aside in {done.folder}: {done.set_aside:,}.", soft_wrap=True)
    show((text, {**data, "recorded": done.entry.identifier, "answers_put_aside": done.set_aside}), as_json)


def _guarantee(definition: Definition, totals: list[str] | None, *, conditional: bool, alpha: str, **typed: str) -> Any:
    """The numbers typed, as a budget or a charge."""
    from sfumato.privacy.guarantee import CONDITIONAL, NO_ALPHA, caps_together

    alpha = alpha or (str(NO_ALPHA) if definition is Definition.individuals else alpha)
    amounts = {name: typed_number(name, text) for name, text in {"alpha": alpha, **typed}.items()}
    return EmployerEmployee(
        definition=definition.value,
        condition=CONDITIONAL if conditional else "",
        caps=caps_together([tuple(map(_typed_cap, totals or ()))]),
        **amounts,
    )


def _typed_cap(text: str) -> tuple[str, int]:
    """A measure and the most that one job adds to its totals, or its floor, as they are typed."""
    from sfumato.frame.measured import read_measured

    measure, _, cap = text.rpartition("=")
    try:
        if not cap.isdecimal() or int(cap) < 1:
            raise ValueError("a cap is a whole number above 0")
        return read_measured(measure), int(cap)
    except ValueError:
        raise SfumatoError(
            "--totals",
            expected="a measure and its cap, a whole number of its smallest unit, such as earnings=120000; where it is "
            "made of another column, or by a factor, also that: 'earnings[column=pay2, factor=100]=120000'",
            found=repr(text),
            do="write both as they are in the release file: column, factor, fractions and empty, those that it has; of "
            "a panel also its population, and 'jobs[population=beginning]=1' for the number of its jobs; of records "
            "also the protected unit, and the floor for the cap: 'turnover[unit=business]=1000'",
        ) from None


def _open_ledger(path: Path | None, *, create: bool) -> Any:
    from sfumato.privacy.ledger import Ledger as Book

    return Book.open(_ledger_path(path), create=create)


def _ledger_path(path: Path | None) -> Path:
    """The ledger that is meant: a file, or the one that a release file names."""
    path = path or Path("ledger.sqlite")
    if path.suffix == ".toml":
        from sfumato.release import load_any_period

        return load_any_period(path).ledger
    return path
