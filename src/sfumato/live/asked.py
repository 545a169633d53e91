"""An ad-hoc question in one spelling: however it is written, the same question is asked of the same records."""

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from pydantic import ValidationError

from sfumato.errors import ReleaseError
from sfumato.frame import Codelist
from sfumato.release import Release
from sfumato.table import Table

Where = Mapping[str, Sequence[str]]


def in_order(by: Sequence[str], where: Where, codelists: Mapping[str, Codelist]) -> tuple[tuple[str, ...], Where]:
    """Attributes and codes in the order of the data; a filter that keeps every code is none.

    >>> sex = Codelist.of(["F", "M"])
    >>> in_order(["sex"], {"sex": ["M", "F", "M"]}, {"sex": sex})
    (('sex',), {})
    >>> in_order(["sex"], {"Sex": ["M"]}, {"sex": sex})  # it is refused later, and must not be lost before
    (('sex',), {'Sex': ('M',)})
    """
    order = {name: place for place, name in enumerate(codelists)}

    def place(name: str) -> int:
        return order.get(name, len(order))  # what is unknown is refused later, in words

    kept = {}
    for name in sorted(where, key=place):
        codes = dict.fromkeys(where[name])
        known = codelists[name].codes if name in codelists else ()
        if name not in codelists or codes.keys() != set(known):
            kept[name] = (*(code for code in known if code in codes), *(code for code in codes if code not in known))
    return tuple(sorted(by, key=place)), kept


def live_table(release: Release, codelists: Mapping[str, Codelist], **described: Any) -> Table:
    """The table that a question describes; a ReleaseError says what is wrong with it."""
    try:
        table = Table.model_validate({"name": _name(described["by"]), **described})
    except ValidationError as error:
        first = error.errors()[0]
        ours = first["type"] == "value_error"  # these say what is wrong, the others what was expected
        raise ReleaseError(
            f"live table: {', '.join(map(str, first['loc'])) or 'the question'}",
            expected="a question that can be answered" if ours else first["msg"],
            found=first["msg"].removeprefix("Value error, ") if ours else "another question",
            do="correct the question",
        ) from None
    release.know_attributes(table)
    cells = prod(len(codelists[name].codes) + table.totals for name in table.by)
    if cells > release.live.most_cells:
        raise ReleaseError(
            "live table",
            expected=f"at most {release.live.most_cells:,} cells",
            found=f"{cells:,}",
            do="ask for fewer attributes, or filter them",
        )
    return table


def _name(by: Sequence[str]) -> str:
    """What the ledger calls a table by these attributes."""
    return "live" + re.sub(r"[^a-z0-9_-]", "-", "".join(f"-{name}" for name in by).lower())[:60]
