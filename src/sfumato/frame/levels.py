"""Levels of attributes: `industry@sector` in a release file is an attribute that is made of another one's column."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain, product
from typing import Any, TypeVar

from sfumato.description import UNWRITTEN

Value = TypeVar("Value")
AT = "@"
"""Stands between an attribute and one of its levels."""
TOTAL = "total"
"""The level of an attribute that tells no codes apart: a table at it leaves the attribute out."""
_OF_THE_COLUMN = ("column", "digits", "classes", "recode", "empty")
"""What a level takes over of its attribute."""
_PICKED = ("level", "digits", "leaves")
"""What an attribute picks of its codelist, where a level picks something else."""


class UnknownLevel(ValueError):  # noqa: N818  (what a reader of the message is told)
    """A level that no attribute has; whoever reads the file says which table asks for it."""

    def __init__(self, name: str, *, expected: str, do: str) -> None:
        self.name, self.expected, self.found, self.do = name, expected, f"'{name}'", do
        super().__init__(f"expected {expected}, found {self.found}: {do}")


def published_name(written: str) -> str:
    """The name under which a level is published: engines, file formats and other programs know no @ in columns.

    >>> published_name("industry@Sub-sector 2"), published_name("place")
    ('industry_sub_sector_2', 'place')
    """
    attribute, at, level = written.partition(AT)
    if at and not (attribute.strip() and re.search(r"\w", level)):
        raise ValueError(f"'{written}' is no level of an attribute: write industry@sector, or industry@2")
    words = re.findall(r"[^\W_]+", level.lower())
    return "_".join([attribute, *words]) if at else written


def published_names(named: Mapping[str, Value]) -> dict[str, Value]:
    """The same by the names under which levels are published; one that is named twice is refused."""
    found = {published_name(name): value for name, value in named.items()}
    if len(found) < len(named):
        raise ValueError("an attribute or level is named twice, once with @")
    return found


def at_level(attribute: str, level: str) -> str:
    """An attribute at one of its levels, as it is written; at its own name, as it is described.

    >>> at_level("industry", "sector"), at_level("industry", "industry@sector"), at_level("industry", "industry")
    ('industry@sector', 'industry@sector', 'industry')
    """
    if level == attribute or level.startswith(f"{attribute}{AT}"):
        return level
    return f"{attribute}{AT}{level}"


def each_combination(by: Sequence[str], levels: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The dimensions of each combination of levels, by their names put together.

    The grand total is not among them: it is the sum of any of them.

    >>> list(each_combination(["place", "industry"], {"industry": ["total", "sector"]}))
    ['place', 'place_industry_sector']
    """
    options = [[None if one == TOTAL else at_level(name, one) for one in levels.get(name, (name,))] for name in by]
    chosen = (tuple(published_name(name) for name in names if name is not None) for names in product(*options))
    return {"_".join(names): names for names in chosen if names}


def asked_levels(tables: Any) -> list[str]:
    """The levels that sections of tables name, each as it is written, as far as they are written rightly."""
    found: list[str] = []
    for table in tables if isinstance(tables, list | tuple) else ():
        if isinstance(table, dict):
            for part in (table.get("by"), table.get("where")):
                found += [name for name in (part if isinstance(part, list | tuple | dict) else ()) if _is_level(name)]
            for name, levels in pairs_of(table.get("levels")):
                own = [str(one) for one in levels if AT not in str(one) or str(one).startswith(f"{name}{AT}")]
                found += [at_level(name, one) for one in own if one not in (TOTAL, name)]
    return list(dict.fromkeys(found))


def asked_in(tables: Any, name: str) -> tuple[int, str] | None:
    """The first section of tables that names a level, by its number, and the key that does."""
    for number, table in enumerate(tables if isinstance(tables, list | tuple) else ()):
        for key in ("by", "levels", "where") if isinstance(table, dict) else ():
            if name in asked_levels([{key: table.get(key)}]):
                return number, key
    return None


def pairs_of(levels: Any) -> list[tuple[str, Any]]:
    """Attributes with the levels that are listed for each."""
    return [(k, v) for k, v in levels.items() if isinstance(v, list | tuple)] if isinstance(levels, dict) else []


def _is_level(name: Any) -> bool:
    return isinstance(name, str) and AT in name


