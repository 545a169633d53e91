"""Read what data are known by: digests of columns that depend neither on order nor on types."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Integers, Words
from sfumato.content import MAIN, Content, TableContent, together
from sfumato.engine.data_files import DataFile
from sfumato.engine.memory import Memory
from sfumato.errors import DataError
from sfumato.frame.data import Data

# A word of 64 bits for every value of a column, by what it is and not by how it is stored.
#
# The words decide by which name data are known for years, so nothing here may ever change: tests hold frozen values. A
# whole number has the same word whether it is stored in 8 or 64 bits, as a decimal or a floating-point number; text has
# the same word plain, large or in a dictionary. Whole numbers, other numbers, text, and true or false never share one
# but by chance, which is some 2⁻⁶⁴. They are no defence against somebody who looks for two values with one word, and
# need be none: whoever can write the data can make them look changed, and made to look unchanged they get an old
# answer.

U = np.uint64

_FIRST, _SECOND = U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)
"""The multipliers of the finalizer of SplitMix64 (Steele, Lea and Flood 2014)."""
_TEXT, _BITS, _TRUTH, _DECIMAL, _LARGE = (
    U(word)
    for word in (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89, 0x452821E638D01377)
)
"""Digits of pi, which tell kinds of values apart."""
_EMPTY = U(0xBE5466CF34E90C6C)
"""The word of no value."""
ONE_MORE = U(0x9E3779B97F4A7C15)
"""What a word is multiplied with before another is added to it."""
_WHOLE = 2.0**63
_LONG = 2**62
"""Longer than any text."""


def mixed(words: Words) -> Words:
    """The same words stirred, in place: a bijection after which every bit depends on every bit before."""
    shifted = np.empty_like(words)
    for shift, factor in ((U(30), _FIRST), (U(27), _SECOND), (U(31), None)):
        np.right_shift(words, shift, out=shifted)
        np.bitwise_xor(words, shifted, out=words)
        if factor is not None:
            np.multiply(words, factor, out=words)
    return words


def column_words(column: pa.Array) -> Words:
    """The word of every value."""
    if isinstance(column, pa.DictionaryArray):
        return words_of_rows(column)(0, len(column))
    if column.null_count == len(column):
        return np.full(len(column), _EMPTY, dtype=np.uint64)
    if column.type == pa.string_view():
        column = column.cast(pa.string())
    words = _of_values(column if column.null_count == 0 else column.drop_null())
    if column.null_count == 0:
        return words
    laid = np.full(len(column), _EMPTY, dtype=np.uint64)
    laid[pc.is_valid(column).to_numpy(zero_copy_only=False)] = words
    return laid


def words_of_rows(column: pa.Array) -> Callable[[int, int], Words]:
    """What tells the words of some rows, from one to before another: the words of a dictionary are made once."""
    if not isinstance(column, pa.DictionaryArray):
        return lambda begin, end: column_words(column.slice(begin, end - begin))
    known = np.append(column_words(column.dictionary), _EMPTY)
    places = column.indices
    if places.null_count:
        places = pc.fill_null(places.cast(pa.int64()), len(known) - 1)
    places = places.to_numpy(zero_copy_only=False)
    return lambda begin, end: known.take(places[begin:end], mode="clip")


def _of_values(column: pa.Array) -> Words:
    kind = column.type
    if pa.types.is_boolean(kind):
        return mixed(column.cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.uint64) + _TRUTH)
    if pa.types.is_integer(kind):
        return _of_integers(column)
    if pa.types.is_floating(kind):
        return _of_floats(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(kind):
        return _of_decimals(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return text_words(column)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return text_words(column.cast(pa.date32() if pa.types.is_date(kind) else pa.timestamp("us")).cast(pa.string()))
    raise DataError(
        "data files",
        expected="keys, codes and numbers that are stored as numbers, text, dates, or true and false",
        found=f"a column of type {kind}",
        do="store it as one of these",
    )


def _of_integers(column: pa.Array) -> Words:
    numbers: Words = column.to_numpy(zero_copy_only=False)
    if numbers.dtype == np.uint64:
        return mixed(numbers + (numbers >> U(63)) * _LARGE)
    return mixed(numbers.astype(np.int64).view(np.uint64))


def _of_floats(numbers: NDArray[np.float64]) -> Words:
    whole = (np.floor(numbers) == numbers) & (np.abs(numbers) < _WHOLE)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    integers = np.where(whole, numbers, 0.0).astype(np.int64).view(np.uint64)
    found: Words = np.where(whole, mixed(integers.copy()), mixed(bits + _BITS))
    return found


def _of_decimals(column: pa.Array) -> Words:
    """Decimals by their digits, without zeros at the end; whole ones as whole numbers."""
    # With digits after the point there is always one to end the zeros at; without, zeros at the end count.
    wide = column.cast(pa.decimal256(76, max(column.type.scale, 0) + 1))
    text = pc.utf8_rtrim(pc.utf8_rtrim(wide.cast(pa.string()), "0"), ".")
    whole = pc.match_substring_regex(text, r"^-?\d{1,19}$").to_numpy(zero_copy_only=False)
    whole &= np.abs(wide.cast(pa.float64()).to_numpy(zero_copy_only=False)) < _WHOLE
    words = mixed(text_words(text) + _DECIMAL)
    if whole.any():
        words[whole] = _of_integers(text.filter(pa.array(whole)).cast(pa.int64()))
    return words


def text_words(column: pa.Array) -> Words:
    """The words of texts without empty rows: eight bytes of UTF-8 at a time, and their number."""
    texts = column.cast(pa.large_string())
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    begin, length = ends[:-1], np.diff(ends)
    read = np.frombuffer(content or b"", dtype=np.uint8)[: int(ends[-1]) if len(texts) else 0]
    padded = np.concatenate([read, np.zeros(8, dtype=np.uint8)])
    eights = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))  # one begins at every byte
    words = mixed(length.astype(np.uint64) + _TEXT)
    shortest, longest = int(length.min(initial=_LONG)), int(length.max(initial=0))
    rows: slice | Integers = slice(None)
    for at in range(0, longest, 8):
        if at >= shortest:
            rows = np.flatnonzero(length > at)
        piece = eights[begin[rows] + at]
        if at + 8 > shortest:
            left = np.minimum(length[rows] - at, 8).astype(np.uint64)
            piece &= ~U(0) >> (U(64) - U(8) * left)
        words[rows] = mixed((words[rows] + piece) * ONE_MORE)
    return words


def key_words(parts: Sequence[Words]) -> tuple[Words, Words]:
    """Two words for every row, made of the words of its keys, in this order."""
    first = parts[0] * _FACTORS[0]
    for part, factor in zip(parts[1:], _FACTORS[1:], strict=False):
        first += part * factor
    mixed(first)
    second = first >> U(32)
    np.bitwise_xor(second, first, out=second)
    np.multiply(second, ONE_MORE, out=second)
    return first, second


_FACTORS = tuple(map(U, (0xD1B54A32D192ED03, 0xAEF17502108EF2D9, 0xF1357AEA2E62A9C5, 0x9FB21C651E98DF25)))
"""Odd numbers without a pattern, one for each key of a row."""


# Read what data are known by off their files: sums over all rows that depend neither on order nor on encoding.
#
# Every row has two words made of its keys, and every value one. A column is the sum over all rows of the product of
# both words, modulo 2⁶⁴ and twice: a value that changes, or moves to another row, changes both sums but for a chance of
# some 2⁻⁶⁰. Sums of several files add up, so that it does not matter how a table is cut into files either. Arrow reads
# the files, whatever the engine is, so that all engines and storages give the same sums.

_BATCH = 1 << 18
"""Rows that are read at a time."""
_ROWS = 1 << 14
"""Rows that are worked on at a time: their words stay in the processor's cache."""
_ENDS = 1 << 20
"""Bytes at the beginning and at the end of a file by which it is known again; the end says what is in all columns."""
_MASK = 2**64 - 1
Sums = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class FileSums:
    """The number of rows, the sums of their keys, and those of every column or group of columns."""

    rows: int
    keys: Sums
    columns: Mapping[str, Sums]
    alone: Mapping[str, Sums]
    """Of single key columns, without the others."""
    ends: Sums
    """Words of the beginning and the end of every file."""

    def __add__(self, other: "FileSums") -> "FileSums":
        """The sums of the rows of both."""
        return FileSums(
            rows=self.rows + other.rows,
            keys=_added(self.keys, other.keys),
            columns=_each_added(self.columns, other.columns),
            alone=_each_added(self.alone, other.alone),
            ends=_added(self.ends, other.ends),
        )

    def described(self) -> dict[str, Any]:
        """The sums as plain numbers, for JSON."""
        sums = {"keys": self.keys, "columns": dict(self.columns), "alone": dict(self.alone), "ends": self.ends}
        return {"rows": self.rows, **sums}

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> "FileSums":
        """The sums that were described."""
        columns, alone = (
            {name: (first, second) for name, (first, second) in described[kind].items()}
            for kind in ("columns", "alone")
        )
        keys, ends = ((first, second) for first, second in (described["keys"], described["ends"]))
        return cls(rows=described["rows"], keys=keys, columns=columns, alone=alone, ends=ends)


