"""Cells that were answered, remembered so that one which differs by a single unit is noticed.

A cell is remembered as the number of its units and the sum of their secret words modulo a prime. Two cells differ by
one unit when their numbers differ by one and their sums by the word of some unit. Words have 61 bits, so that a chance
meeting among millions of units and cells is next to impossible.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.durable import private_folder, room_for
from sfumato.engine.unit_keys import PRIME

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_FIELDS = 3  # what is summed at which level, number of units, sum of their words
_ROW = 8 * _FIELDS
_MOST_PAIRS = 1 << 22


@dataclass(frozen=True, kw_only=True, eq=False)
class Released:
    """The remembered cells, in an owner-only file that only ever grows; it shows nothing of them."""

    path: Path
    words: tuple[Integers, ...] = field(repr=False)
    """The words of all units, ascending, by level."""
    _read: dict[str, Integers] = field(default_factory=dict, repr=False)

    def near(self, topic: str, level: int, units: Integers, sums: Integers, *, first: bool = False) -> Flags:
        """Which cells differ by exactly one unit from a remembered one, or from another of them.

        With `first`, a cell that is remembered itself is compared with those that were remembered before it: the same
        cells then always get what they got at first, whatever was answered since.
        """
        known = _Known.of(self._cells(topic, level), np.stack([units, sums], axis=1), first=first)
        found = np.zeros(len(units), dtype=np.bool_)
        for step in (-1, 1):
            begin, end = (np.searchsorted(known.units, units + step, side=side) for side in ("left", "right"))
            for some in _pieces(end - begin):
                found[some] |= _differ(
                    self.words[level], sums[some], known, known.since[some], begin=begin[some], end=end[some], step=step
                )
        return found

    def remember(self, topic: str, level: int, units: Integers, sums: Integers) -> None:
        """Add cells that are not in the file yet, on the disk when this returns."""
        known = self._cells(topic, level)
        new = _distinct(np.stack([units, sums], axis=1), without=known)
        if not len(new):
            return
        rows = np.column_stack([np.full(len(new), _topic(topic, level)), new]).astype("<i8")
        private_folder(self.path.parent)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with room_for(self.path), os.fdopen(descriptor, "wb") as file:
            # A crash may have left a part of a row, of an answer that nobody got: it is written over.
            file.seek(self.path.stat().st_size // _ROW * _ROW)
            file.write(rows.tobytes())
            file.flush()
            os.fsync(file.fileno())

    def _cells(self, topic: str, level: int) -> Integers:
        rows = self._rows()
        return rows[rows[:, 0] == _topic(topic, level), 1:]

    def _rows(self) -> Integers:
        """Everything in the file, which other processes may have made longer; what is known is not read again."""
        size = self.path.stat().st_size // _ROW * _ROW if self.path.exists() else 0
        read = self._read.get("rows", np.zeros((0, _FIELDS), dtype=np.int64))
        if size < len(read) * _ROW:  # somebody put an older file in its place
            read = read[:0]
        if size != len(read) * _ROW:
            with self.path.open("rb") as file:
                file.seek(len(read) * _ROW)
                content = file.read(size - len(read) * _ROW)
            # A part of a row belongs to an answer that nobody got.
            rows = np.frombuffer(content, dtype="<i8").reshape(-1, _FIELDS).astype(np.int64)
            read = self._read["rows"] = np.concatenate([read, rows])
        return read


@dataclass(frozen=True, kw_only=True, eq=False)
class _Known:
    """Cells to compare with, in order, each once: those that are remembered, and those that are asked about."""

    units: Integers
    sums: Integers
    turn: Integers
    """When each was remembered; before all others if it is asked about."""
    since: Integers
    """Of every cell that is asked about, before which turn a cell counts."""

    @classmethod
    def of(cls, remembered: Integers, asked: Integers, *, first: bool) -> "_Known":
        every, turns = np.concatenate([remembered, asked]), len(remembered)
        order = np.lexsort((every[:, 1], every[:, 0]))  # stable: of equal cells, the one remembered first leads
        leads = np.ones(len(order), dtype=np.bool_)
        leads[1:] = (every[order[1:]] != every[order[:-1]]).any(axis=1)
        place = np.empty_like(order)
        place[order] = np.cumsum(leads) - 1
        turn = np.minimum(order[leads], turns)
        since = turn[place[turns:]] if first else np.full(len(asked), turns)
        turn[place[turns:]] = -1
        cells = every[order[leads]]
        return cls(units=cells[:, 0], sums=cells[:, 1], turn=turn, since=since)


def _differ(
    words: Integers, sums: Integers, known: _Known, since: Integers, *, begin: Integers, end: Integers, step: int
) -> Flags:
    """Which sums are a unit's word away from one of the known sums that each is compared with.

    They are below it for a cell of one unit less, or above it.
    """
    times = end - begin
    found = np.zeros(len(sums), dtype=np.bool_)
    if not (len(words) and times.any()):
        return found
    cell = np.repeat(np.arange(len(sums)), times)
    other = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times) + np.repeat(begin, times)
    counts = known.turn[other] < since[cell]
    cell, other = cell[counts], other[counts]
    apart = (known.sums[other] - sums[cell] if step > 0 else sums[cell] - known.sums[other]) % PRIME
    order = np.argsort(apart)  # looked for in order, words are several times as quick to find among millions
    cell, apart = cell[order], apart[order]
    at = np.minimum(np.searchsorted(words, apart), len(words) - 1)
    found[cell[words[at] == apart]] = True
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


def _distinct(rows: Integers, without: Integers | None = None) -> Integers:
    """Rows of two numbers in order, each once, and none that is among others."""
    others = rows[:0] if without is None else without
    every = np.concatenate([others, rows])
    order = np.lexsort((every[:, 1], every[:, 0]))  # stable: of equal rows, others come first
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = (every[order[1:]] != every[order[:-1]]).any(axis=1)
    return every[order[first & (order >= len(others))]]


def _topic(topic: str, level: int) -> int:
    return int.from_bytes(blake2b(f"{level} {topic}".encode(), digest_size=8).digest(), "little", signed=True)
