"""What every section of a release file has in common: frozen, typed, and refusing by line what it does not know."""

import difflib
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from sfumato.errors import ReleaseError


def exact(value: Any) -> Any:
    """Read a number of a release file as the exact fraction that was typed.

    >>> from decimal import Decimal
    >>> exact(Decimal("0.1")), exact("1/3")
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, bool):
        raise ValueError("a number is needed")
    if isinstance(value, Fraction):
        return value
    if not re.fullmatch(
        r"[+-]?[\d_]{0,20}\.?\d{0,20}(e[+-]?\d{1,2})?|[+-]?\d{1,20}/\d{1,20}", str(value).strip().lower()
    ):
        raise ValueError("a number such as 0.1, 2 or '1/3' is needed, of at most twenty digits")
    try:
        return Fraction(str(value).strip())
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError("a number such as 0.1, 2 or '1/3' is needed") from error


UNWRITTEN = ("folder", "only", "groups", "level_of")
"""Keys that follow from others, from where a release file is, or from which period is run: nobody writes them."""
Exact = Annotated[Fraction, BeforeValidator(exact)]


class Described(BaseModel):
    """A frozen description that refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    LATER: ClassVar[tuple[str, ...]] = ()
    """Keys that earlier versions did not have: at their defaults, bundles say what they said."""

    def said(self) -> dict[str, Any]:
        """What is said, but for keys that have no value, and later ones at their defaults."""
        unsaid = {name for name in self.LATER if getattr(self, name) == type(self).model_fields[name].default}
        return {name: part for name, part in self if part is not None and name not in unsaid}


# Mistakes in a release file, each with its line.

Location = tuple[int | str, ...]


def mistake(
    path: Path,
    text: str,
    error: ValidationError,
    *,
    file: type[BaseModel],
    variants: Mapping[str, type[BaseModel]],
    within: Location = (),
) -> ReleaseError:
    """Turn the first mistake in a file into an error that names the line, the expectation and the remedy.

    `file` describes the whole file, and `variants` sections that are of one kind or another.
    """
    # A misspelt key is also a missing one; the former is what the writer has to see.
    first = min(error.errors(), key=lambda mistake: mistake["type"] != "extra_forbidden")
    location = (*within, *(step for step in first["loc"] if step not in {*variants, "[key]"}))
    named = ", ".join(f"number {step + 1}" if isinstance(step, int) else step for step in location)
    where = f"{path}, line {line_of(text, location)}: {named or 'the file'}"
    if first["type"] == "extra_forbidden":
        known = _known_keys(file, variants, (*within, *first["loc"]))
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
        expected=_KINDS.get(first["type"])
        or first["msg"].removeprefix("Value error, ").removeprefix("Input should be "),
        found=shown if location else "sections that do not fit together",
        do="correct the value; docs/release-file.md lists every key",
    )


_KINDS = {
    "string_type": 'a text between quotes, such as "2025"',
    "tuple_type": 'a list, such as ["place"], or a section with two brackets, such as [[table]]',
    "model_type": "a section with keys of its own, or { key = value }",
    "dict_type": "a section with keys of its own, or { key = value }",
    "bool_type": "true or false",
}
"""Kinds of values in the words of someone who writes TOML."""


def _known_keys(file: type[BaseModel], variants: Mapping[str, type[BaseModel]], location: Location) -> list[str]:
    """The keys allowed in the section a location points into."""
    kind: Any = file
    for step in location[:-1]:
        if step in variants:
            kind = variants[str(step)]
        elif _is_section(kind):
            fields = {field.alias or name: field for name, field in kind.model_fields.items()}
            kind = fields[str(step)].annotation if str(step) in fields else None
        else:  # a table of named sections, or one of several
            kind = next(filter(_is_section, get_args(kind)), None)
        if get_origin(kind) is UnionType:
            kind = next(filter(_is_section, get_args(kind)), None)
    return (
        [f.alias or name for name, f in kind.model_fields.items() if name not in UNWRITTEN] if _is_section(kind) else []
    )


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
        alike = min(len(here), len(location))  # of a section that is wrong as a whole, the first line
        if alike > best_depth and location[:alike] == here[:alike]:
            best, best_depth = number, alike
    return best
