"""What the command line says: each summary as text for people and as data for machines."""

from dataclasses import asdict
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sfumato.methods.method import LARGEST
from sfumato.methods.requirements import requirements
from sfumato.methods.truncated_laplace import TruncatedLaplace
from sfumato.privacy.guarantee import EmployerEmployee, Guarantee, plain
from sfumato.publish.statement import meaning, meaning_of
from sfumato.publish.structure import describe, number

if TYPE_CHECKING:  # only names for types: each command imports what it runs
    from sfumato.assess.assess import Assessment
    from sfumato.assess.exposure import Exposure
    from sfumato.assess.utility import Utility
    from sfumato.check import Findings
    from sfumato.demo import Tour
    from sfumato.economy.generate import Economy
    from sfumato.economy.shape import Shape
    from sfumato.plan import Plan, PlannedTable
    from sfumato.planned_cube import PlannedCube
    from sfumato.privacy.ledger import Ledger
    from sfumato.run import Published

Summary = tuple[RenderableType, dict[str, Any]]
_BAR = 24


def plan_summary(findings: "Findings") -> Summary:
    """The plan of a release: guarantee, charge, cells and expected error of every table and in total."""
    plan, balance = findings.plan, findings.balance
    budget = plan.release.budget
    free = {part.name for part in plan.parts} - {part.name for part in plan.distinct_parts()}
    table = _table("table", "cells", "guarantee", "charge", "small cells", "large cells")
    due = Fraction(0)
    for planned in plan.parts:
        charge = _charge(planned.guarantee, budget)
        name = planned.name
        paid = "paid before" if name in findings.paid else "repeated" if name in free else ""
        due += 0 if paid else charge
        table.add_row(
            name, f"{planned.cells:,}", _short(planned.guarantee), paid or plain(charge), *_expected_errors(planned)
        )
    allowed = Fraction(0) if budget is None else budget.epsilon
    left = allowed if balance is None else balance.remaining_epsilon
    lines: list[RenderableType] = [
        Text(plan.release.about.title, style="bold"),
        table,
        *_what_is_large(plan),
        Text("\n".join(_protected(plan))),
        Text(
            f"All tables together: {_whole(plan.guarantee)}."
            + (
                f" To be charged: epsilon = {plain(due)}; left in the budget of {plan.release.account}: {plain(left)}."
                if budget is not None
                else " Nothing is charged: these methods spend no budget."
            )
        ),
        *map(Text, meaning_of(plan)),
    ]
    if findings.refusal is not None:
        lines.append(Text(f"`sfumato run` will refuse this release.\n{findings.refusal}", style="bold red"))
    elif due > left:
        lines.append(Text("This is more than is left: `sfumato run` will refuse it.", style="bold red"))
    words = "The data match their description." if findings.validated else "The data were not opened."
    lines.append(Text(f"{words} Nothing was charged.", style="green"))
    return Group(*_spaced(lines)), _plan_data(plan) | {
        "due_epsilon": number(due),
        "remaining_epsilon": number(left),
        "paid_before": sorted(findings.paid),
        "refusal": None if findings.refusal is None else str(findings.refusal),
        "data_validated": findings.validated,
    }


def run_summary(published: "Published") -> Summary:
    """What a run published, charged and left over."""
    balance = published.balance
    repeated = len(published.plan.parts) - len(published.charged)
    words = [f"Published {_parts(published.plan)} in {_near(published.bundle)}."]
    if published.charged:
        words.append(f"{'Answered anew' if balance is None else 'Charged'}: {', '.join(published.charged)}.")
    if repeated:
        counted = f"{repeated} cubes or tables" if published.plan.cubes else _tables(repeated)
        words.append(f"{counted.capitalize()} answered from what is stored, at no charge.")
    if balance is not None:
        words.append(
            f"Budget of {balance.account}: epsilon {plain(balance.spent_epsilon)} of {plain(balance.budget.epsilon)} "
            f"spent, {plain(balance.remaining_epsilon)} left."
        )
    words.append("Read statement.md in the bundle: it says in plain words what readers can and cannot learn.")
    return Text("\n".join(words)), {
        "bundle": str(published.bundle),
        "charged": list(published.charged),
        "spent_epsilon": None if balance is None else number(balance.spent_epsilon),
        "remaining_epsilon": None if balance is None else number(balance.remaining_epsilon),
        **_plan_data(published.plan),
    }


def assessment_summary(assessment: "Assessment") -> Summary:
    """What the protection costs, table by table; confidential."""
    from sfumato.assess.cube_report import cube_data, cube_words  # noqa: PLC0415 (charts are heavy to import)

    lines: list[RenderableType] = [Text("CONFIDENTIAL: computed from true values.", style="bold red")]
    for utility, exposure in zip(assessment.utilities, assessment.exposures, strict=True):
        lines += [_error_chart(utility), Text(_in_words(utility, exposure))]
    lines += [Text(cube_words(found)) for found in assessment.cubes]
    lines.append(Text(f"The whole report, with charts: {_near(assessment.report)}"))
    both = zip(assessment.utilities, assessment.exposures, strict=True)
    data = {"report": str(assessment.report), "tables": [_utility_data(*pair) for pair in both]}
    data |= {"cubes": list(map(cube_data, assessment.cubes))} if assessment.cubes else {}
    return Group(*_spaced(lines)), data


