"""The page and the screen of the reproduction, with its charts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from sfumato.cli.screen import Table, printed_table
from sfumato.statistics.totals.calibration import Search, tradeoff
from sfumato.statistics.totals.perturbation import Shape
from sfumato.statistics.totals.tune import Tuned, risk_against_loss
from sfumato_lab.reproduce.chipperfield2019.evaluate import (
    QUANTITIES,
    Cell,
    PerturbedTable,
    SurveyTables,
    absolute_figures,
)
from sfumato_lab.reproduce.chipperfield2019.published import (
    APPROACHES,
    ASKED,
    ASKED_CELLS,
    EVERYONE,
    FIGURE_1_SPREADS,
    published_impacts,
)
from sfumato_lab.reproduce.chipperfield2019.reproduction import (
    DIFFERENCING,
    PAPER,
    FoundPanel,
    Reproduction,
    errata,
    listed,
    open_questions,
)
from sfumato_lab.reproduce.page import Page, bullets, rows_table

# The tables on synthetic data, laid out as in the paper: headings and rows of text, for the terminal and the page.

_MILLION = 1_000_000
_WHO = {EVERYONE: "all protected", ASKED: "values of who asked", ASKED_CELLS: "cells of who asked"}
_TITLES = {
    3: "Like Table 3: mean weekly earnings by occupation (impact of perturbation, %)",
    4: "Like Table 4: mean weekly earnings by industry (impact of perturbation, %)",
    6: "Like Table 6: turnover in $ million by state (impact of perturbation, %)",
    7: "Like Table 7: turnover in $ million by industry (impact of perturbation, %)",
}


@dataclass(frozen=True, kw_only=True)
class Laid:
    """A table of text."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1
    """How many columns come before those of figures."""


def laid_out(survey: SurveyTables) -> Iterator[Laid]:
    """All four tables, and what they come to beside the published ones."""
    for number in (3, 4):
        yield _crossed(survey.table(number))
    for number in (6, 7):
        yield _totals(*(survey.table(number, protected) for protected in APPROACHES))
    yield _compared(survey)


def _crossed(table: PerturbedTable) -> Laid:
    """Cells as "estimate (impact)", the first attribute down and the second across."""
    down, across = table.labels
    cells = {(cell.codes[down], cell.codes[across]): cell for cell in table.cells}
    return Laid(
        title=_TITLES[table.number],
        heads=(down, *table.labels[across].values()),
        rows=tuple(
            (label, *(_told(cells[code, other]) for other in table.labels[across]))
            for code, label in table.labels[down].items()
        ),
    )


def _totals(everyone: PerturbedTable, asked: PerturbedTable, cells: PerturbedTable) -> Laid:
    """Totals unperturbed, with their sampling error, and perturbed in every way."""
    (down,) = everyone.labels
    rows = []
    for row in zip(everyone.cells, asked.cells, cells.cells, strict=True):
        cell, told = row[0], (_told(each, by=_MILLION) for each in row)
        rows.append(
            (everyone.labels[down][cell.codes[down]], _number(cell.true / _MILLION), f"{cell.error:.1f}", *told)
        )
    heads = (down, "unperturbed", "RSE, %", "II: all protected", "I, III: values of who asked", "cells of who asked")
    return Laid(title=_TITLES[everyone.number], heads=heads, rows=tuple(rows))


def _compared(survey: SurveyTables) -> Laid:
    """Utility by cell, published and ours: the mean over the keys and the range."""
    rows = []
    for table in survey.tables:
        published = absolute_figures(published_impacts(table.number, table.protected))
        who = "" if table.number in (3, 4) else f", {_WHO[table.protected]}"
        for place, (quantity, words) in enumerate(QUANTITIES.items()):
            ours = table.figures(quantity)
            first = f"{table.number}{who}" if place == 0 else ""
            beside = _figure(quantity, published[quantity]) if published else ""
            spread = f"{_figure(quantity, min(ours))} to {_figure(quantity, max(ours))}" if ours else ""
            rows.append((first, words, beside, _figure(quantity, float(np.mean(ours))) if ours else "", spread))
    heads = ("like Table", "utility by cell, totals included", "published", "here", f"over {survey.keys} keys")
    return Laid(title="What the impacts come to", heads=heads, rows=tuple(rows), words=2)


def _told(cell: Cell, *, by: int = 1) -> str:
    """The perturbed estimate and its impact; means, whose impacts are small, with one more digit."""
    if cell.perturbed is None:
        return "suppressed"
    digits = 1 if by == 1 else 0
    shown = f"{cell.perturbed / by:,.{digits}f}"
    return shown if cell.impact is None else f"{shown} ({cell.impact:z.{digits + 1}f})"


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _figure(quantity: str, value: float) -> str:
    return f"{value:.0%}" if quantity.startswith("share") else f"{value:.2f}"


