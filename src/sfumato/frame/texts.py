"""How a text is written: what its bytes tell of encoding, delimiter and the marks in numbers."""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

HEAD = 1 << 18
"""Bytes at the beginning of a text from which is guessed how it is written."""
DELIMITERS = (",", ";", "\t", "|")
_MARKS = (("", "."), ("", ","), (",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("'", ","))
"""What may group digits and stand before decimals, in the order in which they are tried."""


@contextmanager
def bytes_of(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, not compressed any more."""
    opened: dict[str, Callable[[Path], Any]] = {
        ".gz": gzip.open,
        ".bz2": bz2.open,
        ".xz": lzma.open,
        ".zst": _zstd,
    }
    plainly: Callable[[Path], Any] = partial(Path.open, mode="rb")
    with opened.get(path.suffix.lower(), plainly)(path) as content:
        yield content


def _zstd(path: Path) -> Any:
    import pyarrow as pa

    opened: Any = pa.CompressedInputStream
    return opened(pa.OSFile(str(path)), "zstd")


@contextmanager
def open_text(path: Path, encoding: str, newline: str | None = "") -> Iterator[IO[str]]:
    """A text file, whatever its encoding and compression; ends of lines as they are, or all the same for None."""
    with bytes_of(path) as content, io.TextIOWrapper(content, encoding=encoding, newline=newline) as text:
        yield text


def guess_encoding(head: bytes) -> str:
    """How the letters of a text are written, from its beginning.

    >>> guess_encoding("Büro".encode("latin-1")), guess_encoding("Büro".encode()), guess_encoding(b"\\x80 5")
    ('latin-1', 'utf-8', 'windows-1252')
    """
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "windows-1252" if re.search(rb"[\x80-\x9f]", head) else "latin-1"
    return "utf-8"


_PREAMBLE = 30
"""Rows among which the heading is looked for."""


def guess_delimiter(lines: Sequence[str], quote: str, is_known: Callable[[str], bool]) -> str:
    """The sign that finds most columns that are known, then cuts lines alike, then into most columns."""

    def fit(sign: str) -> tuple[int, bool, int]:
        rows = split(lines[:200], sign, quote)
        at = guess_heading(rows, is_known)
        heading = [name.strip() for name in rows[at]] if rows else []
        alike = len({len(row) for row in rows[at:] if row}) == 1
        return sum(map(is_known, heading)), alike, len(heading)

    return max(DELIMITERS, key=fit)


def guess_heading(rows: Sequence[Sequence[str]], is_known: Callable[[str], bool]) -> int:
    """The row with the names of the columns: of the first ones that with most known names, or as many as most rows.

    >>> guess_heading([["Jobs 2026"], [], ["id", "place"], ["1", "A"]], {"id", "place"}.__contains__)
    2
    """
    widths = Counter(len(row) for row in rows if row)
    usual = max(widths, key=lambda width: (widths[width], width), default=0)

    def fit(place: int) -> tuple[int, bool, int]:
        return sum(is_known(name.strip()) for name in rows[place]), len(rows[place]) == usual, -place

    return max(range(min(len(rows), _PREAMBLE)), key=fit, default=0)


def guess_marks(values: Sequence[str], thousands: str | None = None, decimal: str | None = None) -> tuple[str, str]:
    """What groups digits and what stands before decimals: the first choice that all numbers fit, or else most.

    >>> guess_marks(["1.200,50", "3,25"]), guess_marks(["1200.5"]), guess_marks(["3,25", "4,5", "4,5x"])
    (('.', ','), ('', '.'), ('', ','))
    """
    found = fitting_marks(values, thousands, decimal)
    if found is not None:
        return found
    values = [bare_blanks(value) for value in values]
    choices = {marks: _number(*marks) for marks in _choices(thousands, decimal)}
    return max(choices, key=lambda marks: sum(choices[marks].fullmatch(value) is not None for value in values))


def fitting_marks(
    values: Sequence[str], thousands: str | None = None, decimal: str | None = None
) -> tuple[str, str] | None:
    """The same, or None where texts are no numbers, however they are read.

    >>> fitting_marks(["12", "3 rooms"]) is None
    True
    """
    values = [bare_blanks(value) for value in values]
    for marks in _choices(thousands, decimal):
        pattern = _number(*marks)
        if all(pattern.fullmatch(value) for value in values):
            return marks
    return None


def _choices(thousands: str | None, decimal: str | None) -> list[tuple[str, str]]:
    return [marks for marks in _MARKS if thousands in (None, marks[0]) and decimal in (None, marks[1])]


def _number(grouping: str, point: str) -> re.Pattern[str]:
    grouped = rf"[+-]?{GROUP}({re.escape(grouping)}\d{{3}})+|" if grouping else r"[+-]?\d*|"
    return re.compile(rf"({grouped}[+-]?\d+)({re.escape(point)}\d*)?([eE][+-]?\d+)?")


GROUP = r"(?:[1-9]\d{0,2}|0\d{1,2})"
"""The digits before the first mark between thousands: nobody groups those of 0.125."""
GROUP_OR_DECIMALS = r"[+-]?[1-9]\d{0,2}[.,]\d{3}"
"""A number that may be a thousand and more, or one and some decimals: 1.250."""
MARKS = "., '\u00a0\u202f"
"""All marks, blanks at which no line is broken too."""


def tell_marks(values: Iterable[str]) -> bool:
    """Whether any number tells what groups digits and what stands before decimals; 1.250 tells nothing.

    >>> tell_marks(["12", "1.250", "2,531"]), tell_marks(["1.250", "12,5"]), tell_marks(["1.250", "0.125"])
    (False, True, True)
    """
    untold = re.compile(f"[^{MARKS}]*|{GROUP_OR_DECIMALS}")
    return any(not untold.fullmatch(value) and fitting_marks([value]) is not None for value in values)


def bare_blanks(value: str) -> str:
    """A number with plain blanks in the place of those at which no line is broken."""
    return value.replace("\u00a0", " ").replace("\u202f", " ")


def guess_dates(values: Sequence[str]) -> str | None:
    """How most dates are written, shown by 31 March 2026; None where values are no dates, or days may be months.

    >>> guess_dates(["2026-01-01"]), guess_dates(["13/01/2026", "02/01/2026"]), guess_dates(["01/02/2026"])
    ('2026-03-31', '31/03/2026', None)
    """
    found = fitting_dates(values)
    return found[0] if len(found) == 1 else None


def fitting_dates(values: Sequence[str]) -> list[str]:
    """The ways of writing dates that fit most values, several where days may be months.

    >>> fitting_dates(["01/02/2026", "35/01/2026"]), fitting_dates(["31-03-2026"])
    (['31/03/2026', '03/31/2026'], [])
    """
    fitting = {shown: sum(map(bool, map(pattern.fullmatch, values))) for shown, pattern in _DATES.items()}
    most = max(fitting.values())
    return [shown for shown, times in fitting.items() if most and times == most]


_DAY, _MONTH_NUMBER, _YEAR = r"(0?[1-9]|[12]\d|3[01])", r"(0?[1-9]|1[0-2])", r"[12]\d{3}"
_TIME = r"([ T]\d{2}:\d{2}(:\d{2})?)?"
_DATES = {
    "2026-03-31": re.compile(f"{_YEAR}-{_MONTH_NUMBER}-{_DAY}{_TIME}"),
    "31.03.2026": re.compile(rf"{_DAY}\.{_MONTH_NUMBER}\.{_YEAR}{_TIME}"),
    "31/03/2026": re.compile(f"{_DAY}/{_MONTH_NUMBER}/{_YEAR}{_TIME}"),
    "03/31/2026": re.compile(f"{_MONTH_NUMBER}/{_DAY}/{_YEAR}{_TIME}"),
}


def lines_of(text: str) -> list[str]:
    """The lines of a text, which only line feeds and carriage returns end."""
    return list(io.StringIO(text, newline=""))


def split(lines: Iterable[str], delimiter: str, quote: str) -> list[list[str]]:
    """The fields of the rows of a text, as far as they can be told; a row without any is empty."""
    return [row for row, _ in numbered(lines, delimiter, quote)]


def numbered(lines: Iterable[str], delimiter: str, quote: str) -> list[tuple[list[str], int]]:
    """The fields of every row, and the lines up to its end: a field in quotes may have several."""
    if quote:
        reader = csv.reader(lines, delimiter=delimiter, quotechar=quote)
    else:
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    found: list[tuple[list[str], int]] = []
    with suppress(csv.Error):  # a text that is cut at its end, or has another delimiter
        found.extend((row, reader.line_num) for row in reader)
    return found
