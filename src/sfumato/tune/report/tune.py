"""The least ε of every table of an employee report; docs/tune-report.md says under which assumptions."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor

import numpy as np

from sfumato.arrays import Floats
from sfumato.asking import periods_of
from sfumato.check import check
from sfumato.engine.question import SampleQuestion
from sfumato.errors import MethodError, ReleaseError
from sfumato.methods.mose import Mose
from sfumato.methods.record_laplace import RecordLaplace
from sfumato.microdata import Microdata
from sfumato.plan import PlannedTable
from sfumato.privacy.guarantee import plain
from sfumato.release import Release
from sfumato.tune.report.cells import ReportCells
from sfumato.tune.tune import LADDER

Reported = RecordLaplace | Mose


@dataclass(frozen=True, kw_only=True)
class Target:
    """A share of the cells is to be off by at most a threshold, as a share of the true value."""

    threshold: Fraction
    share: Fraction

    def __post_init__(self) -> None:
        for name, value in (("threshold", self.threshold), ("share", self.share)):
            if not 0 < value < 1:
                raise MethodError(
                    name, expected="a number above 0 and below 1", found=plain(value), do="write 0.1 for a tenth"
                )

    def __str__(self) -> str:
        return f"{plain(100 * self.share)}% of cells within {plain(100 * self.threshold)}% of the true value"


@dataclass(frozen=True, kw_only=True, eq=False)
class TunedTable:
    """One table of the report with the least ε that meets the target."""

    name: str
    statistic: str
    method: Reported
    options: dict[str, object]
    """Of the method, as the release file is to state them."""
    within: Floats
    """Of each cell that is published, the probability to be within the threshold."""

    @property
    def epsilon(self) -> Fraction:
        """What the whole table spends on one person."""
        return self.method.epsilon

    @property
    def period_epsilon(self) -> Fraction:
        """What it spends in one period."""
        return self.method.epsilon / self.method.periods

    @property
    def share(self) -> float:
        """The expected share of cells within the threshold."""
        return float(self.within.mean())


@dataclass(frozen=True, kw_only=True)
class TunedReport:
    """Every table of the report, the periods, and what they spend together."""

    target: Target
    cells: ReportCells
    periods: tuple[str, ...]
    tables: tuple[TunedTable, ...]

    @property
    def epsilon(self) -> Fraction:
        """The sum over periods and tables: ε = Σ_t (ε_emp,t + ε_earn,t)."""
        return sum((table.epsilon for table in self.tables), Fraction(0))

    @property
    def conditional(self) -> bool:
        """Whether a table is not differentially private."""
        return any(table.method.guarantee().condition for table in self.tables)


def reported(release: Release) -> tuple[PlannedTable, ...]:
    """The tables of an employee report: counts of people with Laplace noise, and means by MOSE; no data are read."""
    plan = check(release, data=False).plan
    tables = tuple(
        table
        for table in plan.tables
        if isinstance(table.method, RecordLaplace) or (isinstance(table.method, Mose) and not table.method.at)
    )
    if not tables or not isinstance(release.data, Microdata):
        raise ReleaseError(
            "release",
            expected='an employee report: count = "records" with method = "laplace", or a mean with method = "mose"',
            found="no such table",
            do="describe one, such as `sfumato economy university` writes",
        )
    return tables


def assumed_mean(tables: Sequence[PlannedTable]) -> Fraction | None:
    """A mean to assume where nothing else is said: a tenth of the way through the range of the measure."""
    methods = [table.method for table in tables if isinstance(table.method, Mose)]
    return min((m.low_y + Fraction(m.high_y - m.low_y, 10) for m in methods), default=None)


def tune_report(release: Release, tables: Sequence[PlannedTable], target: Target, cells: ReportCells) -> TunedReport:
    """The smallest ε of three digits for each table, by the distribution of its noise and nothing else."""
    first = tables[0].question
    if not isinstance(first, SampleQuestion) or not isinstance(release.data, Microdata):
        raise TypeError("tables of people")
    period = release.data.records.period
    periods = next((d.codes for d in first.groups if d.name == period), ("all",))
    assert len(periods) == periods_of(release.data, first)
    return TunedReport(
        target=target,
        cells=cells,
        periods=periods,
        tables=tuple(_tuned(table, target, cells) for table in tables),
    )


def within_threshold(method: Reported, target: Target, cells: ReportCells) -> Floats:
    """The probability that a cell is off by at most the threshold, for all cells that are published."""
    if isinstance(method, RecordLaplace):
        most = np.array([floor(target.threshold * int(n)) for n in cells.people])
        return 1 - method.noise.survival(most + 1)
    if cells.mean is None:
        raise _no_mean(method)
    published = cells.people >= method.minimum
    most = np.floor(float(target.threshold) * cells.mean[published] * method.grid).astype(np.int64)
    return 1 - method.value_noise.survival(most + 1, method.planned_multiples(cells.people[published]))


def _tuned(planned: PlannedTable, target: Target, cells: ReportCells) -> TunedTable:
    method = planned.method
    options = dict(planned.table.protect.options)
    if isinstance(method, Mose) and not method.chi:
        # Whatever the data, n times the sensitivity of a mean is below the range of the outcome.
        method = replace(method, chi=Fraction(method.high_y - method.low_y))
        options = {name: value for name, value in options.items() if name != "classes"} | {"chi": method.chi}
    assert isinstance(method, Reported)

    def share(epsilon: Fraction) -> float:
        within = within_threshold(_spending(method, epsilon), target, cells)
        if not len(within):
            raise MethodError(
                planned.name, expected="a cell that is published", found="too few people in all", do="assume more"
            )
        return float(within.mean())

    place = bisect_left(LADDER, float(target.share), key=share)
    if place == len(LADDER):
        raise MethodError(
            f"table '{planned.name}'",
            expected=f"a target that epsilon up to {plain(LADDER[-1])} meets",
            found=f"{target}",
            do="allow a larger threshold or a smaller share, or make larger cells",
        )
    found = _spending(method, LADDER[place])
    return TunedTable(
        name=planned.name,
        statistic=planned.table.statistic,
        method=found,
        options=options,
        within=within_threshold(found, target, cells),
    )


def _spending(method: Reported, epsilon: Fraction) -> Reported:
    """The method with so much ε for each value of a period; the number of people of a mean keeps its own."""
    if isinstance(method, RecordLaplace):
        return replace(method, epsilon=epsilon * method.periods)
    of_count = method.count_epsilon or epsilon
    return replace(method, epsilon=(epsilon + of_count) * method.periods)


def _no_mean(method: Mose) -> MethodError:
    return MethodError(
        method.name,
        expected="a mean of the cells, which differences are a share of",
        found="none",
        do="give one with --mean, or a column `mean` in the file of cells",
    )
