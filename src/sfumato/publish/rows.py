"""The rows of a published table, from one file or from the files of its parts, one after the other."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.errors import BundleError
from sfumato.manifest import each_listed
from sfumato.parts import name_of

MOST_ROWS = 20_000_000
"""Tables in parts with more rows than this are not read as a whole."""


def each_rows(bundle: Path, about: Mapping[str, Any]) -> Iterator[pa.Table]:
    """The rows of a table that a bundle describes, file after file, once each is what the manifest says.

    `about` is its description in the structure. One thread reads the files: whoever asks may be one of many, and a
    command that ends while threads of a reader wake up may abort.
    """
    files = about["files"]
    names = [f"{files['parquet']}/{name_of(part)}" for part in range(files["parts"])] if "parts" in files else None
    for content in each_listed(bundle, names or [files["parquet"]]):
        yield pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)


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
    return pa.concat_tables(each_rows(bundle, about))
