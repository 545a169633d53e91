"""From what every unit has in every inner cell to the cells of a table with its totals and largest contributions.

The columns of an answer, all whole numbers. `parts` make one unit of what is published: 1, or more with weights.

- `count`: the true value in whole units, as it would be published; `exact`: the same in parts, which adds up exactly;
- `records`: how many jobs or records there are; `establishments` where their number is public;
- of every level of units, 0 being the smallest: `units_0`, how many contribute; `largest_0`, the largest contribution
  of one that asked for protection; `second_0`, that of another; `top_0`, the sum of the n largest, that one first;
  `waived_0`, whether none of them asked; `owner_0`, the number of the unit that contributes alone, or −1; `first_0` and
  `next_0`, the numbers of those with the two contributions, and `share_0` and `other_0` what the cell has of both at
  least. Contributions are not weighted, and in parts; shares are, where a weight is below 1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells, Dimension, places
from sfumato.statistics.exact.question import ExactQuestion

Nested = Mapping[tuple[str, str], Mapping[str, str]]
"""Of pairs of attributes, the code of the second that each code of the first lies in."""
OWNERS = 1 << 40
"""Numbers of units of one level are below this, and those of the next coarser level begin here."""
_COLUMNS = {"units": 0, "largest": 0, "second": 0, "top": 0, "waived": 0, "owner": -1, "first": -1, "next": -1}
_COLUMNS |= {"share": 0, "other": 0}
"""The columns of a level, and what they are where nobody contributes."""
ABOUT_PARTS = "parts"
"""The column that says how many parts make a unit, the same in every cell."""


@dataclass(frozen=True, kw_only=True)
class ExactCells(Cells):
    """True cells with their largest contributions, and what lies in what among the attributes of all tables."""

    nested: Nested = field(default_factory=dict)
    joint: "tuple[tuple[Dimension, ...], Parts] | None" = None
    """Where codes are merged: what units have in the finest cells of all tables, and their dimensions."""
    beyond: "Mapping[str, ExactCells]" = field(default_factory=dict)
    """Of a filtered table, by the name of a wider one, the cells of what that has more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """What units have in the inner cells of a table, one row for a unit and a cell: confidential."""

    at: Integers
    """Positions among the inner cells."""
    value: Integers
    """What is published of them, in parts."""
    records: Integers
    units: tuple[Integers, ...]
    """At every level the number of the unit; units are numbered alike in all tables."""
    contribution: Integers | None = None
    """Without weights, in parts; the value where there are none."""
    asked: Flags | None = None
    """Whether the unit asked for protection; all did where nobody was asked."""
    parts: int = 1
    ranks: tuple[int, ...] = ()
    """Of every level of units how coarse it is beside others, 0 being the finest; in their order if not given."""
    listed: Integers | None = None
    """The number of establishments of every cell of the table, where it is public: cells without any are left out."""


@dataclass(frozen=True, kw_only=True)
class _Margins:
    """The positions of inner cells among those of a table, in each kind of total."""

    question: ExactQuestion
    at: Integers = field(repr=False)

    def __iter__(self) -> Iterator[Integers]:
        by, inner = self.question.by, self.question.inner
        own = places(self.at, inner)
        for chosen in range(1 << len(by)):
            kept = [bool(chosen >> place & 1) for place in range(len(by))]
            if any(not keep and len(one) == len(two) for keep, one, two in zip(kept, by, inner, strict=True)):
                continue  # a dimension without a total, and so every table without totals
            found = np.zeros(len(self.at), dtype=np.int64)
            for keep, one, codes in zip(kept, by, own, strict=True):
                found = found * len(one) + (codes if keep else len(one) - 1)
            yield found


