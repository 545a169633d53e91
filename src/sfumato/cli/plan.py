"""`sfumato plan`: epsilons for all tables of a release, from how accurate each is wished to be."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.cli.release import ReleaseFile
from sfumato.cli.screen import AsJson, Summary, near, printed_table, show, spaced, typed_number
from sfumato.cli.series import PeriodOption

if TYPE_CHECKING:  # only names for types
    from sfumato.wishes.allocation import Allocation, Allotment
    from sfumato.wishes.planner import Planner


def plan(
    file: ReleaseFile,
    period: PeriodOption = None,
    wish: Annotated[
        list[str] | None,
        typer.Option(help="TABLE=WISH, such as `jobs_by_place=10%` or `jobs_by_place=100 jobs`; may be repeated."),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="What all tables may cost together; without it, the least that meets all wishes.")
    ] = None,
    workers: Annotated[
        str, typer.Option(help="Workers of an establishment on average, for wishes in percent: a public number.")
    ] = "20",
    write: Annotated[
        Path | None, typer.Option(help="Write a new release file with these epsilons; an existing one stays as it is.")
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(help="Draw the error of every table against the total to this SVG or HTML file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find which tables to measure, each with which epsilon, from how accurate each is wished to be.

    Say it in the release file, wish = "5%" in a [[table]], or here with --wish. Without --epsilon it finds the least
    total that meets all wishes; with it, the split whose worst error, over its wish, is least. Tables agree afterwards
    (reconcile = true), so a coarse table may be best as a sum of a finer one: it is then not measured.

    Only the release file and the register of establishments are read, which are public. Nothing is charged.
    """
    from sfumato.errors import UsageError
    from sfumato.release import load
    from sfumato.wishes.allocation import rewritten
    from sfumato.wishes.planner import Planner

    typed = [text.partition("=") for text in wish or ()]
    wrong = next((text for text, parts in zip(wish or (), typed, strict=True) if not parts[2].strip()), None)
    if wrong is not None:
        raise UsageError("--wish", expected="TABLE=WISH, such as jobs_by_place=10%", found=wrong, do="correct it")
    if write is not None and write.exists():
        raise UsageError(
            "--write",
            expected="a file that does not exist yet",
            found=near(write),
            do="give another name, or remove it",
        )
    release = load(file, period)
    planner = Planner.of(
        release,
        {name.strip(): text.strip() for name, _, text in typed},
        workers=float(typed_number("workers", workers)),
    )
    found = planner.least() if epsilon is None else planner.at(typed_number("epsilon", epsilon))
    notes = []
    if write is not None:
        text = rewritten(file.read_text(encoding="utf-8"), found)
        with write.open("x", encoding="utf-8") as out:
            out.write(text)
        notes.append(f"Written: {near(write)}.")
    if chart is not None:
        notes.append(f"Drawn: {near(_drawn(planner, found, chart))}.")
    show(allocation_summary(found, notes), as_json)