def demo_summary(tour: "Tour") -> Summary:
    """The demo in a screenful: what was made, what it costs, what to try next."""
    made, published, assessment = tour.economy, tour.published, tour.assessment
    release = _near(made.release)
    table = _table("published table", "cells", "guarantee", "charge", "mean error, jobs")
    for planned, utility in zip(published.plan.tables, assessment.utilities, strict=True):
        charge = plain(_charge(planned.guarantee, published.plan.release.budget))
        table.add_row(
            utility.title, f"{utility.cells:,}", _short(planned.guarantee), charge, f"{utility.mean_error:,.2f}"
        )
    steps = Table(box=None, show_header=False, padding=(0, 2))
    for command, purpose in (
        (f"sfumato check {release}", "what the release guarantees and costs"),
        (f"sfumato run {release}", "again: the stored answer, at no charge"),
        (f"sfumato budget --ledger {release}", "what is left, and the history"),
        (_near(assessment.report), "charts of true and protected values (confidential)"),
        (_near(published.bundle / "statement.md"), "what readers are told"),
    ):
        steps.add_row(Text(command, style="bold"), purpose)
    lines: list[RenderableType] = [
        Text(
            f"An economy of {made.jobs:,} jobs in {made.establishments:,} establishments and {made.places:,} places, "
            f"published as {_tables(len(published.plan.tables))}.",
            style="bold",
        ),
        table,
        _error_chart(assessment.utilities[0]),
        Text(f"All tables together: {_whole(published.plan.guarantee)}. {meaning(published.plan.guarantee)[0]}"),
        Text("What to try next:"),
        steps,
    ]
    data = {
        "economy": economy_data(made),
        "run": run_summary(published)[1],
        "assessment": assessment_summary(assessment)[1],
    }
    return Group(*_spaced(lines)), data


def economy_summary(made: "Economy", shape: "Shape | None") -> Summary:
    """What an economy holds, beside the published shape when it was measured."""
    lines: list[RenderableType] = [
        Text(
            f"{made.jobs:,} jobs of {made.workers:,} workers in {made.establishments:,} establishments and "
            f"{made.places:,} places, in {made.folder}."
        )
    ]
    data = economy_data(made)
    if shape is not None:
        table = _table("shape", "here", "published")
        for row in shape.rows():
            table.add_row(*row)
        lines.append(table)
        data["shape"] = [dict(zip(("quantity", "here", "published"), row, strict=True)) for row in shape.rows()]
    lines.append(Text(f"Try: sfumato check {made.release}"))
    return Group(*_spaced(lines)), data


def economy_data(made: "Economy") -> dict[str, Any]:
    """An economy as numbers."""
    return {
        "folder": str(made.folder),
        "release": str(made.release),
        **{name: getattr(made, name) for name in ("seed", "jobs", "workers", "establishments", "places")},
    }


def budget_summary(ledger: "Ledger") -> Summary:
    """Every account's balance, and the history of what was charged."""
    head = ledger.verify()
    accounts = _table("population", "period", "budget", "spent", "left")
    history = _table("time (UTC)", "account", "what", "epsilon", "note")
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
        if entry.kind == "answer":
            continue  # it only says that a charge was answered
        what = "budget set" if entry.kind == "budget" else entry.table
        where = f"{entry.account.population}, {entry.account.period}"
        epsilon = plain(entry.guarantee.epsilon) if isinstance(entry.guarantee, EmployerEmployee) else "none"
        time = entry.time.replace("T", " ").removesuffix("+00:00")
        history.add_row(time, where, what, epsilon, entry.note)
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
    return Group(*_spaced([accounts, history, seal])), data


