"""The codes of a variable as the form offers them: boxes to tick, searched where there are very many."""

from dataclasses import dataclass
from typing import NamedTuple

from sfumato.serve.errors import RefusedError
from sfumato.serve.model import ServedDimension, ServedTable
from sfumato.serve.page.question import Question, Variable, spelled
from sfumato.serve.page.writing import count
from sfumato.serve.selection import places_of, valueset

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


def choices_of(question: Question) -> tuple[Choices, ...]:
    """The variables of a question as the form shows them, in the order of the reader."""
    finds = dict(question.finds)
    axes, whole = question.table.by_name, question.table.dimensions
    return tuple(
        _choices(one, axis := axes[one.name.lower()], _lists(question.table, whole[axis], one), finds.get(one.name, ""))
        for one in question.variables
    )


def _lists(table: ServedTable, whole: ServedDimension, variable: Variable) -> tuple[Listed, ...]:
    if not whole.groupings:
        return ()
    chosen = variable.grouping
    groups = [
        Listed(one.id, f"{one.label} ({count(len(one.groups), 'group')})", len(one.groups), one.id == chosen)
        for one in whole.groupings
    ]
    single = f"No groups ({count(len(whole), 'code')})"
    return (Listed(valueset(table, whole), single, len(whole), not chosen), *groups)


def matching(dimension: ServedDimension, words: str) -> list[int]:
    """The places of codes that have every word in their code or label."""
    wanted = words.lower().split()
    return [
        place
        for place, (code, label) in enumerate(zip(dimension.codes, dimension.labels, strict=True))
        if all(word in f"{code} {label}".lower() for word in wanted)
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
    return Choices(
        axis=axis,
        variable=variable,
        lists=lists,
        codes=tuple(
            Choice(dimension.codes[place], dimension.labels[place], place in wanted and not every) for place in listed
        ),
        every=every,
        count=len(wanted),
        kept=spelled(dimension, [dimension.codes[place] for place in rest]) if rest else "",
        kept_count=len(rest),
        long=long,
        find=find,
        found=len(found),
    )
