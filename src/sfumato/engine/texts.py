"""Read texts, CSV and its relatives, by what their columns are for; how they are written is guessed and told.

Keys, codes and periods keep every sign, leading zeros too; measures and weights are numbers, all signs of which must be
understood. A column in which all are whole numbers, written as computers write them, has whole numbers: it is the same
data as a Parquet file with such a column. DuckDB reads texts, into Parquet.
"""

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.engine.guesses import (
    DAMAGED,
    Guess,
    Head,
    OnDisk,
    Wanted,
    damaged,
    dated_columns,
    dates_not_told,
    guess_text,
    marks_told,
    not_in,
    read_head,
    refuse_other_columns,
    values_of,
)
from sfumato.errors import DataError
from sfumato.frame.periods import YEARS
from sfumato.frame.sources import COMPRESSED, Source, date_format
from sfumato.frame.texts import GROUP, GROUP_OR_DECIMALS, MARKS, guess_marks, open_text, tell_marks

if TYPE_CHECKING:  # only names for types
    import duckdb

_DUCKDB_READS = {"utf-8": "utf-8", "iso8859-1": "latin-1", "ascii": "utf-8"}
"""Encodings that DuckDB reads by itself, by the names of Python; texts in others are rewritten."""
_AS_TEXT: Mapping[str, str] = {}
_WHOLE = re.compile(r"0|-?[1-9]\d{0,18}")
_SHAPES = 1000
"""Ways of writing numbers, digits all alike, that are looked at where few of them tell what their marks mean."""
_CALLED = {".": "point", ",": "comma"}


@dataclass(frozen=True)
class Texts:
    """The files of one table, which DuckDB reads."""

    con: "duckdb.DuckDBPyConnection"
    source: Source
    files: Sequence[OnDisk]
    wanted: Wanted
    target: Path
    of_database: bool = False
    """Whether they are what a database answered."""

    def read(self) -> Guess:
        """Read the columns that are wanted into Parquet, and tell how the files are written."""
        heads = [read_head(file.path, file.named, self.source, self.wanted) for file in self.files]
        chosen = [name for name in heads[0].columns if self.wanted.role(name)]
        refuse_other_columns(self.files, [head.columns for head in heads], self.wanted)
        guess = guess_text(heads, self.source, self.wanted)
        return _Reading(self, guess, heads, chosen).into_parquet() if chosen else guess


