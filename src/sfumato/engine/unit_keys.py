"""Permanent keys of units: numbers that follow from the secret and the unit's name, and from nothing else."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.cells import Integers
from sfumato.noise.keyed import Keyed, hashes, hashes_of_integers

PRIME = 2**61 - 1
"""Keys and guard words of a cell's units are added up modulo this."""
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)
_GUARD = np.uint64(3)  # 64 bits less 61


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitKeys:
    """The keys of the units of one level, in the order in which their names were given; never shown."""

    keys: Integers = field(repr=False)
    """An integer below 2³² for every unit. Two of 10 million units share theirs now and then; nothing depends on it."""
    guards: Integers = field(repr=False)
    """61 bits for every unit: sums of them tell sets of units apart, and sets that differ by one unit."""
    numbers: NDArray[np.int32] = field(repr=False)
    """The place of every unit, from 0, when all are ordered by key and, among equal keys, by the text of the name."""

    by_number: NDArray[np.uint32] = field(repr=False)
    """The keys in the order of the numbers."""

    def __len__(self) -> int:
        return len(self.keys)


def unit_keys(names: pa.Array | pa.ChunkedArray, *, level: str, keyed: Keyed) -> UnitKeys:
    """The keys of units, each named once, by text or by an integer; 17 and "17" have the same key.

    `level` is the column that names the units, such as "enterprise": an enterprise and a business of the same name have
    keys that have nothing to do with each other, while an enterprise has one key in every table that has such a column.

    >>> made = unit_keys(pa.array([17, 4]), level="business", keyed=Keyed(key=bytes(16)))
    >>> made, bool((made.keys < 2**32).all()), sorted(made.numbers.tolist())
    (UnitKeys(), True, [0, 1])
    """
    hashed = hashes_of_integers(names) if pa.types.is_integer(names.type) else hashes(names)
    keys = keyed.words(hashed, purpose=f"unit key {level}") >> _HALF
    guards = (keyed.words(hashed, purpose=f"guard {level}") >> _GUARD).view(np.int64)
    numbers, ordered = _numbered(keys, names)
    return UnitKeys(keys=keys.view(np.int64), guards=guards, numbers=numbers, by_number=ordered)


def _numbered(
    keys: NDArray[np.uint64], names: pa.Array | pa.ChunkedArray
) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """The place of every unit in the order of keys and names, and the keys in that order."""
    if len(keys) >= 2**31:
        raise ValueError("more units than can be numbered")
    # One sort of keys with rows behind them is several times as quick as a sort of rows by their keys.
    ordered = keys << _HALF
    ordered |= np.arange(len(keys), dtype=np.uint64)
    ordered.sort()
    rows = (ordered & _LOW).astype(np.int32)
    ordered = (ordered >> _HALF).astype(np.uint32)
    same = ordered[1:] == ordered[:-1]
    if same.any():
        shared = np.zeros(len(keys), dtype=np.bool_)
        shared[1:] |= same
        shared[:-1] |= same
        at = np.flatnonzero(shared)
        texts = names.take(pa.array(rows[at])).cast(pa.large_string()).to_pylist()
        order = sorted(range(len(at)), key=lambda place: (int(ordered[at[place]]), texts[place]))
        rows[at] = rows[at][order]
    numbers = np.empty(len(keys), dtype=np.int32)
    numbers[rows] = np.arange(len(keys), dtype=np.int32)
    return numbers, ordered
