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

from sfumato.content import MAIN, Content, TableContent, together
from sfumato.engine.column_words import ONE_MORE, Words, key_words, mixed, words_of_rows
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
_MASK = 2**64 - 1
Sums = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class FileSums:
    """The number of rows, the sums of their keys, and those of every column or group of columns."""

    rows: int
    keys: Sums
    columns: Mapping[str, Sums]

    def __add__(self, other: "FileSums") -> "FileSums":
        """The sums of the rows of both."""
        names = self.columns.keys() | other.columns.keys()
        columns = {name: _added(self.columns.get(name, _NOTHING), other.columns.get(name, _NOTHING)) for name in names}
        return FileSums(rows=self.rows + other.rows, keys=_added(self.keys, other.keys), columns=columns)

    def described(self) -> dict[str, Any]:
        """The sums as plain numbers, for JSON."""
        return {"rows": self.rows, "keys": self.keys, "columns": dict(self.columns)}

    @classmethod
    def read(cls, described: Mapping[str, Any]) -> "FileSums":
        """The sums that were described."""
        columns = {name: (first, second) for name, (first, second) in described["columns"].items()}
        first, second = described["keys"]
        return cls(rows=described["rows"], keys=(first, second), columns=columns)


_NOTHING: Sums = (0, 0)
NO_ROWS = FileSums(rows=0, keys=_NOTHING, columns={})


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
            )
        return Content(tables=tables)

    def _summed(self, table: str, keys: tuple[str, ...], columns: Sequence[tuple[str, ...]]) -> FileSums:
        """The sums of all files of a table."""
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            return sum((self._of_file(file, keys, columns, pool) for file in self._files[table]), NO_ROWS)

    def _of_file(
        self, file: DataFile, keys: tuple[str, ...], columns: Sequence[tuple[str, ...]], pool: ThreadPoolExecutor
    ) -> FileSums:
        """The sums of one file, its row groups side by side."""
        name, state = json.dumps([file.address, *keys]), file.state()
        before = self._memory.sums(name, state)
        known = None if before is None else FileSums.read(before)
        missing = [group for group in columns if known is None or together(group) not in known.columns]
        if known is None or missing:
            groups = range(_footer(file).num_row_groups)
            none = replace(NO_ROWS, columns={together(group): _NOTHING for group in missing})  # a file may have no rows
            fresh = sum(pool.map(lambda group: _of_row_group(file, group, keys, missing), groups), none)
            known = replace(fresh, columns={**({} if known is None else known.columns), **fresh.columns})
            self._memory.remember_sums(name, state, known.described())
        return known


def _of_row_group(file: DataFile, group: int, keys: Sequence[str], columns: Sequence[tuple[str, ...]]) -> FileSums:
    """The sums of one row group, a part of its rows at a time."""
    import pyarrow.parquet as pq

    needed = list(dict.fromkeys([*keys, *(name for names in columns for name in names)]))
    found = NO_ROWS
    with file.seekable() as source:
        opened = pq.ParquetFile(source, pre_buffer=False)
        for batch in opened.iter_batches(_BATCH, row_groups=[group], columns=needed, use_threads=False):
            found = sum(_of_rows(batch, keys, columns), found)
    return found


def _of_rows(batch: "pa.RecordBatch", keys: Sequence[str], columns: Sequence[tuple[str, ...]]) -> Iterator[FileSums]:
    """The sums of rows, a part of them at a time."""
    words = {name: words_of_rows(batch.column(name)) for names in columns for name in names}
    for begin in range(0, len(batch), _ROWS):
        end = min(begin + _ROWS, len(batch))
        rows = key_words([batch.column(name).slice(begin, end - begin) for name in keys])
        sums = {}
        for names in columns:
            values = words[names[0]](begin, end)
            for name in names[1:]:  # which values share a row: the order of the names is that of the alphabet
                values = mixed(values * ONE_MORE + words[name](begin, end))
            sums[together(names)] = _summed(key * values for key in rows)
        yield FileSums(rows=end - begin, keys=_summed(rows), columns=sums)


def _summed(lanes: Iterable[Words]) -> Sums:
    first, second = (int(lane.sum(dtype=np.uint64)) for lane in lanes)
    return first, second


def _added(one: Sums, other: Sums) -> Sums:
    return (one[0] + other[0]) & _MASK, (one[1] + other[1]) & _MASK


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
