"""Where a table of the data is, and how its files are to be read: what an office has, as it has it."""

import codecs
import re
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self, get_args
from urllib.parse import unquote

from pydantic import AfterValidator, Field, field_validator, model_validator

from sfumato.description import Described

Format = Literal["parquet", "csv", "excel", "stata", "sas", "spss", "sqlite", "postgresql"]
Role = Literal["text", "number", "weight", "truth"]
"""What a column is for, which decides how it is read: keys, codes and periods are text, even where all are digits."""

_APART = "\u2060"
"""Stands, unseen, before the names of columns that begin with _, as those of our own do; for ever, as keys have it."""


def told_apart(column: str) -> str:
    """The name under which our tables have a column of a file: never that of a column of our own."""
    return f"{_APART}{column}" if column.startswith("_") else column


def written(name: str) -> str:
    """The name that a column has in its file.

    >>> written(told_apart("_id")), written(told_apart("id"))
    ('_id', 'id')
    """
    return name.removeprefix(_APART)


Column = Annotated[str, AfterValidator(told_apart)]
"""The name of a column that is used as it is: a key, a link, a weight, a period."""

_ENDINGS: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "excel",
    ".dta": "stata",
    ".sas7bdat": "sas",
    ".xpt": "sas",
    ".sav": "spss",
    ".zsav": "spss",
    ".por": "spss",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}
_ESCAPES = ("idna", "punycode", "raw-unicode-escape", "unicode-escape", "unicode_escape", "raw_unicode_escape")
"""What Python can decode and no file is written in."""
_SECRET = re.compile(r"://[^?]*:[^?]*@|password *=", re.IGNORECASE)
"""What has a password in an address, however it is written: before the machine, or as any of the options."""
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
"""Endings of compressed texts, behind the ending that says what they are."""


def format_of(path: str) -> Format | None:
    """The format that the name of a file or the address of a database tells; None where it tells none.

    >>> format_of("jobs/2026.csv.gz"), format_of("workers.SAV"), format_of("jobs")
    ('csv', 'spss', None)
    """
    if path.lower().startswith(("postgresql://", "postgres://")):
        return "postgresql"
    name = PurePosixPath(path).name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return _ENDINGS.get(PurePosixPath(name).suffix)


def date_format(shown: str) -> str:
    """How dates are written, as `strptime` wants it, out of how 31 March 2026 is written.

    >>> date_format("31.03.2026"), date_format("20260331"), date_format("31-Mar-26")
    ('%d.%m.%Y', '%Y%m%d', '%d-%b-%y')
    """
    signs = {"2026": "%Y", "March": "%B", "Mar": "%b", "03": "%m", "31": "%d", "26": "%y"}
    written = re.sub("|".join(signs), lambda found: signs[found[0]], shown)
    if not re.search("%[Yy]", written) or not re.search("%[mbB]", written) or re.search(r"\d", written):
        raise ValueError(f"`dates` shows how 31 March 2026 is written, such as 31.03.2026, and '{shown}' does not")
    return written


class Source(Described):
    """Where a table is, and how its files are to be read; what is not said is guessed, and `check` tells the guess."""

    path: str = Field(
        description="file, folder of files, or pattern such as jobs/*.parquet: Parquet, CSV, TSV, Excel, Stata, SAS, "
        "SPSS or SQLite; or an address: s3://office/jobs, postgresql://host/database"
    )
    format: Format | None = Field(
        None, description="what the files are, where their names do not end in .csv, .xlsx and the like"
    )
    delimiter: str | None = Field(
        None, min_length=1, max_length=1, description="what stands between the columns of a CSV file"
    )
    quote: str | None = Field(
        None, max_length=1, description='what stands around texts in a CSV file; " when not given'
    )
    encoding: str | None = Field(
        None,
        description="how a CSV file or a database of SQLite writes letters: utf-8, latin-1, windows-1252, utf-16",
    )
    decimal: Literal[".", ","] | None = Field(
        None, description="what stands before the decimals of numbers in a CSV file"
    )
    thousands: Literal[".", ",", " ", "'", ""] | None = Field(
        None, description="what groups the digits of large numbers in a CSV file; nothing when not given"
    )
    missing: tuple[str, ...] = Field(
        (), description='words that stand for no value, such as ["NA", "."]; an empty field always does'
    )
    dates: str | None = Field(
        None,
        description='how periods are written that are dates, shown by 31 March 2026: "2026-03-31", "31.03.2026", '
        '"03/31/2026", "20260331"; a date counts for the period that it falls in',
    )
    skip: int | None = Field(None, ge=0, description="lines of a CSV file or rows of a sheet before the heading")
    sheet: str | None = Field(None, description="sheet of an Excel file; the first when not given")
    table: str | None = Field(None, description="table of a database")
    query: str | None = Field(None, description="query to a database, in place of a table")

    @field_validator("dates")
    @classmethod
    def _shows_a_date(cls, dates: str | None) -> str | None:
        if dates is not None:
            date_format(dates)
        return dates

    @field_validator("encoding")
    @classmethod
    def _writes_letters(cls, encoding: str | None) -> str | None:
        try:
            codec = codecs.lookup(encoding or "utf-8")
        except LookupError:
            return encoding  # told with the file, whose letters are guessed otherwise
        try:
            letters = codec.name not in _ESCAPES and bool("id;1\n".encode(codec.name))
        except (LookupError, UnicodeError):
            letters = False
        if not letters:
            raise ValueError(f"'{encoding}' is no encoding of letters: write utf-8, latin-1, windows-1252 or utf-16")
        return encoding

    @model_validator(mode="after")
    def _options_fit(self) -> Self:
        found = self.format or format_of(self.path)
        if _SECRET.search(unquote(self.path)):
            elsewhere = (
                "PostgreSQL takes it from the file ~/.pgpass, from PGPASSWORD in the environment, or from a service: "
                "postgresql:///?service=register"
                if found == "postgresql"
                else "give credentials in the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
            raise ValueError(f"no password, as a release file is read by many: {elsewhere}")
        options: dict[str, tuple[Format, ...]] = dict.fromkeys(("delimiter", "quote"), ("csv",))
        options |= {"encoding": ("csv", "sqlite")}
        options |= dict.fromkeys(("decimal", "thousands", "skip"), ("csv", "excel"))
        options |= {"sheet": ("excel",), "dates": ("csv", "excel", "sqlite", "postgresql")}
        options |= {"missing": tuple(kind for kind in get_args(Format) if kind != "parquet")}
        options |= dict.fromkeys(("table", "query"), ("sqlite", "postgresql"))
        for option, formats in options.items():
            if getattr(self, option) and found is not None and found not in formats:
                raise ValueError(f"`{option}` is for {' and '.join(formats)} files, and '{self.path}' is {found}")
        if found in ("sqlite", "postgresql") and (self.table is None) == (self.query is None):
            raise ValueError(f"'{self.path}' is a database: give either `table` or `query`")
        if self.decimal is not None and self.decimal == self.thousands:
            raise ValueError("`decimal` and `thousands` are two different signs")
        return self


class Unit(Source):
    """A table with one row a unit, named by its key."""

    key: Column = Field(description="column that names each unit once")
