"""Look at files that nobody has described: their columns, what is unique, and which table leads to which.

What is seen is confidential. It is shown to whoever looks, and only numbers of it.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.engine.connect import open_tables
from sfumato.engine.databases import sqlite_tables
from sfumato.engine.guesses import Guess
from sfumato.engine.query import Rows, is_text
from sfumato.errors import DataError, UsageError
from sfumato.frame.data import Data
from sfumato.frame.sources import Role, Source, format_of
from sfumato.frame.texts import GROUP_OR_DECIMALS, fitting_marks
from sfumato.frame.workbooks import sheets_of
from sfumato.paths import meant
from sfumato.starting.dates import DATE, EDGES, SLASHED, UNCLEAR, as_days, counted_edges, day_of, period_of, slashes_of
from sfumato.starting.heading import PERIODS, refuse_record
from sfumato.starting.labels import Labels, labels_of

_SAMPLE = 5000
"""Different texts of a column from which is guessed how its numbers are written."""
MOST_CODES = 500
"""Columns with more different values are no codes, or need a codelist that nobody types."""
_DOTS = (".", "..", "...", "-", "--", ":", "/", "*", "x", "X")
NO_VALUES = (*_DOTS, "NA", "N/A", "n/a", "na", "#N/A", "NULL", "null", "None", "NaN", "nan", "k.A.", "k. A.", "missing")
"""Words that stand for no value in files of offices; others may be values of somebody, and are never told."""
_NEARLY = 20
"""A column is nearly all numbers where one row of so many is none, or more rows that have a word for no value."""


_DIGITS = [f"isfinite(_n) AND abs(_n * 1e{digits} - round(_n * 1e{digits})) < 1e-4" for digits in range(4)]
"""Whether a number has no decimals, one, two or three; as exactly as binary numbers tell."""


class _AsText(dict[str, Role]):
    """Every column, as text: codes and keys keep their zeros. What is empty or a plain number is no name of one."""

    def get(self, column: str, _default: Any = None) -> Any:
        is_name = column and (not re.fullmatch(r"[-+]?[\d.,]+", column) or re.fullmatch(r"(19|20)\d\d", column))
        return "text" if is_name else None


class Files(Data):
    """Tables of which only the files are known."""

    listed: dict[str, Source]

    @property
    def accepted(self) -> None:
        """Nothing is taken for a mistake."""
        return

    def sources(self) -> dict[str, Source]:
        """The files by the names they were given under."""
        return self.listed

    def roles(self) -> dict[str, Role]:
        """All columns are read."""
        return _AsText()

    def links_by_table(self) -> dict[str, tuple[str, ...]]:
        """Nothing is known of links."""
        return {}

    def links(self) -> str:
        """Nothing is known of links."""
        return ""

    def keys(self) -> dict[str, tuple[str, ...]]:
        """Nothing is known of keys."""
        return {}

    def holders(self, column: str) -> tuple[str, ...]:  # noqa: ARG002 (nothing is known)
        """Any table."""
        return tuple(self.listed)

    def always(self, columns: Sequence[str]) -> tuple[str, ...]:
        """All columns."""
        return tuple(columns)


@dataclass(frozen=True, kw_only=True)
class Column:
    """What a column has in it, in numbers."""

    name: str
    rows: int
    filled: int
    different: int
    numbers: int
    """Rows that are numbers."""
    whole: int
    """Rows that are whole numbers."""
    least: float | None
    greatest: float | None
    zeros: int
    """Rows that begin with a zero that a number would lose."""
    period: str = ""
    """Year, quarter or month, where every value is one."""
    decimals: int | None = None
    """How many decimals all its numbers fit into, of at most three; None where they do not."""
    doubtful: str = ""
    """The mark of its numbers, where each may be a thousand and more, or one and some decimals: 1.250."""
    tells_marks: bool = False
    """Whether a number tells what the marks mean."""
    is_dated: bool = False
    """Whether its periods are written as dates."""
    dates: str = ""
    """How its dates are written, shown by 31 March 2026, where they have slashes."""
    no_values: tuple[str, ...] = ()
    """Words for no value in a column whose other values are numbers."""
    total: float = 0
    """All its numbers together."""
    label: str = ""
    """Words for it, where its file has them, as those of statistics packages do."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Labels of its codes, where its file has them."""

    @property
    def told(self) -> str:
        """What it is called, and the words for it."""
        return f"{self.name} {self.label}".strip()

    @property
    def is_key(self) -> bool:
        """Whether it names each row once."""
        return self.rows > 0 and self.different == self.rows == self.filled

    @property
    def is_number(self) -> bool:
        """Whether every value is a number that is no code with zeros in front."""
        return 0 < self.filled == self.numbers and not self.zeros

    @property
    def is_whole(self) -> bool:
        """Whether every value is a whole number."""
        return self.is_number and self.whole == self.numbers

    @property
    def is_nearly_number(self) -> bool:
        """Whether some rows alone keep it from being numbers, and it has no codes."""
        others = self.filled - self.numbers
        few = _NEARLY * others <= self.filled or (bool(self.no_values) and 5 * others <= self.filled)
        return others > 0 and few and not (self.zeros or self.is_code)

    @property
    def unreadable(self) -> str:
        """What keeps a column that is nearly all numbers from being one, and what to do, in words."""
        rows = f"{self.filled - self.numbers:,} rows"
        words = ", ".join(f'"{word}"' for word in self.no_values)
        if words:
            return f"has {words} in {rows}, which is no number: add missing = [{words}] to its file under [data]"
        return f'is no number in {rows}: correct them, or add the words for no value to its file, as missing = ["NA"]'

    @property
    def may_name(self) -> bool:
        """Whether it may name units: keys are texts or whole numbers, and never empty."""
        return self.filled == self.rows and (not self.is_number or self.is_whole)

    @property
    def is_code(self) -> bool:
        """Whether it may classify: few values, each of them in many rows."""
        few = 1 < self.different <= MOST_CODES and 2 * self.different <= max(self.filled, 4)
        return few and (not self.is_number or self.is_whole)

    def described(self) -> str:
        """The same in a few words."""
        kind = self.period or ("whole number" if self.is_whole else "number" if self.is_number else "text")
        kind = "number in nearly all rows" if self.is_nearly_number else kind
        kind = "date, day or month first" if self.dates == UNCLEAR else kind
        empty = f", {self.rows - self.filled:,} empty" if self.filled < self.rows else ""
        words = f": {self.label}" if self.label else ""
        return f"{kind}, {'each once' if self.is_key else f'{self.different:,} different'}{empty}{words}"


