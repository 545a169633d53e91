"""The rows of one period of a series, where files have several: in files of their own, as if there were such."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.content import MAIN
from sfumato.engine.data_files import DataFile
from sfumato.engine.faults import refuse_zone
from sfumato.engine.one_table import OneTable
from sfumato.engine.query import is_date
from sfumato.errors import DataError, EngineError, ReleaseError
from sfumato.frame.data import Data
from sfumato.frame.periods import YEARS, Period
from sfumato.frame.series import OnlyPeriod

if TYPE_CHECKING:  # only a name for types
    from pyarrow.dataset import Dataset


def rows_of_period(data: Data, tables: Mapping[str, OneTable], folder: Path) -> dict[str, list[DataFile]]:
    """The files of every table; those with a column of periods have the rows of one only, and lie in a folder of ours.

    Rows of other periods are never looked at, so that new ones change nothing.
    """
    only, files = data.only, {name: list(table.files) for name, table in tables.items()}
    if only is None:
        return files
    if data.engine != "duckdb":
        raise EngineError(
            "[series], column",
            expected="files of one period each, which Spark reads where they are",
            found='engine = "spark"',
            do='leave `column` out and write the period into the paths, such as path = "jobs/{period}"',
        )
    chosen = {
        name: _of_table(data, name, table, folder / f"{name}.parquet", only) or files[name]
        for name, table in tables.items()
    }
    main = next((name for name in MAIN if name in files), None)
    if main is not None and chosen[main] is files[main]:
        raise DataError(
            f"data file of {main}: {_origin(files[main])[0].name}",
            expected=f"the column '{only.column}', which [series] names, with the period of each row",
            found="no such column",
            do="correct `column` under [series]; leave it out where every period has files of its own",
        )
    return chosen


def _of_table(data: Data, name: str, table: OneTable, target: Path, only: OnlyPeriod) -> list[DataFile] | None:
    """A file with the rows of a period, of the jobs of a panel also those around it; none where no column tells it."""
    if only.column not in table.schema.names:
        return None
    listed, given = table.files, table.dataset()
    refuse_zone(given.schema.field(only.column).type, name, only.column)
    _refuse_no_periods(given, only, f"data file of {name}: {_origin(listed)[0].name}")
    around = (only.period,) if name not in MAIN or data.span is None else data.span.codes()
    if not _write(given, only.column, around, target) and name in MAIN and data.accepted is None:
        raise DataError(
            f"data file of {name}: {_origin(listed)[0].name}",
            expected=f"rows whose column '{only.column}' says {' or '.join(only.writings()[:2])}, or a day in it",
            found="none",
            do="wait for the data of this period, or correct `column` under [series]",
        )
    reading = repr((only.column, *around, *(file.reading for file in listed)))
    address = " ".join([*around, *(file.address for file in listed)])
    return [DataFile(address=address, path=str(target), read_from=_origin(listed), reading=reading)]


def _origin(listed: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """The files as the release file names them, also where they were read into others."""
    return tuple(one for file in listed for one in file.origin)


def _write(given: "Dataset", column: str, periods: Sequence[str], target: Path) -> int:
    """Write the rows of some periods to a file, a part of them at a time, and count them."""
    import pyarrow.parquet as pq

    kind = given.schema.field(column).type
    chosen = reduce(or_, (_is_in(kind, OnlyPeriod(column=column, period=period)) for period in periods))
    rows = 0
    with pq.ParquetWriter(target, given.schema, compression="lz4") as writer:
        for batch in given.to_batches(filter=chosen):
            writer.write_batch(batch)
            rows += len(batch)
    return rows


def _refuse_no_periods(given: "Dataset", only: OnlyPeriod, named: str) -> None:
    """Refuse rows that say no period, or one of another length: they would be in no period, and nobody would know.

    A year such as 0206 is a slip, and says no period either.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    dated, length = is_date(given.schema.field(only.column).type), Period.read(only.period).name
    rows: Counter[str | None] = Counter()
    for batch in given.to_batches(columns=[only.column]):
        column = batch.column(0)
        if dated:
            year = pc.year(column)
            meant = pc.and_(pc.greater_equal(year, YEARS[0]), pc.less_equal(year, YEARS[-1]))
            rows[None] += len(column) - (pc.sum(meant).as_py() or 0)
        else:
            counted = pc.value_counts(column.cast(pa.string())).to_pylist()
            rows.update({one["values"]: one["counts"] for one in counted})
    unknown = sum(times for text, times in rows.items() if text is None or _length(text) != length)
    if unknown:
        raise DataError(
            f"{named}, column '{only.column}'",
            expected=f"a {length} in every row, such as {only.period}, or a date, from {YEARS[0]} to {YEARS[-1]}",
            found=f"{unknown:,} rows with none, or with something else",
            do="correct these rows, or write every period alike",
        )


def _length(text: str) -> str | None:
    try:
        found = Period.read(text)
    except ReleaseError:
        return None
    is_meant = found.year in YEARS and text in found.writings()  # what the rows are chosen by
    return found.name if is_meant else None


def _is_in(kind: Any, only: OnlyPeriod) -> Any:
    """Whether the column of a row has the period: written as one, or a date that falls in it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column, period = pc.field(only.column), Period.read(only.period)
    if not is_date(kind):
        return column.cast(pa.string()).isin(period.writings())
    parts = {"quarter": pc.quarter, "month": pc.month}
    in_year = pc.year(column) == period.year
    return in_year & (parts[period.name](column) == period.part) if period.name in parts else in_year
