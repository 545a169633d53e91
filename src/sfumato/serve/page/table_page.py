"""The page of a table, and the list of tables: forms with what was asked, answers in every way."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment

from sfumato.serve.context import Rendered, ServerContext
from sfumato.serve.core.audit import AuditedQuery
from sfumato.serve.core.compared import others_to_compare
from sfumato.serve.core.errors import RefusedError, shortened
from sfumato.serve.core.model import ServedDimension, ServedTable
from sfumato.serve.core.selection import ALL, alone, places_of, valueset
from sfumato.serve.dcat.catalogue import schema_org
from sfumato.serve.formats.json_stat import BASE
from sfumato.serve.page.assets import HTML
from sfumato.serve.page.changes import CHANGES
from sfumato.serve.page.charts import chart_of
from sfumato.serve.page.citations import citations
from sfumato.serve.page.language import ENGLISH, Language
from sfumato.serve.page.own_groups import OWN
from sfumato.serve.page.question import (
    CHARTS,
    DIGITS,
    ERRORS,
    ORDERS,
    PERCENTAGES,
    UNITS,
    UNSURE,
    ReaderQuestion,
    Variable,
    spell_codes,
)
from sfumato.serve.page.search import WordIndex, labels_above, matching, words_in
from sfumato.serve.page.sheet import sheet_of
from sfumato.serve.page.site import Site, for_everybody
from sfumato.serve.page.snippets import snippets
from sfumato.serve.page.view import View, view_of

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
    size: int
    """How many codes there are to choose from: a published total is added in another way."""
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
        _choices(one, axis := axes[one.name.lower()], _lists(question, whole[axis], one), finds.get(one.name, ""))
        for one in question.variables
    )


def _lists(question: ReaderQuestion, whole: ServedDimension, variable: Variable) -> tuple[Listed, ...]:
    shown = [one for one in whole.groupings if one.summed and not one.id.startswith(f"{OWN}_")]
    if not shown:
        return ()
    chosen, say = variable.grouping, question.say
    groups = [
        Listed(one.id, f"{one.label} ({say.count(len(one.groups), 'group')})", len(one.groups), one.id == chosen)
        for one in shown
    ]
    single = say("No groups ({codes})", codes=say.count(len(whole), "code"))
    return (Listed(valueset(question.table, whole), single, len(whole), not chosen), *groups)


def _choices(variable: Variable, axis: int, lists: tuple[Listed, ...], find: str) -> Choices:
    dimension = variable.dimension
    try:
        wanted = set(places_of(dimension, variable.wanted)) if variable.wanted else set()
    except RefusedError:
        wanted = {dimension.places[code] for code in variable.wanted if code in dimension.places}
    total = -1 if dimension.total is None or len(dimension) == 1 else dimension.places[dimension.total]
    if total in wanted and variable.wanted == (ALL,):
        wanted.remove(total)
    offered = [place for place in range(len(dimension)) if place != total or total in wanted]
    every, long = len(wanted) == len(offered), len(offered) > MOST_LISTED
    found = [place for place in matching(dimension, find)[0] if place != total] if long else offered
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
        size=len(offered),
        every=every,
        count=len(wanted),
        kept=spell_codes(dimension, [alone(dimension.codes[place]) for place in rest]) if rest else "",
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
    where: Mapping[str, str]
    """For tables that only a code has led to, what that is."""
    instead: str
    """The words that were taken for those that no table has."""
    count: int
    page: int
    pages: int

    def link(self, page: int) -> str:
        """The query of another page of the list."""
        asked = {"q": self.words, **self.chosen, "page": str(page) if page > 1 else ""}
        return urlencode({name: text for name, text in asked.items() if text})


def listing(
    tables: Iterable[ServedTable], asked: Mapping[str, str], index: WordIndex, say: Language = ENGLISH
) -> Listing:
    """Find tables; a filter's numbers are of the tables that the other filters leave."""
    words = asked.get("q", "")[:_LONGEST].strip()
    chosen = {name: asked.get(name, "")[:_LONGEST] for name in FILTERS}
    every = list(tables)
    found = index.find(words, say.synonyms)
    candidates = [every[place] for place in found.places] if words_in(words) else every
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
        where=defaultdict(str, {every[place].id: text for place, text in found.where.items()}),
        instead=found.instead,
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
class Address:
    """Where a table is found: published ones by their names, answers to ad-hoc questions by their questions."""

    page: str
    data: str
    drawing: str
    kept: tuple[tuple[str, str], ...] = ()
    """What belongs to the address beside how the table is laid out."""
    back: str = ""
    """Where the question can be changed, if the table is an answer to one."""

    @classmethod
    def of(cls, table: ServedTable) -> "Address":
        """The address of a published table."""
        page = f"/tables/{table.id}"
        return cls(page=page, data=f"{BASE}{page}/data", drawing=f"{page}/chart.svg")

    def query(self, own: str) -> str:
        """A query with what belongs to the address."""
        return "&".join(filter(None, (urlencode(self.kept), own)))


