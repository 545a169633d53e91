"""The commands that take a release file: `sfumato check`, `run` and `assess`."""

from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.bundle.statement import meaning_of
from sfumato.cli.cube_errors import cube_error_data, cube_errors
from sfumato.cli.screen import (
    AsJson,
    Summary,
    Table,
    charge_of,
    counted_parts,
    counted_tables,
    messages,
    near,
    printed_table,
    progress,
    short,
    show,
    spaced,
    whole,
)
from sfumato.errors import ReleaseError
from sfumato.method import LARGEST
from sfumato.privacy.guarantee import EmployerEmployee, at_least, at_most
from sfumato.statistics.published import number
from sfumato.statistics.registry import requirements

if TYPE_CHECKING:  # only names for types
    from sfumato.checking import Findings
    from sfumato.measures.attacks import AttackResult
    from sfumato.measures.risk import Exposure, SizeOdds
    from sfumato.measures.utility import Utility
    from sfumato.plan import Plan
    from sfumato.report.assess import Assessment
    from sfumato.running import Published
    from sfumato.statistics.cube.statistic import CubeStatistic


# What `sfumato check` says of a plan.


def plan_summary(findings: "Findings") -> Summary:
    """The plan of a release: guarantee, charge, cells and expected error of every table and in total."""
    plan, balance = findings.plan, findings.balance
    budget = plan.release.budget
    free = {part.name for part in plan.statistics} - {part.name for part in plan.distinct()}
    table = printed_table("table", "cells", "guarantee", "charge", "small cells", "large cells")
    due = Fraction(0)
    for statistic in plan.statistics:
        charge = charge_of(statistic.guarantee, budget)
        name = statistic.name
        paid = "paid before" if name in findings.paid else "repeated" if name in free else ""
        due += 0 if paid else charge
        table.add_row(
            name,
            f"{statistic.cells:,}",
            short(statistic.guarantee),
            paid or at_most(charge),
            *statistic.expected_error(),
        )
    allowed = Fraction(0) if budget is None else budget.epsilon
    left = allowed if balance is None else balance.remaining_epsilon
    lines: list[RenderableType] = [
        Text(plan.release.about.title, style="bold"),
        table,
        *_what_is_large(plan),
        *cube_errors(findings),
        Text("\n".join(_protected(plan))),
        Text(
            f"All tables together: {whole(plan.guarantee)}."
            + (
                f" To be charged: epsilon = {at_most(due)}; left in the budget of {plan.release.account}: "
                f"{at_least(left)}."
                if budget is not None
                else " Nothing is charged: these methods spend no budget."
            )
        ),
        *map(Text, meaning_of(plan)),
        *map(Text, plan.operator_notes()),
    ]
    lines += [Text(data_changed(words), style="yellow") for words in findings.changes]
    if findings.refusal is not None:
        lines.append(Text(f"`sfumato run` will refuse this release.\n{findings.refusal}", style="bold red"))
    elif due > left:
        lines.append(Text("This is more than is left: `sfumato run` will refuse it.", style="bold red"))
    read = findings.totals
    words = "The data were not opened." if read is None else f"{read.in_words()} The data match their description."
    lines.append(Text(f"{words} Nothing was charged.", style="green"))
    return Group(*spaced(lines)), plan_data(plan) | cube_error_data(findings) | {
        "due_epsilon": number(due),
        "remaining_epsilon": number(left),
        "paid_before": sorted(findings.paid),
        "refusal": None if findings.refusal is None else str(findings.refusal),
        "data_validated": read is not None,
        "read": None if read is None else read.figures(),
        "data_changed": list(findings.changes),
        "notes": plan.operator_notes(),
    }


def data_changed(words: str) -> str:
    """What is said of data that changed, and so make tables cost once more."""
    return f"The data changed, and tables are charged anew. {words[0].upper()}{words[1:]}."


def plan_data(plan: "Plan") -> dict[str, Any]:
    """A plan as numbers."""
    budget = plan.release.budget
    return {
        "title": plan.release.about.title,
        "guarantee": plan.guarantee.described(),
        "tables": [
            {
                "name": statistic.name,
                "cells": statistic.cells,
                "method": statistic.method.name,
                "guarantee": statistic.guarantee.described(),
                "charge_epsilon": number(charge_of(statistic.guarantee, budget)),
                "protects": vars(requirements(statistic.guarantee)),
                "planned_error": vars(statistic.method.planned_error()),
            }
            for statistic in plan.tables
        ],
        **({"cubes": [_cube_data(cube, budget) for cube in plan.cubes]} if plan.cubes else {}),
    }


