"""Groups of codes that a reader makes: lines such as `Coast = A, C`, in the form and in addresses."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from sfumato.serve.core.errors import RefusedError, said, shortened
from sfumato.serve.core.model import GroupedSource, Grouping, ServedTable

OWN = "own"
"""The list of codes that a reader has made."""
LONGEST = 4_000
_MOST = 200


def with_own_groups(table: ServedTable, texts: Mapping[int, str]) -> ServedTable:
    """The table with the groups that a reader wants of some dimensions; only sums that are exact can be grouped."""
    dimensions, source = list(table.dimensions), table.source
    for axis, text in texts.items():
        dimension = dimensions[axis]
        where = f"groups of '{dimension.label}'"
        if table.kind != "cube":
            raise RefusedError(
                where,
                expected="a table whose cells add up exactly: one marked as any combination",
                found="a table whose figures were protected one by one",
                do="leave the groups out; sums of its cells would be off by an amount that nobody can tell",
                said=said(
                    "“{variable}” cannot have groups here: the figures of this table were protected one by one, and "
                    "their sums would be off by an amount that nobody can tell.",
                    variable=dimension.label,
                ),
            )
        groups = _groups(text, dimension.places, dimension.codes, where)
        own = Grouping(id=f"{OWN}_{dimension.name}", label="", groups=groups)
        dimensions[axis] = replace(dimension, groupings=(*dimension.groupings, own))
        source = cast(GroupedSource, source).with_grouping(own)
    return replace(table, dimensions=tuple(dimensions), source=source) if texts else table


def _groups(
    text: str, places: Mapping[str, int], codes: tuple[str, ...], where: str
) -> dict[str, tuple[str, tuple[str, ...]]]:
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for line in text.replace(";", "\n").splitlines():
        name, equals, members = (part.strip() for part in line.partition("="))
        if not name and not equals:
            continue
        wanted = _members(members, places)
        unknown = [code for code in wanted if code not in places]
        if not equals or not name or not wanted or unknown or name in found or len(found) >= _MOST:
            raise RefusedError(
                where,
                expected=f"at most {_MOST} lines such as: Coast = {', '.join(codes[:2])}, each with a name of its own",
                found=shortened(f"the code {unknown[0]}, which there is not" if unknown else line),
                do="correct the line",
                said=said("A group names the code “{code}”, which there is not.", code=unknown[0])
                if unknown
                else said(
                    "“{line}” is no group, or one too many. Write lines such as {example}, each with a name of its "
                    "own, at most {most}.",
                    line=line.strip(),
                    example=f"Coast = {', '.join(codes[:2])}",
                    most=_MOST,
                ),
            )
        members_in_order = tuple(codes[place] for place in sorted({places[code] for code in wanted}))
        found[name] = (name, members_in_order)
    if not found:
        raise RefusedError(
            where,
            expected="a line for each group",
            found="none",
            do="write one, or leave it empty",
            said=said("Write a line for each group, or leave the groups empty."),
        )
    return found


def _members(text: str, places: Mapping[str, int]) -> list[str]:
    """The codes between commas; where a code has commas itself, as many parts as make a code that there is."""
    parts, found = [part.strip() for part in text.split(",")], list[str]()
    while parts:
        long = (end for end in range(len(parts), 1, -1) if ",".join(parts[:end]) in places)
        end = next(long, 1)
        found.append(",".join(parts[:end]))
        parts = parts[end:]
    return [code for code in found if code]
