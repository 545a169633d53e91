"""The page of a table: the form with what was asked, and the answer in every way the page shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment

from sfumato.errors import SfumatoError
from sfumato.serve.audit_asked import noted
from sfumato.serve.errors import RefusedError, shortened
from sfumato.serve.model import ServedTable
from sfumato.serve.page.charts import chart_of
from sfumato.serve.page.choices import choices_of
from sfumato.serve.page.navigation import Site, for_everybody
from sfumato.serve.page.question import CHARTS, ERRORS, ORDERS, PERCENTAGES, Question, Variable
from sfumato.serve.page.sheet import MOST_SHOWN, sheet_of
from sfumato.serve.page.snippets import data_address, snippets
from sfumato.serve.page.view import View, view_of
from sfumato.serve.page.writing import HTML
from sfumato.serve.served import Rendered, Served, rendered

DOWNLOADS = (
    ("xlsx", "Excel", "workbook with notes"),
    ("csv", "CSV", "text, one row for each combination"),
    ("json-stat2", "JSON-stat", "for programs"),
    ("px", "PX", "for PC-Axis programs"),
    ("parquet", "Parquet", "for large tables"),
    ("html", "HTML", "the plain table"),
)
"""What can be downloaded, Excel first."""
_MOST_ASKED = 40


@dataclass(frozen=True, kw_only=True)
class TablePage:
    """Writes pages of tables."""

    served: Served
    templates: Environment
    site: Site
    """What the head of the page offers."""

    def write(self, question: Question, base: str) -> Rendered:
        """The page that answers a question; `base` is the address of the server."""
        selection = question.selection()
        self.served.refuse_large(selection)
        view = view_of(question, selection)
        title = titled(view, question)
        answer = {
            "view": view,
            "sheet": sheet_of(view, question),
            "chart": chart_of(view, question, name=title),
            "title": title,
            "headline": headline(view),
            "downloads": [_download(question, *one) for one in DOWNLOADS],
            "snippets": snippets(question, selection, base),
            "grouped": [
                _groups(one, selection.places[question.table.by_name[one.name.lower()]] or ())
                for one in question.grouped()
            ],
            "cells": selection.cells,
            "most_shown": MOST_SHOWN,
        }
        page = self._page(question, base, answer=answer, cells=selection.cells)
        return for_everybody(self.served, rendered(page, media_type=HTML, noted=noted(question.table, selection)))

    def refuse(self, question: Question, error: SfumatoError, asked: Sequence[tuple[str, str]], base: str) -> Rendered:
        """The page that says why a question has no answer, and what it was."""
        words = [(shortened(name), shortened(text)) for name, text in asked[:_MOST_ASKED] if text and name != "form"]
        try:
            cells = question.selection().cells
        except RefusedError:
            cells = 0
        return rendered(self._page(question, base, error=error, asked=words, cells=cells), media_type=HTML)

    def _page(self, question: Question, base: str, **given: Any) -> bytes:
        table = question.table
        chosen = set(question.metrics) if question.metrics != ("*",) else {metric.code for metric in table.metrics}
        context = {
            "site": self.site,
            "answer": None,
            "error": None,
            "asked": (),
            "table": table,
            "question": question,
            "choices": choices_of(question),
            "metrics": [(metric, metric.code in chosen) for metric in table.metrics],
            "displays": _displays(table),
            "permalink": f"{base}/tables/{table.id}?{question.query()}",
            "most_cells": self.served.settings.most_cells,
            "has_totals": any(dimension.eliminable for dimension in table.dimensions),
        }
        return self.templates.get_template("table.html").render(context | given).encode()


def _groups(variable: Variable, places: Sequence[int]) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    """A variable, and the groups of it that are shown with the codes they are made of."""
    dimension = variable.dimension
    return dimension.label, [(dimension.labels[place], dimension.members(place)) for place in places]


def titled(view: View, question: Question) -> str:
    """What is shown, in a line: the title of the table, and the codes of its filters."""
    filters = "; ".join(f"{label}: {text}" for label, text in view.page_texts)
    title = f"{question.table.title}, {question.table.period}"
    return f"{title}. {filters}" if filters else title


def headline(view: View) -> str:
    """What is counted by what, in a line.

    >>> _began("Industry"), _began("NACE section"), _began("State, origin")
    ('industry', 'NACE section', 'state (origin)')
    """
    by = [_began(edge.label) for edge in (*view.rows, *view.columns)]
    label = view.metrics[view.first].label
    comma = "," if "," in label else ""
    return f"{label}{comma} by {', '.join(by[:-1])}{' and ' if by[1:] else ''}{by[-1]}" if by else label


def _began(label: str) -> str:
    """A label within a sentence: its first letter small, unless it is one of an abbreviation."""
    name, _, end = label.partition(", ")
    small = name if name[1:2].isupper() else name[:1].lower() + name[1:]
    return f"{small} ({end})" if end else small


def _displays(table: ServedTable) -> list[tuple[str, str, dict[str, str]]]:
    """The lists of the form that say how an answer is shown, without what the table has no use for."""
    charts = CHARTS if table.time else {name: text for name, text in CHARTS.items() if name != "lines"}
    found = [("chart", "Chart", charts)]
    if any(metric.additive for metric in table.metrics if metric.kind == "value"):
        found.append(("percent", "Show", PERCENTAGES))
    found.append(("order", "Row order", ORDERS))
    if any(metric.kind == "error" for metric in table.metrics):
        found.append(("errors", "Errors", ERRORS))
    return found


def _download(question: Question, written: str, name: str, hint: str) -> tuple[str, str, str, str]:
    """A format with its address; a workbook is laid out as the page is."""
    parameters = {"xlsx": ("IncludeTitle",), "csv": ("ByteOrderMark",)}.get(written, ())
    address = data_address(question, "", written, *parameters, layout=written in ("xlsx", "html"))
    return written, name, hint, address
