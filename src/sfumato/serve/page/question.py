"""What a reader asks of a table, and how addresses spell it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal
from urllib.parse import quote, urlencode

from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import Selection, ServedDimension, ServedTable, grouped
from sfumato.serve.core.selection import select, valueset
from sfumato.serve.page.language import ENGLISH, Language
from sfumato.serve.page.own_groups import LONGEST, OWN, with_own_groups
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
ALL = "*"
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
        return tuple(code for code in variable.dimension.codes if code != total)

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
        for name in _WORDS:
            if getattr(display, name) != getattr(plain, name):
                yield name, str(getattr(display, name))
        if display.totals:
            yield "totals", "1"
        for name in _PLACES:
            if getattr(display, name) > 1:
                yield name, str(getattr(display, name))


def spell_codes(dimension: ServedDimension, wanted: Sequence[str]) -> str:
    """Codes in short: a star for all, ranges where many follow each other, expressions as they were written."""
    places = [dimension.places.get(code) for code in wanted]
    known = sorted({place for place in places if place is not None})
    if None in places or not known:
        return ",".join(_safe(code) for code in wanted)  # expressions, among them the one for all
    if len(known) == len(dimension) and (dimension.total is None or len(known) < 2):
        return ALL
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


# From an address to a question: as the form of the page sends it, or in the one spelling that links have.

LATEST = 12
"""How many periods a table shows when it is opened."""
RECENT = 4
"""How many of the latest periods are tried for figures."""
MOST_PAIRS = 40_000
"""Of more pairs of places, one end is chosen when a table is opened."""
OPENED = 20
"""How many codes may stand side by side when a table is opened."""
_PAIRS = (("origin_", "destination_"), ("first_", "second_"))
_WORDS: dict[str, Mapping[str, str]] = {
    "chart": CHARTS,
    "percent": PERCENTAGES,
    "order": ORDERS,
    "errors": ERRORS,
    "scale": UNITS,
    "digits": DIGITS,
    "unsure": UNSURE,
}
_PLACES = ("page", "row", "column")
_OTHER_WORDS = ("form", "up", "stub", "heading", "totals", *_PLACES)
_NAMED = ("valueCodes", "codelist", "listed", "at", "was", "find", "own")
_INDEXED = re.compile(rf"({'|'.join(_NAMED)})\[(.*)\]", re.IGNORECASE | re.DOTALL)
_LONGEST_PAGE = 6


def read(table: ServedTable, query: Iterable[tuple[str, str]], say: Language = ENGLISH) -> ReaderQuestion:
    """The question of an address; without any, one that gives a first impression of the table."""
    faults: list[RefusedError] = []
    strangers: list[str] = []
    named: dict[str, dict[int, list[str]]] = {name.lower(): {} for name in _NAMED}
    words: dict[str, list[str]] = {}
    for name, text in query:
        if name.lower() == "lang":
            continue  # of the page, not of the table
        indexed = _INDEXED.fullmatch(name)
        if indexed is None:
            if name.lower() not in (*_WORDS, *_OTHER_WORDS):
                faults.append(_unknown_word(name))
            words.setdefault(name.lower(), []).append(text)
            continue
        axis = table.by_name.get(indexed[2].lower())
        if axis is None:
            strangers.append(indexed[2])
        else:
            named[indexed[1].lower()].setdefault(axis, []).append(text)
    groupings = {axis: texts[-1] for axis, texts in named["codelist"].items() if texts[-1]}
    original, own = table, {axis: text for axis, texts in named["own"].items() if (text := texts[-1][:LONGEST].strip())}
    try:
        table = with_own_groups(table, {axis: text for axis, text in own.items() if axis < len(table.dimensions)})
        groupings |= {axis: f"{OWN}_{table.axes[axis].name}" for axis in own if axis < len(table.dimensions)}
    except RefusedError as error:
        faults.append(error)
    dimensions = _dimensions(table, groupings, faults)
    codes = {
        axis: _codes(dimensions[axis], texts, before=named["was"].get(axis, ()))
        for axis, texts in named["valuecodes"].items()
    }
    listed = {axis: texts[-1] for axis, texts in named["listed"].items()}
    for axis in (*_regrouped(table, listed, groupings, codes), *own):
        codes[axis] = (ALL,)
    display = _display(words, faults)
    opened = first_question(original)
    metrics = codes.pop(len(table.dimensions), ()) or opened.metrics
    if not codes and not named["at"]:
        return replace(
            opened, metrics=metrics, display=display, faults=tuple(faults), strangers=tuple(strangers), say=say
        )
    if named["at"]:
        places = _of_form(table, named["at"], codes, words, faults)
    else:
        places = _of_link(table, codes, words, strangers)
    variables = [
        Variable(dimension=table.dimensions[axis], place=place, wanted=codes.get(axis, ()))
        if place == "out"
        else Variable(
            dimension=dimensions[axis], place=place, wanted=codes.get(axis, ()), grouping=groupings.get(axis, "")
        )
        for place in PLACES
        # The reader orders rows and columns; a link does not tell the order of the rest.
        for axis in (places if place in ("rows", "columns") else sorted(places))
        if places[axis] == place
    ]
    return ReaderQuestion(
        table=table,
        variables=tuple(variables),
        metrics=metrics,
        display=display,
        faults=tuple(faults),
        strangers=tuple(strangers),
        say=say,
        own=tuple((table.axes[axis].name, text) for axis, text in own.items()),
        finds=tuple((table.axes[axis].name, texts[-1]) for axis, texts in named["find"].items() if texts[-1].strip()),
    )


def _dimensions(table: ServedTable, groupings: dict[int, str], faults: list[RefusedError]) -> list[ServedDimension]:
    """The axes of a table with the groups that are wanted; groups that do not exist are a fault, and taken out."""
    found = list(table.axes)
    for axis, grouping in list(groupings.items()):
        if grouping == valueset(table, found[axis]):
            del groupings[axis]  # the list of all single codes
            continue
        try:
            found[axis] = grouped(found[axis], grouping)
        except RefusedError as error:
            faults.append(error)
            del groupings[axis]
    return found


def _regrouped(
    table: ServedTable, listed: Mapping[int, str], groupings: Mapping[int, str], codes: Mapping[int, Sequence[str]]
) -> Iterator[int]:
    """The variables whose ticked codes belong to another list than the one that is wanted: all of it is meant.

    A link that names a list and no codes means all of it, too.
    """
    for axis in {*listed, *groupings}:
        wanted = groupings.get(axis) or valueset(table, table.axes[axis])
        if listed.get(axis, wanted) != wanted or axis not in {*listed, *codes}:
            yield axis


@lru_cache(maxsize=1_000)
def first_question(table: ServedTable) -> ReaderQuestion:
    """What a table shows when it is opened: two variables, totals of the others where there are any."""
    dimensions = list(table.dimensions)
    pair = pair_of(dimensions)
    small = pair is not None and len(pair[0]) * len(pair[1]) <= MOST_PAIRS
    rows, columns = pair if pair and small else _rows_and_columns(dimensions)
    variables = []
    for dimension in dimensions:
        if dimension in (rows, columns):
            latest = dimension.role == "time" and len(dimension) > LATEST
            wanted = dimension.codes[-LATEST:] if latest else (ALL,)
            variables.append(
                Variable(dimension=dimension, place="rows" if dimension is rows else "columns", wanted=wanted)
            )
        elif dimension.eliminable:
            variables.append(Variable(dimension=dimension, place="out"))
        else:
            one = dimension.codes[-1 if dimension.role == "time" else 0]
            variables.append(Variable(dimension=dimension, place="filter", wanted=(one,)))
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
        of_period = replace(time, wanted=(code,))
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
    value = next(metric for metric in table.metrics if metric.kind == "value")
    about = {metric.kind: metric.code for metric in table.metrics if metric.about == value.code}
    error = about.get("rse") or about.get("error")
    return (value.code, error) if error else (value.code,)


def _codes(dimension: ServedDimension, texts: Sequence[str], before: Sequence[str]) -> tuple[str, ...]:
    """What is wanted of a variable, once each.

    Without JavaScript the box for all codes and those of single codes can be ticked together. The newer wish counts:
    single codes if the form was sent out with all of them wanted, and all of them otherwise.
    """
    found: list[str] = []
    for text in texts:
        found += [text] if text in dimension.places else split(text)
    names = dict(dimension.also)
    single = [dimension.codes[names[text]] if text in names else text for text in found if text != ALL]
    if ALL in found and not (single and ALL in before):
        return (ALL,)
    return tuple(dict.fromkeys(single))


def _of_form(
    table: ServedTable,
    at: Mapping[int, Sequence[str]],
    codes: Mapping[int, Sequence[str]],
    words: Mapping[str, Sequence[str]],
    faults: list[RefusedError],
) -> dict[int, Place]:
    """Where variables go by the lists of the form, in its order; `up` moves one of them before its neighbour.

    A variable with codes and no place is a filter.
    """
    order = [axis for axis in at if axis < len(table.dimensions)]
    for name in words.get("up", ()):
        axis = table.by_name.get(name.lower(), -1)
        if axis in order and order.index(axis) > 0:
            place = order.index(axis)
            order[place - 1 : place + 1] = [axis, order[place - 1]]
    places = {axis: _place(table.axes[axis].name, at[axis][-1], faults) for axis in order}
    return places | _rest(table, places, codes)


def _rest(table: ServedTable, places: Mapping[int, Place], codes: Mapping[int, Sequence[str]]) -> dict[int, Place]:
    """Where variables go that nothing is said of: what has codes narrows the answer, and is never dropped."""
    rest = [axis for axis in range(len(table.dimensions)) if axis not in places]
    return {axis: "filter" if axis in codes else "out" for axis in rest}


def _of_link(
    table: ServedTable,
    codes: Mapping[int, Sequence[str]],
    words: Mapping[str, Sequence[str]],
    strangers: list[str],
) -> dict[int, Place]:
    """Where variables go by `stub` and `heading`; without them, two variables with several codes go there."""
    places: dict[int, Place] = {}
    known: tuple[tuple[str, Place], ...] = (("stub", "rows"), ("heading", "columns"))
    for word, place in known:
        for name in ",".join(words.get(word, ())).split(","):
            axis = table.by_name.get(name.strip().lower())
            if axis is not None and axis in codes:
                places.setdefault(axis, place)
            elif name.strip() and axis is None:
                strangers.append(name.strip())
    if not places and not {"stub", "heading"} & words.keys():
        several = sorted(codes, key=lambda axis: codes[axis] != (ALL,) and len(codes[axis]) < 2)
        places = dict(zip(several, ("rows", "columns"), strict=False))
    return places | _rest(table, places, codes)


def _display(words: Mapping[str, Sequence[str]], faults: list[RefusedError]) -> Display:
    chosen: dict[str, str] = {}
    for name, known in _WORDS.items():
        text = words.get(name, ("",))[-1]
        if text in known:
            chosen[name] = text
        elif text:
            faults.append(
                RefusedError(name, expected=f"one of {', '.join(known)}", found=text, do="choose one of them")
            )
    places: dict[str, int] = {}
    for name in _PLACES:
        text = words.get(name, ("1",))[-1]
        if not (text.isdecimal() and text.isascii() and len(text) <= _LONGEST_PAGE and int(text) > 0):
            faults.append(RefusedError(name, expected="a number from 1", found=text, do="correct it"))
            text = "1"
        places[name] = int(text)
    return Display(**chosen, totals="1" in words.get("totals", ()), **places)


def _place(name: str, text: str, faults: list[RefusedError]) -> Place:
    for place in PLACES:
        if place == text:
            return place
    faults.append(
        RefusedError(f"at[{name}]", expected=f"one of {', '.join(PLACES)}", found=text or "none", do="choose one")
    )
    return "out"


def _unknown_word(name: str) -> RefusedError:
    known = ", ".join((*(f"{one}[name]" for one in ("valueCodes", "codelist", "at")), "stub", "heading", *_WORDS))
    return RefusedError(
        "the address", expected=f"{known}, totals or page", found=name, do="correct it, or leave it out"
    )