@dataclass(frozen=True, kw_only=True)
class Looked:
    """One table: its file, how it is written, its columns."""

    name: str
    path: Path
    source: Source
    rows: int
    columns: Mapping[str, Column]
    reading: str = ""
    """How the file was read, where that was guessed."""
    options: Mapping[str, str | int] = field(default_factory=dict)
    """What a release file should say of how it is written."""
    table: Rows = field(repr=False, compare=False)
    measured: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False, compare=False)
    """What was measured before: proposals are made again after every answer."""

    def _once(self, *what: str, measure: Callable[[], Any]) -> Any:
        if what not in self.measured:
            self.measured[what] = measure()
        return self.measured[what]

    def distinct(self, *names: str) -> int:
        """How many different rows some columns have."""
        return int(self._once("distinct", *names, measure=lambda: self.table.select(*names).distinct().number()))

    def names_each(self, *names: str) -> bool:
        """Whether some columns together name each row once."""
        return all(self.columns[name].may_name for name in names) and self.distinct(*names) == self.rows

    def depends(self, column: str, unit: str) -> bool:
        """Whether a column is the same in all rows of a unit."""
        q = self.table.engine.q
        spread = self.table.group([unit], _values=f"count(DISTINCT {q(column)})").where("_values > 1")
        return bool(self._once("depends", column, unit, measure=spread.number) == 0)

    def codes(self, column: str, least: int = 1) -> list[str]:
        """The values of a column that at least so many rows have, in order."""
        value = f"trim(CAST({self.table.engine.q(column)} AS VARCHAR))"
        rows = self.table.select(_code=value).where("_code <> ''").group(["_code"], _rows="count(*)")
        often = rows.where(f"_rows >= {least}").in_order_of("_code")
        found = self._once("codes", column, str(least), measure=lambda: often.fetch().column("_code").to_pylist())
        return list(map(str, found))

    def periods(self, column: str) -> list[str]:
        """The periods of a column in order, as a release file has them: 2024-01 also where it has dates."""
        found = self.codes(column)
        if not self.columns[column].is_dated:
            return found
        about = self.columns[column]
        return [period_of(day, about.period) for day in sorted(day_of(one, about.dates) for one in found)]

    def missing_from(self, column: str, other: "Looked", key: str) -> int:
        """How many different values of a column are no key of another table."""
        here, there = self.table, other.table
        text = "trim(CAST({} AS VARCHAR))"
        named = here.select(_key=text.format(here.engine.q(column))).distinct()
        known = there.select(_key=text.format(there.engine.q(key))).distinct()
        missing = named.join(known, ["_key"], "anti")
        return int(self._once("missing", column, other.name, key, measure=missing.number))


