"""The kinds of statistics: which one a section of a release file asks for."""

from typing import Any

from sfumato.statistics.cube.statistic import CubeStatistic, plan_cube
from sfumato.statistics.jobs.statistic import JobCounts
from sfumato.statistics.panel.statistic import Indicators, Pairs
from sfumato.statistics.people.statistic import People
from sfumato.statistics.table import Table, refuse_other_data
from sfumato.statistics.totals.statistic import Totals

OF_TABLES: tuple[Any, ...] = (JobCounts, Indicators, Pairs, Totals, People)
"""The kinds that `[[table]]` sections ask for."""

KINDS: tuple[Any, ...] = (*OF_TABLES, CubeStatistic)
"""All kinds, in the order in which statements speak of them."""

__all__ = ["KINDS", "OF_TABLES", "CubeStatistic", "kind_of", "plan_cube"]


def kind_of(table: Table, data: Any) -> Any:
    """The kind of statistic that a table of these data asks for."""
    found = next((kind for kind in OF_TABLES if kind.fits(table, data)), None)
    if found is None:  # jobs have no totals of records, say
        refuse_other_data(table, data)
        raise ValueError(f"no kind of statistic fits table {table.name!r}")
    return found
