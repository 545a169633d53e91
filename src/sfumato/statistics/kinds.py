"""The kinds of statistics: which one a section of a release file asks for. A kind is loaded when it is needed."""

from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any

from sfumato.frame.codelists import Codelist
from sfumato.frame.records import Microdata
from sfumato.keys import Secret
from sfumato.statistic import Statistic
from sfumato.statistics.cube.section import CubeSection
from sfumato.statistics.fitting import refuse_other_data
from sfumato.statistics.table import Table

OF_JOBS = (
    "exact.statistic:ExactJobs",
    *("jobs.statistic:JobCounts", "jobs.sparse:SparseCounts", "jobs.totals:JobTotals", "jobs.means:JobMeans"),
    *("panel.statistic:Indicators", "panel.formal:FormalIndicators"),
    *("panel.pairs:Pairs", "panel.formal_flows:FormalFlows", "panel.degrees:Degrees"),
)
OF_RECORDS = (
    "exact.statistic:ExactRecords",
    *("totals.growth_table:Growth", "totals.statistic:Totals", "units.statistic:UnitTotals", "units.means:UnitMeans"),
    *("people.sums:PeopleTotals", "people.sums:PeopleMeans", "people.statistic:People"),
)
IN_ORDER = (*OF_JOBS, *OF_RECORDS, "cube.statistic:CubeStatistic")
"""All kinds, in the order in which statements speak of them."""


def kind_of(table: Table, data: Any) -> Any:
    """The kind of statistic that a table of these data asks for."""
    for place in OF_JOBS if data.of_jobs else OF_RECORDS:
        kind = loaded(place)
        if kind.fits(table, data):
            return kind
    refuse_other_data(table, data)  # jobs have no totals of records, say
    raise ValueError(f"no kind of statistic fits table {table.name!r}")


def plan_cube(
    section: CubeSection,
    data: Microdata,
    codelists: Mapping[str, Codelist],
    *,
    alpha: Fraction,
    secret: Secret | None = None,
) -> Any:
    """The statistic that a cube of records is."""
    return loaded("cube.statistic:plan_cube")(section, data, codelists, alpha=alpha, secret=secret)


def by_kind(statistics: Mapping[str, Statistic]) -> dict[Any, dict[str, Any]]:
    """The statistics of each kind, which share a scan, in the order of the kinds."""
    return {
        kind: {name: statistic for name, statistic in statistics.items() if type(statistic) is kind}
        for kind in in_order({type(statistic) for statistic in statistics.values()})
    }


def by_scan(statistics: Mapping[str, Statistic]) -> dict[Any, dict[str, Any]]:
    """The statistics that one scan makes, by the kind that has it: some kinds are made in the scan of another."""
    found: dict[Any, dict[str, Any]] = {}
    for kind, batch in by_kind(statistics).items():
        found.setdefault(kind.scanned_as(), {}).update(batch)
    return found


def in_order(kinds: set[Any]) -> tuple[Any, ...]:
    """Kinds in the order in which statements speak of them."""
    return tuple(sorted(kinds, key=lambda kind: IN_ORDER.index(f"{_room(kind)}:{kind.__name__}")))


def _room(kind: Any) -> str:
    return str(kind.__module__).removeprefix("sfumato.statistics.")


def loaded(place: str) -> Any:
    """What is at a place, as it is written here: a module and a name in it."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"sfumato.statistics.{module}"), name)