def _cube_data(cube: "CubeStatistic", budget: EmployerEmployee | None) -> dict[str, Any]:
    return {
        "name": cube.name,
        "cells": cube.cells,
        "method": cube.method.name,
        "guarantee": cube.guarantee.described(),
        "charge_epsilon": number(charge_of(cube.guarantee, budget)),
        "noise_variance": cube.method.counts.variance,
        "exact_controls": [list(control.by) for control in cube.method.exact_controls],
    }


def _what_is_large(plan: "Plan") -> list[RenderableType]:
    errors = [statistic.method.planned_error() for statistic in plan.tables]
    sizes = sorted({error.floor_size for error in errors if error.share and error.of == LARGEST})
    words = " or ".join(map(str, sizes))
    return [Text(f"A cell is large when its largest establishment has more than {words} workers.")] if sizes else []


def _protected(plan: "Plan") -> list[str]:
    """What is protected, once for all tables that protect the same."""
    tables: dict[str, list[str]] = {}
    for statistic in plan.statistics:
        bounded = statistic.folder == "cubes" and statistic.guarantee.bound is not None
        words = "single records" if bounded else str(requirements(statistic.guarantee))
        tables.setdefault(words, []).append(statistic.name)
    return [
        f"Protected in {'all tables' if len(tables) == 1 and not plan.cubes else ', '.join(names)}: {words}."
        for words, names in tables.items()
    ]


# What `sfumato run` says of what it published.


def run_summary(published: "Published") -> Summary:
    """What a run published, charged and left over."""
    balance = published.balance
    repeated = len(published.plan.statistics) - len(published.charged) - len(published.finished)
    words = [published.totals.in_words(), f"Published {counted_parts(published.plan)} in {near(published.bundle)}."]
    free = {one.name for one in published.plan.statistics if one.guarantee.bound is None}
    for heading, names in {
        "Charged": [name for name in published.charged if name not in free],
        "Charged before by a run that did not finish, and answered now at no further charge": [
            name for name in published.finished if name not in free
        ],
        "Published without a charge (no formal guarantee)": [
            name for name in (*published.charged, *published.finished) if name in free
        ],
    }.items():
        if names:
            words.append(f"{heading}: {', '.join(names)}.")
    if repeated:
        counted = f"{repeated} cubes or tables" if published.plan.cubes else counted_tables(repeated)
        words.append(f"{counted.capitalize()} answered from what is stored, at no charge.")
    if balance is not None:
        words.append(
            f"Budget of {balance.account}: epsilon {at_most(balance.spent_epsilon)} of "
            f"{at_most(balance.budget.epsilon)} spent, {at_least(balance.remaining_epsilon)} left."
        )
    cubes = {cube.name: cube for cube in published.plan.cubes}
    words += [f"Cube {name}:{cubes[name].not_met(found)}".replace("**", "") for name, found in published.unmet.items()]
    words += published.plan.operator_notes()
    words.append("Read statement.md in the bundle: it says in plain words what readers can and cannot learn.")
    return Text("\n".join(words)), {
        "bundle": str(published.bundle),
        "read": published.totals.figures(),
        "charged": list(published.charged),
        "charged_before": list(published.finished),
        "data_changed": list(published.changes),
        "spent_epsilon": None if balance is None else number(balance.spent_epsilon),
        "remaining_epsilon": None if balance is None else number(balance.remaining_epsilon),
        "controls_not_met": {
            name: {"calibration": found.method, "cycles": found.cycles, "largest_gap_in_parts": found.largest_gap}
            for name, found in published.unmet.items()
        },
        **plan_data(published.plan),
    }


# What `sfumato assess` says of the cost of protection; confidential.

_BAR = 24