class _Reading:
    """One table of texts on its way into Parquet."""

    def __init__(self, texts: Texts, guess: Guess, heads: Sequence[Head], chosen: Sequence[str]) -> None:
        self._texts, self._guess, self._chosen = texts, guess, chosen
        self._heads, self._source, self._wanted = heads, texts.source, texts.wanted
        self._dated = frozenset(dated_columns(heads, texts.source, texts.wanted))
        if self._dated and not guess.dates:
            raise dates_not_told(heads, texts.source, min(self._dated), texts.files[0].named)
        self._numbers = [name for name in chosen if texts.wanted.role(name) in ("number", "weight")]
        classed = [name for name in chosen if name in texts.wanted.classed and name not in self._numbers]
        self._marked = [*self._numbers, *classed]
        self._told = marks_told(heads, texts.source, self._marked)
        self._whole = frozenset(filter(self._looks_whole, chosen))
        doubtful = frozenset(self._numbers) - self._whole
        is_marked = any(set(MARKS) & set(value) for value in values_of(heads, sorted(doubtful), texts.source))
        self._unmarked = frozenset() if self._told or is_marked else doubtful
        self._paths = [self._readable(place) for place in range(len(heads))]

    def _looks_whole(self, name: str) -> bool:
        if name in self._dated or self._wanted.role(name) not in ("text", "number"):
            return False
        values = (value for head in self._heads for value in head.values(name, self._source.missing))
        return all(map(_WHOLE.fullmatch, values))

    def into_parquet(self) -> Guess:
        """Read whole numbers as such while all are; what then fails is told. Tell how the files are written."""
        import duckdb

        # DuckDB reads whole numbers quickest, and takes 007, 7.0 and 5e2 for some: only where no field has those.
        plain = bool(self._whole) and all(map(_has_plain_numbers, self._paths, self._heads))
        try:
            self._tell_marks()
            self._refuse_grouped()
            typed = {} if self._guess.thousands else dict.fromkeys(self._numbers, "DOUBLE")
            typed = {name: kind for name, kind in typed.items() if name not in self._whole | self._unmarked}
            self._copy(typed | (dict.fromkeys(self._whole, "BIGINT") if plain else {}))
        except duckdb.Error as error:
            self._read_with_care(error)
        return self._guess

    def _tell_marks(self) -> None:
        """Look at all numbers where the first ones do not tell whether 1.250 is a thousand and more, or one and some.

        Numbers that have no marks at the beginning, as whole ones, are read at once: the first mark is an error, and
        leads here again.
        """
        doubtful = [name for name in self._marked if name not in self._whole | self._unmarked]
        if self._told or not doubtful:
            return
        values = f"SELECT unnest([{', '.join(map(self._given, doubtful))}]) AS _value FROM ({self._rows()})"
        shape = "regexp_replace(_value, '[0-9]', '9', 'g')"  # of each the least, which may begin with 0, tells most
        marked = f"SELECT min(_value) FROM ({values}) WHERE NOT regexp_full_match(_value, {literal(f'[^{MARKS}]*')})"
        shapes = self._texts.con.execute(f"{marked} GROUP BY {shape} LIMIT {_SHAPES}").fetchall()
        if tell_marks(value for (value,) in shapes):
            thousands, decimal = guess_marks([value for (value,) in shapes])
            self._guess, self._told = replace(self._guess, thousands=thousands, decimal=decimal), True
        elif shapes and self._guess.delimiter == "," and not any("," in value for (value,) in shapes):
            self._told = True  # who writes commas between fields writes points before decimals
        elif shapes:
            self._ask_for_marks(doubtful)

    def _ask_for_marks(self, doubtful: Sequence[str]) -> None:
        for file, part in self._parts():
            for name in doubtful:
                may_be_both = f"regexp_full_match({self._given(name)}, {literal(GROUP_OR_DECIMALS)})"
                row, times, is_comma = self._first(part, name, may_be_both, f"contains({quoted(name)}, ',')")
                if times:
                    raise not_told(f"{file.named}, column '{name}'", row, times, "," if is_comma else ".")

    def _read_with_care(self, error: Exception) -> None:
        import duckdb

        if "state machine" in str(error):  # lines that end now this way, now that
            self._paths = [self._readable(place, rewrite=True) for place in range(len(self._heads))]
        try:
            self._whole, self._unmarked = self._really_whole(), frozenset()
            self._tell_marks()
            self._refuse_grouped()
            self._copy()
        except duckdb.Error as inner:
            self._explain(inner)
            raise

    def _refuse_grouped(self) -> None:
        """Refuse numbers of workers such as 1.000, which may be one or a thousand, where nobody says which."""
        if (self._source.decimal, self._source.thousands) != (None, None) or self._guess.thousands:
            return
        for name in (name for name in self._chosen if name in self._wanted.heads - self._whole):
            given, mark = f"trim({quoted(name)})", self._guess.decimal
            marked = f"contains({given}, {literal(mark)})"
            grouped = f"regexp_full_match({given}, {literal(rf'[+-]?[1-9][0-9]{{0,2}}[{mark}][0-9]{{3}}')})"
            asked = f"SELECT count(*) FILTER ({marked}), count(*) FILTER ({grouped}) FROM ({self._rows()})"
            found = self._texts.con.execute(asked).fetchone() or (0, 0)
            if found[0] and found[0] == found[1]:
                raise DataError(
                    f"{self._wanted.named}, column '{name}' of `employees`",
                    expected="numbers of workers that can be read in one way",
                    found=f"{found[0]:,} with three digits behind a {'point' if mark == '.' else 'comma'}: thousands, "
                    "or decimals",
                    do=f'write thousands = "{mark}" where they are thousands, and decimal = "{mark}" where they are '
                    "decimals",
                )

    def _really_whole(self) -> frozenset[str]:
        asked = ", ".join(
            f"bool_and({whole(quoted(name))} IS NOT NULL OR {quoted(name)} IS NULL)" for name in self._whole
        )
        found = self._texts.con.execute(f"SELECT true, {asked} FROM ({self._rows()})").fetchone() or ()
        return frozenset(name for name, fits in zip(self._whole, found[1:], strict=True) if fits is not False)

    def _copy(self, typed: Mapping[str, str] = _AS_TEXT) -> None:
        """Write what is read; columns of some types are read as such, all others as texts that are looked at."""
        values = {name: quoted(name) if name in typed else self._value(name) for name in self._chosen}
        columns = ", ".join(f"{value} AS {quoted(name)}" for name, value in values.items())
        query = f"SELECT {columns} FROM ({self._rows(typed)})"
        # For codes, not for keys, of which dictionaries are work for nothing.
        options = "FORMAT parquet, COMPRESSION uncompressed, DICTIONARY_SIZE_LIMIT 1000"
        self._texts.con.execute(f"COPY ({query}) TO {literal(str(self._texts.target))} ({options})")

    def _rows(self, typed: Mapping[str, str] = _AS_TEXT) -> str:
        """All rows of all files, files that are written alike read together."""
        chosen = ", ".join(map(quoted, self._chosen))
        parts = [
            f"SELECT {chosen} FROM {self._part([self._paths[place] for place in places], head, typed)}"
            for head, places in self._alike()
        ]
        return " UNION ALL ".join(parts)

    def _alike(self) -> list[tuple[Head, list[int]]]:
        def written(place: int) -> tuple[object, ...]:
            head = self._heads[place]
            return head.columns, head.delimiter, self._encoding(place)

        grouped = groupby(sorted(range(len(self._heads)), key=lambda place: repr(written(place))), key=written)
        return [(self._heads[places[0]], places) for places in (list(listed) for _, listed in grouped)]

    def _encoding(self, place: int) -> str:
        rewritten = self._paths[place] != self._texts.files[place].path
        return "utf-8" if rewritten else _DUCKDB_READS[codecs.lookup(self._heads[place].encoding).name]

    def _part(self, paths: Sequence[Path], head: Head, typed: Mapping[str, str] = _AS_TEXT) -> str:
        types = {name: typed.get(name, "VARCHAR") for name in head.columns}
        options = {
            "header": "true",
            "auto_detect": "false",
            "delim": literal(head.delimiter),
            "quote": literal(head.quote),
            "escape": literal(head.quote),
            "encoding": literal(self._encoding(self._paths.index(paths[0]))),
            "decimal_separator": literal(self._guess.decimal),
            "nullstr": f"[{', '.join(map(literal, ('', *self._source.missing)))}]",
            "columns": "{" + ", ".join(f"{literal(name)}: '{kind}'" for name, kind in types.items()) + "}",
        }
        listed = ", ".join(literal(str(path)) for path in paths)
        return f"read_csv([{listed}], {', '.join(f'{name} = {value}' for name, value in options.items())})"

    def _readable(self, place: int, *, rewrite: bool = False) -> Path:
        """A file that DuckDB reads: the same, or its text in UTF-8 with the heading in its first line."""
        file, head = self._texts.files[place], self._heads[place]
        ending = file.path.suffix
        unpacked = ending in (".gz", ".zst") or ending.lower() not in COMPRESSED  # by DuckDB, which knows these two
        if unpacked and codecs.lookup(head.encoding).name in _DUCKDB_READS and not head.skip and not rewrite:
            return file.path
        copy = self._texts.target.with_name(f"{self._texts.target.stem}-{place}.csv")
        try:
            with (
                open_text(file.path, head.encoding, newline=None if rewrite else "") as text,
                copy.open("w", encoding="utf-8", newline="") as out,
            ):
                for _ in range(head.skip):
                    text.readline()
                while piece := text.read(1 << 22):
                    out.write(piece.lstrip("\ufeff"))
        except UnicodeError as error:
            raise not_in(file.named, head.encoding) from error
        except DAMAGED as error:
            raise damaged(file.named, error) from error
        return copy

    def _value(self, name: str, cast: str = "CAST") -> str:
        """The expression for a column as it is kept."""
        role, text, guess = self._wanted.role(name), quoted(name), self._guess
        if name in self._whole:
            as_number = f"CAST({text} AS BIGINT)"
            return f"CASE WHEN CAST({as_number} AS VARCHAR) <> {text} THEN error('') ELSE {as_number} END"
        given = self._given(name)
        if name in self._dated:
            return day(given, guess.dates, cast)
        if role == "text":
            return text
        if name in self._unmarked:
            marked = " OR ".join(f"contains({text}, {literal(mark)})" for mark in _CALLED)
            return f"CASE WHEN {marked} THEN error('') ELSE CAST({given} AS DOUBLE) END"
        return truth(given, cast) if role == "truth" else number(given, guess.thousands, guess.decimal, cast)

    def _given(self, name: str) -> str:
        """The expression for what is written in a column, without blanks around it; nothing where no value is meant."""
        marks = ", ".join(map(literal, ("", *self._source.missing)))
        return f"CASE WHEN trim({quoted(name)}) NOT IN ({marks}) THEN trim({quoted(name)}) END"

    def _parts(self) -> list[tuple[OnDisk, str]]:
        """Every file, and the rows of it."""
        return [
            (file, self._part([path], head))
            for file, path, head in zip(self._texts.files, self._paths, self._heads, strict=True)
        ]

    def _first(self, part: str, name: str, condition: str, value: str = "NULL") -> tuple[int, int, Any]:
        """The first row of a file of which something is true, the number of such rows, and a value of the first."""
        rows = f"SELECT row_number() OVER () AS _row, {quoted(name)} FROM {part}"
        asked = f"SELECT coalesce(min(_row), 0), count(*), arg_min({value}, _row) FROM ({rows}) WHERE {condition}"
        row, times, found = self._texts.con.execute(asked).fetchone() or (0, 0, None)
        return row, times, found

    def _explain(self, error: Exception) -> None:
        """Say what is wrong where, and quote nothing."""
        for place, file in enumerate(self._texts.files):
            try:
                part = self._part([self._paths[place]], self._heads[place])
                counted = ", ".join(f"count({quoted(name)})" for name in self._chosen)
                self._texts.con.execute(f"SELECT {counted} FROM {part}")
                for name in self._chosen:
                    self._explain_column(file.named, part, name)
            except DataError:
                raise
            except Exception as inner:
                raise self._unreadable(place, str(inner)) from error

    def _unreadable(self, place: int, said: str) -> DataError:
        file, head = self._texts.files[place], self._heads[place]
        line = re.search(r"Line: (\d+)", said)
        where = f"{file.named}, line {int(line[1]) + head.skip:,}" if line else file.named
        if any(sign in said.lower() for sign in ("unicode", "utf-8 encoded", "latin-1 encoded")):
            return not_in(where, head.encoding)
        counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said)
        return DataError(
            where,
            expected=f"{counts[1]} columns, as in the heading" if counts else "a line that can be read",
            found=f"{counts[2]}"
            if counts
            else "a quote that does not end"
            if "unterminated" in said
            else "one that cannot",
            do="mend the line; a text with the delimiter or a quote in it needs quotes around it",
        )

    def _explain_column(self, named: str, part: str, name: str) -> None:
        if self._wanted.role(name) == "text" and name not in self._dated:
            return
        bad = f"{self._given(name)} IS NOT NULL AND ({self._value(name, cast='TRY_CAST')}) IS NULL"
        row, times, _ = self._first(part, name, bad)
        if not times:
            return
        expected, written = f"a number, with {self._guess.decimal} before decimals", 'decimal = ",", thousands = ".", '
        if self._texts.of_database:  # it writes numbers in one way, so that only texts can be written in another
            written = f"query = \"SELECT …, replace({name}, ',', '.') AS {name} FROM …\", "
        if name in self._dated:
            expected = f"a date from {YEARS[0]} to {YEARS[-1]}, written as {self._guess.dates} is"
            written = "" if self._source.dates else 'dates = "31.03.26", '
        if self._wanted.role(name) == "truth":
            expected, written = "true or false", ""
        raise DataError(
            f"{named}, column '{name}', row {row:,} below the heading",
            expected=expected,
            found=f"something else{and_others(times)}",
            do=f'correct it, or say how it is written: {written}missing = ["NA"]',
        )


