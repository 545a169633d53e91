"""What a reader asks of a table: where each variable goes, which codes, which figures, and how they are shown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote, urlencode

from sfumato.serve.errors import RefusedError
from sfumato.serve.model import Selection, ServedDimension, ServedTable
from sfumato.serve.selection import select

Place = Literal["rows", "columns", "filter", "out"]
PLACES: tuple[Place, ...] = ("rows", "columns", "filter", "out")
CHARTS = {
    "auto": "Automatic",
    "bars": "Bars",
    "lines": "Lines over time",
    "ranking": "Ranking",
    "matrix": "Matrix",
    "none": "No chart",
}
PERCENTAGES = {
    "none": "Figures",
    "row": "Percent of the row",
    "column": "Percent of the column",
    "total": "Percent of the whole",
}
ORDERS = {"listed": "As listed", "largest": "Largest first", "smallest": "Smallest first"}
ERRORS = {"figure": "As figures", "relative": "In percent"}
RUN = 4
"""Codes that follow each other are written as a range from so many on, where many are chosen."""
_SHORT = 40


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A dimension of the table, where it goes, and which of its codes are wanted, as codes or expressions."""

    dimension: ServedDimension
    """With groups in place of its codes, where these are wanted."""
    place: Place
    wanted: tuple[str, ...] = ()
    grouping: str = ""
    """The groups that are wanted in place of single codes; none when empty."""

    @property
    def name(self) -> str:
        """The name in addresses."""
        return self.dimension.name


@dataclass(frozen=True, kw_only=True)
class Display:
    """How the answer is shown; words are those of the address."""

    chart: str = "auto"
    percent: str = "none"
    order: str = "listed"
    errors: str = "figure"
    totals: bool = False
    page: int = 1
    """Which combination of the filters' codes is shown, where they have several."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question in the words of a reader, checked only when it is put to the table."""

    table: ServedTable
    variables: tuple[Variable, ...]
    """Every dimension of the table once, in the order of the reader."""
    metrics: tuple[str, ...]
    display: Display = Display()
    faults: tuple[RefusedError, ...] = ()
    """What could not be understood."""
    strangers: tuple[str, ...] = ()
    """Names of variables that the table does not have."""
    finds: tuple[tuple[str, str], ...] = ()
    """Words that long lists of codes are searched for, by the name of the variable."""

    def placed(self, place: Place) -> tuple[Variable, ...]:
        """The variables that go to a place."""
        return tuple(variable for variable in self.variables if variable.place == place)

    def selection(self) -> Selection:
        """The selection that is meant, or the reason why there is none."""
        for fault in self.faults:
            raise fault
        asked: dict[str, Sequence[str]] = dict.fromkeys(self.strangers, ())  # refused by name
        for variable in self.variables:
            if variable.place != "out" and variable.wanted:
                asked[variable.name] = variable.wanted
            elif variable.place != "out" and not variable.dimension.eliminable:
                raise RefusedError(
                    f"the variable “{variable.dimension.label}”",
                    expected="at least one code, because it has no published total",
                    found="none",
                    do="choose codes of it, or all",
                )
        lists = {variable.name: variable.grouping for variable in self.grouped()}
        return select(self.table, {**asked, self.table.contents.name: self.metrics}, codelists=lists)

    def grouped(self) -> tuple[Variable, ...]:
        """The variables that are shown by groups of their codes."""
        return tuple(one for one in self.variables if one.grouping and one.place != "out" and one.wanted)

    @property
    def dimensions(self) -> tuple[ServedDimension, ...]:
        """The dimensions of the table in its order, with groups in place of codes where these are wanted."""
        by_name = {variable.name: variable.dimension for variable in self.grouped()}
        return tuple(by_name.get(dimension.name, dimension) for dimension in self.table.dimensions)

    def shown(self, **changes: object) -> "Question":
        """The same question, shown in another way."""
        return replace(self, display=replace(self.display, **changes))  # type: ignore[arg-type]

    def turned(self) -> "Question":
        """The same question with rows and columns exchanged."""
        other: dict[Place, Place] = {"rows": "columns", "columns": "rows"}
        turned = [replace(v, place=other.get(v.place, v.place)) for v in self.variables]
        return replace(self, variables=tuple(sorted(turned, key=lambda v: PLACES.index(v.place))))

    def query(self) -> str:
        """The question as the query of an address, in one spelling."""
        return _encoded([*self.chosen(), *self._layout(), *self._display()])

    def api_query(self, written: str, *parameters: str, layout: bool = False) -> str:
        """The question as the query of PxWebApi version 2, in a format."""
        pairs = [("outputFormat", written), *self.chosen(), *(self._layout() if layout else ())]
        return _encoded([*pairs, *((("outputFormatParams", ",".join(parameters)),) if parameters else ())])

    def chosen(self) -> Iterator[tuple[str, str]]:
        """Codes and figures, as both the page and PxWebApi write them."""
        order = [dimension.name for dimension in self.table.dimensions]
        for variable in sorted(self.variables, key=lambda one: order.index(one.name)):
            if variable.place != "out" and variable.wanted:
                if variable.grouping:
                    yield f"codelist[{variable.name}]", variable.grouping
                yield f"valueCodes[{variable.name}]", spelled(variable.dimension, variable.wanted)
        yield f"valueCodes[{self.table.contents.name}]", spelled(self.table.contents, self.metrics)

    def _layout(self) -> Iterator[tuple[str, str]]:
        contents = self.table.contents.name
        rows = ",".join(variable.name for variable in self.placed("rows"))
        if rows:
            yield "stub", rows
        yield "heading", ",".join([*(variable.name for variable in self.placed("columns")), contents])

    def _display(self) -> Iterator[tuple[str, str]]:
        plain, display = Display(), self.display
        for name in ("chart", "percent", "order", "errors"):
            if getattr(display, name) != getattr(plain, name):
                yield name, str(getattr(display, name))
        if display.totals:
            yield "totals", "1"
        if display.page > 1:
            yield "page", str(display.page)


def spelled(dimension: ServedDimension, wanted: Sequence[str]) -> str:
    """Codes in short: a star for all, ranges where many follow each other, expressions as they were written."""
    places = [dimension.places.get(code) for code in wanted]
    known = sorted({place for place in places if place is not None})
    if None in places or not known:
        return ",".join(_safe(code) for code in wanted)
    if len(known) == len(dimension):
        return "*"
    if len(known) <= _SHORT:
        return ",".join(_safe(dimension.codes[place]) for place in known)
    return ",".join(_runs(dimension, known))


def _runs(dimension: ServedDimension, places: Sequence[int]) -> Iterator[str]:
    begin = 0
    for at in range(1, len(places) + 1):
        if at < len(places) and places[at] == places[at - 1] + 1:
            continue
        run = [dimension.codes[place] for place in places[begin:at]]
        plain = not any(character in run[0] + run[-1] for character in ",()[]")
        if len(run) >= RUN and plain:
            yield f"range({run[0]},{run[-1]})"
        else:
            yield from map(_safe, run)
        begin = at


def _safe(code: str) -> str:
    """A code between commas: one that has a comma itself is matched by a pattern instead."""
    return code if not ("," in code and not code.startswith(("(", "["))) or "(" in code else code.replace(",", "?")


def _encoded(pairs: Sequence[tuple[str, str]]) -> str:
    return urlencode(pairs, safe=",*()", quote_via=quote)
