"""Permanent factors of employers and keys of units as columns of the engine, and sums that leave 64 bits."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.engine.connect import Tables
from sfumato.engine.executors import spark_column
from sfumato.engine.query import Rows, text
from sfumato.frame.data import Frame
from sfumato.keys import Secret
from sfumato.noise.factors import ONE, Factors
from sfumato.noise.keyed import Keyed, hashes, hashes_of_integers

# The permanent factor of every employer as a table of the engine.


def factors_of(secret: Secret) -> Factors:
    """The factors that a key file describes."""
    return Factors(key=secret.key, least=secret.a - 1, most=secret.b - 1)


def factor_table(frame: Frame, tables: Tables, factors: Factors) -> Rows:
    """Each employer's key as `_workplace` and its factor in millionths as `_factor`.

    The keys come from the register, or from the jobs where there is none. A factor is a function of the text of the
    key, so that it is the same whether an engine stores keys as numbers or as text.
    """
    if tables.workplaces is not None and frame.workplaces is not None:
        holder, key = tables.workplaces, frame.workplaces.key
    else:
        holder, key = tables.jobs, frame.jobs.workplace
    named = holder.select(_workplace=holder.engine.q(key), _name=text(holder, key))
    named = named if frame.workplaces is not None else named.distinct()
    if tables.engine.is_distributed:  # counting leaves keys and factors there; indicators read them
        return spark_column(named, "_factor", _FactorsOfNames(factors=factors)).without("_name")
    found = named.fetch()
    made = {"_workplace": found["_workplace"], "_factor": factors.of(hashes(found["_name"]))}
    return tables.engine.lend(pa.table(made))


@dataclass(frozen=True, kw_only=True)
class _FactorsOfNames:
    """The factors of employers by their names: a plain value, which may be sent to another process."""

    factors: Factors

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        return pa.array(self.factors.of(hashes(batch["_name"])))


# Permanent keys of units: numbers that follow from the secret and the unit's name, and from nothing else.

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


# Sums that leave 64 bits: exact on every engine, and split into 64-bit numbers afterwards.

_LOW_WIDE_SUMS = np.uint64(PRIME)


def wide_sum(rows: Rows, expression: str) -> str:
    """The exact sum of whole numbers of 64 bits, as a decimal of 38 digits."""
    # DuckDB sums integers in 128 bits.
    wide = f"CAST({expression} AS DECIMAL(19, 0))" if rows.engine.is_distributed else expression
    return f"CAST(sum({wide}) AS DECIMAL(38, 0))"


def wide_product(one: str, other: str) -> str:
    """The exact sum of products of whole numbers of 64 bits, as a decimal of 38 digits."""
    return f"CAST(sum(CAST({one} AS DECIMAL(19, 0)) * CAST({other} AS DECIMAL(19, 0))) AS DECIMAL(38, 0))"


def split(column: pa.ChunkedArray, *, by: int = ONE) -> tuple[Integers, Integers]:
    """Whole units and the parts left over, of decimals in parts of which `by` make a unit; wholes must fit 64 bits.

    >>> [part.tolist() for part in split(pa.chunked_array([pa.array([-1], pa.decimal128(38, 0))]))]
    [[-1], [999999]]
    """
    if by == 1:
        return integers(column), np.zeros(len(column), dtype=np.int64)
    high, low = _limbs(column)
    # 2⁶⁴ = whole·by + left, so that nothing here leaves 64 bits where the result does not.
    whole, left = divmod(2**64, by)
    parts = high * left + (low % np.uint64(by)).astype(np.int64)
    return high * whole + (low // np.uint64(by)).astype(np.int64) + parts // by, parts % by


def integers(column: pa.ChunkedArray) -> Integers:
    """Decimals that fit 64 bits."""
    return _limbs(column)[1].view(np.int64)


def modulo_prime(column: pa.ChunkedArray) -> Integers:
    """Decimals that are not negative modulo 2⁶¹ − 1."""
    high, low = _limbs(column)
    # 2⁶¹ is 1 there, and 2⁶⁴ is 8.
    return ((low & _LOW_WIDE_SUMS).astype(np.int64) + (low >> np.uint64(61)).astype(np.int64) + 8 * high) % PRIME


def unbounded(column: pa.ChunkedArray) -> NDArray[Any]:
    """Decimals as Python's integers, which have no limit."""
    high, low = _limbs(column)
    whole: NDArray[Any] = high.astype(object) * 2**64 + low.astype(object)
    return whole


def _limbs(column: pa.ChunkedArray) -> tuple[Integers, NDArray[np.uint64]]:
    """The upper and the lower 64 bits of decimals in two's complement; an empty sum is 0."""
    limbs = [np.empty((0, 2), dtype=np.int64)]
    for chunk in pc.fill_null(column.cast(pa.decimal128(38, 0)), 0).chunks:
        words = np.frombuffer(chunk.buffers()[1], dtype=np.int64).reshape(-1, 2)
        limbs.append(words[chunk.offset : chunk.offset + len(chunk)])
    both = np.concatenate(limbs)
    return np.ascontiguousarray(both[:, 1]), np.ascontiguousarray(both[:, 0]).view(np.uint64)
