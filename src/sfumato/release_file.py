"""Read a release file; every mistake is reported with its line."""

import difflib
import re
import tomllib
from decimal import Decimal
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sfumato.errors import ReleaseError
from sfumato.frame import Frame
from sfumato.microdata import Microdata
from sfumato.release import OF_JOBS, OF_RECORDS, Release

Location = tuple[int | str, ...]


def load(path: str | Path) -> Release:
    """Read and check a release file; nothing but the file itself is opened."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReleaseError(
            str(path),
            expected="a release file (TOML, in UTF-8)",
            found=str(error),
            do="check the path; `sfumato economy` writes an example",
        ) from error
    try:
        # Decimals, so that 0.1 means one tenth and not the nearest binary fraction.
        content = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ReleaseError(
            str(path), expected="a file in TOML", found=str(error), do="mend the line named above"
        ) from error
    folder = path.resolve().parent
    for section in (content, content.get("data")):
        if isinstance(section, dict) and "folder" in section:  # set here, never by the file
            raise ReleaseError(
                str(path),
                expected="a key that exists",
                found="'folder'",
                do="remove it: paths are relative to this file",
            )
    if isinstance(content.get("data"), dict):
        content["data"]["folder"] = folder
    try:
        return Release(**content, folder=folder)
    except ValidationError as error:
        raise _explained(path, text, error) from error


def _explained(path: Path, text: str, error: ValidationError) -> ReleaseError:
    """Turn the first mistake into an error that names the line, the expectation and the remedy."""
    # A misspelt key is also a missing one; the former is what the writer has to see.
    first = min(error.errors(), key=lambda mistake: mistake["type"] != "extra_forbidden")
    location = tuple(step for step in first["loc"] if step not in (OF_JOBS, OF_RECORDS))
    named = ", ".join(f"number {step + 1}" if isinstance(step, int) else step for step in location)
    where = f"{path}, line {line_of(text, location)}: {named or 'the file'}"
    if first["type"] == "extra_forbidden":
        known = _known_keys(first["loc"])
        close = difflib.get_close_matches(str(location[-1]), known, n=1)
        return ReleaseError(
            where,
            expected=f"one of the keys {', '.join(known)}",
            found=f"'{location[-1]}'",
            do=f"did you mean '{close[0]}'?" if close else "remove the key",
        )
    if first["type"] == "missing":
        return ReleaseError(
            where,
            expected=f"the key '{location[-1]}'",
            found="none",
            do=f"add '{location[-1]}' to this section",
        )
    found = first["input"]
    shown = "an unsuitable value" if isinstance(found, dict | list | tuple | BaseModel) else repr(found)
    if isinstance(found, Decimal):
        shown = str(found)
    return ReleaseError(
        where,
        expected=first["msg"].removeprefix("Value error, ").removeprefix("Input should be "),
        found=shown if location else "sections that do not fit together",
        do="correct the value; docs/release-file.md lists every key",
    )


def _known_keys(location: Location) -> list[str]:
    """The keys allowed in the section a location points into."""
    kind: Any = Release
    for step in location[:-1]:
        if step in (OF_JOBS, OF_RECORDS):
            kind = Frame if step == OF_JOBS else Microdata
        elif _is_section(kind):
            fields = {field.alias or name: field for name, field in kind.model_fields.items()}
            kind = fields[str(step)].annotation if str(step) in fields else None
        else:  # a table of named sections, or one of several
            kind = next(filter(_is_section, get_args(kind)), None)
        if get_origin(kind) is UnionType:
            kind = next(filter(_is_section, get_args(kind)), None)
    return [f.alias or name for name, f in kind.model_fields.items() if name != "folder"] if _is_section(kind) else []


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def line_of(text: str, location: Location) -> int:
    """The line of a TOML text where a location is, or where the section that should hold it begins.

    >>> line_of("[release]\\ntitle = 'x'\\n[[table]]\\nname = 'a'", ("table", 0, "name"))
    4
    """
    best, best_depth = 1, 0
    seen: dict[str, int] = {}
    section: Location = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*(\[\[?)\s*([^\]]+?)\s*\]", line):
            names = tuple(part.strip(" \"'") for part in header[2].split("."))
            section = names
            if header[1] == "[[":
                seen[header[2]] = seen.get(header[2], -1) + 1
                section = (*names, seen[header[2]])
            here = section
        elif key := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            here = (*section, *(part.strip(" \"'") for part in key[1].split(".")))
        else:
            continue
        if len(here) > best_depth and location[: len(here)] == here:
            best, best_depth = number, len(here)
    return best
