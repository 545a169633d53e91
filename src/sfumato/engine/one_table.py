"""Several Parquet files as one table: each has the columns that are looked at, of types that are one without a loss.

Engines take the types of the first file for all others, so that 1.49 would be 1 and the code 01 the number 1.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.engine.data_files import DataFile
from sfumato.engine.faults import refuse_zone
from sfumato.engine.guesses import OnDisk, Wanted, refuse_other_columns
from sfumato.engine.query import is_text
from sfumato.errors import DataError
from sfumato.frame.data import Data

if TYPE_CHECKING:  # only a name for types
    from pyarrow.dataset import Dataset

_AT_ONCE = 16
"""Files in object storage whose schemas are asked for at a time."""
_UNITS = ("s", "ms", "us", "ns")


@dataclass(frozen=True)
class Part:
    """Files whose columns have the same types."""

    files: tuple[DataFile, ...]
    empty: frozenset[str] = frozenset()
    """Columns without any value, which have no type in these files."""


@dataclass(frozen=True, kw_only=True)
class OneTable:
    """The Parquet files of a table."""

    files: Sequence[DataFile]
    schema: pa.Schema
    """The columns that are read, with types for all files."""
    parts: Sequence[Part]
    is_whole: bool = True
    """Whether all columns of the files are read, as the first file has them."""

    def dataset(self) -> "Dataset":
        """The table for Arrow, which finds columns by their names."""
        from pyarrow.dataset import dataset

        paths, storage = [file.path for file in self.files], self.files[0].storage
        return dataset(paths, filesystem=storage, format="parquet", schema=self.schema)


def one_table(data: Data, name: str, files: Sequence[DataFile]) -> OneTable:
    """The files of a table as one; a column that is looked at and differs between them is refused."""
    schemas = _schemas(files)
    first = schemas[0]
    if all(schema.equals(first) for schema in schemas[1:]):
        return OneTable(files=files, schema=first, parts=[Part(tuple(files))])
    alike = [one for one, times in Counter(map(str.casefold, first.names)).items() if times > 1]
    if alike and any(schema.names != first.names for schema in schemas[1:]):
        raise DataError(
            f"data files of {name}",
            expected=f"columns in the same order in every file, as some differ in case only, such as '{alike[0]}'",
            found="several orders",
            do="write the files again, or rename these columns",
        )
    held = _looked_at(data, name, list(dict.fromkeys(column for schema in schemas for column in schema.names)))
    _refuse_lacking(data, name, files, schemas, held)
    columns = [column for column in first.names if column in held]
    kinds = [tuple(_plain(schema.field(column).type) for column in columns) for schema in schemas]
    roles, each = data.roles(), list(zip(columns, zip(*kinds, strict=True), strict=True))
    for column, found in each:
        for kind in found if roles.get(column) == "text" else ():  # says more than that types differ
            refuse_zone(kind, name, column)
    wide = {column: _for_all(name, column, files, found, exact=bool(alike)) for column, found in each}
    if alike:  # engines call one of them otherwise, and know it by its place
        return OneTable(files=files, schema=first, parts=[Part(tuple(files))])
    parts: dict[tuple[pa.DataType, ...], list[DataFile]] = {}
    for file, kind in zip(files, kinds, strict=True):
        parts.setdefault(kind, []).append(file)
    return OneTable(
        files=files,
        schema=pa.schema(wide.items()),
        parts=[
            Part(tuple(listed), frozenset(c for c, one in zip(columns, kind, strict=True) if pa.types.is_null(one)))
            for kind, listed in parts.items()
        ],
        is_whole=False,
    )


def _schemas(files: Sequence[DataFile]) -> list[pa.Schema]:
    """The schema of every file, as its last bytes tell it."""
    if files[0].storage is None or len(files) == 1:
        return list(map(_schema, files))
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        return list(pool.map(_schema, files))


def _schema(file: DataFile) -> pa.Schema:
    return file.footer().schema.to_arrow_schema()


def _looked_at(data: Data, table: str, columns: Sequence[str]) -> set[str]:
    """The columns of a table that a release may look at, named as in the files."""
    described = [name for name in (*data.attributes, *data.measures) if table in data.holders(name)]
    named = {data.column_of(name) for name in (*described, *data.links_by_table().get(table, ()))}
    named |= {*data.always(columns), *data.headcounts().values()}
    return (named | ({data.only.column} if data.only is not None else set())) & set(columns)


def _refuse_lacking(
    data: Data, table: str, files: Sequence[DataFile], schemas: Sequence[pa.Schema], looked_at: Collection[str]
) -> None:
    """Refuse a file without a column that others have: names that no release file has may be a record, as in texts."""
    roles = {name: role for name, role in data.roles().items() if name in looked_at}
    wanted = Wanted(named=table, roles=roles, patterns=[name for name in looked_at if name not in roles])
    listed = [OnDisk(named=f"data file of {table}: {file.name}", path=Path(file.path)) for file in files]
    refuse_other_columns(listed, [schema.names for schema in schemas], wanted)


def _for_all(
    table: str, column: str, files: Sequence[DataFile], kinds: Sequence[pa.DataType], *, exact: bool
) -> pa.DataType:
    """The type of a column for all files."""
    several = dict(zip(reversed(kinds), reversed(files), strict=True))  # each with the first file that has it
    known = {kind: several[kind] for kind in kinds if not pa.types.is_null(kind) or exact}
    wide = _widest(list(known)) if not exact or len(known) == 1 else None
    if wide is not None:
        return wide
    (one, first), (other, second) = list(known.items())[:2]
    apart = first.name != second.name
    raise DataError(
        f"data files of {table}, column '{column}'",
        expected="one type in all files; whole numbers may have several sizes",
        found=" and ".join(
            f"{kind} in {file.name if apart else file.address}" for kind, file in ((one, first), (other, second))
        ),
        do="write the files again with one type, in which no value is lost: codes as text where some are text, amounts "
        "as decimals where some have decimals",
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of values, however they are laid out."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    return pa.string() if is_text(kind) else kind


def _widest(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """A type that has every value of some types as it is, if there is one: content is the same in both.

    >>> _widest([pa.int32(), pa.int64()]), _widest([pa.int32(), pa.uint32()]), _widest([pa.int64(), pa.float64()])
    (DataType(int64), DataType(int64), None)
    """
    if len(kinds) < 2:
        return next(iter(kinds), pa.null())
    if all(map(pa.types.is_integer, kinds)):
        return _widest_integer(kinds)
    if all(map(pa.types.is_timestamp, kinds)) and len({kind.tz for kind in kinds}) == 1:
        return max(kinds, key=lambda kind: _UNITS.index(kind.unit))
    if all(map(pa.types.is_decimal, kinds)) and len({kind.scale for kind in kinds}) == 1:
        return max(kinds, key=lambda kind: kind.precision)
    return None


def _widest_integer(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    signed = any(map(pa.types.is_signed_integer, kinds))
    bits = max(kind.bit_width * (1 + (signed and pa.types.is_unsigned_integer(kind))) for kind in kinds)
    return _INTEGERS.get((signed, bits))


_INTEGERS = {
    **{(True, kind.bit_width): kind for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{(False, kind.bit_width): kind for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
}
