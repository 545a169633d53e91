"""What to expect before any data are read: the least ε of an employee report, and errors of percentiles.

docs/tune.md says under which assumptions.
"""

import csv
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Floats, Integers
from sfumato.description import exact
from sfumato.errors import DataError, MethodError, ReleaseError, SfumatoError
from sfumato.privacy.guarantee import plain
from sfumato.statistics.each_period import each_period
from sfumato.statistics.jobs.tune import LADDER
from sfumato.statistics.people.mose import Mose
from sfumato.statistics.people.percentiles import CURVES, CurveName, NoisyQuantiles, PlannedCurve, recommended
from sfumato.statistics.people.small_samples import RecordLaplace
from sfumato.statistics.people.statistic import People, periods_of
from sfumato.surroundings import Surroundings

# The cells that an employee report is tuned for: assumed, declared in a file, or the true ones if that is told.

PEOPLE, MEAN = "people", "mean"
"""The columns of a file of declared cells."""
_MOST = 2**40


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportCells:
    """Cells with people in them, each as frequent as the next, and their mean of the outcome where it matters."""

    people: Integers
    mean: Floats | None
    """In the unit of the measure; None where no table is of means."""
    source: str
    """Where they come from, in words."""
    confidential: bool = False
    periods: NDArray[np.str_] | None = None
    """The period of each cell, where it is known."""

    def __post_init__(self) -> None:
        if not len(self.people) or int(self.people.min()) < 1 or int(self.people.max()) > _MOST:
            raise _refused("one cell or more, with at least one person in each")
        if self.mean is not None and not bool((np.isfinite(self.mean) & (self.mean > 0)).all()):
            raise _refused("means above 0: differences are measured as a share of them")

    def __len__(self) -> int:
        return len(self.people)

    def of(self, period: str) -> "ReportCells":
        """The cells of one period."""
        if self.periods is None or not (self.periods == period).any():
            raise SfumatoError(
                "cells of the report",
                expected="cells of every period, for an epsilon of its own in each",
                found=f"none of {period}" if self.periods is not None else "cells that do not say their period",
                do="add a column with the period to the file of --cells, or use --from-confidential-data",
            )
        own = self.periods == period
        mean = None if self.mean is None else self.mean[own]
        return replace(self, people=self.people[own], mean=mean, periods=self.periods[own])


def assumed_cells(people: Sequence[int], mean: Fraction | None) -> ReportCells:
    """Cells of these sizes, all with the same mean: an assumption that anybody may know."""
    sizes = ", ".join(f"{number:,}" for number in people)
    words = f"cells of {sizes} people{', each as frequent as the next' if len(people) > 1 else ''}"
    if mean is not None:
        words += f", with a mean of {float(mean):,g}"
    return ReportCells(
        people=np.array(people, dtype=np.int64),
        mean=None if mean is None else np.full(len(people), float(mean)),
        source=f"Assumed, not read off any data: {words}",
    )


def declared_cells(path: Path, mean: Fraction | None, period: str | None = None) -> ReportCells:
    """Cells of a CSV file with a column `people` and, unless all have one mean, `mean`: such as an earlier report.

    A column of the name of the period tells the period of every cell.
    """
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        people = [int(row[PEOPLE]) for row in rows]
        means = [float(exact(row[MEAN])) for row in rows] if rows and MEAN in rows[0] else None
        periods = np.array([row[period] for row in rows]) if rows and period in rows[0] else None
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"cells {path}",
            expected=f"a CSV file with a whole number {PEOPLE!r} in every line, and perhaps a number {MEAN!r}",
            found=f"another file ({type(error).__name__})",
            do="correct the file",
        ) from error
    found = None if means is None else np.array(means)
    if found is None and mean is not None:
        found = np.full(len(people), float(mean))
    return ReportCells(
        people=np.array(people, dtype=np.int64),
        mean=found,
        source=f"Declared in {path.name}, which must be public: {len(people):,} cells",
        periods=periods,
    )


def true_cells(
    count: Callable[[Mapping[str, Any]], Mapping[str, Any]], tables: Sequence[People], period: str | None = None
) -> ReportCells:
    """The true cells of a report, of its means where it has some: confidential, as is whatever is found from them."""
    asked = max(tables, key=lambda table: table.table.statistic == "mean")
    cells = count({asked.name: asked})[asked.name]
    of_means = asked.table.statistic == "mean"
    filled = (cells["count"] > 0) & ((cells["sum_y"] > 0) if of_means else True)
    people = cells["count"][filled]
    codes = next((np.array(d.codes) for d in cells.dimensions if d.name == period), None)
    return ReportCells(
        people=people,
        mean=cells["sum_y"][filled] / people if of_means else None,
        source=f"CONFIDENTIAL, from the true data: {len(people):,} cells with people",
        confidential=True,
        periods=None if codes is None or period is None else codes[cells.codes(period)[filled]],
    )