@dataclass(frozen=True, kw_only=True)
class TablePage:
    """Writes pages of tables."""

    context: ServerContext
    templates: Environment
    site: Site
    """What the head of the page offers."""

    def write(self, question: ReaderQuestion, base: str, address: Address | None = None, left: Any = None) -> Rendered:
        """The page that answers a question; `base` is the address of the server, `left` what questions may cost."""
        address = address or Address.of(question.table)
        selection = question.selection()
        self.context.refuse_large(selection, question.table)
        view = view_of(question, selection)
        title = page_title(view, question)
        link = f"{base}{self._link(address, question)}"
        answer = {
            "view": view,
            "sheet": sheet_of(view, question),
            "chart": chart_of(view, question, name=title),
            "drawing": self.site.to(address.drawing, address.query(question.query())),
            "title": title,
            "headline": headline(view, question),
            "downloads": [_download(question, address, *one) for one in DOWNLOADS],
            "snippets": snippets(question, selection, base) if not address.back and not question.own else (),
            "citations": (
                *citations(question.table, link, source=self.context.settings.source),
                *self._frame(question, base),
            ),
            "grouped": [
                _groups(one, selection.places[question.table.by_name[one.name.lower()]] or ())
                for one in question.grouped()
            ],
            "cells": selection.cells,
        }
        page = self._page(question, base, address, answer=answer, cells=selection.cells, left=left)
        return for_everybody(
            self.context, Rendered.of(page, media_type=HTML, query=AuditedQuery.of(question.table, selection))
        )

    def embed(self, question: ReaderQuestion, base: str) -> Rendered:
        """The answer alone, for the frame of a page that may show it."""
        selection = question.selection()
        self.context.refuse_large(selection, question.table)
        view = view_of(question, selection)
        title = page_title(view, question)
        answer = {
            "sheet": sheet_of(view, question),
            "chart": chart_of(view, question, name=title),
            "title": title,
            "headline": headline(view, question),
        }
        address = Address.of(question.table)
        given = {"answer": answer, "question": question, "table": question.table, "site": self.site}
        given["permalink"] = f"{base}{self._link(address, question)}"
        body = self.templates.get_template("embed.html").render(given).encode()
        return Rendered.of(body, media_type=HTML, query=AuditedQuery.of(question.table, selection))

    def refuse(
        self,
        question: ReaderQuestion,
        error: RefusedError,
        asked: Sequence[tuple[str, str]],
        base: str,
        address: Address | None = None,
    ) -> Rendered:
        """The page that says why a question has no answer, and what it was."""
        words = [(shortened(name), shortened(text)) for name, text in asked[:_MOST_ASKED] if text and name != "form"]
        try:
            cells = question.selection().cells
        except RefusedError:
            cells = 0
        page = self._page(question, base, address or Address.of(question.table), error=error, asked=words, cells=cells)
        return replace(Rendered.of(page, media_type=HTML), status=error.status)

    def _frame(self, question: ReaderQuestion, base: str) -> tuple[tuple[str, str], ...]:
        """Lines that show the table in a page of a site that may do that, if there is any."""
        if not self.context.settings.embed or not self.context.catalogue.tables.get(question.table.id):
            return ()
        source = self.site.to(f"/embed/{question.table.id}", question.query())
        title = escape(question.table.title)
        frame = f'<iframe src="{escape(base + source)}" title="{title}" width="100%" height="600"></iframe>'
        return (("For a page of your own", frame),)

    def _link(self, address: Address, question: ReaderQuestion) -> str:
        return self.site.to(address.page, address.query(question.query()))

    def _page(self, question: ReaderQuestion, base: str, address: Address, **given: Any) -> bytes:
        table = question.table
        published = not address.back and table.id in self.context.catalogue.tables
        chosen = set(question.metrics) if question.metrics != (ALL,) else {metric.code for metric in table.metrics}
        about = {
            "site": self.site,
            "answer": None,
            "error": None,
            "asked": (),
            "outdated": False,
            "left": None,
            "table": table,
            "question": question,
            "choices": choices_of(question),
            "metrics": [(metric, metric.code in chosen) for metric in table.metrics],
            "displays": _displays(table),
            "link": lambda one: self._link(address, one),
            "begin": self.site.to(address.page, urlencode(address.kept)),
            "kept": address.kept,
            "back": address.back and self.site.to(address.back, urlencode(address.kept)),
            "files": files_to_take(table),
            "permalink": f"{base}{self._link(address, question)}",
            "compare": comparisons(table, self.context.catalogue) if published else (),
            "own": dict(question.own),
            "most_cells": self.context.settings.most_cells,
            "dataset": schema_org(table, self.context.settings, base) if published else None,
            "has_totals": any(dimension.eliminable or dimension.total for dimension in table.dimensions),
        }
        return self.templates.get_template("table.html").render(about | given).encode()


