"""The rows of a published table: of one file, of the files of its parts, or of those of the periods of a series."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.bundle.manifest import each_listed, read_listed
from sfumato.chunks import name_of
from sfumato.errors import BundleError
from sfumato.method import NOT_AVAILABLE, STATUSES

Places = NDArray[np.int64]
_ABSENT = STATUSES[NOT_AVAILABLE]
"""The status of cells that a period of a series does not have."""
MOST_ROWS = 20_000_000
"""Tables in parts with more rows than this are not read as a whole."""


def each_rows(bundle: Path, about: Mapping[str, Any]) -> Iterator[pa.Table]:
    """The rows of a table that a bundle describes, file after file, once each is what the manifest says.

    `about` is its description in the structure. One thread reads the files: whoever asks may be one of many, and a
    command that ends while threads of a reader wake up may abort.
    """
    for content in each_listed(bundle, files_of(about)):
        yield pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)


def files_of(about: Mapping[str, Any]) -> list[str]:
    """The Parquet files that have the rows of a table: one, those of its parts, or those of the periods of a series."""
    files = about["files"]
    if "parts" in files:
        return [f"{files['parquet']}/{name_of(part)}" for part in range(files["parts"])]
    return [files["parquet"]] if isinstance(files["parquet"], str) else list(files["parquet"])


def together(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables one after the other; in a series an earlier one may lack columns, and have other codes."""
    return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()


def all_rows(bundle: Path, about: Mapping[str, Any]) -> pa.Table:
    """All rows of a table; one that is too large for that is refused."""
    files = about["files"]
    if files.get("rows", 0) > MOST_ROWS:
        raise BundleError(
            f"bundle {bundle}, table '{about['name']}'",
            expected=f"a table of at most {MOST_ROWS:,} rows, to be held in memory",
            found=f"{files['rows']:,} rows, in {files['parts']} Parquet files",
            do=f"read the files in {bundle / files['parquet']} as docs/large-tables.md shows; serve the other tables "
            "from a release of their own",
        )
    rows = together(each_rows(bundle, about))
    return _with_absent(bundle, about, rows) if about.get("absent") else rows


def _with_absent(bundle: Path, about: Mapping[str, Any], rows: pa.Table) -> pa.Table:
    """The rows of a series with those that are absent: of codes that a period did not know, without any value."""
    time, *others = (dimension["name"] for dimension in about["dimensions"])
    listed = not about["structural_zeros"].startswith("implied")
    codes = {
        name: rows[name].unique().to_pylist() if listed else about["where"].get(name, codes_of(bundle, name))
        for name in others
    }
    lacking = [
        (period, *cell)
        for period, unknown_codes in about["absent"].items()
        for cell in product(*codes.values())
        if any(code in unknown_codes.get(name, ()) for name, code in zip(others, cell, strict=True))
    ]
    columns = zip((time, *others), zip(*lacking, strict=True), strict=True)
    made = {name: pa.array(list(found), pa.string()).dictionary_encode() for name, found in columns}
    status = rows["status"] if "status" in rows.column_names else pa.array([""] * len(rows)).dictionary_encode()
    marked = pa.array([_ABSENT] * len(lacking)).dictionary_encode()
    rows = rows.drop_columns(["status"]) if "status" in rows.column_names else rows
    return together([rows.append_column("status", status), pa.table({**made, "status": marked})])


def unlisted(about: Mapping[str, Any], rows: pa.Table) -> pa.Table:
    """A row for every workplace cell of a sparse table: the figures of its worker cells that are not listed.

    They are those of a value of 0. The upper end of an interval is as far above the value in all rows of a workplace
    cell, and above the greatest value that is not listed where there is none.
    """
    names = workplace_of(about)
    codes = {name: rows[name].unique().cast(pa.string()).to_pylist() for name in names}
    cells = np.zeros(len(rows), dtype=np.int64)
    for name, place in zip(names, places_of(rows, names, codes), strict=True):
        cells = cells * len(codes[name]) + place
    rows = rows.take(np.unique(cells, return_index=True)[1])
    value, threshold, high = rows["value"], rows["threshold"], rows["high"]
    beyond = pc.subtract(high, pc.if_else(pc.equal(value, 0), pc.subtract(threshold, 1), value))
    made = {
        "value": pc.multiply(value, 0),
        "error": threshold.cast(rows["error"].type),
        "low": pc.multiply(value, 0),
        "high": pc.add(pc.subtract(threshold, 1), beyond),
    }
    kept = [*names, *(name for name in about["columns"] if name in rows.column_names)]
    return pa.table({name: made.get(name, rows[name]) for name in kept})


def with_codes(rows: pa.Table, kept: Mapping[str, Sequence[str]]) -> pa.Table:
    """The rows with these codes of some dimensions."""
    for dimension, wanted in kept.items():
        rows = rows.filter(pc.is_in(rows[dimension].cast(pa.string()), value_set=pa.array(wanted, pa.string())))
    return rows


def workplace_of(about: Mapping[str, Any]) -> list[str]:
    """The dimensions of a sparse table that are of workplaces."""
    if "workplace" not in about:
        raise BundleError(
            f"table '{about['name']}'",
            expected="a sparse table that says which of its dimensions are of workplaces",
            found="one that does not",
            do="publish the bundle again with this version of sfumato",
        )
    found: list[str] = about["workplace"]
    return found


def codes_of(bundle: Path, dimension: str) -> tuple[str, ...]:
    """The codes of a dimension, in order."""
    rows = csv.reader(io.StringIO(read_listed(bundle, f"codelists/{dimension}.csv").decode()))
    return tuple(row[0] for row in rows)[1:]


def places_of(table: pa.Table, by: Sequence[str], codes: Mapping[str, Sequence[str]]) -> tuple[Places, ...]:
    """The place of every row among the codes of some dimensions."""
    return tuple(
        pc.index_in(table[name].cast(pa.string()), value_set=pa.array(codes[name], pa.string()))
        .to_numpy()
        .astype(np.int64)
        for name in by
    )