def and_others(times: int) -> str:
    """How many rows have it besides the first.

    >>> and_others(1), and_others(2), and_others(1500)
    ('', ', there and in 1 other row', ', there and in 1,499 other rows')
    """
    return "" if times == 1 else f", there and in {times - 1:,} other row{'s' if times > 2 else ''}"


def not_told(where: str, row: int, times: int, mark: str, do: str = "") -> DataError:
    """Say that 1.250 may be a thousand and more, or one and some decimals."""
    return DataError(
        f"{where}, row {row:,} below the heading",
        expected=f"numbers that tell whether a {_CALLED[mark]} groups thousands or comes before decimals",
        found=f"one {_CALLED[mark]} before the last three digits{and_others(times)}, and no number that tells it",
        do=do or f'say which it is: thousands = "{mark}" or decimal = "{mark}"',
    )


def _has_plain_numbers(path: Path, head: Head) -> bool:
    """Whether no field of a file has a number with leading zeros, blanks, a plus, a point or an exponent.

    In doubt it has: a code such as 01 in any column lets whole numbers be compared with their texts, which is slower.
    """
    if path.suffix.lower() in COMPRESSED or len(head.delimiter.encode()) > 1 or len(head.quote.encode()) > 1:
        return False
    ends = [ord(sign) for sign in ("\n", "\r", head.delimiter, head.quote) if sign]
    odd = [ord(sign) for sign in "._eE +\t" if sign != head.delimiter]
    with path.open("rb", buffering=0) as file:
        left = b"\n"
        while piece := file.read(1 << 20):
            read = np.frombuffer(left + piece + b"\n" if len(piece) < 1 << 20 else left + piece, dtype=np.uint8)
            left = read[-2:].tobytes()
            is_end, is_odd = _among(read, ends), _among(read, odd)
            is_digit, is_zero = (read - np.uint8(48)) < 10, read == 48
            is_doubtful = is_end[:-2] & is_zero[1:-1] & ~is_end[2:]
            is_doubtful |= is_end[:-2] & (read[1:-1] == 45) & is_zero[2:]
            if is_doubtful.any() or (is_digit[:-1] & is_odd[1:]).any() or (is_odd[:-1] & is_digit[1:]).any():
                return False
    return True


