"""The files of an economy: written aside, then moved into place."""

import csv
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.errors import SfumatoError
from sfumato_lab.economy.industries import INDUSTRY
from sfumato_lab.economy.jobs.codelists import AGE, EDUCATION, ETHNICITY, OWNERSHIP, PLACE_SIZE, RACE, SEX, Codelist

WORKPLACES: Final = "workplaces.parquet"
WORKERS: Final = "workers.parquet"
JOBS: Final = "jobs.parquet"
RELEASE: Final = "release.toml"
FIXED_CODELISTS: Final = (INDUSTRY, OWNERSHIP, PLACE_SIZE, AGE, SEX, RACE, ETHNICITY, EDUCATION)


def codelist_names(codelists: Sequence[Codelist]) -> tuple[str, ...]:
    """The files of these codelists."""
    return tuple(f"codelists/{codelist.name}.csv" for codelist in codelists)


# The release file comes last: a folder that has it has all the others.
FILES: Final = (
    WORKPLACES,
    WORKERS,
    JOBS,
    "codelists/place.csv",
    "place.geojson",
    *codelist_names(FIXED_CODELISTS),
    RELEASE,
)

Column = NDArray[np.int64] | tuple[NDArray[np.int8] | NDArray[np.int32], Codelist]


@contextmanager
def staging(
    folder: Path, *, overwrite: bool, names: Sequence[str] = FILES, former: Sequence[str] = ()
) -> Iterator[Path]:
    """A folder to write into; its files appear in `folder` when all are written, or not at all.

    The last of `names` is the release file: a folder that has it has all the others. Files named in `former` belonged
    to an economy that is being replaced, and go with it.
    """
    present = [name for name in (*names, *former) if (folder / name).exists()]
    if present and not overwrite:
        raise SfumatoError(
            f"folder {folder}",
            expected="a folder without an economy",
            found=", ".join(present),
            do="choose another folder, or replace this one with --overwrite",
        )
    folder.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".economy-", dir=folder))
    try:
        (aside / "codelists").mkdir()
        yield aside
        (folder / "codelists").mkdir(exist_ok=True)
        for name in (names[-1], *former):
            (folder / name).unlink(missing_ok=True)
        for name in names:
            (aside / name).replace(folder / name)
    finally:
        shutil.rmtree(aside)


def table(columns: Mapping[str, Column]) -> pa.Table:
    """An Arrow table of integers and of codes, the latter as a dictionary of strings."""
    return pa.table({name: _array(column) for name, column in columns.items()})


def _array(column: Column) -> pa.Array:
    if isinstance(column, tuple):
        positions, codelist = column
        return pa.DictionaryArray.from_arrays(pa.array(positions), pa.array(codelist.codes, pa.string()))
    return pa.array(column)


def open_parquet(path: Path, *, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer that stores integers as differences, so that ascending keys take almost no room."""
    integers = [field.name for field in schema if pa.types.is_integer(field.type)]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[field.name for field in schema if field.name not in integers],
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
    )


@contextmanager
def writing(folder: Path) -> Iterator[Callable[[str, pa.Table], int]]:
    """A function that adds a table to the Parquet file of a name, opened with its first table, and says its rows."""
    with ExitStack() as open_files:
        writers: dict[str, pq.ParquetWriter] = {}

        def write(name: str, table: pa.Table) -> int:
            if name not in writers:
                writers[name] = open_files.enter_context(open_parquet(folder / name, schema=table.schema))
            writers[name].write_table(table)
            return len(table)

        yield write


def write_codelists(folder: Path, codelists: Sequence[Codelist]) -> None:
    """A CSV file with code and label for each of them."""
    for codelist in codelists:
        write_codelist(folder / "codelists" / f"{codelist.name}.csv", codelist)


def map_name(attribute: str) -> str:
    """The file with the map of an attribute."""
    return f"{attribute}.geojson"


def attributes_text(codelists: Sequence[Codelist], *, on_maps: Sequence[str] = ()) -> str:
    """The lines of a release file that describe attributes with these codelists, some of them with a map."""
    return "".join(
        f'{codelist.name} = {{ label = "{codelist.label}", codelist = "codelists/{codelist.name}.csv"'
        + (f', map = "{map_name(codelist.name)}"' if codelist.name in on_maps else "")
        + " }\n"
        for codelist in codelists
    )


def write_codelist(path: Path, codelist: Codelist, **more: Sequence[object]) -> None:
    """A CSV file with code, label and any further columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["code", "label", *more])
        for entry, *rest in zip(codelist.entries, *more.values(), strict=True):
            writer.writerow([*entry, *rest])
