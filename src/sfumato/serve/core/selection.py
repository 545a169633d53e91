"""From what a client writes to a selection: codes, expressions and groups of codes, checked."""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from fnmatch import translate
from pathlib import Path

from pydantic import Field, ValidationError

from sfumato.description import Described
from sfumato.errors import Said, SfumatoError
from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.core.labels import told_apart
from sfumato.serve.core.model import Grouping, Selection, ServedDimension, ServedTable, TableAnswer, grouped

CodesByName = Mapping[str, Sequence[str]]
"""By the name of a dimension its codes, or expressions that stand for codes."""
DEFAULT_CELLS = 2_000
"""About how many figures a question without any selection is answered with."""
MOST_EXPRESSIONS = 20
"""Each may have to be compared with every code; codes themselves may be as many as there are."""
ALL = "*"
"""All codes of a dimension."""
_SHOWN = 2
_LONGEST_CALL = 20
_CALL = re.compile(r"(top|bottom|range|from|to)\((.*)\)", re.IGNORECASE | re.DOTALL)
_COUNT = re.compile(r"[1-9]\d{0,8}(?:,\d{1,9})?")


def select(
    table: ServedTable,
    asked: CodesByName,
    *,
    codelists: Mapping[str, str] | None = None,
    single: Collection[str] = (),
) -> Selection:
    """The selection that a client asks for; names do not mind the case.

    Codes come in the order of the table, each once. A dimension that is not named is left out; metrics are all then.
    Of the dimensions in `single`, groups of a code list stand for the codes in them.
    """
    named: dict[int, list[str]] = {}
    for name, codes in asked.items():  # one dimension in two spellings is one
        named.setdefault(axis_of(table, name), []).extend(codes)
    lists = {axis_of(table, name): codelist for name, codelist in (codelists or {}).items()}
    apart = {axis_of(table, name) for name in single}
    places: list[tuple[int, ...] | None] = []
    groupings = []
    for axis, dimension in enumerate(table.axes):
        codelist = lists.get(axis)
        shown = dimension
        if codelist is not None and codelist != valueset(table, dimension):
            shown = grouped(dimension, codelist)
            if axis not in apart:
                groupings.append((axis, codelist))
        if axis in named:
            places.append(places_of(shown, named[axis]))
        else:
            whole = codelist is not None or dimension.role == "metric"
            places.append(tuple(range(len(shown))) if whole else None)
        if shown is not dimension and axis in apart:
            members = {code for place in places[-1] or () for code in shown.members(place)}
            places[-1] = tuple(sorted(dimension.places[code] for code in members))
    *others, metrics = places
    return Selection(places=tuple(others), metrics=metrics or (), groupings=tuple(groupings))


def everything(table: ServedTable) -> Selection:
    """The whole table, in every metric."""
    return Selection(
        places=tuple(tuple(range(len(dimension))) for dimension in table.dimensions),
        metrics=tuple(range(len(table.metrics))),
    )


