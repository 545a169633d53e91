"""Columns that a release file names and its files lack: told with those that the files have, as they are called there.

Names of columns are no confidential values. A file without a heading has a record where they are, so names that look
like values are told only where the release file has them too: readers refuse most of such files before.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from sfumato.engine.query import Rows
from sfumato.errors import DataError
from sfumato.frame.sources import written
from sfumato.frame.workbooks import sheets_of

_MOST = 40
"""More names than these are no help in a message; those spelt like the one that lacks are told whatever their place."""
_VALUE = re.compile(r"[-+]?[.,]?\d[\d.,' ]*|\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ][\d:.]+)?")
"""Numbers and dates, which are seldom names."""
_YEAR = re.compile(r"(19|20)\d\d")


def columns_in_words(table: Rows, near: str = "") -> str:
    """The columns of the files of a table; of very many some, with those that are spelt like a name."""
    names = _told(table)
    if len(names) <= _MOST:
        return ", ".join(names)
    shown = dict.fromkeys([*_near(near, names), *names[:_MOST]])
    return f"{', '.join(shown)} and {len(names) - len(shown):,} others"


def need(table: Rows, holder: str, column: str, *, called: str | None = None) -> None:
    """Refuse a table without a column that the release file names, which may be called otherwise in the file."""
    if column not in table.columns:
        name = written(column) if called is None else called
        raise no_column(f"{holder}, column '{name}'", name, {holder: table})


def no_column(where: str, name: str, tables: Mapping[str, Rows], *, expected: str = "", also: str = "") -> DataError:
    """An error for a column that is in none of some tables, with those that are spelt like it."""
    listed = (
        f"the columns {columns_in_words(table, name)}" + (f" in {holder}" if len(tables) > 1 else "")
        for holder, table in tables.items()
    )
    near = " or ".join(map(repr, _near(name, [column for table in tables.values() for column in _told(table)])))
    return DataError(
        where,
        expected=expected or f"a column '{name}'",
        found="; ".join(listed),
        do=f"{f'did you mean {near}? Correct' if near else 'correct'} the name in the release file{also}, or the file",
    )


def no_heading(where: str, names: Sequence[str], sheet: str, path: Path) -> DataError:
    """An error for a file that has none of the columns that are named: what it has may be a record, and is not told."""
    some = f", such as {', '.join(names[:4])}" if names else ""
    others = [one for one in sheets_of(path) if one != sheet] if sheet else []
    return DataError(
        where + (f", sheet '{sheet}'" if sheet else ""),
        expected=f"a heading with names of columns{some}",
        found="none of the columns that the release file names" if some else "numbers",
        do=(f"name another sheet with `sheet`: {', '.join(others)}; or " if others else "")
        + "add the heading, correct the names, or say with `skip` how many rows are above it",
    )


def _told(table: Rows) -> list[str]:
    """The names of columns that may be told: where one looks like a value, only those that the release file has."""
    known = [written(name) for name in table.columns if not name.startswith("_")]
    if any(_VALUE.fullmatch(name) and not _YEAR.fullmatch(name) for name in table.in_files):
        return [name for name in table.in_files if name in known]
    return list(table.in_files) or known


def _near(name: str, known: Sequence[str]) -> list[str]:
    """Names that are spelt like another, whatever their case."""
    spelt = {one.casefold(): one for one in known}
    return [spelt[one] for one in get_close_matches(name.casefold(), spelt, n=2)]
