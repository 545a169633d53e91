"""Cells that were answered, remembered so that one which differs by a single unit is noticed.

A cell is remembered as the number of its units and the sum of their secret words modulo a prime. Two cells differ by
one unit when their numbers differ by one and their sums by the word of some unit. Words have 61 bits, so that a chance
meeting among millions of units and cells is next to impossible.
"""

import os
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.engine.unit_keys import PRIME
from sfumato.errors import DataError

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_FIELDS = 3  # what is summed, number of units, sum of their words
_MOST_PAIRS = 1 << 22


@dataclass(frozen=True, kw_only=True, eq=False)
class Released:
    """The remembered cells, in an owner-only file that only ever grows; it shows nothing of them."""

    path: Path
    words: Integers = field(repr=False)
    """The words of all units, ascending."""

    def near(self, topic: str, units: Integers, sums: Integers) -> Flags:
        """Which new cells differ by exactly one unit from a remembered one, or from another of the new ones."""
        known = self._cells(topic)
        known = np.concatenate([known, np.stack([units, sums], axis=1)]) if len(units) else known
        found = np.zeros(len(units), dtype=np.bool_)
        order = np.argsort(known[:, 0], kind="stable")
        known = known[order]
        for number in np.unique(units):
            chosen = np.flatnonzero(units == number)
            for step in (-1, 1):
                begin, end = np.searchsorted(known[:, 0], (number + step, number + step + 1))
                found[chosen] |= self._differ(sums[chosen], known[begin:end, 1], step)
        return found

    def remember(self, topic: str, units: Integers, sums: Integers) -> None:
        """Add cells that are not in the file yet, on the disk when this returns."""
        new = np.unique(np.stack([units, sums], axis=1), axis=0)
        known = {tuple(row) for row in self._cells(topic).tolist()}
        new = np.array([row for row in new.tolist() if tuple(row) not in known], dtype=np.int64).reshape(-1, 2)
        if not len(new):
            return
        rows = np.column_stack([np.full(len(new), _topic(topic)), new]).astype("<i8")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, rows.tobytes())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _differ(self, sums: Integers, known: Integers, step: int) -> Flags:
        """Which sums are a unit's word away from a known one: below it for a cell of one unit less, or above it."""
        found = np.zeros(len(sums), dtype=np.bool_)
        known = np.unique(known)
        for piece in range(0, len(known), max(_MOST_PAIRS // max(len(sums), 1), 1)):
            some = known[piece : piece + max(_MOST_PAIRS // max(len(sums), 1), 1)]
            apart = (some[None, :] - sums[:, None] if step > 0 else sums[:, None] - some[None, :]) % PRIME
            at = np.minimum(np.searchsorted(self.words, apart), len(self.words) - 1)
            found |= (self.words[at] == apart).any(axis=1) if len(self.words) else False
        return found

    def _cells(self, topic: str) -> Integers:
        if not self.path.exists():
            return np.zeros((0, 2), dtype=np.int64)
        content = self.path.read_bytes()
        # A crash may leave a part of the last row, of an answer that nobody got.
        whole = len(content) // (8 * _FIELDS) * 8 * _FIELDS
        rows = np.frombuffer(content[:whole], dtype="<i8").reshape(-1, _FIELDS).astype(np.int64)
        if len(content) != whole:
            raise DataError(
                f"released cells {self.path}",
                expected=f"whole rows of {8 * _FIELDS} bytes",
                found="a part of a row at the end, as a crash leaves it",
                do="cut the file to whole rows; the answer that was being written was not given",
            )
        return rows[rows[:, 0] == _topic(topic), 1:]


def _topic(topic: str) -> int:
    return int.from_bytes(blake2b(topic.encode(), digest_size=8).digest(), "little", signed=True)