_NOTHING: Sums = (0, 0)
NO_ROWS = FileSums(rows=0, keys=_NOTHING, columns={}, alone={}, ends=_NOTHING)


class ContentReader:
    """Reads the content of data files as far as questions look at it; what is remembered is not read again."""

    def __init__(self, data: Data, files: Mapping[str, Sequence[DataFile]], memory: Memory) -> None:
        self._data, self._files, self._memory = data, files, memory
        self._columns = {name: listed[0].columns() for name, listed in files.items()}

    def looked_at(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The columns that a question about these attributes and measures looks at, beside the keys, by their table.

        A table that plays no part is left out.
        """
        data, found = self._data, {}
        described = [name for name in names if name in data.attributes or name in data.measures]
        for table, columns in self._columns.items():
            held = {data.column_of(name) for name in described if table in data.holders(name)}
            held |= set(data.always(columns)) if table in MAIN else set()
            looked = tuple(sorted(held & set(columns)))
            if looked or data.counts_by_itself(table):
                found[table] = looked
        return found

    def read(self, questions: Iterable[Iterable[str]]) -> Content:
        """The content that these questions look at, each by its attributes and measures."""
        asked = [frozenset(names) for names in questions]
        alone = self.looked_at(self._data.known_by(frozenset().union(*asked)))
        tables, heads = {}, self._data.headcounts()
        keys = {table: tuple(map(self._data.column_of, self._data.keys()[table])) for table in alone}
        columns: dict[str, set[tuple[str, ...]]] = {}
        for table, columns_alone in alone.items():
            columns[table] = {(name,) for name in columns_alone}
            if not self._data.names_every_row(table):
                columns[table] |= {self.looked_at(names).get(table, ()) for names in asked} - {()}
        for table in alone:
            # A register is jobs and workplaces: what both look at is read at once, and remembered for the other.
            same = [t for t in alone if (self._files[t], keys[t]) == (self._files[table], keys[table])]
            summed = self._summed(table, keys[table], sorted(set().union(*(columns[t] for t in same))))
            tables[table] = TableContent(
                keys=_named(summed.rows, summed.keys),
                columns={name: _named(summed.rows, sums) for name, sums in summed.columns.items()},
                keyed=self._data.names_every_row(table),
                key_columns=self._data.key_columns(table),
                levels=self._data.levels if table in MAIN else (),
                alone={name: _named(summed.rows, sums) for name, sums in summed.alone.items()},
                files=_named(summed.rows, summed.ends),
                heads={json.dumps(codes): column for codes, column in heads.items()} if table in MAIN else {},
                **self._panel(table),
            )
        return Content(tables=tables)

    def _panel(self, table: str) -> dict[str, str]:
        """Of the jobs of a panel in a series, what the whole panel is known by, and the period that is run."""
        if table not in MAIN or self._data.span is None or self._data.only is None:
            return {}
        listed = [file for one in self._files[table] for file in one.origin if not file.is_database]
        sums = [
            replace(NO_ROWS, rows=file.footer().num_rows if file.is_parquet else 0, ends=_ends_of(file))
            for file in listed
        ]
        whole = sum(sums, NO_ROWS)
        return {"source": _named(whole.rows, whole.ends) if listed else "", "period": self._data.only.period}

    def _summed(self, table: str, keys: tuple[str, ...], columns: Sequence[tuple[str, ...]]) -> FileSums:
        """The sums of all files of a table."""
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            alone = map(self._data.column_of, self._data.telling_keys()) if table in MAIN else ()
            none = replace(NO_ROWS, alone=dict.fromkeys(alone, _NOTHING))  # a file may have no rows
            return sum((self._of_file(file, keys, columns, none, pool) for file in self._files[table]), none)

    def _of_file(
        self,
        file: DataFile,
        keys: tuple[str, ...],
        columns: Sequence[tuple[str, ...]],
        none: FileSums,
        pool: ThreadPoolExecutor,
    ) -> FileSums:
        """The sums of one file, its row groups side by side, added to those of no rows."""
        name, state = json.dumps([file.address, *keys]), file.state()
        before = self._memory.sums(name, state)
        known = None if before is None or "ends" not in before else FileSums.read(before)
        missing = [group for group in columns if known is None or together(group) not in known.columns]
        if known is None or missing:
            groups = range(file.footer().num_row_groups)
            none = replace(none, columns={together(group): _NOTHING for group in missing}, ends=_ends_of(file))
            fresh = sum(pool.map(lambda group: _of_row_group(file, group, keys, missing, none.alone), groups), none)
            known = replace(fresh, columns={**({} if known is None else known.columns), **fresh.columns})
            self._memory.remember_sums(name, state, known.described())
        return known


def _of_row_group(
    file: DataFile, group: int, keys: Sequence[str], columns: Sequence[tuple[str, ...]], alone: Iterable[str]
) -> FileSums:
    """The sums of one row group, a part of its rows at a time."""
    import pyarrow.parquet as pq

    needed = list(dict.fromkeys([*keys, *(name for names in columns for name in names)]))
    found = NO_ROWS
    with file.seekable() as source:
        # Codes are few, and files mostly have them as places in a list; keys are all different.
        codes = [name for names in columns for name in names if name not in keys]
        opened = pq.ParquetFile(source, pre_buffer=False, read_dictionary=codes)
        for batch in opened.iter_batches(_BATCH, row_groups=[group], columns=needed, use_threads=False):
            found = sum(_of_rows(batch, keys, columns, alone), found)
    return found


def _of_rows(
    batch: "pa.RecordBatch", keys: Sequence[str], columns: Sequence[tuple[str, ...]], alone: Iterable[str]
) -> Iterator[FileSums]:
    """The sums of rows, a part of them at a time."""
    needed = {*keys, *(name for names in columns for name in names)}
    words = {name: words_of_rows(batch.column(name)) for name in needed}
    for begin in range(0, len(batch), _ROWS):
        end = min(begin + _ROWS, len(batch))
        named = {name: words[name](begin, end) for name in keys}
        rows = key_words(list(named.values()))
        sums = {}
        for names in columns:
            values = words[names[0]](begin, end)
            for name in names[1:]:  # which values share a row: the order of the names is that of the alphabet
                values = mixed(values * ONE_MORE + words[name](begin, end))
            sums[together(names)] = _summed(key * values for key in rows)
        whole = _summed(rows)
        each = {name: whole if [*keys] == [name] else _summed(key_words([named[name]])) for name in alone}
        yield FileSums(rows=end - begin, keys=whole, columns=sums, alone=each, ends=_NOTHING)


def _summed(lanes: Iterable[Words]) -> Sums:
    first, second = (int(lane.sum(dtype=np.uint64)) for lane in lanes)
    return first, second


def _added(one: Sums, other: Sums) -> Sums:
    return (one[0] + other[0]) & _MASK, (one[1] + other[1]) & _MASK


def _each_added(one: Mapping[str, Sums], other: Mapping[str, Sums]) -> dict[str, Sums]:
    names = one.keys() | other.keys()
    return {name: _added(one.get(name, _NOTHING), other.get(name, _NOTHING)) for name in names}


def _ends_of(file: DataFile) -> Sums:
    """Two words of the size of a file, its beginning and its end: another key of the same file changes nothing."""
    with file.seekable() as source:
        size = source.size()
        digest = blake2b(str(size).encode(), digest_size=16)
        for at in (0, max(size - _ENDS, 0)):
            source.seek(at)
            digest.update(source.read(_ENDS))
    first, second = np.frombuffer(digest.digest(), dtype="<u8").tolist()
    return first, second


def _named(rows: int, sums: Sums) -> str:
    """A digest of sums: the sums themselves would tell somebody who knows all keys something of the values."""
    return blake2b(json.dumps([rows, *sums]).encode(), digest_size=16).hexdigest()
