"""Cells that were answered, by what they are about, so that one differing by few units is noticed."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Integers
from sfumato.cells import Cells, Dimension
from sfumato.durable import append_line, private_folder
from sfumato.engine.factors import PRIME
from sfumato.statistics.totals.question import TOTAL

# What cells are about: for every attribute the set of codes that their records may have.

Sets = NDArray[np.int32]
Where = Mapping[str, Sequence[str]]

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The places of the first cells and of the second ones."""

EVERYTHING = 0
"""The number of the set of all codes of an attribute."""
UNDEFINED = -1
"""In place of the set of a cell of which it is not known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CodeSets:
    """Numbers for sets of codes, attribute by attribute: the same set has the same number however it was asked for."""

    codes: Mapping[str, tuple[str, ...]]
    """All codes of every attribute."""
    _numbers: dict[str, dict[frozenset[str], int]] = field(default_factory=dict, repr=False)

    def of_cells(self, by: Sequence[Dimension], where: Where, codes: Sequence[NDArray[np.intp]]) -> Sets:
        """The sets that define cells, a row each; `codes` are the places of the cells in every dimension."""
        found = np.full((len(codes[0]) if codes else 1, len(self.codes)), EVERYTHING, dtype=np.int32)
        dimensions = {dimension.name: (dimension, places) for dimension, places in zip(by, codes, strict=True)}
        for column, name in enumerate(self.codes):
            among = self._number(name, where.get(name, self.codes[name]))
            found[:, column] = among
            if name in dimensions:
                dimension, places = dimensions[name]
                single = [among if code == TOTAL else self._number(name, (code,)) for code in dimension.codes]
                found[:, column] = np.array(single, dtype=np.int32)[places]
        return found

    def meeting(self, first: Sets, second: Sets, pairs: Pairs) -> Pairs:
        """Those of some pairs of cells that can share records; a cell that is not defined can with all."""
        one, other = pairs
        # Attributes with many sets leave the fewest pairs to look at.
        for name in sorted(self.codes, key=lambda name: -len(self._sets(name))):
            column, (_, meets) = self._columns[name], self._matrices(name)
            kept = meets[first[one, column], second[other, column]]
            one, other = one[kept], other[kept]
        return one, other

    def nested(self, first: Sets, second: Sets) -> Flags:
        """Whether one cell of each pair lies within the other by definition; none that is not defined does."""
        below, above = (np.ones(len(first), dtype=np.bool_) for _ in range(2))
        for name, column in self._columns.items():
            within, _ = self._matrices(name)
            one, other = first[:, column], second[:, column]
            below &= within[one, other]
            above &= within[other, one]
        return below | above

    @property
    def _columns(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.codes)}

    def shared(self, first: Sets, second: Sets) -> list[dict[str, tuple[str, ...]]]:
        """What both cells of each pair are about, as a filter."""
        filters: list[dict[str, tuple[str, ...]]] = [{} for _ in first]
        for column, name in enumerate(self.codes):
            sets = list(self._sets(name))
            for place, (one, other) in enumerate(zip(first[:, column], second[:, column], strict=True)):
                if one != EVERYTHING or other != EVERYTHING:
                    filters[place][name] = tuple(sorted(sets[one] & sets[other]))
        return filters

    def _sets(self, name: str) -> dict[frozenset[str], int]:
        return self._numbers.setdefault(name, {frozenset(self.codes[name]): EVERYTHING})

    def _number(self, name: str, codes: Sequence[str]) -> int:
        known = self._sets(name)
        return known.setdefault(frozenset(codes), len(known))

    def _matrices(self, name: str) -> tuple[Flags, Flags]:
        """Of every two sets, whether the first lies within the second, and whether they share a code."""
        sets = list(self._sets(name))
        place = {code: at for at, code in enumerate(dict.fromkeys(code for one in sets for code in one))}
        held = np.zeros((len(sets), len(place)), dtype=np.int64)
        for row, codes in enumerate(sets):
            held[row, [place[code] for code in codes]] = 1
        common = held @ held.T
        # The last row and column are of cells that are not defined, whose number is −1.
        within, meets = (np.full((len(sets) + 1, len(sets) + 1), whole) for whole in (False, True))
        within[:-1, :-1] = common == held.sum(axis=1)[:, None]
        meets[:-1, :-1] = common > 0
        return within, meets


# Cells that were answered, remembered so that one which differs from them by few units, or by none, is noticed.
#
# A cell is remembered by what it is about, the number of its units at every level, and the sums of their secret words
# modulo a prime. Of two cells of which one lies within the other by definition, the numbers tell by how many units they
# differ, at the level of the records exactly. Of others that can share records, the words tell whether they have the
# same units or differ by one, and the records that they share by how many they differ. Words have 61 bits, so that a
# chance meeting among millions of units and cells is next to impossible.

CountUnits = Callable[[Sequence[Mapping[str, Sequence[str]]]], Integers]
"""The number of records within each of some filters."""

MOST_COUNTED = 10_000
"""So many pairs of cells that overlap are looked into with the data; if there are more, all count as too near."""
_ROW = 24  # bytes of such a cell: what is summed at which level, number of units, sum of their words
_MOST_PAIRS = 1 << 22
_NOTHING_READ: "tuple[int, list[AnsweredCells]]" = (0, [])


@dataclass(frozen=True, kw_only=True, eq=False)
class AnsweredCells:
    """Some cells: the sets of codes that define them, and the units and sums of words at every level."""

    sets: Sets = field(repr=False)
    units: Integers = field(repr=False)
    sums: Integers = field(repr=False)

    def __len__(self) -> int:
        return len(self.sets)

    def at(self, chosen: NDArray[Any]) -> Self:
        """Some of them."""
        return type(self)(sets=self.sets[chosen], units=self.units[:, chosen], sums=self.sums[:, chosen])

    def followed_by(self, *others: Self) -> Self:
        """These, and others behind them."""
        every = (self, *others)
        return type(self)(
            sets=np.concatenate([one.sets for one in every]),
            units=np.concatenate([one.units for one in every], axis=1),
            sums=np.concatenate([one.sums for one in every], axis=1),
        )

    def names(self) -> list[bytes]:
        """What each is about, so that equal ones can be found."""
        return [row.tobytes() for row in np.ascontiguousarray(self.sets)]


@dataclass(frozen=True, kw_only=True, eq=False)
class DifferencingGuard:
    """The remembered cells, in an owner-only file that only ever grows; it shows nothing of them.

    `path` names the file of earlier versions, which is still read; the new one lies beside it.
    """

    path: Path
    words: tuple[Integers, ...] = field(repr=False)
    """The words of all units, ascending, by level."""
    code_sets: CodeSets = field(repr=False)
    topics: tuple[str, ...]
    """What earlier versions kept apart: counts, and every measure.

    All are compared together: a total divided by a mean is the number of units, whatever the measure.
    """
    _read: "dict[str, tuple[int, list[AnsweredCells]]]" = field(default_factory=dict, repr=False)

    @property
    def file(self) -> Path:
        """The file that cells are remembered in."""
        return self.path.with_suffix(".questions")

    def cells(self, counted: Cells, where: Mapping[str, Sequence[str]], chosen: NDArray[np.intp]) -> AnsweredCells:
        """Some cells of a counted question."""
        codes = [counted.codes(dimension.name)[chosen] for dimension in counted.dimensions]
        levels = range(len(self.words))
        return AnsweredCells(
            sets=self.code_sets.of_cells(counted.dimensions, where, codes),
            units=np.stack([counted[f"units_{level}"][chosen] for level in levels]),
            sums=np.stack([counted[f"guard_{level}"][chosen] for level in levels]),
        )

    def near(self, asked: AnsweredCells, *, within: int, count: CountUnits, first: bool = False) -> Flags:
        """Which cells differ by at most so many units, or by none, from a remembered one or from another of them.

        A cell that is remembered itself was answered, and may be again. With `first`, it is compared with those that
        were remembered before it: the same cells then always get what they got at first, whatever was answered since.
        """
        remembered = self._remembered()
        places: dict[bytes, int] = {}
        for place, name in enumerate(remembered.names()):
            places.setdefault(name, place)
        turns = len(remembered)
        since = np.array([places.get(name, turns) for name in asked.names()], dtype=np.int64)
        every = remembered.followed_by(asked)
        found = np.zeros(len(asked), dtype=np.bool_)
        unsettled = []
        for level in range(len(self.words)):
            for cell, other in _about_as_many(asked.units[level], every.units[level], within):
                chosen, known = self.code_sets.meeting(asked.sets, every.sets, (cell, other))
                counts = (known >= turns) | (known < since[chosen])
                counts &= (asked.sets[chosen] != every.sets[known]).any(axis=1)
                chosen, known = chosen[counts], known[counts]
                pairs = _Pairs(cell=chosen, first=asked.at(chosen), second=every.at(known))
                left = self._judge(level, pairs, found)
                if level == 0:
                    unsettled.append(left)
        for left in unsettled:
            self._look_into(left.at(~found[left.cell]), found, within=within, count=count)
        return found if first else found & (since == turns)

    def remember(
        self,
        asked: AnsweredCells,
        by: Sequence[Dimension],
        where: Mapping[str, Sequence[str]],
        at: Integers,
    ) -> None:
        """Add cells that are not in the file yet, on the disk when this returns; `at` are their positions."""
        known = set(self._remembered().names())
        new = np.flatnonzero([name not in known for name in asked.names()])
        if not len(new):
            return
        line = {
            "by": [[dimension.name, list(dimension.codes)] for dimension in by],
            "where": {name: list(codes) for name, codes in where.items()},
            "positions": _text(at[new]),
            "units": [_text(part[new]) for part in asked.units],
            "sums": [_text(part[new]) for part in asked.sums],
        }
        private_folder(self.file.parent)
        append_line(self.file, json.dumps(line))

    def _judge(self, level: int, pairs: "_Pairs", found: Flags) -> "_Pairs":
        """Mark cells of pairs that are known to be too near, and give back those that have to be looked into."""
        nested = self.code_sets.nested(pairs.first.sets, pairs.second.sets)
        found[pairs.cell[nested]] = True
        pairs = pairs.at(~nested)
        legacy = pairs.second.sets[:, 0] == UNDEFINED
        more = pairs.second.units[level] - pairs.first.units[level]
        apart = (pairs.second.sums[level] - pairs.first.sums[level]) * np.where(more < 0, -1, 1) % PRIME
        # What an earlier version remembered may be the same cell, which it answered.
        same = (more == 0) & (apart == 0) & ~legacy
        near = same | ((np.abs(more) == 1) & _are_words(self.words[level], apart))
        found[pairs.cell[near]] = True
        return pairs.at(~near & ~legacy)

    def _look_into(self, pairs: "_Pairs", found: Flags, *, within: int, count: CountUnits) -> None:
        """Count the records that overlapping cells share: the others are those by which they differ."""
        if len(pairs.cell) > MOST_COUNTED:
            found[pairs.cell] = True
        elif len(pairs.cell):
            common = count(self.code_sets.shared(pairs.first.sets, pairs.second.sets))
            apart = pairs.first.units[0] + pairs.second.units[0] - 2 * common
            found[pairs.cell[apart <= within]] = True

    def _remembered(self) -> AnsweredCells:
        """Everything remembered, in order; those of an earlier version come first."""
        return self._earlier().followed_by(*self._lines())

    def _lines(self) -> list[AnsweredCells]:
        """The cells of the file, which other processes may have made longer; what is known is not read again."""
        size = self.file.stat().st_size if self.file.exists() else 0
        begin, lines = self._read.get("lines", _NOTHING_READ)
        if size < begin:  # somebody put an older file in its place
            begin, lines = _NOTHING_READ
        if size > begin:
            with self.file.open("rb") as file:
                file.seek(begin)
                content = file.read()
            whole = _whole_lines(content)
            lines = [*lines, *(self._parsed(line) for line in content[:whole].splitlines())]
            self._read["lines"] = (begin + whole, lines)
        return lines

    def _parsed(self, line: bytes) -> AnsweredCells:
        read = json.loads(line)
        by = tuple(Dimension(name=name, codes=tuple(codes)) for name, codes in read["by"])
        positions = _array(read["positions"])
        codes = np.unravel_index(positions, tuple(map(len, by))) if by else ()
        return AnsweredCells(
            sets=self.code_sets.of_cells(by, read["where"], codes),
            units=np.stack([_array(part) for part in read["units"]]),
            sums=np.stack([_array(part) for part in read["sums"]]),
        )

    def _earlier(self) -> AnsweredCells:
        """Cells of an earlier version, which kept numbers and sums only, each at its level."""
        content = self.path.read_bytes() if self.path.exists() else b""
        rows = np.frombuffer(content[: len(content) // _ROW * _ROW], dtype="<i8").reshape(-1, 3).astype(np.int64)
        levels = range(len(self.words))
        of_level = [rows[np.isin(rows[:, 0], [_topic(topic, level) for topic in self.topics]), 1:] for level in levels]
        length = sum(map(len, of_level))
        units = np.full((len(levels), length), np.iinfo(np.int64).max // 2)
        sums = np.zeros_like(units)
        begin = 0
        for level, found in enumerate(of_level):
            units[level, begin : begin + len(found)], sums[level, begin : begin + len(found)] = found.T
            begin += len(found)
        sets = np.full((length, len(self.code_sets.codes)), UNDEFINED, dtype=np.int32)
        return AnsweredCells(sets=sets, units=units, sums=sums)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pairs:
    """Cells that are asked about, by their places, each beside one that it is compared with."""

    cell: Integers
    first: AnsweredCells
    second: AnsweredCells

    def at(self, chosen: Flags) -> "_Pairs":
        """Some of them."""
        return _Pairs(cell=self.cell[chosen], first=self.first.at(chosen), second=self.second.at(chosen))


def _about_as_many(asked: Integers, every: Integers, within: int) -> Iterator[tuple[Integers, Integers]]:
    """Places of cells and of those they are compared with: whose number of units is about the same."""
    order = np.argsort(every, kind="stable")
    ordered = every[order]
    begin, end = np.searchsorted(ordered, asked - within), np.searchsorted(ordered, asked + within, side="right")
    for some in _pieces(end - begin):
        times = (end - begin)[some]
        cell = np.repeat(np.arange(len(asked))[some], times)
        place = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times) + np.repeat(begin[some], times)
        yield cell, order[place]


def _are_words(words: Integers, numbers: Integers) -> Flags:
    """Which numbers are the word of a unit."""
    if not len(words):
        return np.zeros(len(numbers), dtype=np.bool_)
    order = np.argsort(numbers)  # looked for in order, words are several times as quick to find among millions
    at = np.minimum(np.searchsorted(words, numbers[order]), len(words) - 1)
    found = np.zeros(len(numbers), dtype=np.bool_)
    found[order] = words[at] == numbers[order]
    return found


def _pieces(times: Integers) -> Iterator[slice]:
    """Parts of a list whose entries are compared so many times each: one entry, or a bounded number of comparisons."""
    ends = np.cumsum(times)
    start = 0
    while start < len(times):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + _MOST_PAIRS, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def _whole_lines(content: bytes) -> int:
    """The length of what is complete: a part of a line belongs to an answer that nobody got."""
    return content.rfind(b"\n") + 1


def _text(numbers: Integers) -> str:
    return b64encode(numbers.astype("<i8").tobytes()).decode()


def _array(text: str) -> Integers:
    return np.frombuffer(b64decode(text), dtype="<i8").astype(np.int64)


def _topic(topic: str, level: int) -> int:
    return int.from_bytes(blake2b(f"{level} {topic}".encode(), digest_size=8).digest(), "little", signed=True)