@contextmanager
def look(
    paths: Sequence[Path],
    progress: Callable[[str], None] = lambda _: None,
    skip: int | None = None,
    dates: str | None = None,
    decimal: str | None = None,
) -> Iterator[list[Looked]]:
    """Open files of any format that sfumato reads, and look at every column; nothing is charged or kept."""
    listed: dict[str, Source] = {}
    for path in paths:
        named = _name_of(path)
        listed[named if named not in listed else f"{named}_{len(listed)}"] = _source(path, skip)
    data = Files.model_validate({"listed": listed, "folder": Path.cwd()})
    with open_tables(data) as (_, opened, sources):
        found = []
        for (name, rows), path in zip(opened.items(), paths, strict=True):
            progress(f"looking at {path.name}")
            guess = sources.guesses.get(name)
            found.append(_looked(name, path, listed[name], rows, guess=guess, dates=dates, decimal=decimal))
        yield found


def _source(path: Path, skip: int | None) -> Source:
    """A file, or a table or sheet of one that is named behind a #."""
    file, _, inside = str(path).partition("#")
    kind = format_of(file)
    if not ("://" in file or re.search(r"[*?\[]", file) or Path(file).exists()):
        raise UsageError(
            file,
            expected="a file with data",
            found="no such file",
            do=meant(Path(file), lambda one: format_of(one.name) is not None, "check the path"),
        )
    if kind is None and not Path(file).is_dir():
        raise UsageError(
            file,
            expected="a file that sfumato reads: .parquet, .csv, .xlsx, .dta, .sas7bdat, .sav, .sqlite and others",
            found="another ending",
            do="give the path of the file; rename a text to .csv",
        )
    if kind == "sqlite" and not inside:
        inside = _only_table(Path(file))
    if kind == "excel" and not inside:
        inside = _only_sheet(Path(file))
    option = {"sqlite": "table", "excel": "sheet"}.get(kind or "")
    chosen: dict[str, Any] = {option: inside} if option and inside else {}
    if skip is not None and kind in ("csv", "excel"):
        chosen["skip"] = skip
    return Source.model_validate({"path": str(Path(file).absolute()), **chosen})


