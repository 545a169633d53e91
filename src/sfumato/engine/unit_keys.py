"""Permanent keys of units: numbers that follow from the secret and the unit's name, and from nothing else."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.noise.keyed import Keyed, hashes, hashes_of_integers

PRIME = 2**61 - 1
"""Keys and guard words of a cell's units are added up modulo this."""
KEYS = 2**32
"""Keys are below this."""
_HALF = np.uint64(32)
_LOW = np.uint64(KEYS - 1)
_GUARD = np.uint64(3)  # 64 bits less 61
_PIECE = 1 << 18  # units at a time: what is made on the way to their keys stays small


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitKeys:
    """The keys of the units of one level, in the order in which their names were given; never shown."""

    names: pa.Array | pa.ChunkedArray = field(repr=False)
    keys: NDArray[np.uint32] = field(repr=False)
    """An integer below 2³² for every unit. Two of 10 million units share theirs now and then; nothing depends on it."""
    guards: Integers = field(repr=False)
    """61 bits for every unit: sums of them tell sets of units apart, and sets that differ by one unit."""

    @property
    def numbers(self) -> NDArray[np.int32]:
        """The place of every unit, from 0, when all are ordered by key and, among equal keys, by the text of the name.

        Units are put in order when this is first asked for, which takes longer than their keys.
        """
        return self._numbered[0]

    @property
    def by_number(self) -> NDArray[np.uint32]:
        """The keys in the order of the numbers."""
        return self._numbered[1]

    @cached_property
    def _numbered(self) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
        return _numbered(self.keys, self.names)

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
    hashed = hashes_of_integers if pa.types.is_integer(names.type) else hashes
    keys, guards = np.empty(len(names), dtype=np.uint32), np.empty(len(names), dtype=np.int64)
    for begin in range(0, len(names), _PIECE):
        piece = slice(begin, begin + _PIECE)
        units = hashed(names[piece])
        keys[piece] = keyed.words(units, purpose=f"unit key {level}") >> _HALF
        guards[piece] = keyed.words(units, purpose=f"guard {level}") >> _GUARD
    return UnitKeys(names=names, keys=keys, guards=guards)


def _numbered(
    keys: NDArray[np.uint32], names: pa.Array | pa.ChunkedArray
) -> tuple[NDArray[np.int32], NDArray[np.uint32]]:
    """The place of every unit in the order of keys and names, and the keys in that order."""
    if len(keys) >= 2**31:
        raise ValueError("more units than can be numbered")
    # One sort of keys with rows behind them is several times as quick as a sort of rows by their keys.
    packed = keys.astype(np.uint64)
    packed <<= _HALF
    packed |= np.arange(len(keys), dtype=np.uint32)
    _sort(packed)
    ordered = (packed >> _HALF).astype(np.uint32)
    packed &= _LOW
    rows = packed.view(np.int64)
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


def _sort(words: NDArray[np.uint64]) -> None:
    """Sort words where they are: the smaller half and the larger one at the same time."""
    middle = len(words) // 2
    if middle:
        words.partition(middle)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(np.ndarray.sort, (words[:middle], words[middle:])))