def with_asked_levels(data: Any, tables: Any) -> Any:
    """A section [data] with an attribute for every level that tables name."""
    attributes = data.get("attributes", {}) if isinstance(data, dict) else None
    asked = asked_levels(tables) if isinstance(attributes, dict) else []
    described = {published_name(name) for name in attributes or () if _is_level(name)}
    missing: dict[str, Any] = {}
    for name in asked:
        if published_name(name) not in described:  # under another spelling it is the same
            described.add(published_name(name))
            missing[name] = {}
    return {**data, "attributes": {**(attributes or {}), **missing}} if missing else data


def with_levels(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as they are described, those that are levels of others under the names they are published by."""
    levels = [name for name in attributes if _is_level(name)]
    for name, given in attributes.items():
        if isinstance(given, dict) and (odd := [key for key in UNWRITTEN if key in given]):
            raise ValueError(f"`{odd[0]}` of '{name}' follows from its level: leave it out")
    made = {published_name(name): _level(name, attributes) for name in levels}
    for name in levels:
        if (taken := published_name(name)) in attributes:
            raise ValueError(f"'{name}' is published as '{taken}', which is another attribute: rename that one")
    return {name: one for name, one in attributes.items() if name not in levels} | made


def _level(name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a level: made of the column of its attribute, with the codes of its codelist or `levels`."""
    of, _, level = name.partition(AT)
    if of not in attributes:
        known = [one for one in attributes if not _is_level(one)]
        close = get_close_matches(of, known, n=1)
        raise UnknownLevel(
            name,
            expected=f"a level of an attribute: {', '.join(known) or 'none is described'}",
            do=f"did you mean '{close[0]}'?" if close else f"describe '{of}' under [data.attributes]",
        )
    given, base = attributes[name], dict(attributes[of])
    if not isinstance(given, dict):
        raise ValueError(f"'{name}' is described by keys of its own, such as label = \"…\"")
    if own := [key for key in ("codelist", *_OF_THE_COLUMN) if key in given]:
        raise ValueError(f"'{name}' is made of the column and the codelist of '{of}': leave out `{own[0]}`")
    made = {key: base[key] for key in _OF_THE_COLUMN if base.get(key) is not None}
    made["column"] = base.get("column") or of
    declared = {str(key).casefold(): groups for key, groups in (base.get("levels") or {}).items()}
    if (groups := declared.get(level.casefold())) is not None:
        unplaced = isinstance(groups, dict) and base.get("empty") not in [None, *chain.from_iterable(groups.values())]
        groups = {**groups, base["empty"]: [base["empty"]]} if unplaced else groups
        return made | {"groups": groups, "level_of": (of, level)} | given
    codelist = base.get("codelist")
    if codelist is None or made.keys() & {"classes", "recode"}:
        named = ", ".join(base.get("levels") or ())
        raise UnknownLevel(
            name,
            expected=f"a level of '{of}': {named}" if named else f"an attribute with levels, and '{of}' has none",
            do=f"describe it under [data.attributes.{of}] with levels = {{ {level} = {{ … }} }}, or give '{of}' a "
            "codelist with parents, and neither `classes` nor `recode`",
        )
    listed = {"file": codelist} if not hasattr(codelist, "keys") and not hasattr(codelist, "file") else dict(codelist)
    picked = {key: option for key, option in listed.items() if key not in _PICKED and option is not None}
    return made | {"codelist": {**picked, "level": level}, "level_of": (of, level)} | given


def refuse_incomplete(
    levels: Mapping[str, Mapping[str, Iterable[str]]], codes: Iterable[str] | None, *, but: str | None = None
) -> None:
    """Refuse levels that have a code twice, or not all codes of their attribute but one, where these are known."""
    known = None if codes is None else set(codes)
    for level, groups in levels.items():
        named = [code for some in groups.values() for code in some]
        if len(set(named)) < len(named) or not (groups and all(groups.values())):
            raise ValueError(f"level '{level}' has codes, each with at least one of the attribute, and no code twice")
        if known is None:
            continue
        if missing := sorted(known - {*named, but}):
            raise ValueError(f"level '{level}' lacks '{missing[0]}': every code of the attribute is in one of its own")
        if unknown := [code for code in named if code not in known]:
            raise ValueError(f"level '{level}' has '{unknown[0]}', which is no code of the attribute")


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """A dimension whose codes lie in those of another."""

    dimension: str
    above: str
    parents: Mapping[str, str]
    by_register: bool
    """Whether it is so in the public register, and not by what the release file says."""

    def described(self) -> dict[str, Any]:
        """It in the structure of a bundle."""
        told = "register" if self.by_register else "release"
        return {"dimension": self.dimension, "above": self.above, "told_by": told, "parents": dict(self.parents)}