def default(table: ServedTable, cells: int = DEFAULT_CELLS) -> Selection:
    """A selection of modest size: the first two dimensions, totals of the others where they have one."""
    places: list[tuple[int, ...] | None] = []
    for axis, dimension in enumerate(table.dimensions):
        dropped = axis >= _SHOWN and (table.kind == "cube" or dimension.total is not None)
        places.append(None if dropped else tuple(range(len(dimension))))
    metrics = tuple(range(len(table.metrics)))
    while (asked := Selection(places=tuple(places), metrics=metrics)).cells > cells:
        axis, longest = max(enumerate(places), key=lambda one: len(one[1] or ()))
        if longest is None or len(longest) == 1:
            break
        kept = max(cells * len(longest) // asked.cells, 1)
        places[axis] = longest[-kept:] if table.dimensions[axis].role == "time" else longest[:kept]
    return asked


def is_part(table: ServedTable, selection: Selection) -> bool:
    """Whether a selection has fewer figures than the table."""
    return selection.cells < everything(table).cells


def part_note(answer: TableAnswer) -> str:
    """What is to be said where nothing was selected, and the answer is a part of the table."""
    return (
        f"This is a part: nothing was selected, and these are {answer.selection.cells:,} of the "
        f"{everything(answer.table).cells:,} figures of the table. Select codes of every dimension; * is all of them."
    )


def valueset(table: ServedTable, dimension: ServedDimension) -> str:
    """The identifier of the code list that has all codes of a dimension."""
    return f"vs_{table.id}_{dimension.name}"


def axis_of(table: ServedTable, name: str) -> int:
    """The place of the axis that a client names; a name that no axis has is refused."""
    axis = table.by_name.get(name.lower())
    if axis is None:
        known = ", ".join(dimension.name for dimension in table.axes)
        raise RefusedError(
            f"table '{table.id}'",
            expected=f"one of its dimensions: {known}",
            found=name,
            do="correct it",
            said=said("This table has no variable “{name}”. It has: {known}.", name=name, known=known),
        )
    return axis


def alone(code: str) -> str:
    """The expression for one code and no other; one that is written as all codes are is a range from it to itself.

    >>> alone("*"), alone("A")
    ('range(*,*)', 'A')
    """
    return range_to_itself(code) if code == ALL else code


def range_to_itself(code: str) -> str:
    """The range that has one code alone, whatever signs are in it."""
    return f"range({code},{code})"


def place_of(dimension: ServedDimension, expression: str) -> int | None:
    """The place of the one code that an expression names; None where it stands for others."""
    place = dimension.places.get(expression)
    if place is None:
        inside = expression.removeprefix("range(")[:-1]
        code = inside[: len(inside) // 2]
        place = dimension.places.get(code) if expression == range_to_itself(code) else None
    return place


def places_of(dimension: ServedDimension, expressions: Sequence[str]) -> tuple[int, ...]:
    """The places of the codes that are meant, ascending."""
    if ALL in expressions:  # before all else: a code that is written so must not make a part of what is called whole
        return tuple(range(len(dimension)))
    single = {expression: place_of(dimension, expression) for expression in expressions}
    found = {place for place in single.values() if place is not None}
    others = [expression for expression, place in single.items() if place is None]
    if len(others) > MOST_EXPRESSIONS:
        raise RefusedError(
            f"codes of '{dimension.name}'",
            expected=f"codes, and at most {MOST_EXPRESSIONS} expressions that stand for codes",
            found=f"{len(others):,} texts that are no codes, such as {others[0]}",
            do="correct the codes, or list them",
            said=_no_code(dimension, others[0]),
        )
    for expression in others:
        found.update(_expand(dimension, expression))
    if not found:
        raise _unknown(dimension, ", ".join(expressions) or "none")
    return tuple(sorted(found))


def _expand(dimension: ServedDimension, expression: str) -> Sequence[int]:
    """The places an expression stands for: `*`, `?`, top(n), bottom(n), range(a,b), from(a), to(b)."""
    if len(expression) > 2 * dimension.longest + _LONGEST_CALL:
        raise _unknown(dimension, expression)
    call = _CALL.fullmatch(expression)
    if call:
        return _evaluate(dimension, call[1].lower(), call[2])
    if "*" in expression or "?" in expression:
        found = _like(dimension, expression)
        if found:
            return found
    raise _unknown(dimension, expression)


def _evaluate(dimension: ServedDimension, word: str, inside: str) -> Sequence[int]:
    every = range(len(dimension))
    if word in ("top", "bottom"):
        if not _COUNT.fullmatch(inside):
            raise _unknown(dimension, f"{word}({inside})")
        count, offset = (int(number) for number in (*inside.split(","), "0")[:2])
        # The top of time is its end: people ask for the latest periods.
        from_end = (word == "bottom") != (dimension.role == "time")
        end = len(every) - offset
        return every[max(end - count, 0) : max(end, 0)] if from_end else every[offset : offset + count]
    if word == "range":
        # A code may have a comma; it is the one between two codes.
        for at in (at for at, character in enumerate(inside) if character == ","):
            first, last = dimension.places.get(inside[:at].strip()), dimension.places.get(inside[at + 1 :].strip())
            if first is not None and last is not None:
                return range(min(first, last), max(first, last) + 1)
        raise _unknown(dimension, f"range({inside})")
    place = dimension.places.get(inside.strip())
    if place is None:
        raise _unknown(dimension, f"{word}({inside})")
    return every[place:] if word == "from" else every[: place + 1]


def _like(dimension: ServedDimension, pattern: str) -> list[int]:
    """The codes that match a pattern of `*` and `?`; case does not matter."""
    # Each star becomes an atomic group, so that no pattern makes the search go back and forth.
    matches = re.compile(translate(pattern.lower().replace("[", "[[]"))).match
    return [place for place, code in enumerate(dimension.codes) if matches(code.lower())]


def _unknown(dimension: ServedDimension, found: str) -> RefusedError:
    some = ", ".join(dimension.codes[:5])
    # An address that has + where it should have %2B says a space, which is cut off at the ends.
    plus = any(code in dimension.places for code in (f"{found}+", f"+{found}", found.replace(" ", "+")))
    return RefusedError(
        f"codes of '{dimension.name}'",
        expected=f"codes such as {some}, or *, ?, top(n), bottom(n), range(a,b), from(a), to(b)",
        found=found,
        do="write + as %2B in an address" if plus else "correct the codes; the metadata of the table list them all",
        said=said(
            "“{code}” is no code of “{variable}”. In an address, + is written %2B.",
            code=found,
            variable=dimension.label,
        )
        if plus
        else _no_code(dimension, found),
    )


def _no_code(dimension: ServedDimension, found: str) -> Said:
    if dimension.role == "metric":
        return said("“{code}” is none of the figures of this table. Choose among those that it has.", code=found)
    return said("“{code}” is no code of “{variable}”. Choose among its codes.", code=found, variable=dimension.label)


# Groups of codes that cubes may be asked for: a file of the office, such as broad occupations.
#
# Only cubes have them, because they add up exactly and tell the error of every sum.


class Group(Described):
    """One group of codes."""

    label: str = Field(description="words for people")
    codes: tuple[str, ...] = Field(
        min_length=1, description='its codes, or expressions such as "11-*" and "range(20,29)"'
    )


class GroupingSection(Described):
    """A `[[grouping]]` section: groups of the codes of one dimension."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", description="clients ask for it as the code list agg_<name>"
    )
    dimension: str = Field(description="name of the dimension")
    label: str = Field(description="words for people")
    groups: dict[str, Group] = Field(min_length=1, description="by its code every group")


class _File(Described):
    grouping: tuple[GroupingSection, ...]


def read_groupings(path: Path) -> tuple[GroupingSection, ...]:
    """Read a file of groupings."""
    try:
        found = _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))).grouping
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        raise SfumatoError(
            f"groupings {path}",
            expected="a TOML file with [[grouping]] sections: name, dimension, label and groups",
            found=f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else str(error),
            do="correct the file; docs/serve.md shows one",
        ) from error
    names = [section.name for section in found]
    if len(set(names)) != len(names):
        raise SfumatoError(f"groupings {path}", expected="names that differ", found="one twice", do="rename one")
    return found


def of_dimension(sections: Sequence[GroupingSection], dimension: ServedDimension) -> tuple[Grouping, ...]:
    """The groupings of a dimension, with codes in place of expressions."""
    return tuple(
        Grouping(
            id=f"agg_{section.name}",
            label=section.label,
            groups={
                code: (label, tuple(dimension.codes[place] for place in places_of(dimension, group.codes)))
                for (code, group), label in zip(section.groups.items(), _labels(section.groups), strict=True)
            },
        )
        for section in sections
        if section.dimension == dimension.name
    )


def _labels(groups: Mapping[str, Group]) -> tuple[str, ...]:
    return told_apart(list(groups), [group.label for group in groups.values()])
