"""How a table is read: what the release file says of its files, and what is guessed from their beginning and told."""

import codecs
import lzma
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sfumato.errors import DataError
from sfumato.frame.sources import Format, Role, Source
from sfumato.frame.texts import (
    HEAD,
    bytes_of,
    fitting_dates,
    fitting_marks,
    guess_dates,
    guess_delimiter,
    guess_encoding,
    guess_heading,
    guess_marks,
    lines_of,
    numbered,
    tell_marks,
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The columns of a table that are read, and what each is for."""

    named: str
    """What messages call the table."""
    roles: Mapping[str, Role]
    patterns: Sequence[str] = ()
    """Of further columns that are weights."""
    dated: Mapping[str, str] = field(default_factory=dict)
    """Columns with periods, which may be dates, each with a period as it is written."""
    classed: frozenset[str] = frozenset()
    """Columns of which classes of numbers are made: numbers, also where they are texts because they have codes."""
    heads: frozenset[str] = frozenset()
    """Columns that count workers, in whole numbers."""

    def role(self, column: str) -> Role | None:
        """What a column is for; None where it is not wanted."""
        matches = column in self.patterns or any(fnmatchcase(column, pattern) for pattern in self.patterns)
        return self.roles.get(column, "weight" if matches else None)

    def is_known(self, column: str) -> bool:
        """Whether a column is wanted."""
        return self.role(column) is not None


@dataclass(frozen=True, kw_only=True)
class Guess:
    """How a table is read: what the release file says, and what was guessed from the beginning of its files."""

    format: Format
    columns: tuple[str, ...]
    delimiter: str = ""
    quote: str = ""
    encoding: str = ""
    decimal: str = "."
    thousands: str = ""
    dates: str = ""
    skip: int = 0
    sheet: str = ""
    guessed: tuple[str, ...] = ()
    """The options that the release file does not give."""
    content: str = ""
    """A digest of what a database answered, which no time of a file tells."""

    def facts(self) -> dict[str, Any]:
        """How the table is read, as fields."""
        told = {name: getattr(self, name) for name in _TOLD.get(self.format, ())}
        unsaid = {"dates": "", "skip": 0}
        said = {name: value for name, value in told.items() if name not in unsaid or value != unsaid[name]}
        return {"format": self.format, **said, "guessed": [name for name in said if name in self.guessed]}

    def in_words(self) -> str:
        """How the table is read, and what of that was guessed.

        >>> Guess(format="csv", columns=("id",), delimiter="\\t", encoding="utf-8", guessed=("delimiter",)).in_words()
        'csv with delimiter tab (guessed), encoding utf-8, decimal ., thousands none'
        """
        signs = {"\t": "tab", " ": "blank", "": "none"}
        told = [
            f"{name} {signs.get(value, value)}{' (guessed)' if name in self.guessed else ''}"
            for name, value in self.facts().items()
            if name not in ("format", "guessed")
        ]
        return f"{self.format}{' with ' if told else ''}{', '.join(told)}"


_TOLD: dict[Format, tuple[str, ...]] = {
    "csv": ("delimiter", "encoding", "decimal", "thousands", "dates", "skip"),
    "excel": ("sheet", "skip"),
}


@dataclass(frozen=True, kw_only=True)
class OnDisk:
    """A file, and what messages call it."""

    named: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class Head:
    """The beginning of a text: how it is written, the names of its columns, and its first rows."""

    encoding: str
    delimiter: str
    quote: str
    skip: int
    """Lines before the heading."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = field(repr=False)

    def values(self, column: str, missing: Sequence[str] = ()) -> list[str]:
        """What the first rows have in a column, but for words that stand for no value."""
        at = self.columns.index(column)
        found = (row[at].strip() for row in self.rows if at < len(row))
        return [value for value in found if value and value not in missing]


def read_head(path: Path, named: str, source: Source, wanted: Wanted) -> Head:
    """Look at the beginning of a text; what the options of the source do not say is guessed.

    Nothing but the file is needed: `read_head(path, path.name, Source(path=path.name), Wanted(named="", roles={}))`.
    """
    try:
        with bytes_of(path) as content:
            head = content.read(HEAD)
    except DAMAGED as error:
        raise damaged(named, error) from error
    encoding = source.encoding or guess_encoding(head)
    try:
        codecs.lookup(encoding)
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except (LookupError, UnicodeError) as error:
        raise not_in(
            named, encoding, "an encoding that is not known" if isinstance(error, LookupError) else ""
        ) from error
    lines = lines_of(text.lstrip("\ufeff"))
    lines = (lines[:-1] if len(head) == HEAD else lines)[source.skip or 0 :]
    quote = '"' if source.quote is None else source.quote
    delimiter = source.delimiter or guess_delimiter(lines, quote, wanted.is_known)
    rows = numbered(lines, delimiter, quote)
    first = guess_heading([row for row, _ in rows], wanted.is_known) if source.skip is None else 0
    first = next((at for at, (row, _) in enumerate(rows) if at >= first and row), -1)
    if first < 0:
        raise DataError(
            named, expected="a heading with the names of the columns", found="an empty file", do="check the file"
        )
    columns = tuple(name.strip() for name in rows[first][0])
    refuse_repeated(columns, wanted, named)
    return Head(
        encoding=encoding,
        delimiter=delimiter,
        quote=quote,
        skip=(source.skip or 0) + (rows[first - 1][1] if first else 0),
        columns=tuple(_told_apart(columns)),
        rows=tuple(tuple(row) for row, _ in rows[first + 1 :] if row),
    )


def _told_apart(columns: Sequence[str]) -> list[str]:
    """Names of columns, each once: engines match them without regard to case."""
    known: dict[str, str] = {}
    for place, name in enumerate(columns, 1):
        own = name if name and name.casefold() not in known else f"{name or 'column'} ({place})"
        known[own.casefold()] = own
    return list(known.values())


def guess_text(heads: Sequence[Head], source: Source, wanted: Wanted) -> Guess:
    """How a table of texts is written, from the beginning of all its files."""
    columns = [name for name in heads[0].columns if wanted.role(name)]
    numbers = [name for name in columns if wanted.role(name) in ("number", "weight")]
    texts = [name for name in columns if name in wanted.classed and name not in numbers]
    values, more = values_of(heads, numbers, source), values_of(heads, texts, source)
    # Classes are of numbers as well; but what is none there must not decide how measures are read.
    marks = fitting_marks([*values, *more], source.thousands, source.decimal)
    thousands, decimal = marks or guess_marks(values, source.thousands, source.decimal)
    dates = source.dates or guess_dates(values_of(heads, dated_columns(heads, source, wanted), source))
    options = {"delimiter", "encoding", "skip", *(("decimal", "thousands") if numbers or texts else ()), "dates"}
    return Guess(
        format="csv",
        columns=heads[0].columns,
        delimiter=heads[0].delimiter,
        quote=heads[0].quote,
        encoding=heads[0].encoding,
        decimal=decimal,
        thousands=thousands,
        dates=dates or "",
        skip=heads[0].skip,
        guessed=tuple(sorted(name for name in options if getattr(source, name) is None)),
    )


def values_of(heads: Sequence[Head], columns: Sequence[str], source: Source) -> list[str]:
    """What the first rows of all files have in some columns."""
    there = [(head, name) for head in heads for name in columns if name in head.columns]
    return [value for head, name in there for value in head.values(name, source.missing)]


def marks_told(heads: Sequence[Head], source: Source, numbers: Sequence[str]) -> bool:
    """Whether the release file or the beginning of the files tells what groups digits and what comes before decimals.

    Either option is enough: what does not stand before decimals groups digits.
    """
    said = source.thousands is not None or source.decimal is not None
    return said or tell_marks(values_of(heads, numbers, source))


def dated_columns(heads: Sequence[Head], source: Source, wanted: Wanted) -> list[str]:
    """The columns of periods that have dates, in most of their rows: what else they have is then told with its row."""
    found = []
    for name in wanted.dated:
        values = values_of(heads, [name], source)
        look_dated = sum(bool(re.fullmatch(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}.*", value)) for value in values)
        as_shown = source.dates is not None and 2 * sum(len(value) == len(source.dates) for value in values)
        if values and max(2 * look_dated, as_shown) > len(values):
            found.append(name)
    return found


def dates_not_told(heads: Sequence[Head], source: Source, column: str, named: str) -> DataError:
    """Ask how the dates of a column are written."""
    several = fitting_dates(values_of(heads, [column], source))
    return DataError(
        f"{named}, column '{column}'",
        expected="dates of which can be told what is the day and what the month"
        if several
        else "dates written as 2026-03-31, 31.03.2026 or 31/03/2026, or told how they are",
        found="dates that may be read in several ways" if several else "dates that are written in another way",
        do=f'write how 31 March 2026 is written there, such as dates = "{several[0] if several else "31.03.26"}"',
    )


def refuse_repeated(heading: Sequence[str], wanted: Wanted, named: str) -> None:
    """Refuse a column that is needed and is there several times."""
    repeated = sorted({name for name in heading if heading.count(name) > 1 and wanted.role(name)})
    if repeated:
        raise DataError(
            named,
            expected="every column once",
            found=f"{_quoted(repeated[0], wanted)} several times",
            do="rename one of them; or add a heading, where the first row is a record",
        )


def refuse_other_columns(files: Sequence[OnDisk], headings: Sequence[Sequence[str]], wanted: Wanted) -> None:
    """Refuse files of one table of which one lacks a column that others have.

    Its first row may be a record, and is not quoted.
    """
    own = [{name for name in heading if wanted.role(name)} for heading in headings]
    everywhere = set[str]().union(*own)
    for at in (*range(1, len(files)), 0):  # where nothing is known of names, the first file is the pattern
        lacking = everywhere - own[at]
        if not lacking:
            continue
        named = [name for name in wanted.roles if name in lacking]
        others = [f"{len(lacking) - len(named):,} of other names"] if len(lacking) > len(named) else []
        alone = not any(own[at] & known for place, known in enumerate(own) if place != at)
        seems = f"and none of these: {'it' if wanted.roles else 'one of the files'} seems to have no heading"
        raise DataError(
            files[at].named,
            expected=f"the columns that other files of the table have: {', '.join([*named, *others])}",
            found=f"a file with {len(headings[at]):,} columns {seems if alone else 'and without these'}",
            do="add the heading where the first row is a record, or make the headings alike",
        )


def _quoted(name: str, wanted: Wanted) -> str:
    """A name that a release file has; any other may be the value of a record, in a file without a heading."""
    return f"'{name}'" if name in wanted.roles else "a name"


DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error)
"""What is raised when a file cannot be read to its end."""


def damaged(named: str, error: BaseException) -> DataError:
    """Say that a file cannot be read to its end."""
    return DataError(
        named, expected="a file that can be read to its end", found=str(error), do="copy it again, or write it anew"
    )


def not_in(named: str, encoding: str, found: str = "") -> DataError:
    """Say that letters are not written as was said or guessed."""
    return DataError(
        named,
        expected=f"letters in {encoding}",
        found=found or "bytes that are none",
        do='write how the file was saved, such as encoding = "utf-8", "latin-1" or "windows-1252"',
    )
