"""The page of a table, and the list of tables: forms with what was asked, answers in every way."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment

from sfumato.serve.context import Rendered, ServerContext
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.errors import RefusedError, shortened
from sfumato.serve.core.model import ServedDimension, ServedTable
from sfumato.serve.core.selection import places_of, valueset
from sfumato.serve.dcat.catalogue import schema_org
from sfumato.serve.page.assets import HTML, count
from sfumato.serve.page.charts import chart_of
from sfumato.serve.page.question import CHARTS, ERRORS, ORDERS, PERCENTAGES, ReaderQuestion, Variable, spell_codes
from sfumato.serve.page.sheet import MOST_SHOWN, sheet_of
from sfumato.serve.page.site import Site, for_everybody
from sfumato.serve.page.snippets import data_address, snippets
from sfumato.serve.page.view import View, view_of
from sfumato.serve.pxweb.listing import search

# The codes of a variable as the form offers them: boxes to tick, searched where there are very many.

MOST_LISTED = 300
"""A longer list of codes is not written out: a reader searches in it."""


class Listed(NamedTuple):
    """A list of codes that a variable can be shown by: its single codes, or groups of them."""

    id: str
    label: str
    size: int
    chosen: bool


class Choice(NamedTuple):
    """A code that can be ticked."""

    code: str
    label: str
    ticked: bool
    above: str = ""
    """The label of the code that it lies in, where there is a level above."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the form shows of one variable."""

    axis: int
    """The place of the variable in the table, which names the parts of the form."""
    variable: Variable
    lists: tuple[Listed, ...]
    """The lists to choose from, where there are several: single codes first."""
    codes: tuple[Choice, ...]
    every: bool
    """Whether all codes are wanted."""
    count: int
    """How many are wanted."""
    kept: str
    """Wanted codes that are not listed, in the spelling of addresses."""
    kept_count: int
    long: bool
    """Whether only a part of the codes is listed."""
    find: str
    """What the list was searched for."""
    found: int
    """How many codes have been found."""


def choices_of(question: ReaderQuestion) -> tuple[Choices, ...]:
    """The variables of a question as the form shows them, in the order of the reader."""
    finds = dict(question.finds)
    axes, whole = question.table.by_name, question.table.dimensions
    return tuple(
        _choices(one, axis := axes[one.name.lower()], _lists(question.table, whole[axis], one), finds.get(one.name, ""))
        for one in question.variables
    )


def _lists(table: ServedTable, whole: ServedDimension, variable: Variable) -> tuple[Listed, ...]:
    shown = [one for one in whole.groupings if one.summed]
    if not shown:
        return ()
    chosen = variable.grouping
    groups = [
        Listed(one.id, f"{one.label} ({count(len(one.groups), 'group')})", len(one.groups), one.id == chosen)
        for one in shown
    ]
    single = f"No groups ({count(len(whole), 'code')})"
    return (Listed(valueset(table, whole), single, len(whole), not chosen), *groups)


def labels_above(dimension: ServedDimension) -> dict[str, str]:
    """The label of the code that each code lies in, in the order of the nearest level above."""
    groups = dimension.above.groups if dimension.above is not None else {}
    return {code: label for label, members in groups.values() for code in members}


def matching(dimension: ServedDimension, words: str) -> list[int]:
    """The places of codes that have every word in their code or label, or in that of what they lie in."""
    wanted, above = words.lower().split(), labels_above(dimension)
    return [
        place
        for place, (code, label) in enumerate(zip(dimension.codes, dimension.labels, strict=True))
        if all(word in f"{code} {label} {above.get(code, '')}".lower() for word in wanted)
    ]


