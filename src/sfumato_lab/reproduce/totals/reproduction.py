"""Totals and indicators, formal and legacy, side by side: everything that is measured, and its page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.charts.plots import Axis, Mark, Panel, draw_panels
from sfumato.cli.screen import Table, printed_table, spaced
from sfumato_lab.economy.jobs.generate import generate
from sfumato_lab.reproduce.page import Finding, Page, economy_folder, findings_table, printed_findings, rows_table
from sfumato_lab.reproduce.totals import panel, pay
from sfumato_lab.reproduce.totals.pay import ALL, Measured, Pay, Progress, Setting
from sfumato_lab.reproduce.totals.readers import FORMAL, LEGACY, Attacked

NAME = "totals"
JOBS, PERSONS = 1_000_000, 200_000
WHOLE, QUICK = Setting(trials=20), Setting(trials=5)
METHODS = (FORMAL, LEGACY)
AIMS = {"place × industry × ownership": 0.58, "place": 0.38, "industry": 0.30}
"""What errors of pay may be of those of the legacy at most."""
DISCLOSED = 0.9
"""An attack on ratios, sizes or growth succeeds on so many of its targets under the legacy, at least."""
BY_LUCK = 0.01
"""Noise may leave a figure as it was; no reader can tell where."""
_EPSILON_OF_PANEL = 4
"""Of every table in every quarter."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Everything that was measured."""

    jobs: int
    persons: int
    setting: Setting
    spent: Setting
    """What the panel spends, of each table in each quarter."""
    cap: int
    share_cut: float
    measured: tuple[Measured, ...]
    attacked: tuple[Attacked, ...]
    panel_share_cut: float | None
    reason: str
    """Why indicators have no formal figures, where they have none."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is aimed at, beside what was measured."""
        return tuple(_findings(self))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object for every figure."""
        for part, setting in ((pay.PART, self.setting), (panel.PART, self.spent), (panel.LATTICE, self.spent)):
            spent = {"alpha": float(setting.alpha), "epsilon": float(setting.epsilon)}
            told: list[Measured | Attacked] = [*self.measured, *self.attacked]
            yield from ({**one.row(), **(spent if one.method == FORMAL else {})} for one in told if one.part == part)
        for part, share in ((pay.PART, self.share_cut), (panel.PART, self.panel_share_cut)):
            yield {"quantity": "share_cut", "part": part, "method": FORMAL, "published": None, "ours": share}

    def of(self, quantity: str, table: str, method: str, *, indicator: str = "", size_class: str = ALL) -> Any:
        """One figure, or None."""
        asked = (quantity, table, method, indicator, size_class)
        found = (m for m in self.measured if (m.quantity, m.table, m.method, m.indicator, m.size_class) == asked)
        return next((one.ours for one in found), None)


def reproduce(
    *,
    data: Path | None = None,
    jobs: int = JOBS,
    persons: int = PERSONS,
    setting: Setting = WHOLE,
    seed: int = 1,
    progress: Progress = lambda *_: None,
) -> Reproduction:
    """Protect totals of pay, and indicators of a panel, in both ways; look at errors and growth, and attack both.

    The seed decides the economies and all that is drawn of pay. Indicators are published by releases, whose noise and
    key are drawn anew each time. `data` is a folder of an economy of jobs.
    """

    def make(folder: Path) -> None:
        generate(folder, jobs=jobs, seed=seed, progress=partial(progress, "making jobs"))

    with economy_folder(data, make) as folder:
        progress("adding up pay", 0, 1)
        paid = Pay.read(folder)
    measured = list(pay.errors(paid, setting, seed, progress))
    attacked = list(pay.attacks(paid, setting, seed))
    spent = Setting(alpha=setting.alpha, epsilon=type(setting.epsilon)(_EPSILON_OF_PANEL), trials=1)
    with TemporaryDirectory() as made:
        progress("making a panel", 0, 1)
        quarters = panel.generate(Path(made), persons=persons, quarters=panel.QUARTERS, seed=seed)
        found, tried, published = panel.evaluate(Path(made), spent, quarters, progress)
    with TemporaryDirectory() as made:
        progress("looking for a lattice", 0, 1)
        tried += panel.lattice_attacks(
            Path(made), spent, progress, persons=min(persons, panel.LATTICE_PERSONS), seed=seed
        )
    return Reproduction(
        jobs=int(paid.jobs.sum()),
        persons=persons,
        setting=setting,
        spent=spent,
        cap=paid.cap,
        share_cut=paid.share_cut,
        measured=(*measured, *found),
        attacked=(*attacked, *tried),
        panel_share_cut=published.share_cut,
        reason=published.reason,
    )


def _findings(found: Reproduction) -> Iterator[Finding]:
    for table, most in AIMS.items():
        ratio = found.of("error_ratio", table, FORMAL)
        noise, legacy = (found.of("error_share", table, method) for method in METHODS)
        cut = found.of("error_share_with_cut", table, FORMAL)
        yield Finding(
            source="aim",
            what=f"pay by {table}: error, formal / legacy",
            stated=f"at most {most:g}",
            ours=f"{ratio:.2f}",
            holds=ratio <= most,
            note=f"{noise:.2%} and {legacy:.2%} of all pay; {cut:.2%} with what the cap cuts off",
        )
    for one in found.attacked:
        if one.succeeded is None:
            continue
        found_by = f"{one.succeeded:.2%} of {one.targets:,}"
        stated = f"at most {BY_LUCK:.0%}, by luck" if one.method == FORMAL else f"at least {DISCLOSED:.0%}"
        holds = one.succeeded <= BY_LUCK if one.method == FORMAL else one.succeeded >= DISCLOSED
        if one.part == panel.LATTICE and one.method == LEGACY:
            stated, holds = "some", one.succeeded > 0  # of factors below one nothing is told
        yield Finding(
            source="attack",
            what=f"{one.part}, {one.attack}, {one.method}",
            stated=stated,
            ours=found_by,
            holds=holds,
            note="" if one.off is None else f"the reader is off by {one.off:.2%} in the middle of all targets",
        )


# What `sfumato reproduce` says.


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as tables for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(_about(found), style="bold"),
        printed_findings(found.findings, starred=False),
        _growth(found),
    ]
    if found.reason:
        lines.append(Text(f"Indicators have no formal figures here: {found.reason}."))
    lines.append(Text(f"Charts: {page}\nAll figures: {table}"))
    return Group(*spaced(lines)), {"paper": NAME, "rows": list(found.rows())}


def _about(found: Reproduction) -> str:
    pay_spent, panel_spent = (f"α = {float(s.alpha):g}, ε = {float(s.epsilon):g}" for s in (found.setting, found.spent))
    return (
        f"Totals of pay of {found.jobs:,} jobs ({pay_spent} a table, pay cut at {found.cap:,}, which takes off "
        f"{found.share_cut:.2%}; {found.setting.trials} draws), and indicators of a panel of {found.persons:,} persons "
        f"({panel_spent} a table and quarter), beside permanent factors of 10 to 25 %."
    )


def _growth(found: Reproduction) -> Table:
    """How far published growth is off, in the middle of all cells."""
    table = printed_table(
        "growth from quarter to quarter is off by", *(f"{of}, {m}" for of in panel.GROWN for m in METHODS)
    )
    for name in panel.TABLES:
        for label in (ALL, *(words for _, words in panel.CLASSES)):
            figures = [
                found.of("growth_off", name, method, indicator=of, size_class=label)
                for of in panel.GROWN
                for method in METHODS
            ]
            if any(one is not None for one in figures):
                table.add_row(f"{name}: {label}", *("" if one is None else _points(one) for one in figures))
    return table


def _points(share: float) -> str:
    return f"{100 * share:.2g} points" if share >= 0.0001 else "below 0.01 points"


# The page.

_HEADING = "Totals and indicators with a guarantee, beside the legacy protection"
_COLUMNS = (
    *("quantity", "part", "table", "indicator", "size_class", "attack", "method", "alpha", "epsilon"),
    *("published", "ours", "cells", "targets", "guess", "off", "reason"),
)


def _body(found: Reproduction) -> str:
    reason = f"<p>Indicators have no formal figures here: {escape(found.reason)}.</p>" if found.reason else ""
    return f"""\
