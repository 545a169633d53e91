"""Sheets of workbooks, for data and for codelists."""

import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

from sfumato.errors import SfumatoError

_CELL = re.compile(rb'<c\b[^>]*?\br="([A-Z]{1,3})(\d{1,7})"')
_ERROR = re.compile(rb'<c\b(?=[^>]*\bt="e")[^>]*?\br="([A-Z]{1,3})(\d{1,7})"')
_SHEET = re.compile(rb"<(?:\w+:)?sheet\b[^>]*>")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\b[^>]*>")
_PIECE = 1 << 22
_OVERLAP = 256
_EMPTY = 50
"""Cells that a sheet may span for each that is filled, once it spans more than a few million."""
_FEW = 5_000_000
_LOOKED_AT = 100
"""Rows of a sheet that tell whether it is a table."""
_LARGEST = 1 << 32
"""Bytes of a sheet, not compressed any more."""


class Sheet(NamedTuple):
    """A sheet that was read: its name, and its rows from the first one on."""

    name: str
    rows: list[list[Any]]


def read_sheet(path: Path, named: str, wanted: str | None, error: type[SfumatoError]) -> Sheet:
    """Read a sheet of a workbook, the first when none is named; what is wrong is an error of the given class."""
    from python_calamine import CalamineError, CalamineWorkbook, WorksheetNotFound

    names: Sequence[str] = ()
    try:
        _refuse_spread(path, named, error)
        book = CalamineWorkbook.from_path(path)
        names = book.sheet_names
        chosen = wanted or names[0]
        return Sheet(chosen, book.get_sheet_by_name(chosen).to_python(skip_empty_area=False))
    except WorksheetNotFound as missing:
        raise error(named, expected=f"the sheet '{wanted}'", found=", ".join(names), do="correct `sheet`") from missing
    except (CalamineError, OSError, IndexError, BadZipFile) as unreadable:
        raise error(
            named,
            expected="a workbook that can be read, with a sheet",
            found="one that cannot",
            do="save the file again, or as CSV",
        ) from unreadable


def cells_with_errors(path: Path, sheet: str) -> list[tuple[int, int]]:
    """The row and column, from 0 on, of every cell of a sheet with the error of a formula, such as #DIV/0!.

    What reads workbooks hands such cells over as empty ones. Only files of Excel since 2007 tell where they are.
    """
    if path.suffix.lower() not in (".xlsx", ".xlsm"):
        return []
    found: set[tuple[int, int]] = set()
    with ZipFile(path) as parts:
        for part in _parts_of(parts, sheet):
            before = b""
            with parts.open(part) as text:
                while piece := text.read(_PIECE):
                    if b't="e"' in (read := before + piece):
                        found |= {(int(cell[2]) - 1, _number(cell[1]) - 1) for cell in _ERROR.finditer(read)}
                    before = piece[-_OVERLAP:]
    return sorted(found)


def _parts_of(parts: ZipFile, sheet: str) -> list[str]:
    """The part of a workbook that has a sheet; all sheets, where that is not told in the usual way."""
    names = parts.namelist()
    listed, relations = (
        found.findall(parts.read(part)) if part in names else []
        for found, part in ((_SHEET, "xl/workbook.xml"), (_RELATION, "xl/_rels/workbook.xml.rels"))
    )
    own = {_attribute(one, rb"\w+:id") for one in listed if _attribute(one, b"name") == sheet}
    targets = [_attribute(one, b"Target") for one in relations if _attribute(one, b"Id") in own]
    found = [target[1:] if target.startswith("/") else f"xl/{target}" for target in targets]
    known = [part for part in found if part in names]
    return known or [name for name in names if re.fullmatch(r"xl/worksheets/[^/]+\.xml", name)]


def _attribute(element: bytes, name: bytes) -> str:
    found = re.search(rb"\s" + name + rb"""=(?:"([^"]*)"|'([^']*)')""", element)
    return "" if found is None else unescape((found[1] or found[2] or b"").decode())


def sheets_of(path: Path) -> dict[str, int]:
    """The sheets of a workbook, each with how many rows of it have several cells, as those of tables have.

    None where the file cannot be read: whoever reads its rows says why.
    """
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        book = CalamineWorkbook.from_path(path)
        rows = {name: book.get_sheet_by_name(name).to_python(nrows=_LOOKED_AT) for name in book.sheet_names}
    except (CalamineError, OSError, BadZipFile):
        return {}
    return {name: sum(sum(cell != "" for cell in row) > 1 for row in found) for name, found in rows.items()}


def _refuse_spread(path: Path, named: str, error: type[SfumatoError]) -> None:
    """Refuse a sheet with cells far from all others: it is read as one rectangle, which would fill the memory."""
    if path.suffix.lower() not in (".xlsx", ".xlsm"):
        return
    with ZipFile(path) as parts:
        for part in parts.infolist():
            if not re.fullmatch(r"xl/worksheets/[^/]+\.xml", part.filename):
                continue
            filled = right = down = read = 0
            before = b""
            with parts.open(part) as text:
                while (piece := text.read(_PIECE)) and read <= _LARGEST:
                    read += len(piece)
                    for cell in _CELL.finditer(before + piece):
                        filled += 1
                        right, down = max(right, _number(cell[1])), max(down, int(cell[2]))
                    before = piece[-_OVERLAP:] if len(piece) == _PIECE else b""
            if read > _LARGEST or right * down > max(_FEW, _EMPTY * filled):
                raise error(
                    named,
                    expected="a sheet whose cells lie together",
                    found=f"{filled:,} cells over {down:,} rows and {right:,} columns",
                    do="delete what stands far from the table, or save the sheet as CSV",
                )


def _number(letters: bytes) -> int:
    """The number of a column.

    >>> _number(b"A"), _number(b"XFD")
    (1, 16384)
    """
    found = 0
    for letter in letters:
        found = found * 26 + letter - ord("A") + 1
    return found