def _refused(expected: str) -> SfumatoError:
    return SfumatoError(
        "cells of the report", expected=expected, found="another number", do="correct --people, --mean or the file"
    )


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
    method: Any
    """With the ε of all periods, even or of their own."""
    options: dict[str, object]
    """Of the method, as the release file is to state them."""
    within: Floats
    """Of each cell that is published, the probability to be within the threshold."""
    epsilons: dict[str, Fraction]
    """What each period spends."""

    @property
    def epsilon(self) -> Fraction:
        """What the whole table spends on one person: the sum over periods."""
        return sum(self.epsilons.values(), Fraction(0))

    @property
    def period_epsilon(self) -> Fraction:
        """What it spends in one period, on average."""
        return self.epsilon / len(self.epsilons)

    @property
    def written(self) -> Fraction | dict[str, Fraction]:
        """ε as the release file is to state it: one number, or one for each period where they differ."""
        return self.epsilon if len(set(self.epsilons.values())) == 1 else self.epsilons

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


def reported(plan: Surroundings) -> tuple[People, ...]:
    """The tables of an employee report: counts of people with Laplace noise, and means by MOSE; no data are read."""
    tables = tuple(table for table in plan.of_kind(People) if table.table.statistic in ("count", "mean"))
    if not tables:
        raise ReleaseError(
            "release",
            expected='an employee report: count = "records" with method = "laplace", or a mean with method = "mose"',
            found="no such table",
            do="describe one, such as `sfumato economy university` writes",
        )
    if any(table.question.weight is not None for table in tables):
        raise ReleaseError(
            "release",
            expected="records that count once each: cells are tuned by their number of people",
            found="records with weights",
            do="use `sfumato check`, which tells the error of weighted counts and what their weights do to it",
        )
    return tables


def assumed_mean(tables: Sequence[People]) -> Fraction | None:
    """A mean to assume where nothing else is said: a tenth of the way through the range of the measure."""
    methods = [table.method for table in tables if table.table.statistic == "mean"]
    return min((m.low_y + Fraction(m.high_y - m.low_y, 10) for m in methods), default=None)


def tune_report(
    release: Any, tables: Sequence[People], target: Target, cells: ReportCells, *, by_period: bool = False
) -> TunedReport:
    """The smallest ε of three digits for each table, by the distribution of its noise and nothing else.

    With `by_period` the target is to be met in every period by itself, and each gets an ε of its own.
    """
    first, period = tables[0].question, release.records.records.period
    periods = next((d.codes for d in first.groups if d.name == period), ("all",))
    assert len(periods) == periods_of(release.records, first)
    return TunedReport(
        target=target,
        cells=cells,
        periods=periods,
        tables=tuple(_tuned(table, target, cells, periods, by_period=by_period) for table in tables),
    )


def _tuned(
    planned: People, target: Target, cells: ReportCells, periods: Sequence[str], *, by_period: bool
) -> TunedTable:
    one = planned.method.of_one_period()
    options = dict(planned.table.protect.options)
    if planned.table.statistic == "mean" and not one.chi:
        # Whatever the data, n times the sensitivity of a mean is below the range of the outcome.
        one = replace(one, chi=Fraction(one.high_y - one.low_y))
        options = {name: value for name, value in options.items() if name != "classes"} | {"chi": one.chi}
    parts = {period: cells.of(period) if by_period else cells for period in periods}
    if by_period:
        found = {period: _least(planned.name, one, target, part) for period, part in parts.items()}
    else:
        found = dict.fromkeys(periods, _least(planned.name, one, target, cells))
    within = [
        found[period].probability_within(target.threshold, part.people, part.mean) for period, part in parts.items()
    ]
    return TunedTable(
        name=planned.name,
        statistic=planned.table.statistic,
        method=_together(planned, found),
        options=options,
        within=np.concatenate(within) if by_period else within[0],
        epsilons={period: method.epsilon for period, method in found.items()},
    )


def _together(planned: People, found: Mapping[str, Any]) -> Any:
    """The method of all periods: one that divides ε evenly, or has an ε of its own for each."""
    one, epsilons = next(iter(found.values())), {period: method.epsilon for period, method in found.items()}
    return each_period(
        planned.name,
        "period",
        tuple(found),
        epsilons,
        lambda epsilon, periods: replace(one, epsilon=epsilon, periods=periods),
    )


