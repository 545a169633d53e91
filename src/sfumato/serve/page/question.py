"""What a reader asks of a table, and how addresses spell it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote, urlencode

from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import Selection, ServedDimension, ServedTable
from sfumato.serve.core.selection import ALL, alone, place_of, range_to_itself, select
from sfumato.serve.page.language import ENGLISH, Language
from sfumato.serve.page.own_groups import OWN
from sfumato.serve.pxweb.request import split

Place = Literal["rows", "columns", "filter", "out"]
PLACES: tuple[Place, ...] = ("rows", "columns", "filter", "out")
CHARTS = {
    "auto": "Automatic",
    "bars": "Bars",
    "lines": "Lines over time",
    "ranking": "Ranking",
    "matrix": "Matrix",
    "map": "Map",
    "none": "No chart",
}
PERCENTAGES = {
    "none": "Figures",
    "row": "Percent of the row",
    "column": "Percent of the column",
    "total": "Percent of the whole",
    "change": "Change on the period before",
    "growth": "Change on the period before, %",
}
ORDERS = {"listed": "As listed", "largest": "Largest first", "smallest": "Smallest first"}
ERRORS = {"figure": "As figures", "relative": "In percent"}
UNITS = {"one": "As published", "thousands": "In thousands", "millions": "In millions"}
DIGITS = {"all": "As published", "fitting": "As many as the error allows"}
UNSURE = {"marked": "Marked", "grey": "Marked and grey", "hidden": "Left out"}
WORDS: dict[str, Mapping[str, str]] = {
    "chart": CHARTS,
    "percent": PERCENTAGES,
    "order": ORDERS,
    "errors": ERRORS,
    "scale": UNITS,
    "digits": DIGITS,
    "unsure": UNSURE,
}
PLACES_SHOWN = ("page", "row", "column")
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
    scale: str = "one"
    digits: str = "all"
    unsure: str = "marked"
    totals: bool = False
    page: int = 1
    """Which combination of the filters' codes is shown, where they have several."""
    row: int = 1
    """The first row of a long table that is shown, and likewise the first column."""
    column: int = 1


