"""Totals that are public already: the table of a control from a file, read and checked before anything is charged."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Dimension
from sfumato.cube.section import COUNT, WEIGHTED, ControlSection
from sfumato.errors import ReleaseError

LARGEST_TOTAL = 10**10
"""What all totals of a table may add up to, so that millionths of them leave room in 64 bits for what is added."""
_NUMBER = r"^-?\d{1,15}(\.\d*)?$"


@dataclass(frozen=True, kw_only=True)
class PublicTotals:
    """The public totals of a control, whole numbers for every combination of codes."""

    name: str
    by: tuple[str, ...]
    columns: Mapping[str, Integers]
    """`count`, `weighted` or both, with one axis for each attribute, in the order of `by`."""
    source: str
    """Where they come from, in words for readers."""

    def in_order(self, dimensions: Mapping[str, Dimension]) -> "PublicTotals":
        """The same numbers with attributes and codes in the order of their names."""
        axes = sorted(range(len(self.by)), key=lambda axis: self.by[axis])
        codes = [np.argsort(np.array(dimensions[self.by[axis]].codes)) for axis in axes]
        columns = {name: values.transpose(axes)[np.ix_(*codes)] for name, values in self.columns.items()}
        return replace(self, by=tuple(self.by[axis] for axis in axes), columns=columns)

    def digest(self) -> str:
        """Name the numbers: with others the cube is another question."""
        parts = [f"{column} {values.shape}".encode() + values.tobytes() for column, values in self.columns.items()]
        return hashlib.sha256(b"".join(parts)).hexdigest()


def read_totals(control: ControlSection, dimensions: Mapping[str, Dimension], folder: Path) -> PublicTotals:
    """Read the file of a control, CSV or Parquet: a row for every combination of codes, none twice, none missing."""
    if control.totals is None:
        raise ValueError("a control with a file of totals")
    reader = _Reader(where=f"control '{control.name}', totals {control.totals}")
    table = reader.table(folder / control.totals)
    reader.know_columns(table, control.by)
    by = tuple(dimensions[name] for name in control.by)
    places = reader.places(table, by)
    columns = {}
    for column in (COUNT, WEIGHTED):
        if column in table.column_names:
            values = np.empty(len(places), dtype=np.int64)
            values[places] = reader.whole_numbers(table, column)
            columns[column] = values.reshape(tuple(map(len, by)))
    return PublicTotals(
        name=control.name, by=control.by, columns=columns, source=control.source or Path(control.totals).name
    )


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Reads one file; everything wrong with it is said with its name. Its numbers are public and may be quoted."""

    where: str

    def table(self, path: Path) -> pa.Table:
        try:
            if path.suffix.lower() == ".parquet":
                import pyarrow.parquet as pq  # noqa: PLC0415 (needed for these files only)

                return pq.read_table(path)
            import pyarrow.csv as pv  # noqa: PLC0415 (needed for these files only)

            with path.open("rb") as file:
                header = file.readline().decode("utf-8-sig")
            # Everything as text: a code may look like a number, and begin with zeros.
            names = [name.strip().strip('"') for name in header.split(",")]
            return pv.read_csv(
                path,
                convert_options=pv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
                ),
            )
        except (OSError, UnicodeDecodeError, pa.ArrowInvalid) as error:
            missing = isinstance(error, FileNotFoundError)
            raise self._wrong(
                expected="a CSV file in UTF-8 with a header line, or a Parquet file",
                found="no such file" if missing else str(error).splitlines()[0],
                do="check the path, which is relative to the release file" if missing else "mend the file",
            ) from error

    def know_columns(self, table: pa.Table, by: tuple[str, ...]) -> None:
        """Refuse a file without the columns of the table, or with others."""
        names = table.column_names
        lacking = [name for name in by if name not in names]
        if lacking or not {COUNT, WEIGHTED} & set(names):
            raise self._wrong(
                expected=f"the columns {', '.join([*by, ''])}and {COUNT}, {WEIGHTED} or both",
                found=f"the columns {', '.join(names) or 'of an empty file'}",
                do=f"add the column '{lacking[0]}'" if lacking else "add the column with the totals",
            )
        unknown = [name for name in names if name not in (*by, COUNT, WEIGHTED) or names.count(name) > 1]
        if unknown:
            raise self._wrong(
                expected=f"no other columns than {', '.join([*by, COUNT, WEIGHTED])}, each once",
                found=f"'{unknown[0]}'",
                do="leave the column out, or correct its name",
            )

    def places(self, table: pa.Table, by: tuple[Dimension, ...]) -> Integers:
        """The cell of every row, in the order of the product; refused unless every cell has its row."""
        place = np.zeros(table.num_rows, dtype=np.int64)
        for dimension in by:
            codes = table[dimension.name].cast(pa.string())
            found = pc.index_in(codes, value_set=pa.array(dimension.codes, pa.string()))
            if found.null_count:
                wrong = codes.filter(pc.is_null(found))[0].as_py()
                raise self._wrong(
                    expected=f"codes of {dimension.name}, such as '{dimension.codes[0]}'",
                    found=f"{found.null_count:,} unknown, such as '{wrong or ''}'",
                    do="correct the codes, or add them to the codelist",
                )
            place = place * len(dimension) + found.to_numpy()
        cells = prod(map(len, by))
        rows = np.bincount(place, minlength=cells)
        for kind, wrong in (("more than one row", rows > 1), ("no row", rows == 0)):
            if wrong.any():
                raise self._wrong(
                    expected=f"one row for each of {cells:,} combinations of codes"
                    if by
                    else "one row, with the grand total",
                    found=f"{kind} for {int(wrong.sum()):,} of them" + _such_as(by, int(np.argmax(wrong))),
                    do="leave out what is there twice"
                    if kind != "no row"
                    else "add what is missing, with 0 if need be",
                )
        return place

    def whole_numbers(self, table: pa.Table, column: str) -> Integers:
        """The numbers of a column, in the order of the rows."""
        found = table[column]
        if pa.types.is_string(found.type) or pa.types.is_large_string(found.type):
            text = pc.utf8_trim_whitespace(found)
            found = pc.if_else(pc.match_substring_regex(text, _NUMBER), text, None)
        try:
            numbers = found.cast(pa.float64(), safe=False).to_numpy()  # none is NaN
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            kind = str(found.type)
            raise self._wrong(expected=f"numbers in '{column}'", found=kind, do="store numbers") from None
        self._refuse(column, ~np.isfinite(numbers), "missing or no number")
        self._refuse(column, numbers < 0, "negative")
        self._refuse(column, numbers != np.floor(numbers), "not whole")
        if float(numbers.sum()) > LARGEST_TOTAL:
            raise self._wrong(
                expected=f"totals in '{column}' that add up to at most {LARGEST_TOTAL:,}",
                found="more",
                do="count in larger units, weights and totals alike",
            )
        whole: Integers = numbers.astype(np.int64)
        return whole

    def _refuse(self, column: str, wrong: NDArray[np.bool_], kind: str) -> None:
        if wrong.any():
            raise self._wrong(
                expected=f"whole numbers from 0 on in '{column}'",
                found=f"{int(wrong.sum()):,} {kind}, first in row {int(np.argmax(wrong)) + 1:,}",
                do="correct the numbers",
            )

    def _wrong(self, *, expected: str, found: str, do: str) -> ReleaseError:
        return ReleaseError(self.where, expected=expected, found=found, do=do)


def _such_as(by: tuple[Dimension, ...], cell: int) -> str:
    """A cell by its codes."""
    if not by:
        return ""
    codes = np.unravel_index(cell, tuple(map(len, by)))
    return ", such as " + " × ".join(dimension.codes[int(code)] for dimension, code in zip(by, codes, strict=True))