def assessment_summary(assessment: "Assessment") -> Summary:
    """What the protection costs, table by table; confidential."""
    from sfumato.statistics.cube.assess_report import (
        cube_data,
        cube_words,
    )
    from sfumato.statistics.jobs.assess_sparse import sparse_data, sparse_words
    from sfumato.statistics.people.assess import (
        people_data,
        people_words,
    )

    lines: list[RenderableType] = [Text("CONFIDENTIAL: computed from true values.", style="bold red")]
    for utility, exposure in zip(assessment.utilities, assessment.exposures, strict=True):
        lines += [error_chart(utility), Text(_in_words(utility, exposure))]
    lines += [Text(_attack_words(found)) for found in assessment.together]
    lines += [
        Text(f"{found.title}: growth is off by {found.mean_error:.2f} points on average.")
        for found in assessment.growth
    ]
    lines += [Text(sparse_words(found)) for found in assessment.sparse]
    lines += [Text(people_words(found)) for found in assessment.people]
    lines += [Text(cube_words(found)) for found in assessment.cubes]
    lines.append(Text(f"The whole report, with charts: {near(assessment.report)}"))
    both = zip(assessment.utilities, assessment.exposures, strict=True)
    data: dict[str, Any] = {"report": str(assessment.report), "tables": [_utility_data(*pair) for pair in both]}
    data |= {"growth": [found.data() for found in assessment.growth]} if assessment.growth else {}
    data |= {"together": [found.data() for found in assessment.together]} if assessment.together else {}
    data |= {"sparse": list(map(sparse_data, assessment.sparse))} if assessment.sparse else {}
    data |= {"network": asdict(assessment.network)} if assessment.network is not None else {}
    data |= {"networks": [found.data() for found in assessment.networks]} if assessment.networks else {}
    data |= {"people": list(map(people_data, assessment.people))} if assessment.people else {}
    data |= {"cubes": list(map(cube_data, assessment.cubes))} if assessment.cubes else {}
    return Group(*spaced(lines)), data


def error_chart(utility: "Utility") -> RenderableType:
    """Bars of the mean error by size of the cell."""
    table = Table(box=None, title=f"{utility.title}: mean error by true size of the cell", title_justify="left")
    for heading in (utility.sizes, "cells", "error", "", "relative"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    rows = (*utility.by_size, *([utility.margins] if utility.margins else []))
    top = max((row.mean_error for row in rows), default=1.0) or 1.0
    for size in rows:
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


def _utility_data(utility: "Utility", exposure: "Exposure") -> dict[str, Any]:
    figures = {name: value for name, value in asdict(utility).items() if name not in ("title", "true", "protected")}
    revealed = {name: value for name, value in asdict(exposure).items() if name not in ("name", "odds", "attacks")}
    return {
        **figures,
        **revealed,
        "odds": [odds_data(pair) for pair in exposure.odds],
        "attacks": [found.data() for found in exposure.attacks],
    }


def _attack_words(found: "AttackResult") -> str:
    text = f"The {found.attack} attack discloses {found.successes:,} of {found.targets:,} targets."
    if found.limit is None or not found.targets:
        return text
    return f"{text[:-1]}, and has a probability above {found.limit:.0%} for {found.above:,}."


def _in_words(utility: "Utility", exposure: "Exposure") -> str:
    """The figures of a table that fit into two sentences."""
    order = "" if utility.spearman is None else f"Rank correlation with the true cells {utility.spearman:.4f}. "
    attacks = "".join(f"{_attack_words(found)} " for found in exposure.attacks)
    if exposure.suppression is None:
        return (order + attacks).strip()
    hidden, cells = exposure.suppression.any_rule, exposure.suppression.cells
    return f"{order}{attacks}Suppression rules would hide at least {hidden:,} of the {cells:,} cells with jobs."


# What `sfumato check --sizes` says of two sizes of an establishment, by the guarantees alone.

MOST_WORKERS = 10**7
"""Of an establishment whose size is compared."""


def _two_sizes(text: str | None, chart: Path | None) -> tuple[int, int] | None:
    """Two numbers of workers, from `100,150`."""
    words = [] if text is None else [word.strip() for word in text.split(",")]
    if text is None and chart is None:
        return None
    if len(words) != 2 or not all(word.isdecimal() and 0 < int(word) <= MOST_WORKERS for word in words):
        raise ReleaseError(
            "--sizes",
            expected=f"two numbers of workers from 1 to {MOST_WORKERS:,}, such as 100,150",
            found="none" if text is None else repr(text),
            do="write --sizes 100,150",
        )
    return int(words[0]), int(words[1])


def odds_summary(plan: "Plan", pair: tuple[int, int], chart: Path | None) -> Summary:
    """By how much the odds between two sizes of an establishment can change, of each table and of all together."""
    from sfumato.charts.svg import write_drawing
    from sfumato.measures.drawing import odds_by_size
    from sfumato.measures.risk import size_odds

    if not plan.release.data.of_jobs:
        raise ReleaseError(
            "--sizes", expected="tables of jobs, which have establishments", found="records", do="leave it out"
        )
    low, high = sorted(pair)
    guarantees = {one.name: one.guarantee for one in plan.statistics} | {"all tables together": plan.guarantee}
    found = {name: size_odds(guarantee, smaller=low, larger=high) for name, guarantee in guarantees.items()}
    table = printed_table("table", "neighbour steps", "the odds change at most by a factor of", "50% becomes at most")
    for name, odds in found.items():
        bounded = odds.steps is not None and odds.delta < 1
        factor = f"{ceil(100 * odds.factor) / 100:,.2f}" if odds.factor < 10**6 else f"over {10**6:,}"
        failing = f", but for a probability of {odds.delta:.2g}" if odds.delta else ""
        words = (factor + failing, f"{ceil(10_000 * odds.belief) / 100:.2f}%") if bounded else ("no bound", "100%")
        table.add_row(name, str(odds.steps or "") if bounded else "", *words)
    title = f"An establishment of {pair[0]:,} workers, or of {pair[1]:,}"
    lines: list[RenderableType] = [Text(title, style="bold"), table]
    drawn = "" if chart is None else odds_by_size(plan.guarantee, *pair, title=f"{title}: all tables together")
    if chart is not None and drawn:
        lines.append(Text(f"Drawn to {near(write_drawing(drawn, chart, title=title))}."))
    elif chart is not None:
        lines.append(Text("Nothing is drawn: without a formal guarantee there is no bound."))
    facts = [{"table": name, **odds_data(odds)} for name, odds in found.items()]
    return Group(*lines), {"sizes": list(pair), "odds": facts, "chart": str(chart) if drawn else None}


def odds_data(odds: "SizeOdds") -> dict[str, Any]:
    """The bound between two sizes for machines; a factor without any bound is null."""
    return asdict(odds) | {"factor": odds.factor if isfinite(odds.factor) else None, "belief": odds.belief}


ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="The release file (TOML).")]


