"""Read what is no Parquet: texts, workbooks, files of statistics packages, databases; each table once, into Parquet.

What is written is for this run alone, in the folder for what does not fit into memory. Workbooks and files of
statistics packages know the types of their values.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engine.data_files import DataFile
from sfumato.engine.databases import from_database
from sfumato.engine.guesses import Guess, OnDisk, Wanted, refuse_other_columns, refuse_repeated
from sfumato.engine.text_cells import KEPT, TextCells
from sfumato.engine.texts import Texts, and_others, literal, quoted, truth, whole
from sfumato.errors import DataError
from sfumato.frame.sources import Format, Role, Source, format_of
from sfumato.frame.texts import guess_heading
from sfumato.frame.workbooks import cells_with_errors, read_sheet

if TYPE_CHECKING:  # only names for types
    import duckdb

_ROWS = 1 << 18
"""Rows of a workbook or a file of a statistics package that are handled at a time."""


def read_into_parquet(
    con: "duckdb.DuckDBPyConnection", wanted: Wanted, source: Source, files: Sequence[DataFile], target: Path
) -> Guess:
    """Read the columns of a table that are wanted into one Parquet file, and tell how it was read.

    Columns that no file has are left out: whoever needs them says so.
    """
    kind = source.format or format_of(files[0].path) or "csv"
    listed = [OnDisk(named=f"{wanted.named}: {file.name}", path=Path(file.path)) for file in files]
    if kind in ("sqlite", "postgresql"):
        return from_database(con, source, listed, wanted, target)
    found = Texts(con, source, listed, wanted, target) if kind == "csv" else _Typed(con, source, listed, wanted, target)
    return found.read()


# Values with types: workbooks and files of statistics packages.

Pieces = Iterator[Mapping[str, Sequence[Any]]]
"""Columns by their names, some rows at a time."""


@dataclass
class _Typed:
    """The files of one table whose values have types."""

    con: "duckdb.DuckDBPyConnection"
    source: Source
    files: Sequence[OnDisk]
    wanted: Wanted
    target: Path
    parts: list[Path] = field(default_factory=list)
    """Parquet files, one for every change of types on the way."""
    schemas: list[pa.Schema] = field(default_factory=list)

    def read(self) -> Guess:
        """Read the columns that are wanted into Parquet, and tell how the files were read."""
        kind = self.source.format or format_of(self.files[0].path.name) or "excel"
        reader = _sheet if kind == "excel" else _packages
        found: _Opened | None = None
        for file in self.files:
            opened = reader(self.source, file, self.wanted)
            refuse_repeated(opened.columns, self.wanted, file.named)
            chosen = [name for name in opened.columns if self.wanted.role(name)]
            if found is not None:
                refuse_other_columns([self.files[0], file], [found.columns, opened.columns], self.wanted)
            found = found or opened
            self._write(file, opened, chosen)
        guess = found or _Opened(columns=(), pieces=iter(()))
        self._finish([name for name in guess.columns if self.wanted.role(name)])
        unsaid = [name for name in ("sheet", "skip") if getattr(self.source, name) is None]
        return Guess(format=kind, columns=guess.columns, sheet=guess.sheet, skip=guess.skip, guessed=tuple(unsaid))

    def _write(self, file: OnDisk, opened: "_Opened", chosen: Sequence[str]) -> None:
        import pyarrow.parquet as pq

        writer: pq.ParquetWriter | None = None
        before = 0
        try:
            for piece in opened.pieces:
                rows = pa.table(
                    {
                        name: _Column(
                            named=f"{file.named}, column '{name}'",
                            role=self.wanted.role(name) or "text",
                            before=before + opened.skip + 1,
                            missing=self.source.missing,
                        ).of(piece[name])
                        for name in chosen
                    }
                )
                if writer is None or rows.schema != writer.schema:
                    if writer is not None:
                        writer.close()
                    self.parts.append(self.target.with_name(f"{self.target.stem}-{len(self.parts)}.parquet"))
                    self.schemas.append(rows.schema)
                    writer = pq.ParquetWriter(self.parts[-1], rows.schema, compression="lz4")
                writer.write_table(rows)
                before += rows.num_rows
        finally:
            if writer is not None:
                writer.close()

    def _finish(self, chosen: Sequence[str]) -> None:
        """Give every column one type for all rows, by the same rules as for texts."""
        import duckdb

        if not chosen:
            return
        kinds = {name: {schema.field(name).type for schema in self.schemas} - {pa.null()} for name in chosen}
        if len(self.parts) == 1 and not any(pa.string() in found for found in kinds.values()):
            self.parts[0].rename(self.target)
            return
        listed = ", ".join(map(quoted, chosen))
        texts = {name for name, found in kinds.items() if pa.string() in found or len(found) > 1}
        parts = (
            f"SELECT {', '.join(self._shown(name, schema, texts) for name in chosen)} "
            f"FROM read_parquet({literal(str(part))})"
            for part, schema in zip(self.parts, self.schemas, strict=True)
        )
        rows = f"SELECT {listed} FROM ({' UNION ALL '.join(parts)})"
        kind = self.source.format or format_of(self.files[0].path.name) or "excel"
        cells = TextCells(self.con, self.source, self.wanted, kind, rows)
        cells.refuse_untold_marks([name for name in chosen if name in texts])
        values = ", ".join(
            f"{self._value(name, cells) if name in texts else quoted(name)} AS {quoted(name)}" for name in chosen
        )
        try:
            self.con.execute(f"COPY (SELECT {values} FROM ({rows})) TO {literal(str(self.target))} (FORMAT parquet)")
        except duckdb.Error as error:
            self._explain(cells, [name for name in chosen if name in texts], error)
            raise
        for part in self.parts:
            part.unlink()

    def _shown(self, name: str, schema: pa.Schema, texts: Collection[str]) -> str:
        """A column of a part: as it is, or as a text where other parts have texts."""
        if name not in texts:
            return quoted(name)
        is_number = self.wanted.role(name) in ("number", "weight") and _is_numeric(schema.field(name).type)
        text = f"CAST({quoted(name)} AS VARCHAR)"
        return f"{f'{literal(KEPT)} || {text}' if is_number else text} AS {quoted(name)}"

    def _value(self, name: str, cells: TextCells) -> str:
        """The expression for a column that has texts in some rows."""
        role, text = self.wanted.role(name), quoted(name)
        if role == "text":
            if name in self.wanted.dated and (dates := cells.dates(name)):
                return dates
            asked = f"SELECT bool_and({whole(text)} IS NOT NULL OR {text} IS NULL), count({text}) FROM ({cells.rows})"
            fits, filled = self.con.execute(asked).fetchone() or (False, 0)
            return whole(text) if fits and filled else text
        given = f"nullif(trim({text}), '')"
        return truth(given) if role == "truth" else cells.number(given)

    def _explain(self, cells: TextCells, names: Sequence[str], error: Exception) -> None:
        for name in names:
            given, role = f"nullif(trim({quoted(name)}), '')", self.wanted.role(name)
            if role == "text":
                continue
            tried = truth(given, "TRY_CAST") if role == "truth" else cells.number(given, "TRY_CAST")
            row, times = cells.first(name, f"{given} IS NOT NULL AND ({tried}) IS NULL")
            if times:
                raise DataError(
                    f"{self.wanted.named}, column '{name}', row {row:,} below the heading",
                    expected="true or false" if role == "truth" else "a number",
                    found=f"something else{and_others(times)}",
                    do='correct it, or say which words stand for no value: missing = ["NA"]',
                ) from error


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """A file that was opened: its columns, and its rows piece by piece."""

    columns: tuple[str, ...]
    pieces: Pieces
    sheet: str = ""
    skip: int = 0


@dataclass(frozen=True, kw_only=True)
class _Column:
    """Some rows of a column, whatever their types are."""

    named: str
    role: Role
    before: int
    """Rows above, the heading too."""
    missing: Sequence[str]

    def of(self, values: Sequence[Any]) -> pa.Array:
        """The values as an array of one type: whole numbers, numbers, texts, dates, or true and false."""
        truths = [at for at, value in enumerate(values) if isinstance(value, bool)] if isinstance(values, list) else []
        if truths and self.is_amount:
            raise DataError(
                f"{self.named}, row {self.before + truths[0] + 1:,} of the sheet",
                expected="a number",
                found="true or false" + (f", there and in {len(truths) - 1:,} other rows" if len(truths) > 1 else ""),
                do="correct it, or the column in the release file",
            )
        several = 0 < len(truths) < sum(value is not None for value in values)  # to Arrow, true is 1 among numbers
        try:
            found = self._texts(values) if several else pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # cells of several types
            found = self._texts(values)
        kind = found.type
        if pa.types.is_string(kind):
            return pc.if_else(pc.is_in(pc.utf8_trim_whitespace(found), pa.array(["", *self.missing])), None, found)
        if _is_numeric(kind):
            return self._number(found)
        return self._date(found) if pa.types.is_temporal(kind) else found

    @property
    def is_amount(self) -> bool:
        """Whether the column has numbers that are no codes."""
        return self.role in ("number", "weight")

    def _texts(self, values: Sequence[Any]) -> pa.Array:
        """Cells of several types as texts."""
        nothing = self._no_numbers() if self.is_amount else []
        shown = (None if isinstance(one, (int, float)) and one in nothing else one for one in values)
        return pa.array([_as_text(one, kept=self.is_amount) for one in shown], pa.string())

    def _no_numbers(self) -> list[float]:
        """Numbers that stand for no value."""
        return [float(word) for word in self.missing if _is_number(word)]

    def _number(self, found: pa.Array) -> pa.Array:
        """Numbers, which most of these formats have as floating-point numbers only."""
        if pa.types.is_integer(found.type):
            found, listed = found.cast(pa.int64()), [int(one) for one in self._no_numbers() if one.is_integer()]
            found = pc.if_else(pc.is_in(found, pa.array(listed, pa.int64())), None, found)
        else:
            nothing = pc.is_in(found, pa.array(self._no_numbers(), pa.float64()))
            found = pc.if_else(pc.or_(pc.is_nan(found), nothing), None, found)
        if (
            self.role == "truth"
            and pc.all(pc.is_in(found.drop_null().cast(pa.float64()), pa.array([0.0, 1.0]))).as_py()
        ):
            return found.cast(pa.bool_())
        if self.role == "weight" or pa.types.is_integer(found.type):
            return found
        is_whole = pc.and_(pc.equal(pc.floor(found), found), pc.less(pc.abs(found), 2.0**53))
        return found.cast(pa.int64()) if pc.all(pc.fill_null(is_whole, True)).as_py() else found

    def _date(self, found: pa.Array) -> pa.Array:
        if self.role == "text" and (pa.types.is_date(found.type) or pa.types.is_timestamp(found.type)):
            return found.cast(pa.date32(), safe=False)
        raise DataError(
            self.named,
            expected={"text": "a key, a code or a date", "truth": "true or false"}.get(self.role, "a number"),
            found="a time" if self.role == "text" else "a date or a time",
            do="correct the column in the release file, or the file",
        )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _as_text(value: Any, *, kept: bool = False) -> str | None:
    """The text of a cell; a number that is to keep its value says so."""
    if kept and isinstance(value, (int, float)):
        return f"{KEPT}{value!r}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return str(int(value))
    if isinstance(value, datetime):
        value = value.date()
    return None if value is None else value.isoformat() if isinstance(value, date) else str(value)


def _sheet(source: Source, file: OnDisk, wanted: Wanted) -> _Opened:
    sheet, rows = read_sheet(file.path, file.named, source.sheet, DataError)
    shown = [[str(cell).strip() for cell in row] for row in rows[:30]]
    skip = source.skip
    if skip is None:
        skip = guess_heading([row if any(row) else [] for row in shown], wanted.is_known)
    heading = shown[skip] if skip < len(shown) else [str(cell).strip() for row in rows[skip : skip + 1] for cell in row]
    if not any(heading):
        raise DataError(file.named, expected="a row with the names of the columns", found="none", do="give `skip`")
    _refuse_errors(file, sheet, skip, [name if wanted.role(name) else None for name in heading])
    kept = rows[skip + 1 :]
    while kept and not any(cell != "" for cell in kept[-1]):  # cells that have a colour and no value
        kept.pop()

    def pieces() -> Pieces:
        for begin in range(0, len(kept), _ROWS) or [0]:
            columns = list(zip(*kept[begin : begin + _ROWS], strict=True)) or [()] * len(heading)
            yield {
                name: [None if value == "" else value for value in column] if wanted.role(name) else ()
                for name, column in zip(heading, columns, strict=True)
            }

    return _Opened(columns=tuple(heading), pieces=pieces(), sheet=sheet, skip=skip)


def _refuse_errors(file: OnDisk, sheet: str, skip: int, wanted: Sequence[str | None]) -> None:
    """Refuse errors of formulas in columns that are wanted: they are no empty cells."""
    cells = [(row, at) for row, at in cells_with_errors(file.path, sheet) if row > skip and at < len(wanted)]
    named = [(row, name) for row, at in cells if (name := wanted[at]) is not None]
    if named:
        row, name = named[0]
        raise DataError(
            f"{file.named}, sheet '{sheet}', row {row + 1:,}, column '{name}'",
            expected="a value, or an empty cell",
            found="the error of a formula" + (f", and {len(named) - 1:,} more" if len(named) > 1 else ""),
            do="mend the formula, or empty the cell where there is no value",
        )


def _package_reader(path: Path, kind: Format) -> Callable[..., Any]:
    import pyreadstat

    package: Any = pyreadstat
    others = {".xpt": package.read_xport, ".xport": package.read_xport, ".por": package.read_por}
    usual = {"stata": package.read_dta, "sas": package.read_sas7bdat, "spss": package.read_sav}
    reader: Callable[..., Any] = others.get(path.suffix.lower(), usual.get(kind, package.read_dta))
    return reader


def package_metadata(path: Path, kind: Format) -> Any:
    """What a file of Stata, SAS or SPSS says of its columns; no record is read."""
    return _package_reader(path, kind)(path, metadataonly=True, output_format="dict")[1]


def _packages(source: Source, file: OnDisk, wanted: Wanted) -> _Opened:
    """Files of Stata, SAS and SPSS: codes as they are stored, without their labels."""
    import pyreadstat

    package: Any = pyreadstat
    kind = source.format or format_of(file.path.name) or "stata"
    reader = _package_reader(file.path, kind)
    failing = _unreadable(file, f"a file of {'Stata' if kind == 'stata' else kind.upper()} that can be read")
    try:
        about = package_metadata(file.path, kind)
    except (package.ReadstatError, OSError, UnicodeError) as error:
        raise failing from error
    chosen = [name for name in about.column_names if wanted.role(name)]
    months = {
        name: step for name in chosen if (step := _STATA_MONTHS.get(str(about.original_variable_types[name])[:3]))
    }

    short = {n for n in chosen if about.readstat_variable_types[n] == "float" and wanted.role(n) == "number"}

    def values(name: str, piece: Sequence[Any]) -> Any:
        if name in months:
            return _months(piece, months[name])
        return _as_written(piece) if name in short else piece

    def pieces() -> Pieces:
        offset = 0
        while chosen:
            try:
                piece, _ = reader(file.path, usecols=chosen, row_offset=offset, row_limit=_ROWS, output_format="dict")
            except (package.ReadstatError, OSError, UnicodeError) as error:
                raise failing from error
            rows = len(piece[chosen[0]])
            if rows or not offset:
                yield {name: values(name, piece[name]) for name in chosen}
            offset += rows
            if rows < _ROWS:
                return

    return _Opened(columns=tuple(about.column_names), pieces=pieces())


_STATA_MONTHS = {"%tm": 1, "%tq": 3, "%th": 6}
"""Periods that Stata counts from 1960 on, by their months."""


def _months(values: Sequence[float | None], months: int) -> Any:
    """Periods of so many months as the days on which they begin."""
    count = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    begins = np.datetime64("1960-01", "M") + (np.nan_to_num(count) * months).astype("timedelta64[M]")
    return pc.if_else(pa.array(np.isnan(count)), None, pa.array(begins.astype("datetime64[D]")))


def _as_written(values: Sequence[float | None]) -> pa.Array:
    """Numbers of single precision as the shortest decimals that they stand for: 329.7, not 329.70001220703125.

    >>> _as_written([329.70001220703125, None]).to_pylist()
    [329.7, None]
    """
    return pa.array(values, pa.float64()).cast(pa.float32(), safe=False).cast(pa.string()).cast(pa.float64())


def _unreadable(file: OnDisk, expected: str) -> DataError:
    return DataError(file.named, expected=expected, found="one that cannot", do="save the file again, or as CSV")