@dataclass(frozen=True, kw_only=True)
class ReaderQuestion:
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
    say: Language = ENGLISH
    """The language of the answer."""
    own: tuple[tuple[str, str], ...] = ()
    """Groups that the reader made, as written, by the name of the variable."""
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
                asked[variable.name] = self.codes_of(variable)
            elif variable.place != "out" and not variable.dimension.eliminable:
                raise RefusedError(
                    f"the variable “{variable.dimension.label}”",
                    expected="at least one code, because it has no published total",
                    found="none",
                    do="choose codes of it, or all",
                )
        lists = {variable.name: variable.grouping for variable in self.grouped()}
        return select(self.table, {**asked, self.table.contents.name: self.metrics}, codelists=lists)

    def codes_of(self, variable: Variable) -> tuple[str, ...]:
        """The codes that are meant: all codes are those without the published total, unless totals are added."""
        total = variable.dimension.total
        if total is None or self.display.totals or variable.wanted != (ALL,) or len(variable.dimension) == 1:
            return variable.wanted
        return tuple(alone(code) for code in variable.dimension.codes if code != total)

    def grouped(self) -> tuple[Variable, ...]:
        """The variables that are shown by groups of their codes."""
        return tuple(one for one in self.variables if one.grouping and one.place != "out" and one.wanted)

    @property
    def dimensions(self) -> tuple[ServedDimension, ...]:
        """The dimensions of the table in its order, with groups in place of codes where these are wanted."""
        by_name = {variable.name: variable.dimension for variable in self.grouped()}
        return tuple(by_name.get(dimension.name, dimension) for dimension in self.table.dimensions)

    @property
    def directed(self) -> bool:
        """Whether there and back are told apart, where the table is of pairs."""
        return not any(variable.name.startswith(_PAIRS[1]) for variable in self.variables)

    def with_display(self, **changes: object) -> "ReaderQuestion":
        """The same question, shown in another way."""
        return replace(self, display=replace(self.display, **changes))  # type: ignore[arg-type]

    def turned(self) -> "ReaderQuestion":
        """The same question with rows and columns exchanged."""
        other: dict[Place, Place] = {"rows": "columns", "columns": "rows"}
        turned = [replace(v, place=other.get(v.place, v.place)) for v in self.variables]
        return replace(self, variables=tuple(sorted(turned, key=lambda v: PLACES.index(v.place))))

    def query(self) -> str:
        """The question as the query of an address, in one spelling."""
        own = ((f"own[{name}]", text) for name, text in self.own)
        return _encoded([*own, *self.selection_pairs(), *self._layout(), *self._display()])

    def api_query(self, written: str, *parameters: str, layout: bool = False) -> str:
        """The question as the query of PxWebApi version 2, in a format."""
        pairs = [("outputFormat", written), *self.selection_pairs(meant=True), *(self._layout() if layout else ())]
        return _encoded([*pairs, *((("outputFormatParams", ",".join(parameters)),) if parameters else ())])

    def selection_pairs(self, *, meant: bool = False) -> Iterator[tuple[str, str]]:
        """Codes and figures, as the page writes them, or as they are `meant` for PxWebApi, where all are all."""
        order = [dimension.name for dimension in self.table.dimensions]
        for variable in sorted(self.variables, key=lambda one: order.index(one.name)):
            if variable.place != "out" and variable.wanted:
                if variable.grouping and (meant or not variable.grouping.startswith(f"{OWN}_")):
                    yield f"codelist[{variable.name}]", variable.grouping
                wanted = self.codes_of(variable) if meant else variable.wanted
                yield f"valueCodes[{variable.name}]", spell_codes(variable.dimension, wanted)
        yield f"valueCodes[{self.table.contents.name}]", spell_codes(self.table.contents, self.metrics)

    def _layout(self) -> Iterator[tuple[str, str]]:
        contents = self.table.contents.name
        rows = ",".join(variable.name for variable in self.placed("rows"))
        if rows:
            yield "stub", rows
        yield "heading", ",".join([*(variable.name for variable in self.placed("columns")), contents])

    def _display(self) -> Iterator[tuple[str, str]]:
        plain, display = Display(), self.display
        for name in WORDS:
            if getattr(display, name) != getattr(plain, name):
                yield name, str(getattr(display, name))
        if display.totals:
            yield "totals", "1"
        for name in PLACES_SHOWN:
            if getattr(display, name) > 1:
                yield name, str(getattr(display, name))


def spell_codes(dimension: ServedDimension, wanted: Sequence[str]) -> str:
    """Codes in short: a star for all, ranges where many follow each other, expressions as they were written."""
    if ALL in wanted:
        return ALL
    places = [place_of(dimension, code) for code in wanted]
    known = sorted({place for place in places if place is not None})
    if None in places or not known:
        return ",".join(map(spell_code, wanted))
    if len(known) == len(dimension) and (dimension.total is None or len(known) < 2):
        return ALL
    if len(known) <= _SHORT:
        return ",".join(spell_code(dimension.codes[place]) for place in known)
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
            yield from map(spell_code, run)
        begin = at


def spell_code(code: str) -> str:
    """One code, as it may stand between commas: one that has a comma itself is a range from it to itself.

    Where its brackets do not close, it is matched by a pattern instead.
    """
    spelled = (alone(code), range_to_itself(code))
    return next((text for text in spelled if split(text) == [text]), code.replace(",", "?"))


def _encoded(pairs: Sequence[tuple[str, str]]) -> str:
    return urlencode(pairs, safe=",*()", quote_via=quote)


# What a table shows when it is opened.

LATEST = 12
"""How many periods a table shows when it is opened."""
RECENT = 4
"""How many of the latest periods are tried for figures."""
MOST_PAIRS = 40_000
"""Of more pairs of places, one end is chosen when a table is opened."""
OPENED = 20
"""How many codes may stand side by side when a table is opened."""
_PAIRS = (("origin_", "destination_"), ("first_", "second_"))