def check(
    file: ReleaseFile,
    data: Annotated[bool, typer.Option(help="Also validate the data; --no-data opens the release file only.")] = True,
    sizes: Annotated[
        str | None,
        typer.Option(help="Two sizes of an establishment such as `100,150`: how well each table tells them apart."),
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(help="With --sizes: draw what may be learned of the first size to this SVG or HTML file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Validate a release and show, per table and in total, the guarantee, the charge, the cells and the expected error.

    Nothing is charged and nothing is published. With --sizes it also bounds the Bayes factor between two sizes of an
    establishment: by how much the odds of any reader can change, of each table and of all together.
    """
    from sfumato.checking import check as check_release
    from sfumato.release import load

    pair = _two_sizes(sizes, chart)
    with progress(hidden=as_json) as update:
        found = check_release(load(file), data=data, progress=_steps(update))
    shown, facts = plan_summary(found)
    if pair is not None:
        odds, odds_facts = odds_summary(found.plan, pair, chart)
        shown, facts = Group(shown, Text(""), odds), facts | odds_facts
    show((shown, facts), as_json)
    if found.refusal is not None:
        raise typer.Exit(1)


def run(file: ReleaseFile, as_json: AsJson = False) -> None:
    """Publish a release: charge the budget, tabulate, protect, write the bundle.

    The same file on the same data again publishes the stored answer, at no charge and without new noise.
    """
    from sfumato.release import load
    from sfumato.running import run as run_release

    with progress(hidden=as_json) as update:
        published = run_release(
            load(file), progress=_steps(update), notice=lambda words: messages.print(data_changed(words))
        )
    show(run_summary(published), as_json)


def assess(
    file: ReleaseFile,
    report: Annotated[Path | None, typer.Option(help="Where to write the page.")] = None,
    strata: Annotated[
        list[str] | None,
        typer.Option(help="Break errors down by this public attribute too, whatever the tables are by; repeatable."),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(help="The release file of an earlier period: attack growth with its tables of the same names."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="A release file of the same data with another protection: compare errors with its tables."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the confidential report of a published release: true against protected values, error by size of cell.

    The releases named by --earlier and --reference were published before, each with its own ledger and bundle. Their
    tables are taken where name, attributes and codes are the same.
    """
    from sfumato.release import load
    from sfumato.report.assess import assess as assess_release

    with progress(hidden=as_json) as update:
        assessment = assess_release(
            load(file),
            report,
            progress=_steps(update),
            strata=strata or (),
            earlier=None if earlier is None else load(earlier),
            reference=None if reference is None else load(reference),
        )
    show(assessment_summary(assessment), as_json)


def _steps(update: Callable[[str, int, int], None]) -> Callable[[str], None]:
    """Show named steps as they come, in the order in which a run takes them."""
    from sfumato.running import STEPS

    return lambda step: update(step, STEPS.index(step) if step in STEPS else len(STEPS), len(STEPS))
