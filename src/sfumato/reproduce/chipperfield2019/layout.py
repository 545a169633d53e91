"""The tables on synthetic data, laid out as in the paper: headings and rows of text, for the terminal and the page."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.reproduce.chipperfield2019.impacts import QUANTITIES, Cell, PerturbedTable, absolute_figures
from sfumato.reproduce.chipperfield2019.published_tables import ASKED, EVERYONE, published_impacts
from sfumato.reproduce.chipperfield2019.survey import SurveyTables

_MILLION = 1_000_000
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
        yield _totals(survey.table(number), survey.table(number, ASKED))
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


def _totals(everyone: PerturbedTable, asked: PerturbedTable) -> Laid:
    """Totals unperturbed, with their sampling error, and perturbed in both ways."""
    (down,) = everyone.labels
    rows = []
    for cell, other in zip(everyone.cells, asked.cells, strict=True):
        told = (_told(each, by=_MILLION) for each in (cell, other))
        rows.append(
            (everyone.labels[down][cell.codes[down]], _number(cell.true / _MILLION), f"{cell.error:.1f}", *told)
        )
    heads = (down, "unperturbed", "RSE, %", "II: all protected", "I, III: who asked")
    return Laid(title=_TITLES[everyone.number], heads=heads, rows=tuple(rows))


def _compared(survey: SurveyTables) -> Laid:
    """Utility by cell, published and ours: the mean over the keys and the range."""
    rows = []
    for table in survey.tables:
        published = absolute_figures(published_impacts(table.number, table.protected))
        who = "" if table.number in (3, 4) else ", all protected" if table.protected == EVERYONE else ", who asked"
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
