"""From an address to a question: as the form of the page sends it, or in the one spelling that links have."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sfumato.errors import Said
from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.core.model import ServedDimension, ServedTable, grouped
from sfumato.serve.core.selection import ALL, valueset
from sfumato.serve.page.language import ENGLISH, Language
from sfumato.serve.page.own_groups import LONGEST, OWN, with_own_groups
from sfumato.serve.page.question import (
    PLACES,
    PLACES_SHOWN,
    WORDS,
    Display,
    Place,
    ReaderQuestion,
    Variable,
    first_question,
)
from sfumato.serve.pxweb.request import split

_OTHER_WORDS = ("form", "up", "stub", "heading", "totals", *PLACES_SHOWN)
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
            if name.lower() not in (*WORDS, *_OTHER_WORDS):
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


def _codes(dimension: ServedDimension, texts: Sequence[str], before: Sequence[str]) -> tuple[str, ...]:
    """What is wanted of a variable, once each.

    Without JavaScript the box for all codes and those of single codes can be ticked together. The newer wish counts:
    single codes if the form was sent out with all of them wanted, and all of them otherwise.
    """
    found: list[str] = []
    for text in texts:
        parts = split(text)
        whole = text in dimension.places and any(part not in dimension.places for part in parts)
        found += [text] if whole else parts  # codes in a list are those, also where another code is written so
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
    for name, known in WORDS.items():
        text = words.get(name, ("",))[-1]
        if text in known:
            chosen[name] = text
        elif text:
            faults.append(
                RefusedError(
                    name,
                    expected=f"one of {', '.join(known)}",
                    found=text,
                    do="choose one of them",
                    said=no_choice(name, text, known),
                )
            )
    places: dict[str, int] = {}
    for name in PLACES_SHOWN:
        text = words.get(name, ("1",))[-1]
        if not (text.isdecimal() and text.isascii() and len(text) <= _LONGEST_PAGE and int(text) > 0):
            told = said("“{name}” in the address is to be a number from 1; it is “{text}”.", name=name, text=text)
            faults.append(RefusedError(name, expected="a number from 1", found=text, do="correct it", said=told))
            text = "1"
        places[name] = int(text)
    plain = Display(
        totals="1" in words.get("totals", ()), page=places["page"], row=places["row"], column=places["column"]
    )
    return replace(plain, **chosen)  # type: ignore[arg-type]


def _place(name: str, text: str, faults: list[RefusedError]) -> Place:
    for place in PLACES:
        if place == text:
            return place
    faults.append(
        RefusedError(
            f"at[{name}]",
            expected=f"one of {', '.join(PLACES)}",
            found=text or "none",
            do="choose one",
            said=no_choice(f"at[{name}]", text, PLACES),
        )
    )
    return "out"


def no_choice(name: str, text: str, known: Iterable[str]) -> Said:
    """What a reader is told of a word in an address that stands for nothing."""
    return said(
        "“{name}” in the address is “{text}”, and can be: {known}.", name=name, text=text, known=", ".join(known)
    )


def _unknown_word(name: str) -> RefusedError:
    known = ", ".join((*(f"{one}[name]" for one in ("valueCodes", "codelist", "at")), "stub", "heading", *WORDS))
    return RefusedError(
        "the address",
        expected=f"{known}, totals or page",
        found=name,
        do="correct it, or leave it out",
        said=said("“{name}” in the address means nothing here. Correct it, or leave it out.", name=name),
    )
