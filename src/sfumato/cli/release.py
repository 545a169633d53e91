"""The commands that look at a release: `sfumato check` and `assess`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.bundle.statement import meaning_of
from sfumato.cli.calendar import calendar_data, calendar_table, left_words
from sfumato.cli.cube_errors import cube_error_data, cube_errors
from sfumato.cli.log import LogFile, Verbose
from sfumato.cli.screen import (
    PERCENT,
    AsJson,
    Summary,
    Table,
    charge_of,
    near,
    printed_table,
    progress,
    short,
    show,
    spaced,
    whole,
)
from sfumato.cli.series import (
    PeriodOption,
    earlier_release,
    edition_words,
)
from sfumato.cli.sizes import odds_data, odds_summary, two_sizes
from sfumato.privacy.guarantee import EmployerEmployee, at_least, at_most
from sfumato.privacy.meaning import why_charged_once
from sfumato.privacy.units import of_window
from sfumato.statistics.exact.foreseen import by_what_happens
from sfumato.statistics.published import number
from sfumato.statistics.registry import requirements

if TYPE_CHECKING:  # only names for types
    from sfumato.checking import Findings
    from sfumato.engine.guesses import Guess
    from sfumato.measures.attacks import AttackResult
    from sfumato.measures.risk import Exposure
    from sfumato.measures.usability import Usability
    from sfumato.measures.utility import Utility
    from sfumato.plan import Plan
    from sfumato.report.assessment import Assessment
    from sfumato.statistics.cube.statistic import CubeStatistic


# What `sfumato check` says of a plan.


def plan_summary(findings: "Findings") -> Summary:
    """The plan of a release: guarantee, charge, cells and expected error of every table and in total."""
    plan = findings.plan
    budget = plan.release.budget
    free = {part.name for part in plan.statistics} - {part.name for part in plan.distinct()}
    table = printed_table("table", "cells", "guarantee", "charge", "small cells", "large cells")
    due, left, period = findings.due, findings.left, plan.release.about.period
    unsure = findings.totals is None and findings.balance is not None and findings.balance.charged > 0
    for statistic in plan.statistics:
        charge = charge_of(statistic.guarantee, budget)
        name = statistic.name
        paid = "paid before" if name in findings.paid else "repeated" if name in free else ""
        table.add_row(
            name,
            f"{statistic.cells:,}",
            short(statistic.guarantee),
            paid or at_most(charge),
            *statistic.expected_error(),
        )
    lines: list[RenderableType] = [
        Text(plan.release.about.title, style="bold"),
        table,
        *_what_is_large(plan),
        *cube_errors(findings),
        Text("\n".join(_protected(plan))),
        *(Text(f"{name} is made of {words}.") for name, words in plan.derived().items()),
        Text(
            f"All tables together: {whole(plan.guarantee)}."
            + (
                f" To be charged: {'at most ' if unsure else ''}epsilon = {at_most(due)}; left in the budget of "
                f"{plan.release.account}: {at_least(left)}."
                if budget is not None
                else " Nothing is charged: these methods spend no budget."
            )
        ),
        *(Text(why_charged_once(found, findings.charged_about_others).replace("`", "")) for found in plan.charged_once),
        *(part for one in findings.calendars for part in calendar_table(one, period)),
        *map(Text, left_words(findings.calendars, period)),
        *map(Text, meaning_of(plan)),
        *(Text(words) for one in findings.calendars for words in of_window(one, jobs=plan.release.data.of_jobs)),
        *map(Text, plan.operator_notes()),
        *map(Text, _codelists_read(plan)),
        *(Text(f"Table {name}: {found.in_words()}") for name, found in findings.weighing.items()),
        *(Text(f"Table {name}: {offer.in_words()}") for name, offer in findings.offers.items()),
        *(Text(found.in_words()) for found in findings.cut.values()),
        *(Text(f"Table {name}: {found.in_words()}") for name, found in findings.foreseen.items()),
    ]
    lines += [
        Text(data_changed(words, charged=plan.release.budget is not None), style="yellow") for words in findings.changes
    ]
    lines += [Text(words, style="yellow") for words in edition_words(findings)]
    if findings.refusal is not None:
        lines.append(Text(f"`sfumato run` will refuse this release.\n{findings.refusal}", style="bold red"))
    elif findings.possible_refusal is not None:
        words = (
            "Whether `sfumato run` will refuse this release depends on the data, which were not opened: it costs less "
            "where tables were charged before, or are about other establishments than what was charged. At most:"
        )
        lines.append(Text(f"{words}\n{findings.possible_refusal}", style="yellow"))
    elif due > left:
        lines.append(Text("This is more than is left: `sfumato run` will refuse it.", style="bold red"))
    lines += map(Text, reading_words(findings.reading))
    read = findings.totals
    words = "The data were not opened." if read is None else f"{read.in_words()} The data match their description."
    lines.append(Text(f"{words} Nothing was charged.", style="green"))
    return Group(*spaced(lines)), plan_data(plan, findings.charged_about_others) | cube_error_data(findings) | {
        "due_epsilon": number(due),
        "remaining_epsilon": number(left),
        **({"windows": calendar_data(findings.calendars, period)} if findings.calendars else {}),
        "paid_before": sorted(findings.paid),
        "refusal": None if findings.refusal is None else str(findings.refusal),
        "possible_refusal": None if findings.possible_refusal is None else str(findings.possible_refusal),
        "data_validated": read is not None,
        "read": None if read is None else read.figures(),
        "reading": {table: guess.facts() for table, guess in findings.reading.items()},
        "data_changed": list(findings.changes),
        **({"series": edition_words(findings)} if plan.release.series else {}),
        "weights": {name: found.figures() for name, found in findings.weighing.items()},
        "error_epsilon": {name: offer.figures() for name, offer in findings.offers.items()},
        **by_what_happens(findings.foreseen),
        **({"cut": {name: found.figures() for name, found in findings.cut.items()}} if findings.cut else {}),
        "notes": plan.operator_notes(),
        "codelists_read": {name: one.reading for name, one in plan.codelists.items() if one.reading},
        "made_of": plan.derived(),
    }


def _codelists_read(plan: "Plan") -> list[str]:
    """How files of codes were read, where something was guessed or picked."""
    read = [f"{name}: {one.reading}." for name, one in plan.codelists.items() if one.reading]
    return ["\n".join(["How codelists were read:", *read])] if read else []


def reading_words(reading: "Mapping[str, Guess]") -> list[str]:
    """How tables are read that are no Parquet; what was guessed can be given in the release file."""
    return [f"{table.capitalize()} read as {guess.in_words()}." for table, guess in reading.items()]


def data_changed(words: str, *, charged: bool = True) -> str:
    """What is said of data that changed, and so make tables cost once more, unless they cost nothing."""
    meaning = "tables are charged anew" if charged else "tables are made anew"
    return f"The data changed, and {meaning}. {words[0].upper()}{words[1:]}."


def plan_data(plan: "Plan", charged_about_others: Collection[str] = ()) -> dict[str, Any]:
    """A plan as numbers."""
    budget = plan.release.budget
    once = [found.facts() for found in plan.charged_once if not {*found.names}.intersection(charged_about_others)]
    return {
        "title": plan.release.about.title,
        "guarantee": plan.guarantee.described(),
        **({"charged_once": once} if once else {}),
        "tables": [
            {
                "name": statistic.name,
                "cells": statistic.cells,
                "method": statistic.method.name,
                "guarantee": statistic.guarantee.described(),
                "charge_epsilon": number(charge_of(statistic.guarantee, budget)),
                "protects": requirements(statistic.guarantee).facts(),
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
        **({"protects": "unit", "most_records": cube.section.most_records} if cube.protects_units else {}),
    }


def _what_is_large(plan: "Plan") -> list[RenderableType]:
    sizes: dict[str, set[int]] = {}
    for large in filter(None, (statistic.large_from for statistic in plan.tables)):
        sizes.setdefault(large[1], set()).add(large[0])
    words = [f"{' or '.join(f'{size:,}' for size in sorted(some))} {unit}" for unit, some in sizes.items()]
    return (
        [Text(f"A cell is large when its largest establishment has more than {'; or '.join(words)}.")] if words else []
    )


def _protected(plan: "Plan") -> list[str]:
    """What is protected, once for all tables that protect the same."""
    tables: dict[str, list[str]] = {}
    for statistic in plan.statistics:
        bounded = statistic.folder == "cubes" and statistic.guarantee.bound is not None
        words = "single records" if bounded else str(requirements(statistic.guarantee))
        words = "units with all their records" if statistic.protects_units else words
        tables.setdefault(words, []).append(statistic.name)
    return [
        f"Protected in {'all tables' if len(tables) == 1 and not plan.cubes else ', '.join(names)}: {words}."
        for words, names in tables.items()
    ]


# What `sfumato assess` says of the cost of protection; confidential.

_BAR = 24


def assessment_summary(assessment: "Assessment") -> Summary:
    """What the protection costs, table by table; confidential."""
    from sfumato.measures.limits import limit_words
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
    usable = {one.name: one for one in assessment.usability}
    for utility, exposure in zip(assessment.utilities, assessment.exposures, strict=True):
        published = usable.get(utility.name)
        if utility.is_exact and published is not None:  # true numbers: what is withheld is what they cost
            lines += [Text(f"{utility.title}: {published.in_words()}"), _published_table(published)]
            lines += [Text(words) for found in exposure.attacks if (words := _attack_words(found))]
        else:
            lines += [error_chart(utility), Text(_in_words(utility, exposure))]
    together = [found for one in assessment.together for found in one.attacks]
    lines += [Text(words) for found in together if (words := _attack_words(found))]
    lines += [Text(one.note) for one in assessment.together if one.note]
    lines += [
        Text(f"{found.title}: {found.words} is off by {found.mean_error:.2f} points on average.")
        for found in assessment.growth
    ]
    lines += [Text(sparse_words(found)) for found in assessment.sparse]
    lines += [Text(people_words(found)) for found in assessment.people]
    lines += [Text(f"{title}: {limit_words(limit)}") for title, limit in assessment.limits]
    lines += [Text(cube_words(found)) for found in assessment.cubes]
    lines.append(Text(f"The whole report, with charts: {near(assessment.report)}"))
    both = zip(assessment.utilities, assessment.exposures, strict=True)
    data: dict[str, Any] = {"report": str(assessment.report), "tables": [_utility_data(*pair) for pair in both]}
    data |= {"growth": [found.data() for found in assessment.growth]} if assessment.growth else {}
    data |= {"together": [found.data() for found in together]} if together else {}
    sensitive = [one for found in assessment.together for one in found.sensitive()]
    data |= {"sensitive": sensitive} if sensitive else {}
    data |= {"usability": [found.data() for found in assessment.usability]}
    data |= {"sparse": list(map(sparse_data, assessment.sparse))} if assessment.sparse else {}
    data |= {"network": asdict(assessment.network)} if assessment.network is not None else {}
    data |= {"networks": [found.data() for found in assessment.networks]} if assessment.networks else {}
    data |= {"people": list(map(people_data, assessment.people))} if assessment.people else {}
    limits = [{"title": title, **asdict(limit)} for title, limit in assessment.limits]
    data |= {"limits": limits} if limits else {}
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


def _published_table(found: "Usability") -> RenderableType:
    """What is published and withheld of true numbers, by size of the cell."""
    from sfumato.measures.usability import PUBLISHED, published_rows

    table = Table(box=None)
    for heading in (found.sizes, *PUBLISHED):
        table.add_column(heading, justify="right")
    for row in published_rows(found):
        table.add_row(*row)
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
    """What an attack discloses; nothing where there was nothing to attack."""
    if not found.targets:
        return ""
    text = f"The {found.attack} attack discloses {found.successes:,} of {found.targets:,} targets."
    if found.limit is None:
        return text
    return f"{text[:-1]}, and has a probability above {found.limit:.0%} for {found.above:,}."


def _in_words(utility: "Utility", exposure: "Exposure") -> str:
    """The figures of a table that fit into two sentences."""
    order = "" if utility.spearman is None else f"Rank correlation with the true cells {utility.spearman:.4f}. "
    attacks = "".join(f"{words} " for found in exposure.attacks if (words := _attack_words(found)))
    if exposure.suppression is None:
        return (order + attacks).strip()
    hidden, cells = exposure.suppression.any_rule, exposure.suppression.cells
    return f"{order}{attacks}Suppression rules would hide at least {hidden:,} of the {cells:,} cells with jobs."


ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="The release file (TOML).", readable=False)]


def check(
    file: ReleaseFile,
    period: PeriodOption = None,
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
    _log: LogFile = None,
    _verbose: Verbose = False,
) -> None:
    """Validate a release and show, per table and in total, the guarantee, the charge, the cells and the expected error.

    Nothing is charged and nothing is published. With --sizes it also bounds the Bayes factor between two sizes of an
    establishment: by how much the odds of any reader can change, of each table and of all together.
    """
    from sfumato.checking import check as check_release
    from sfumato.release import load

    pair = two_sizes(sizes, chart)
    with progress(hidden=as_json) as update:
        found = check_release(load(file, period), data=data, progress=steps(update))
    shown, facts = plan_summary(found)
    if pair is not None:
        odds, odds_facts = odds_summary(found.plan, pair, chart)
        shown, facts = Group(shown, Text(""), odds), facts | odds_facts
    show((shown, facts), as_json)
    if found.refusal is not None:
        raise typer.Exit(found.refusal.exit_code)


def assess(
    file: ReleaseFile,
    period: PeriodOption = None,
    report: Annotated[Path | None, typer.Option(help="Where to write the page.")] = None,
    strata: Annotated[
        list[str] | None,
        typer.Option(help="Break errors down by this public attribute too, whatever the tables are by; repeatable."),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(
            help="The release file of an earlier period, or an earlier period of the series: attack growth with its "
            "tables of the same names, and what is withheld in either."
        ),
    ] = None,
    change: Annotated[
        float,
        typer.Option(
            help="With --earlier: readers take it that no cell of true numbers changed by more than so many percent."
        ),
    ] = 5.0,
    reference: Annotated[
        Path | None,
        typer.Option(help="A release file of the same data with another protection: compare errors with its tables."),
    ] = None,
    accuracy: Annotated[
        float, typer.Option(help="A cell that is expected to be off by more than this share of its value is unusable.")
    ] = 0.1,
    as_json: AsJson = False,
    _log: LogFile = None,
    _verbose: Verbose = False,
) -> None:
    """Write the confidential report of a published release: true against protected values, error by size of cell.

    The releases named by --earlier and --reference were published before, each with its own ledger and bundle. Their
    tables are taken where name, attributes and codes are the same.
    """
    from sfumato.release import load
    from sfumato.report.assess import assess as assess_release

    with progress(hidden=as_json) as update:
        assessment = assess_release(
            load(file, period),
            report,
            progress=steps(update),
            strata=strata or (),
            earlier=None if earlier is None else earlier_release(file, period, earlier),
            reference=None if reference is None else load(reference),
            accuracy=accuracy,
            change=change,
        )
    show(assessment_summary(assessment), as_json)


def steps(update: Callable[[str, int, int], None]) -> Callable[[str], None]:
    """Show named steps as they come, in the order in which a run takes them."""
    from sfumato.running import STEPS

    def told(step: str) -> None:
        share = getattr(step, "share", None)
        if share is not None:  # of a step that takes long between two others
            update(step, round(PERCENT * share), PERCENT)
        else:
            update(step, STEPS.index(step) if step in STEPS else len(STEPS), len(STEPS))

    return told
