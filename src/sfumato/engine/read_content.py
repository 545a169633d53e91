"""Read what data are known by off their files: sums over all rows that depend neither on order nor on encoding.

Every row has two words made of its keys, and every value one. A column is the sum over all rows of the product of both
words, modulo 2⁶⁴ and twice: a value that changes, or moves to another row, changes both sums but for a chance of some
2⁻⁶⁰. Sums of several files add up, so that it does not matter how a table is cut into files either. Arrow reads the
files, whatever the engine is, so that all engines and storages give the same sums.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.arrays import Words
from sfumato.content import MAIN, Content, TableContent, together
from sfumato.engine.column_words import ONE_MORE, key_words, mixed, words_of_rows
from sfumato.engine.data_files import DataFile
from sfumato.engine.memory import Memory
from sfumato.frame import Data

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

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
        self._columns = {name: _columns_of(listed[0]) for name, listed in files.items()}

    def looked_at(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The columns that a question about these attributes and measures looks at, beside the keys, by their table.

        A table that plays no part is left out.
        """
        data, found = self._data, {}
        described = [name for name in names if name in data.attributes or name in data.measures]
        for table, columns in self._columns.items():
            held = {name for name in described if table in data.holders(name)}
            held |= set(data.always(columns)) if table in MAIN else set()
            looked = tuple(sorted(held & set(columns)))
            if looked or data.counts_by_itself(table):
                found[table] = looked
        return found

    def read(self, questions: Iterable[Iterable[str]]) -> Content:
        """The content that these questions look at, each by its attributes and measures."""
        asked = [frozenset(names) for names in questions]
        alone = self.looked_at(self._data.known_by(frozenset().union(*asked)))
        tables = {}
        for table, columns_alone in alone.items():
            keys, keyed = self._data.keys()[table], self._data.names_every_row(table)
            columns: set[tuple[str, ...]] = {(name,) for name in columns_alone}
            columns |= set() if keyed else {self.looked_at(names).get(table, ()) for names in asked}
            summed = self._summed(table, keys, sorted(columns - {()}))
            tables[table] = TableContent(
                keys=_named(summed.rows, summed.keys),
                columns={name: _named(summed.rows, sums) for name, sums in summed.columns.items()},
                keyed=keyed,
                key_columns=keys,
                alone={name: _named(summed.rows, sums) for name, sums in summed.alone.items()},
                files=_named(summed.rows, summed.ends),
            )
        return Content(tables=tables)

    def _summed(self, table: str, keys: tuple[str, ...], columns: Sequence[tuple[str, ...]]) -> FileSums:
        """The sums of all files of a table."""
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            alone = self._data.telling_keys() if table in MAIN else ()
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
            groups = range(_footer(file).num_row_groups)
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
        opened = pq.ParquetFile(source, pre_buffer=False)
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
        each = {name: _summed(key_words([named[name]])) for name in alone}
        yield FileSums(rows=end - begin, keys=_summed(rows), columns=sums, alone=each, ends=_NOTHING)


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


def _footer(file: DataFile) -> "pq.FileMetaData":
    import pyarrow.parquet as pq

    with file.seekable() as source:
        return pq.read_metadata(source)


def _columns_of(file: DataFile) -> list[str]:
    """The names of the columns of a file."""
    names: list[str] = _footer(file).schema.to_arrow_schema().names
    return names
