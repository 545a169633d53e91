"""Files that are one table in several periods, or in parts: their columns are the same, and no link leads anywhere."""

import re
from collections.abc import Sequence

from sfumato.errors import DataError
from sfumato.frame.periods import Period
from sfumato.starting.look import Looked

_PERIOD = re.compile(r"(?<!\d)((?:19|20)\d\d)(?:([-_]?[Qq])([1-4])|([-_]?[Mm]?)(0[1-9]|1[0-2]))?(?!\d)")
"""A year, quarter or month in the name of a file."""


def refuse_one_table(tables: Sequence[Looked]) -> None:
    """Refuse tables that have the same columns: one would be taken for the workplaces of the other."""
    for one in tables:
        alike = [other for other in tables if other.columns.keys() == one.columns.keys()]
        if len(alike) < 2:
            continue
        names = [table.path.name for table in alike]
        found = of_a_series(names)
        told = "the same columns in each" + (", and names that tell periods" if found else "")
        if found:
            path, periods = found
            do = (
                f"give one of them; then make the release file a series: take `period` out of [release], write "
                f'path = "{path}", and add a section [series] with first = "{min(periods)}"; see docs/series.md'
            )
        else:
            do = (
                "give one of them; where they are parts of one table, name all in `path` of the release file by a "
                "pattern such as part_*.csv"
            )
        raise DataError(
            " and ".join(names),
            expected="tables of different things: jobs, and the workplaces and workers that they lead to",
            found=told,
            do=do,
        )


def of_a_series(names: Sequence[str]) -> tuple[str, list[str]] | None:
    """Names of files that differ in a period alone, as a series writes them, and the periods; None where they do not.

    >>> of_a_series(["reg_2026q1.csv", "reg_2026q2.csv"])
    ('reg_{year}q{quarter}.csv', ['2026-Q1', '2026-Q2'])
    >>> of_a_series(["2025.csv", "2026.csv"]), of_a_series(["jobs.csv", "firms.csv"])
    (('{year}.csv', ['2025', '2026']), None)
    """
    written, periods = set[str](), list[str]()
    for name in names:
        if (found := _PERIOD.search(name)) is None:
            return None
        year, quarterly, quarter, monthly, month = found.groups()
        part = f"{quarterly}{{quarter}}" if quarter else f"{monthly}{{month}}" if month else ""
        written.add(f"{name[: found.start()]}{{year}}{part}{name[found.end() :]}")
        periods.append(str(Period.read(f"{year}Q{quarter}" if quarter else f"{year}-{month}" if month else year)))
    return (written.pop(), periods) if len(written) == 1 and len(set(periods)) == len(names) else None