def allocation_summary(found: "Allocation", notes: list[str]) -> Summary:
    """A plan as text for people and as data for machines."""
    from sfumato.privacy.guarantee import plain
    from sfumato.statistics.jobs.tune import in_toml
    from sfumato.statistics.published import number

    table = printed_table("table", "wish", "cells", "epsilon", "error alone", "error agreed", "of its wish", numbers=5)
    for one in found.tables:
        kept = "" if one.wish is not None else " (kept)"
        table.add_row(
            one.name,
            "" if one.wish is None else str(one.wish),
            f"{one.cells:,}",
            f"{plain(one.epsilon)}{kept}" if one.epsilon else "not measured",
            "" if one.alone is None else _figure(one, one.alone),
            _figure(one, one.agreed),
            "" if one.normalised is None else f"{one.normalised:.2f}",
        )
    verdict = "All wishes are met" if found.worst <= 1 else f"The worst error is {found.worst:.3g} times what is wished"
    over = f", more than the budget of {plain(found.budget)}" if found.total > found.budget else ""
    bought = ", ".join(f"{one.name} {plain(one.scale)}" for one in found.tables if one.scale)
    scales = f"In it are scales that are bought for error figures, as error_epsilon says: {bought}." if bought else ""
    lines: list[RenderableType] = [
        Text(f"{verdict}, at epsilon = {plain(found.total)} in all{over}.", style="bold"),
        table,
        Text(scales),
        Text("\n".join(_sums(found))),
        Text("The worst error over its wish with the same total: " + ", ".join(_compared(found)) + "."),
        Text(assumed(found)),
        Text(
            "To use it: reconcile = true under [release], and\n"
            + "\n".join(
                f"{one.name}: epsilon = {in_toml(one.epsilon)}" if one.epsilon else f"{one.name}: leave it out"
                for one in found.tables
                if one.wish is not None
            )
        ),
        *map(Text, notes),
        Text("No confidential data were opened. Nothing was charged.", style="green"),
    ]
    return Group(*spaced([line for line in lines if not isinstance(line, Text) or line.plain])), {
        "epsilon": number(found.total),
        "budget": number(found.budget),
        "worst": found.worst,
        "meets": found.worst <= 1,
        "others": dict(found.others),
        "register": found.register,
        "workers": found.workers,
        "reconcile": True,
        "tables": [_data(one) for one in found.tables],
    }


def _data(one: "Allotment") -> dict[str, Any]:
    from sfumato.statistics.published import number

    return {
        "name": one.name,
        "wish": None if one.wish is None else str(one.wish),
        "cells": one.cells,
        "epsilon": number(one.epsilon),
        "error_epsilon": number(one.scale),
        "measured": one.epsilon > 0,
        "sum_of": one.sum_of or None,
        "unit": "share" if one.wish is None or one.wish.relative else "jobs",
        "error_alone": one.alone,
        "error_agreed": one.agreed,
        "normalised": one.normalised,
    }


def _figure(one: "Allotment", error: float) -> str:
    relative = one.wish is None or one.wish.relative
    return f"{error:.2%}" if relative else f"{error:,.1f} jobs"


def _sums(found: "Allocation") -> list[str]:
    return [
        f"{one.name} is not measured: it is more exact as a sum of {one.sum_of or 'other tables'}."
        for one in found.tables
        if not one.epsilon
    ]


def _compared(found: "Allocation") -> list[str]:
    return [f"{found.worst:.3g} so", *(f"{worst:.3g} with {words}" for words, worst in found.others.items())]


def assumed(found: "Allocation") -> str:
    """What a plan rests on."""
    known = (
        "how many establishments each cell has, by the public register"
        if found.register
        else "nothing of establishments: there is no public register, and all cells of a table are taken for alike"
    )
    return (
        f"Known: {known}. Assumed, not read off any data: establishments of {found.workers:g} workers on average "
        "(--workers), and sizes as unlike as usual. Errors are means over the cells of a table, in percent of the mean "
        "cell."
    )


def _drawn(planner: "Planner", found: "Allocation", file: Path) -> Path:
    """The error of every table over its wish, against the total: plans at totals around the one that was found."""
    from fractions import Fraction

    from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
    from sfumato.charts.svg import write_drawing

    totals = [Fraction(f"{float(found.total) * 2 ** (step / 2):.3g}") for step in range(-3, 4)]
    plans = planner.curve(totals)
    spent = [float(one.total) for one in plans]
    names = [one.name for one in found.tables if one.wish is not None]
    errors = {
        name: [one.normalised or 0.0 for plan in plans for one in plan.tables if one.name == name] for name in names
    }
    lines = [Mark(kind="line", x=spent, y=errors[name], series=at) for at, name in enumerate(names)]
    wished = Mark(kind="line", x=[spent[0], spent[-1]], y=[1.0, 1.0], dash="2 3")
    panel = Panel(
        x=Axis(title="epsilon of all tables together", kind="log", zero=False),
        y=Axis(title="error over its wish", kind="log", zero=False),
        marks=[*lines, wished],
    )
    title = "Errors of planned tables against the total"
    drawing = draw_panels([panel], title=title, series=names, size=(460.0, 300.0))
    return write_drawing(drawing, file, title=title)