# The page of the reproduction.

_HEADING = "Business totals through a remote server, published and computed again"
_COLUMNS = (
    *("quantity", "what", "source", "contributors", "m", "attack", "attacks", "v", "spread", "parity", "falling"),
    *("table", "approach", "occupation", "industry", "state", "sex"),
    *("published", "relation", "ours", "loss", "true", "perturbed", "low", "high", "keys"),
)
_TABLE_2 = ("contributors", "m", "loss", "attack 1", "attack 2", "attack 3", "attack 2, parity rule")
_LARGEST, _STEP = 0.5, 0.025  # magnitudes drawn in the charts


def _body(found: Reproduction) -> str:
    return f"""\
<p>The figures of Chipperfield and others (2019). Risks and losses here are computed from the distribution of the
perturbation itself, not simulated.</p>
<h2>What does not agree with the paper's own definitions</h2>
{bullets(errata(found))}
<h2>Table 1: one total, perturbed</h2>
{rows_table(("", "published", "here"), _table_1(found))}
<h2>Figure 1: risk of attack 2 against loss</h2>
<p>Each dot is a set of magnitudes up to {_LARGEST:g}; no set lies below the line. Dashed: the acceptable risk.</p>
<div class="panels">{"".join(f"<figure>{_panel(panel)}</figure>" for panel in found.panels)}</div>
{rows_table(("", "", "published", *(f"b = {b:g}" for b in FIGURE_1_SPREADS)), _figure_1(found))}
{bullets(open_questions(found))}
<h2>Table 2: what the published magnitudes do</h2>
{rows_table(_TABLE_2, _table_2(found))}
<h2>Table 2: the optimal magnitudes</h2>
<p>With the least mean loss of all magnitudes in steps of 0.05, under all three attacks, the same among those that never
grow from a contributor to a smaller one, and under attack 2 alone.</p>
{rows_table(("contributors", "published", "all attacks", "never growing", "attack 2 alone"), _optima(found))}
<h2>Table 5: employees of three establishments</h2>
<p>Made-up employees with the printed contributions and sampling errors, protected by a release. Probabilities are over
all keys, for the second establishment as the attacker.</p>
{rows_table(("", "published", "here"), _table_5(found))}
<h2>Tables 3, 4, 6 and 7: utility by cell</h2>
<p>Tables like the paper's from a synthetic survey of {found.survey.businesses:,} businesses and
{found.survey.employees:,} employees, with magnitudes of 0.4, 0.3 and 0.2. The data are other ones, so only what impacts
come to can be compared: means over {found.survey.keys} keys, since one key is one draw; the paper had one.</p>
{"".join(f"<h3>{escape(laid.title)}</h3>{rows_table(laid.heads, laid.rows)}" for laid in laid_out(found.survey))}"""


def _panel(panel: FoundPanel) -> str:
    shown, risk = panel.published, panel.ours.verdicts[0].risk
    shape, attack = Shape.read(shown.contributors), replace(DIFFERENCING, within=shown.within)
    tried = tradeoff(shape, Search(top=len(panel.ours.magnitudes), step=_STEP, largest=_LARGEST), attacks=[attack])
    ours = Tuned(label=listed(panel.ours.magnitudes), loss=panel.ours.loss, risk=risk)
    title = f"{shown.name}: contributors {shown.contributors}, within {shown.within:.0%}"
    return risk_against_loss(tried, title=title, shown=[ours])


def _table_1(found: Reproduction) -> Iterator[Sequence[str]]:
    for line in found.example:
        yield line.what, f"{line.published:,}", f"{line.ours:,}"


def _figure_1(found: Reproduction) -> Iterator[Sequence[str]]:
    for panel in found.panels:
        shown = panel.published
        every = (panel.ours, *(wider for _, wider in panel.wider))
        losses = (f"{one.loss:.3f}" for one in every)
        yield shown.name, f"{shown.contributors}: loss", f"{shown.loss:.2f}", *losses
        risks = (f"{one.verdicts[0].risk:.3f}" for one in every)
        yield "", f"risk of attack 2 within {shown.within:.0%}", f"{shown.risk:.2f}", *risks


def _table_5(found: Reproduction) -> Iterator[Sequence[str]]:
    for line in found.table_5:
        stated = "" if line.published is None else f"{line.relation} {_short(line.published)}".strip()
        yield line.what, stated, _short(line.ours)