def counted_cells(question: ExactQuestion, parts: Parts, nested: Nested = MappingProxyType({})) -> ExactCells:
    """All cells of a table, with the columns that this module describes."""
    size = question.cells
    columns = {"exact": np.zeros(size, dtype=np.int64), "records": np.zeros(size, dtype=np.int64)}
    levels = range(len(parts.units)) if question.contributors else range(0)
    for level in levels:
        columns |= {f"{name}_{level}": np.full(size, none, dtype=np.int64) for name, none in _COLUMNS.items()}
    value = parts.value if parts.contribution is None else parts.contribution
    asked = np.ones(len(value), dtype=bool) if parts.asked is None else parts.asked
    for at in _Margins(question=question, at=parts.at):
        np.add.at(columns["exact"], at, parts.value)
        np.add.at(columns["records"], at, parts.records)
        for level in levels:
            found = _of_level(at, parts.units[level], (value, parts.value), asked, question.top)
            cells = found.pop("at")
            rank = parts.ranks[level] if parts.ranks else level
            for name in ("owner", "first", "next"):
                found[name] = np.where(found[name] >= 0, found[name] + rank * OWNERS, -1)
            for name, column in found.items():
                columns[f"{name}_{level}"][cells] = column
    columns["count"] = (columns["exact"] + parts.parts // 2) // parts.parts
    columns[ABOUT_PARTS] = np.full(size, parts.parts, dtype=np.int64)
    positions = np.arange(size, dtype=np.int64)
    if parts.listed is not None:
        positions = np.flatnonzero(parts.listed > 0)
        columns = {name: column[positions] for name, column in columns.items()}
        columns["establishments"] = parts.listed[positions]
    return ExactCells(dimensions=question.by, positions=positions, columns=columns, nested=nested)


def _of_level(
    at: Integers, unit: Integers, values: tuple[Integers, Integers], asked: Flags, top: int
) -> dict[str, Integers]:
    """What the units of one level have in every cell that any contributes to; those with 0 contribute nothing.

    The values are contributions, and what is published of them, with weights.
    """
    order = np.lexsort((unit, at))
    at, unit, asked = at[order], unit[order], asked[order]
    value, published = (one[order] for one in values)
    begins = _begins(at, unit)
    if len(begins):
        at, unit, asked = at[begins], unit[begins], np.logical_or.reduceat(asked, begins)
        value, published = np.add.reduceat(value, begins), np.add.reduceat(published, begins)
    some = value != 0
    share = np.minimum(value, published)
    at, unit, value, share, asked = at[some], unit[some], value[some], share[some], asked[some]
    # Of every cell the largest that asked for protection stands first, and then the others by size.
    order = np.lexsort((unit, -value, ~asked, at))
    first = order[_begins(at[order])]
    leading = np.zeros(len(at), dtype=bool)
    leading[first] = True
    order = np.lexsort((unit, -value, ~leading, at))
    at, unit, value, share, asked = at[order], unit[order], value[order], share[order], asked[order]
    begins = _begins(at)
    if not len(begins):
        none = np.zeros(0, dtype=np.int64)
        return dict.fromkeys(("at", *_COLUMNS), none)
    number = np.diff(np.append(begins, len(at)))
    rank = np.arange(len(at)) - np.repeat(begins, number)
    following = np.minimum(begins + 1, len(at) - 1)
    return {
        "at": at[begins],
        "units": number,
        "largest": value[begins],
        "second": np.where(number > 1, value[following], 0),
        "top": np.add.reduceat(np.where(rank < top, value, 0), begins),
        "waived": (~np.logical_or.reduceat(asked, begins)).astype(np.int64),
        "owner": np.where(number == 1, unit[begins], -1),
        "first": unit[begins],
        "next": np.where(number > 1, unit[following], -1),
        "share": share[begins],
        "other": np.where(number > 1, share[following], 0),
    }


def _begins(*keys: Integers) -> Integers:
    """Where a new combination begins in keys that are in order."""
    if not len(keys[0]):
        return np.zeros(0, dtype=np.int64)
    new = np.zeros(len(keys[0]), dtype=bool)
    new[0] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)