def _error_chart(utility: "Utility") -> RenderableType:
    """Bars of the mean error by size of the cell."""
    table = Table(box=None, title=f"{utility.title}: mean error by true size of the cell", title_justify="left")
    for heading in (f"{utility.sizes} in the cell", "cells", "error", "", "relative"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    top = max((c.mean_error for c in utility.by_size), default=1.0) or 1.0
    for size in utility.by_size:
        length = size.mean_error / top * _BAR
        bar = "█" * int(length) + ("▌" if length % 1 >= 0.5 else "")
        relative = "" if size.relative_error is None else f"{size.relative_error:.1%}"
        table.add_row(
            size.label,
            f"{size.cells:,}",
            f"{size.mean_error:,.1f}",
            Text(bar or "▏", style="dark_orange3"),
            relative,
        )
    return table


def _plan_data(plan: "Plan") -> dict[str, Any]:
    budget = plan.release.budget
    return {
        "title": plan.release.about.title,
        "guarantee": describe(plan.guarantee),
        "tables": [
            {
                "name": planned.table.name,
                "cells": planned.cells,
                "method": planned.method.name,
                "guarantee": describe(planned.guarantee),
                "charge_epsilon": number(_charge(planned.guarantee, budget)),
                "protects": vars(requirements(planned.guarantee)),
                "planned_error": vars(planned.method.planned_error()),
            }
            for planned in plan.tables
        ],
        **({"cubes": [_cube_data(cube, budget) for cube in plan.cubes]} if plan.cubes else {}),
    }


def _cube_data(cube: "PlannedCube", budget: EmployerEmployee | None) -> dict[str, Any]:
    return {
        "name": cube.name,
        "cells": cube.cells,
        "method": cube.method.name,
        "guarantee": describe(cube.guarantee),
        "charge_epsilon": number(_charge(cube.guarantee, budget)),
        "noise_variance": cube.method.counts.variance,
        "exact_controls": [list(control.by) for control in cube.method.exact_controls],
    }


def _expected_errors(planned: "PlannedTable | PlannedCube") -> tuple[str, str]:
    """The expected errors of small and of large cells, before any data are read."""
    if isinstance(planned.method, TruncatedLaplace):
        return f"{planned.method.counts.expected_magnitude:.2g} records", "the same"
    error = planned.method.planned_error()
    if error.share is None:
        return "secret", "secret"
    return f"{error.floor:.2g} jobs", error.in_a_large_cell


def _utility_data(utility: "Utility", exposure: "Exposure") -> dict[str, Any]:
    figures = {name: value for name, value in asdict(utility).items() if name not in ("title", "true", "protected")}
    revealed = {name: value for name, value in asdict(exposure).items() if name not in ("name", "odds", "attacks")}
    return {
        **figures,
        **revealed,
        "odds": [
            asdict(pair) | {"factor": pair.factor if isfinite(pair.factor) else None, "belief": pair.belief}
            for pair in exposure.odds
        ],
        "attacks": [
            {
                "attack": found.attack,
                "targets": found.targets,
                "success_rate": found.success_rate if found.targets else None,
                "baseline_rate": found.baseline_rate if found.targets else None,
            }
            for found in exposure.attacks
        ],
    }


def _in_words(utility: "Utility", exposure: "Exposure") -> str:
    """The figures of a table that fit into two sentences."""
    order = "" if utility.spearman is None else f"Rank correlation with the true cells {utility.spearman:.4f}. "
    attacks = "".join(
        f"The {found.attack} attack discloses {found.successes:,} of {found.targets:,} targets. "
        for found in exposure.attacks
    )
    if exposure.suppression is None:
        return (order + attacks).strip()
    hidden, cells = exposure.suppression.any_rule, exposure.suppression.cells
    return f"{order}{attacks}Suppression rules would hide at least {hidden:,} of the {cells:,} cells with jobs."


def _charge(guarantee: Guarantee, budget: EmployerEmployee | None) -> Fraction:
    if budget is None or not isinstance(guarantee, EmployerEmployee):
        return Fraction(0)
    return guarantee.within(budget).epsilon


def _what_is_large(plan: "Plan") -> list[RenderableType]:
    errors = [planned.method.planned_error() for planned in plan.tables]
    sizes = sorted({error.floor_size for error in errors if error.share and error.of == LARGEST})
    words = " or ".join(map(str, sizes))
    return [Text(f"A cell is large when its largest establishment has more than {words} workers.")] if sizes else []


def _protected(plan: "Plan") -> list[str]:
    """What is protected, once for all tables that protect the same."""
    tables: dict[str, list[str]] = {}
    for planned in plan.parts:
        cube = isinstance(planned.method, TruncatedLaplace)
        words = "single records" if cube else str(requirements(planned.guarantee))
        tables.setdefault(words, []).append(planned.name)
    return [
        f"Protected in {'all tables' if len(tables) == 1 and not plan.cubes else ', '.join(names)}: {words}."
        for words, names in tables.items()
    ]


def _short(guarantee: Guarantee) -> str:
    if not isinstance(guarantee, EmployerEmployee):
        return "none"
    return f"{guarantee.definition}, alpha {plain(guarantee.alpha)}"


def _whole(guarantee: Guarantee) -> str:
    return str(guarantee) if isinstance(guarantee, EmployerEmployee) else "no formal guarantee"


def _parts(plan: "Plan") -> str:
    """How many tables and cubes there are."""
    counted = {"table": len(plan.tables), "cube": len(plan.cubes)}
    return " and ".join(f"{n} {what}{'s' if n > 1 else ''}" for what, n in counted.items() if n)


def _tables(number: int) -> str:
    return f"{number} table" if number == 1 else f"{number} tables"


def _near(path: Path) -> str:
    """A path as a person would type it from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for place, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", no_wrap=place == 0 and heading == "table")
    return table


def _spaced(lines: list[RenderableType]) -> list[RenderableType]:
    return [part for line in lines for part in (line, Text(""))][:-1]
