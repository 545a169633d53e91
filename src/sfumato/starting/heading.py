"""Whether the first row of a file has names of columns, or is a record already: that one is never quoted."""

import re
from collections.abc import Sequence

from sfumato.engine.query import Rows
from sfumato.errors import DataError

PERIODS = {"year": r"(19|20)[0-9]{2}", "quarter": "[0-9]{4}-?Q[1-4]", "month": "(19|20)[0-9]{2}-(0[1-9]|1[0-2])"}
"""How periods are written; wide tables have them for names of columns."""
_NO_NAME = re.compile(r"[-+]?[.,]?\d[\d.,' ]*|\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ][\d:.]+)?")
"""Numbers and dates."""


def refuse_record(named: str, heading: Sequence[str], rows: Rows) -> None:
    """Refuse a table whose names of columns look like the values below them."""
    names = [name for name in heading if name]
    spelt = [name for name in names if _NO_NAME.fullmatch(name) and not _period(name)]
    if spelt or _most_are_values([name for name in names if name in rows.columns], rows):
        raise DataError(
            named,
            expected="a first row with the names of the columns",
            found="one that looks like a record: numbers or dates, or what rows below it have too",
            do="add a heading, rename columns whose names are numbers, remove headings that are repeated further down; "
            "or say with --skip how many lines are above the heading",
        )


def _most_are_values(names: Sequence[str], rows: Rows) -> bool:
    """Whether half of some names are values of their columns, or spelt like them; or one is a period among periods."""
    texts = {f"_{at}": f"nullif(trim(CAST({rows.engine.q(name)} AS VARCHAR)), '')" for at, name in enumerate(names)}
    asked: dict[str, str] = {}
    for at, name in enumerate(names):
        text, period = f"_{at}", _period(name)
        asked[f"filled{at}"] = f"count({text})"
        asked[f"same{at}"] = f"count(*) FILTER ({text} = {rows.engine.literal(name)})"
        form = rows.engine.literal(period or _form(name))
        asked[f"alike{at}"] = f"count(*) FILTER (regexp_full_match({text}, {form}))"
    found = rows.select(**texts).row(**asked) if names else {}
    values = 0
    for at, name in enumerate(names):
        alike = bool(found[f"alike{at}"]) and 2 * found[f"alike{at}"] >= found[f"filled{at}"]
        if alike and _period(name):
            return True
        values += bool(found[f"same{at}"]) or (alike and any(map(str.isdigit, name)))
    return bool(names) and 2 * values >= len(names)


def _period(name: str) -> str | None:
    return next((form for form in PERIODS.values() if re.fullmatch(form, name)), None)


def _form(name: str) -> str:
    """A pattern for texts that have digits and letters where a name has them."""
    signs = ("[0-9]" if sign.isdigit() else r"\pL" if sign.isalpha() else re.escape(sign) for sign in name)
    return "".join(signs)