def _choices(variable: Variable, axis: int, lists: tuple[Listed, ...], find: str) -> Choices:
    dimension = variable.dimension
    try:
        wanted = set(places_of(dimension, variable.wanted)) if variable.wanted else set()
    except RefusedError:
        wanted = {dimension.places[code] for code in variable.wanted if code in dimension.places}
    every, long = len(wanted) == len(dimension), len(dimension) > MOST_LISTED
    found = matching(dimension, find) if long else range(len(dimension))
    # What is ticked comes first, so that it can be seen and unticked.
    first = sorted(wanted)[: MOST_LISTED // 2] if long and not every else []
    listed = list(dict.fromkeys([*first, *found]))[:MOST_LISTED]
    rest = [] if every else sorted(wanted - set(listed))
    above = labels_above(dimension)
    order = list(dict.fromkeys(above.values()))
    if above and not long:  # codes that lie in the same one stand together, those that lie in none at the end
        listed.sort(
            key=lambda place: order.index(above[code]) if (code := dimension.codes[place]) in above else len(order)
        )
    return Choices(
        axis=axis,
        variable=variable,
        lists=lists,
        codes=tuple(
            Choice(code, dimension.labels[place], place in wanted and not every, above.get(code, ""))
            for place in listed
            for code in (dimension.codes[place],)
        ),
        every=every,
        count=len(wanted),
        kept=spell_codes(dimension, [dimension.codes[place] for place in rest]) if rest else "",
        kept_count=len(rest),
        long=long,
        find=find,
        found=len(found),
    )


# The start page's list of tables: found by words, narrowed by release, period and variable.

PAGE = 40
"""Tables on a page."""
FILTERS = {"release": "Topic", "period": "Period", "variable": "Variable"}
_LONGEST = 200


class Option(NamedTuple):
    """A word that the list can be narrowed by, and how many tables it leaves."""

    text: str
    tables: int


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The tables that were found, a page of them, and how to narrow them further."""

    words: str
    chosen: Mapping[str, str]
    options: Mapping[str, tuple[Option, ...]]
    tables: tuple[ServedTable, ...]
    count: int
    page: int
    pages: int

    def link(self, page: int) -> str:
        """The query of another page of the list."""
        asked = {"q": self.words, **self.chosen, "page": str(page) if page > 1 else ""}
        return urlencode({name: text for name, text in asked.items() if text})


def listing(tables: Iterable[ServedTable], asked: Mapping[str, str]) -> Listing:
    """Find tables; a filter's numbers are of the tables that the other filters leave."""
    words = asked.get("q", "")[:_LONGEST].strip()
    chosen = {name: asked.get(name, "")[:_LONGEST] for name in FILTERS}
    candidates = search(list(tables), query=words)
    left = [table for table in candidates if _fits(table, chosen)]
    options = {
        name: _options(name, [table for table in candidates if _fits(table, {**chosen, name: ""})], chosen[name])
        for name in FILTERS
    }
    pages = max(-(-len(left) // PAGE), 1)
    number = asked.get("page", "1")
    page = min(int(number), pages) if number.isdecimal() and number.isascii() and 0 < len(number) < 7 else 1
    page = max(page, 1)
    return Listing(
        words=words,
        chosen=chosen,
        options=options,
        tables=tuple(left[(page - 1) * PAGE : page * PAGE]),
        count=len(left),
        page=page,
        pages=pages,
    )


def _texts(name: str, table: ServedTable) -> Sequence[str]:
    if name == "variable":
        return [dimension.label for dimension in table.dimensions]
    return [table.release if name == "release" else table.period]


def _fits(table: ServedTable, chosen: Mapping[str, str]) -> bool:
    return all(not text or text in _texts(name, table) for name, text in chosen.items())


def _options(name: str, tables: Sequence[ServedTable], chosen: str) -> tuple[Option, ...]:
    counts = Counter(text for table in tables for text in _texts(name, table))
    if chosen:
        counts.setdefault(chosen, 0)
    return tuple(Option(text, counts[text]) for text in sorted(counts))


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

    context: ServerContext
    templates: Environment
    site: Site
    """What the head of the page offers."""

    def write(self, question: ReaderQuestion, base: str) -> Rendered:
        """The page that answers a question; `base` is the address of the server."""
        selection = question.selection()
        self.context.refuse_large(selection)
        view = view_of(question, selection)
        title = page_title(view, question)
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
        return for_everybody(
            self.context, Rendered.of(page, media_type=HTML, query=AuditedQuery.of(question.table, selection))
        )

    def refuse(
        self, question: ReaderQuestion, error: RefusedError, asked: Sequence[tuple[str, str]], base: str
    ) -> Rendered:
        """The page that says why a question has no answer, and what it was."""
        words = [(shortened(name), shortened(text)) for name, text in asked[:_MOST_ASKED] if text and name != "form"]
        try:
            cells = question.selection().cells
        except RefusedError:
            cells = 0
        return Rendered.of(self._page(question, base, error=error, asked=words, cells=cells), media_type=HTML)

    def _page(self, question: ReaderQuestion, base: str, **given: Any) -> bytes:
        table = question.table
        chosen = set(question.metrics) if question.metrics != ("*",) else {metric.code for metric in table.metrics}
        about = {
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
            "most_cells": self.context.settings.most_cells,
            "dataset": schema_org(table, self.context.settings, base),
            "has_totals": any(dimension.eliminable for dimension in table.dimensions),
        }
        return self.templates.get_template("table.html").render(about | given).encode()


def _groups(variable: Variable, places: Sequence[int]) -> tuple[str, str, list[tuple[str, tuple[str, ...]]]]:
    """A variable, the level above it that is shown, if it is one, and the groups with the codes they are made of."""
    dimension = variable.dimension
    level = next((one.label for one in dimension.groupings if one.id == dimension.grouping and one.path), "")
    return dimension.label, level, [(dimension.labels[place], dimension.members(place)) for place in places]


def page_title(view: View, question: ReaderQuestion) -> str:
    """What is shown, in a line: the title of the table, and the codes of its filters."""
    filters = "; ".join(f"{label}: {text}" for label, text in view.page_texts)
    title = f"{question.table.title}, {question.table.period}"
    return f"{title}. {filters}" if filters else title


def headline(view: View) -> str:
    """What is counted by what, in a line.

    >>> _in_sentence("Industry"), _in_sentence("NACE section"), _in_sentence("State, origin")
    ('industry', 'NACE section', 'state (origin)')
    """
    by = [_in_sentence(edge.label) for edge in (*view.rows, *view.columns)]
    label = view.metrics[view.first].label
    comma = "," if "," in label else ""
    return f"{label}{comma} by {', '.join(by[:-1])}{' and ' if by[1:] else ''}{by[-1]}" if by else label


def _in_sentence(label: str) -> str:
    """A label within a sentence: its first letter small, unless it is one of an abbreviation."""
    name, _, end = label.partition(", ")
    small = name if name[1:2].isupper() else name[:1].lower() + name[1:]
    return f"{small} ({end})" if end else small


def _displays(table: ServedTable) -> list[tuple[str, str, dict[str, str]]]:
    """The lists of the form that say how an answer is shown, without what the table has no use for."""
    on_map = any(dimension.geography is not None for dimension in table.dimensions)
    lacking = {"lines" if table.time is None else "", "" if on_map else "map"}
    found = [("chart", "Chart", {name: text for name, text in CHARTS.items() if name not in lacking})]
    if table.adds_up:
        found.append(("percent", "Show", PERCENTAGES))
    found.append(("order", "Row order", ORDERS))
    if any(metric.kind == "error" for metric in table.metrics):
        found.append(("errors", "Errors", ERRORS))
    return found


def _download(question: ReaderQuestion, written: str, name: str, hint: str) -> tuple[str, str, str, str]:
    """A format with its address; a workbook is laid out as the page is."""
    parameters = {"xlsx": ("IncludeTitle",), "csv": ("ByteOrderMark",)}.get(written, ())
    address = data_address(question, "", written, *parameters, layout=written in ("xlsx", "html"))
    return written, name, hint, address