def _least(table: str, one: Reported, target: Target, cells: ReportCells) -> Reported:
    """The method of one period with the least ε that meets the target for these cells."""

    def share(epsilon: Fraction) -> float:
        within = one.with_value_epsilon(epsilon).probability_within(target.threshold, cells.people, cells.mean)
        if not len(within):
            raise MethodError(
                table, expected="a cell that is published", found="too few people in all", do="assume more"
            )
        return float(within.mean())

    place = bisect_left(LADDER, float(target.share), key=share)
    if place == len(LADDER):
        raise MethodError(
            f"table '{table}'",
            expected=f"a target that epsilon up to {plain(LADDER[-1])} meets",
            found=f"{target}",
            do="allow a larger threshold or a smaller share, or make larger cells",
        )
    return one.with_value_epsilon(LADDER[place])


# Expected errors of percentiles by the size of a cell and ε, from public bins alone.

SIZES = (30, 50, 100, 300, 1_000, 3_000)
EPSILONS = tuple(map(Fraction, ("0.5", "1", "1.5", "3")))


@dataclass(frozen=True, kw_only=True)
class ExpectedErrors:
    """Every curve for cells of one size at one ε, from the least expected error to the largest."""

    people: int
    epsilon: Fraction
    """Of a cell: what a period has."""
    plans: tuple[PlannedCurve, ...]

    @property
    def best(self) -> PlannedCurve:
        """The curve with the least error."""
        return self.plans[0]

    def error(self, curve: CurveName) -> float:
        """The error of one curve."""
        return next(plan.error for plan in self.plans if plan.curve == curve)


@dataclass(frozen=True, kw_only=True)
class TunedPercentiles:
    """All sizes and ε that were asked for, and the table they are about."""

    table: str
    method: NoisyQuantiles
    options: dict[str, object]
    expected: tuple[ExpectedErrors, ...]

    @property
    def period_epsilon(self) -> Fraction:
        """What the release file gives a cell."""
        return self.method.epsilon / self.method.periods

    @property
    def recommended(self) -> CurveName:
        """The curve with the least error over all sizes, in proportion, at the ε nearest to the release file's."""
        nearest = min({line.epsilon for line in self.expected}, key=lambda e: abs(log(e / self.period_epsilon)))
        lines = [line for line in self.expected if line.epsilon == nearest]
        return min(CURVES, key=lambda curve: sum(log(line.error(curve)) for line in lines))


def tune_percentiles(
    plan: Surroundings, name: str | None = None, *, people: Sequence[int] = SIZES, epsilons: Sequence[Fraction] = ()
) -> TunedPercentiles:
    """What every curve promises for cells of these sizes at each ε a cell; no data are read.

    Without `epsilons` they are some usual ones, and that of the release file.
    """
    planned = chosen_table(plan, name, ("quantiles",), "a table of percentiles")
    method: NoisyQuantiles = planned.method
    asked = tuple(epsilons) or tuple(sorted({*EPSILONS, method.epsilon / method.periods}))
    if not people or min(people) < 1 or min(asked) <= 0:
        raise MethodError(
            "percentiles", expected="people and epsilons above 0", found="another number", do="correct the options"
        )
    return TunedPercentiles(
        table=planned.name,
        method=method,
        options=dict(planned.table.protect.options),
        expected=tuple(
            ExpectedErrors(
                people=size,
                epsilon=epsilon,
                plans=tuple(recommended(bins=method.bins, at=method.at, epsilon=epsilon, size=size)),
            )
            for size in people
            for epsilon in asked
        ),
    )


_KNOWN = " but those by laplace, whose errors `sfumato check` tells without any data"


def chosen_table(plan: Surroundings, name: str | None, statistics: Sequence[str], kind: str) -> People:
    """The one table of a kind, or the one that is named."""
    found = [table for table in plan.of_kind(People) if table.table.statistic in statistics]
    if not found:
        raise ReleaseError(
            "[[table]]",
            expected=f"{kind}: one with {' or '.join(f'`{statistic}`' for statistic in statistics)}",
            found=f"a release that has no {' or '.join(statistics)} table{_KNOWN if 'mean' in statistics else ''}",
            do="add one, or tune another part of the release",
        )
    chosen: list[People] = [table for table in found if name in (None, table.name)]
    if len(chosen) != 1:
        raise ReleaseError(
            "table",
            expected=f"one table: {', '.join(table.name for table in found)}",
            found=repr(name) if name else f"{len(found)} of them",
            do="name it with --table",
        )
    return chosen[0]