def _short(figure: float) -> str:
    return f"{figure:,.0f}" if abs(figure) > 1_000 else f"{figure:.3f}"


def _table_2(found: Reproduction) -> Iterator[Sequence[str]]:
    for line in found.optima:
        risks = [f"{verdict.risk:.3f}" + ("" if verdict.is_met else " ✗") for verdict in line.ours.verdicts]
        magnitudes = listed(line.published.magnitudes)
        yield line.published.contributors, magnitudes, f"{line.ours.loss:.3f}", *risks, f"{line.with_parity:.3f}"


def _optima(found: Reproduction) -> Iterator[Sequence[str]]:
    for line in found.optima:
        bests = (line.under(1, 2, 3), line.under(1, 2, 3, falling=True), line.under(2))
        published = f"{listed(line.published.magnitudes)} (loss {line.ours.loss:.3f})"
        shown = [f"{listed(best.magnitudes)} (loss {best.loss:.3f})" for best in bests]
        yield line.published.contributors, published, *shown


write_reproduction = Page(paper=PAPER, heading=_HEADING, columns=_COLUMNS, body=_body).write
"""Write the page and the CSV file into a folder."""


# What `sfumato reproduce chipperfield2019` says: published figures, ours, and what does not agree.


def reproduction_summary(found: Reproduction, page: Path, table: Path) -> tuple[RenderableType, dict[str, Any]]:
    """The comparison as tables for people and as one object for machines."""
    lines: list[RenderableType] = [
        Text(f"{PAPER}: the keyed perturbation of business totals. Risks and losses are exact, not simulated."),
        _example(found),
        _figure_1_summary(found),
        *(Text(sentence) for sentence in open_questions(found)),
        _table_2_summary(found),
        _optima_summary(found),
        _table_5_summary(found),
        Text(
            f"Tables like the paper's from a synthetic survey: {found.survey.businesses:,} businesses and "
            f"{found.survey.employees:,} employees. Cells are under one key and of other data than the paper's; what "
            "can be compared is utility by cell."
        ),
        *(_laid(table) for table in laid_out(found.survey)),
        Text("What does not agree with the paper's own definitions:", style="bold"),
        *(Text(f"- {sentence}") for sentence in errata(found)),
        Text(f"\nCharts: {page}\nAll figures: {table}"),
    ]
    data = {"paper": PAPER, "rows": list(found.rows()), "errata": errata(found), "open": open_questions(found)}
    return Group(*lines), data


def _example(found: Reproduction) -> Table:
    table = printed_table("Table 1", "published", "here", numbers=2)
    for line in found.example:
        table.add_row(line.what, f"{line.published:,}", f"{line.ours:,}")
    return table


def _figure_1_summary(found: Reproduction) -> Table:
    widths = [f"b = {spread:g}" for spread in FIGURE_1_SPREADS]
    heads = ("published", *widths)
    table = printed_table("Figure 1, m = " + listed(found.panels[0].ours.magnitudes), "", *heads, numbers=len(heads))
    for row in _figure_1(found):
        table.add_row(*row)
    return table


def _table_5_summary(found: Reproduction) -> Table:
    table = printed_table("Table 5: three establishments", "published", "here", numbers=2)
    for row in _table_5(found):
        table.add_row(*row)
    return table


def _table_2_summary(found: Reproduction) -> Table:
    heads = ("loss", "attack 1", "attack 2", "attack 3", "2 with parity")
    table = printed_table("Table 2: risks at the published m", "m", *heads, numbers=len(heads))
    for line in found.optima:
        risks = [
            Text(f"{verdict.risk:.3f}", style="" if verdict.is_met else "bold red") for verdict in line.ours.verdicts
        ]
        table.add_row(
            line.published.contributors,
            listed(line.published.magnitudes),
            f"{line.ours.loss:.3f}",
            *risks,
            f"{line.with_parity:.3f}",
        )
    return table


def _optima_summary(found: Reproduction) -> Table:
    table = printed_table("Optimal m, and its loss", "published", "all attacks", "never growing", "attack 2 alone")
    for line in found.optima:
        bests = (line.ours, line.under(1, 2, 3), line.under(1, 2, 3, falling=True), line.under(2))
        table.add_row(line.published.contributors, *(f"{listed(best.magnitudes)}\n{best.loss:.3f}" for best in bests))
    return table


def _laid(laid: Laid) -> Group:
    table = printed_table(*laid.heads, numbers=len(laid.heads) - laid.words)
    for row in laid.rows:
        table.add_row(*row)
    return Group(Text(laid.title, style="bold"), table)