def _only_table(file: Path) -> str:
    """The table of a database that has one."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            names = sqlite_tables(database)
    except sqlite3.Error as error:
        raise DataError(
            file.name,
            expected="a database of SQLite",
            found="none there, or another file",
            do="check the path",
        ) from error
    if len(names) != 1:
        raise UsageError(
            file.name,
            expected="a table of the database",
            found=f"several: {', '.join(names)}" if names else "a database without any",
            do=f"name one: {file.name}#{names[0]}, say" if names else "check the path",
        )
    return names[0]


def _only_sheet(file: Path) -> str:
    """The sheet of a workbook that looks like a table; none is named where there is no other."""
    sheets = sheets_of(file)
    filled = [name for name, rows in sheets.items() if rows > 1]
    if len(sheets) > 1 and len(filled) != 1:
        raise UsageError(
            file.name,
            expected="a sheet of the workbook",
            found=f"several: {', '.join(sheets)}",
            do=f"name one: '{file.name}#{next(iter(filled), next(iter(sheets)))}', say",
        )
    return filled[0] if len(sheets) > 1 else ""


def _looked(
    name: str,
    path: Path,
    source: Source,
    rows: Rows,
    *,
    guess: Guess | None,
    dates: str | None,
    decimal: str | None,
) -> Looked:
    if guess is not None and guess.format in ("csv", "excel"):
        refuse_record(path.name, guess.columns, rows)
    marks = _marks(rows, decimal)
    about = labels_of(Path(source.path))
    columns = {column: _column(rows, column, marks, about, dates) for column in rows.columns}
    total = rows.number()
    if not total:
        raise DataError(path.name, expected="rows", found="a table without any", do="give the file with the data")
    options: dict[str, str | int] = {}
    if guess is not None and guess.format == "csv":
        guess = replace(guess, thousands=marks[0], decimal=marks[1])
        usual = {"delimiter": ",", "encoding": "utf-8", "decimal": ".", "thousands": ""}
        known = {"delimiter": guess.delimiter, "encoding": guess.encoding, "thousands": marks[0], "decimal": marks[1]}
        options |= {name: sign for name, sign in known.items() if sign != usual[name]}
    if guess is None or guess.format not in ("csv", "excel"):  # nobody could say what marks mean
        columns = {name: replace(column, doubtful="") for name, column in columns.items()}
    if any(column.doubtful for column in columns.values()):  # said, so that nothing is asked again
        options |= {"decimal": marks[1]} | ({"thousands": marks[0]} if marks[0] else {})
    if guess is not None and guess.skip:
        options["skip"] = guess.skip
    written = {column.dates for column in columns.values() if column.is_dated and column.dates}
    if len(written) == 1 and guess is not None:
        options["dates"] = written.pop()
    options |= {name: inside for name in ("sheet", "table") if (inside := getattr(source, name))}
    return Looked(
        name=name,
        path=path,
        source=source,
        rows=total,
        columns=columns,
        reading="" if guess is None else guess.in_words(),
        options=options,
        table=rows,
    )


def _name_of(path: Path) -> str:
    return re.sub(r"\W+", "_", path.name.partition("#")[0].partition(".")[0].lower()).strip("_") or "records"


def _marks(rows: Rows, decimal: str | None) -> tuple[str, str]:
    """What groups the digits and stands before the decimals of all columns of a text that are numbers."""
    pooled: list[str] = []
    others: list[str] = []
    for name in rows.columns:
        if is_text(rows.types[name]):
            text = f"trim({rows.engine.q(name)})"
            some = rows.select(_text=text).where("_text <> ''").distinct().limit(_SAMPLE).fetch()
            values = [value for value in some.column("_text").to_pylist() if value not in NO_VALUES]
            found = fitting_marks(values, None, decimal)
            if values and found is not None:
                (others if found == ("", ".") else pooled).extend(values)
    plain = ("", decimal or ".")
    if not pooled:
        return plain
    # A column of codes such as 10.11 has a point whatever numbers have.
    return fitting_marks([*pooled, *others], None, decimal) or fitting_marks(pooled, None, decimal) or plain


def _column(rows: Rows, name: str, marks: tuple[str, str], about: Labels, dates: str | None) -> Column:
    quoted, kind = rows.engine.q(name), rows.types[name]
    stored = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    text = f"nullif(trim(CAST({quoted} AS VARCHAR)), '')"
    plain = text
    if is_text(kind):
        plain = plain if not marks[0] else f"replace({plain}, {rows.engine.literal(marks[0])}, '')"
        plain = plain if marks[1] == "." else f"replace({plain}, ',', '.')"
    is_date = f"regexp_full_match({text}, '{DATE}')"
    number = f"CAST({quoted} AS DOUBLE)" if stored else f"CASE WHEN NOT {is_date} THEN TRY_CAST({plain} AS DOUBLE) END"
    spelt = {f"_{word}": f"count(*) FILTER (regexp_full_match(_t, '{form}'))" for word, form in PERIODS.items()}
    found = rows.select(_t=text, _n=number).row(
        _rows="count(*)",
        _filled="count(_t)",
        _different="count(DISTINCT _t)",
        _numbers="count(*) FILTER (isfinite(_n))",
        _whole="count(*) FILTER (isfinite(_n) AND _n = floor(_n))",
        _least="min(_n) FILTER (isfinite(_n))",
        _greatest="max(_n) FILTER (isfinite(_n))",
        _zeros="0" if stored else "count(*) FILTER (_t LIKE '0_%' AND _t NOT LIKE '0.%' AND _t NOT LIKE '0,%')",
        _total="coalesce(sum(_n) FILTER (isfinite(_n)), 0)",
        _marked="count(*) FILTER (contains(_t, '.') OR contains(_t, ','))",
        _doubtful=f"count(*) FILTER (regexp_full_match(_t, '{GROUP_OR_DECIMALS}'))",
        _comma="coalesce(bool_or(contains(_t, ',')), false)",
        **spelt,
        _slashed=f"count(*) FILTER (regexp_full_match(_t, '{SLASHED}'))",
        **counted_edges("_t"),
        **{f"_{digits}": f"count(*) FILTER ({fits})" for digits, fits in enumerate(_DIGITS)},
    )
    filled, fitting = found["_filled"], range(len(_DIGITS))
    period = next((word for word in PERIODS if filled and found[f"_{word}"] == filled), "")
    written = slashes_of(rows, text, dates) if filled and found["_slashed"] == filled else ""
    if written not in ("", UNCLEAR):
        found |= rows.select(_t=as_days(text, written)).row(**counted_edges("_t"))
    fits = [word for word in EDGES if filled and filled in (found[f"_{word}_0"], found[f"_{word}_1"])]
    begun = next((word for word in fits if word != "year" or found["_different"] > 1), "")  # one day may be a quarter
    return Column(
        name=name,
        rows=found["_rows"],
        filled=filled,
        different=found["_different"],
        numbers=found["_numbers"],
        whole=found["_whole"],
        least=found["_least"],
        greatest=found["_greatest"],
        zeros=found["_zeros"],
        period=period or (about.periods.get(name, begun) if begun else ""),
        is_dated=not period and bool(begun),
        dates=written,
        no_values=() if stored or not 0 < found["_numbers"] < filled else _no_values(rows, text, filled, found),
        doubtful=("," if found["_comma"] else ".")
        if is_text(kind) and found["_marked"] and found["_marked"] == found["_doubtful"]
        else "",
        tells_marks=is_text(kind) and found["_marked"] > found["_doubtful"],
        total=found["_total"],
        label=about.columns.get(name, ""),
        values=about.codes.get(name, {}),
        decimals=next((digits for digits in fitting if found[f"_{digits}"] == found["_numbers"]), None),
    )


def _no_values(rows: Rows, text: str, filled: int, found: Mapping[str, Any]) -> tuple[str, ...]:
    """The words for no value in a column of numbers; none where it has other words, too."""
    words = ", ".join(map(rows.engine.literal, NO_VALUES))
    marked = rows.select(_t=text).where(f"_t IN ({words})").group(["_t"], _rows="count(*)").fetch()
    others = filled - found["_numbers"]
    return tuple(sorted(marked.column("_t").to_pylist())) if sum(marked.column("_rows").to_pylist()) == others else ()