def _among(read: Any, signs: Sequence[int]) -> Any:
    found = read == signs[0]
    for sign in signs[1:]:
        found |= read == sign
    return found


# Expressions of DuckDB for what texts stand for.


def whole(text: str) -> str:
    """The whole number that a text is the usual text of."""
    number = f"TRY_CAST({text} AS BIGINT)"
    return f"CASE WHEN CAST({number} AS VARCHAR) = {text} THEN {number} END"


def number(given: str, thousands: str, decimal: str, cast: str = "CAST") -> str:
    """The number that a text stands for; one that is not understood is an error."""
    if thousands == " ":
        given = f"replace(replace({given}, chr(160), ' '), chr(8239), ' ')"
    if thousands:
        grouped = rf"[+-]?{GROUP}({re.escape(thousands)}\d{{3}})+({re.escape(decimal)}\d*)?"
        plain = rf"[+-]?\d+({re.escape(decimal)}\d*)?"
        fits = f"regexp_full_match({given}, {literal(f'{grouped}|{plain}')})"
        bare = f"replace({given}, {literal(thousands)}, '')"
        given = f"CASE WHEN {fits} THEN {bare} WHEN {given} IS NOT NULL THEN '?' END"
    if decimal == ",":
        given = f"replace(CASE WHEN contains({given}, '.') THEN '?' ELSE {given} END, ',', '.')"
    return f"{cast}({given} AS DOUBLE)"


def day(given: str, shown: str, cast: str = "CAST") -> str:
    """The day that a text stands for; one that is not understood, or of a year that nobody means, is an error."""
    formats = [date_format(shown) + time for time in ("", " %H:%M:%S", "T%H:%M:%S", " %H:%M")]
    parsed = f"CAST(try_strptime({given}, [{', '.join(map(literal, formats))}]) AS DATE)"
    otherwise = f"WHEN {given} IS NOT NULL THEN CAST(error('') AS DATE)" if cast == "CAST" else ""
    return f"CASE WHEN year({parsed}) BETWEEN {YEARS[0]} AND {YEARS[-1]} THEN {parsed} {otherwise} END"


def truth(given: str, cast: str = "CAST") -> str:
    """True or false in the words that are usual; another word is an error."""
    words = {"true": ("true", "t", "yes", "y", "1"), "false": ("false", "f", "no", "n", "0")}
    known = " ".join(
        f"WHEN lower({given}) IN ({', '.join(map(literal, listed))}) THEN {value}" for value, listed in words.items()
    )
    return f"CASE {known} WHEN {given} IS NOT NULL THEN {cast}({given} AS BOOLEAN) END"


def quoted(name: str) -> str:
    """The name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"