def first_question(table: ServedTable) -> ReaderQuestion:
    """What a table shows when it is opened: two variables, totals of the others where there are any.

    The table keeps it, so that nothing else keeps the table once another one was published in its place.
    """
    found: ReaderQuestion | None = table.made.get("first question")
    if found is None:
        found = table.made["first question"] = _first_question(table)
    return found


def _first_question(table: ServedTable) -> ReaderQuestion:
    dimensions = list(table.dimensions)
    pair = pair_of(dimensions)
    small = pair is not None and len(pair[0]) * len(pair[1]) <= MOST_PAIRS
    rows, columns = pair if pair and small else _rows_and_columns(dimensions)
    variables = []
    for dimension in dimensions:
        if dimension in (rows, columns):
            latest = dimension.role == "time" and len(dimension) > LATEST
            wanted = tuple(map(alone, dimension.codes[-LATEST:])) if latest else (ALL,)
            variables.append(
                Variable(dimension=dimension, place="rows" if dimension is rows else "columns", wanted=wanted)
            )
        elif dimension.eliminable:
            variables.append(Variable(dimension=dimension, place="out"))
        else:
            one = dimension.codes[-1 if dimension.role == "time" else 0]
            variables.append(Variable(dimension=dimension, place="filter", wanted=(alone(one),)))
    question = ReaderQuestion(
        table=table,
        variables=tuple(sorted(variables, key=lambda variable: PLACES.index(variable.place))),
        metrics=_first_metrics(table),
    )
    return _with_figures(question)


def _with_figures(question: ReaderQuestion) -> ReaderQuestion:
    """The question for the latest period that has figures: some indicators look ahead and end earlier than others."""
    time = next((v for v in question.placed("filter") if v.dimension.role == "time"), None)
    if time is None:
        return question
    for code in time.dimension.codes[: -RECENT - 1 : -1]:
        of_period = replace(time, wanted=(alone(code),))
        asked = replace(question, variables=tuple(of_period if v is time else v for v in question.variables))
        figures = question.table.answer(asked.selection()).columns[0]
        if figures.missing is None or not figures.missing.all():
            return asked
    return question


def pair_of(dimensions: Sequence[ServedDimension]) -> tuple[ServedDimension, ServedDimension] | None:
    """The two ends of a flow or a link, if a table has them."""
    by_name = {dimension.name: dimension for dimension in dimensions}
    for dimension in dimensions:
        if dimension.destination in by_name:
            return dimension, by_name[dimension.destination]
    for first, second in _PAIRS:
        for name, dimension in by_name.items():
            other = by_name.get(second + name.removeprefix(first)) if name.startswith(first) else None
            if other is not None:
                return dimension, other
    return None


def _rows_and_columns(dimensions: Sequence[ServedDimension]) -> tuple[ServedDimension | None, ServedDimension | None]:
    """The longest variable down, and across time or the shortest; of three or more, those that must be chosen."""
    mandatory = [dimension for dimension in dimensions if not dimension.eliminable]
    shown = mandatory if len(dimensions) > 2 and len(mandatory) >= 2 else list(dimensions[: max(2, len(mandatory))])
    time = next((dimension for dimension in shown if dimension.role == "time" and len(dimension) > 1), None)
    others = sorted((dimension for dimension in shown if dimension is not time), key=len)
    if not others:
        return time, None
    across = time or (others[0] if len(others) > 1 and len(others[0]) <= OPENED else None)
    return others[-1], across


def _first_metrics(table: ServedTable) -> tuple[str, ...]:
    """The first value with its error, in percent where the table has that."""
    if table.opened:
        return table.opened
    value = next(metric for metric in table.metrics if metric.kind == "value")
    about = {metric.kind: metric.code for metric in table.metrics if metric.about == value.code}
    error = about.get("rse") or about.get("error")
    return (value.code, error) if error else (value.code,)