def comparisons(table: ServedTable, tables: Iterable[ServedTable]) -> tuple[tuple[str, str], ...]:
    """The addresses and names of the tables that one can be compared with; those of the same name with their topic."""
    others = others_to_compare(table, tables)
    names = [f"{one.title}, {one.period}" for one in (table, *others)]
    return tuple(
        (one.id, f"{name} ({one.release})" if names.count(name) > 1 else name)
        for one, name in zip(others, names[1:], strict=True)
    )


class FileLink(NamedTuple):
    """A file of the bundle that can be taken along."""

    address: str
    name: str
    bytes: int
    digest: str


def files_to_take(table: ServedTable) -> tuple[FileLink, ...]:
    """The published files of a table, those of figures first."""
    in_order = sorted(table.files, key=lambda file: (not file.name.startswith(("tables/", "cubes/")), file.name))
    address = f"/tables/{table.id}/files"
    return tuple(FileLink(f"{address}/{quote(one.name)}", one.name, one.bytes, one.digest) for one in in_order)


def _groups(variable: Variable, places: Sequence[int]) -> tuple[str, str, list[tuple[str, tuple[str, ...]]]]:
    """A variable, the level above it that is shown, if it is one, and the groups with the codes they are made of."""
    dimension = variable.dimension
    level = next((one.label for one in dimension.groupings if one.id == dimension.grouping and one.path), "")
    return dimension.label, level, [(dimension.labels[place], dimension.members(place)) for place in places]


def page_title(view: View, question: ReaderQuestion) -> str:
    """What is shown, in a line: the title of the table, and the codes of its filters."""
    filters = "; ".join(f"{label}: {text}" for label, text in view.page_texts)
    title = f"{question.table.title}, {question.table.period}"
    return ". ".join(filter(None, (title, filters, question.say(view.way) if view.way else "")))


def headline(view: View, question: ReaderQuestion) -> str:
    """What is counted by what, in a line."""
    say = question.say
    by = [say.within(edge.label) for edge in (*view.rows, *view.columns)]
    way = f": {say.within(say(view.way))}" if view.way else ""
    if not view.measured or (question.table.opened and len(view.metrics[: view.shown]) > 1):  # of several kinds
        return question.table.title + way
    label = say.label(view.measured)
    if not by:
        return label + way
    # Labels that have commas themselves are told apart by something else.
    between = "; " if any(", " in name for name in by) else ", "
    last = between if between == "; " else say(" and ")
    listed = f"{between.join(by[:-1])}{last if by[1:] else ''}{by[-1]}"
    what = f"{label}," if "," in label and say.code == "en" else label
    return say("{what} by {variables}", what=what, variables=listed) + way


def _displays(table: ServedTable) -> list[tuple[str, str, dict[str, str]]]:
    """The lists of the form that say how an answer is shown, without what the table has no use for."""
    on_map = any(dimension.geography is not None for dimension in table.dimensions)
    has_errors = any(table.rating)
    lacking = {"lines" if table.time is None else "", "" if on_map else "map"}
    found = [("chart", "Chart", {name: text for name, text in CHARTS.items() if name not in lacking})]
    of_time = table.time is not None and len(table.time) > 1
    shown = {name: text for name, text in PERCENTAGES.items() if (of_time if name in CHANGES else table.adds_up)}
    if shown:
        found.append(("percent", "Show", {"none": PERCENTAGES["none"], **shown}))
    found += [("order", "Row order", ORDERS), ("scale", "Unit", UNITS)]
    if any(metric.kind == "error" for metric in table.metrics):
        found.append(("errors", "Errors", ERRORS))
    if has_errors:
        found += [("digits", "Digits", DIGITS), ("unsure", "Too uncertain figures", UNSURE)]
    return found


def _download(question: ReaderQuestion, address: Address, written: str, name: str, hint: str) -> tuple[str, ...]:
    """A format with its address; a workbook is laid out as the page is."""
    parameters = {"xlsx": ("IncludeTitle",), "csv": ("ByteOrderMark",)}.get(written, ())
    query = question.api_query(written, *parameters, layout=written in ("xlsx", "html"))
    if question.own:  # programs know no groups of readers
        own = urlencode({f"own[{name}]": text for name, text in question.own})
        return written, name, hint, f"{address.page}/data?{address.query(own)}&{query}"
    return written, name, hint, f"{address.data}?{address.query(query)}"