<p>{escape(_about(found))}</p>
{findings_table(found.findings)}
{reason}
<h2>Errors by the size of the cell</h2>
<p>Errors of all cells of a class together, as a share of what is truly there. Of pay, those of the formal method are of
its noise; with what the cap cuts off, error_share_with_cut has them.</p>
<figure>{_by_size(found, "error_share", pay.PART, [(t, "") for t in pay.TABLES], "Pay: error as a share")}</figure>
<figure>{_by_size(found, "error_share", panel.PART, _OF_PANEL, "Panel: error as a share")}</figure>
<h2>Growth from quarter to quarter</h2>
<p>By how much published growth is off, in the middle of all cells of a class and of eight quarters. Under the legacy
the growth of one employer is published nearly as it is, because its factor cancels: that is what makes it accurate, and
what the attack on growth reads.</p>
<figure>{_by_size(found, "growth_off", panel.PART, _OF_PANEL, "Panel: growth is off by (share)")}</figure>
<h2>Attacks</h2>
{_attacks(found)}"""


_OF_PANEL = [(table, indicator) for table in panel.TABLES for indicator in panel.GROWN]


def _by_size(found: Reproduction, quantity: str, part: str, asked: Sequence[tuple[str, str]], title: str) -> str:
    """A panel for each table, a line for each method."""
    names = [words for _, words in (pay.CLASSES if part == pay.PART else panel.CLASSES)]
    x, y = Axis(title="jobs of the cell", classes=names), Axis(title="", kind="log")
    panels = []
    for table, indicator in asked:
        marks = []
        for series, method in enumerate(METHODS):
            figures = [found.of(quantity, table, method, indicator=indicator, size_class=name) for name in names]
            some = [(place, value) for place, value in enumerate(figures) if value]
            if some:
                places, values = zip(*some, strict=True)
                marks.append(Mark(kind="line", x=places, y=values, series=series))
        panels.append(Panel(x, y, marks, f"{table}{f', {indicator}' if indicator else ''}"))
    return draw_panels(panels, title=title, series=METHODS, columns=len(asked), size=(190, 190))


def _attacks(found: Reproduction) -> str:
    rows = (
        (
            one.part,
            one.attack,
            one.method,
            f"{one.targets:,}",
            "" if one.succeeded is None else f"{one.succeeded:.1%}",
            "" if one.guess is None else f"{one.guess:.1%}",
            "" if one.off is None else f"{one.off:.2%}",
            one.reason,
        )
        for one in found.attacked
    )
    heads = ("data", "attack", "method", "targets", "exact", "guess", "median error", "note")
    return rows_table(heads, rows, numbers=(3, 4, 5, 6))


write_reproduction = Page(paper=NAME, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""
