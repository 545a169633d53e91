"""Files among the data that are lists of codes: NACE, regions, occupations."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from sfumato.errors import UsageError
from sfumato.frame.codelists import CodelistFile
from sfumato.starting.look import Looked
from sfumato.starting.names import LABELS, WORKER, WORKPLACE, names_one, speaks_of

_MOST_COLUMNS, _MOST_ROWS = 6, 20_000
"""A list of codes has few columns, and seldom more rows than the largest classifications."""


def apart(looked: Sequence[Looked]) -> tuple[Sequence[Looked], dict[str, Looked]]:
    """The tables with data, and the lists of codes by the column that has these codes."""
    lists: dict[str, Looked] = {}
    for one in looked:
        others = [other for other in looked if other is not one and other not in lists.values()]
        found = next((column for other in others if (column := _coded_by(other, one)) is not None), None)
        if found is not None and found not in lists:
            lists[found] = one
    return [one for one in looked if one not in lists.values()], lists


def looks_like_a_list(table: Looked) -> bool:
    """Whether a table has codes that name its rows, and words for them."""
    small = 1 < len(table.columns) <= _MOST_COLUMNS and table.rows <= _MOST_ROWS
    words = any(speaks_of(name, LABELS) and not column.is_number for name, column in table.columns.items())
    return small and words and bool(_keys(table))


def _keys(table: Looked) -> list[str]:
    """The columns that may have the codes: each once, and not the words for them."""
    keyed = [name for name, column in table.columns.items() if column.is_key and column.may_name]
    return [name for name in keyed if not names_one(name, {*LABELS, *WORKER, *WORKPLACE})]


def _coded_by(table: Looked, listed: Looked) -> str | None:
    """The column of a table whose codes a list has, all or nearly all of them."""
    if not looks_like_a_list(listed):
        return None
    for name, column in table.columns.items():
        if not column.is_code or names_one(name, {*WORKER, *WORKPLACE}):
            continue
        if any(table.missing_from(name, listed, key) <= max(1, column.different // 20) for key in _keys(listed)):
            return name
    return None


_SDMX = (".json", ".xml")
"""Endings of code lists in SDMX, of which no data are read."""


def is_sdmx(path: Path) -> bool:
    """Whether a file is one of SDMX by its name."""
    return path.suffix.lower() in _SDMX


def coded_by_sdmx(looked: Sequence[Looked], lists: Iterable[Path]) -> dict[str, Path]:
    """Code lists in SDMX by the columns that have their codes."""
    found: dict[str, Path] = {}
    for path in lists:
        known = set(CodelistFile.model_validate({"file": path.absolute()}).read(Path()).codes)
        coded = [
            name
            for table in looked
            for name, column in table.columns.items()
            if column.is_code and name not in found and len(set(table.codes(name)) - known) <= column.different // 20
        ]
        if not coded:
            raise UsageError(
                path.name,
                expected="a list with the codes of a column",
                found=f"{len(known):,} codes, which no column has",
                do=f"name the attribute that it is for: --codelist ATTRIBUTE={path.name}; or leave it out",
            )
        found[coded[0]] = path
    return found
