"""Measures of the figures of a cube beside true ones, and sampling errors by real replicate weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Flags, Floats
from sfumato.engine.data import OpenRecords
from sfumato.measures.formulas import (
    by_class,
    coefficient_of_variation,
    error_ratio,
    hellinger_distance,
    interval_overlap,
    jensen_shannon_distance,
    mean,
    mean_error,
    proportional_difference,
    relative_error,
    root_integrated_squared_error,
    share_near_reference,
    size_classes,
    size_label,
    spearman,
    spread,
    tail_classification,
    total_error,
    utility_loss,
)
from sfumato.measures.risk import PublicationChange, publication_change, publishable, share_within
from sfumato.statistics.cube.cube import ratio_to_positive
from sfumato.statistics.cube.cube_query import STATUSES, CubeAnswer, Rules
from sfumato.statistics.cube.figures import Estimates
from sfumato.statistics.cube.published_cube import PublishedCube
from sfumato.statistics.cube.statistic import CubeStatistic
from sfumato.statistics.cube.tabulate import replicate_estimates

# Measures of the figures of a cube: published ones beside true ones, overall and by size of the cell.

WIDTH = 1.96
"""Half the width of a 95% interval, in standard errors."""
PERCENT = 10
"""A published figure is near the true one within so many percent of it."""
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""The quantiles that describe a distribution in numbers."""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Figures of one kind, one number a cell: true and published ones, and those of the reference protection."""

    true: Floats
    published: Floats
    reference: Floats
    records: NDArray[np.int64]
    """The true number of records in the cell."""
    own: Floats
    """Standard errors before protection; 0 where there are no replicate weights."""
    told: Floats
    """Standard errors as they are published."""
    noise: Floats
    """The part of them that is expected of the noise."""
    fit: Flags
    """Where the rules leave the true figure unmarked."""
    still: Flags
    """Where they leave the published one unmarked."""
    difference: Floats
    """Of the shares in the table, relative to their mean; NaN for figures that are not added up to a whole."""

    @classmethod
    def of(
        cls, before: CubeAnswer, after: CubeAnswer, reference: CubeAnswer, records: NDArray[np.int64], *, parts: bool
    ) -> "Beside":
        """The cells of one table where all three are defined; `parts` tells that they add up to a whole.

        A mean or a proportion of what was published as nothing, or less, is not defined.
        """
        true, published, third = (np.ravel(answer.values) for answer in (before, after, reference))
        known = np.logical_and.reduce([defined(answer) for answer in (before, after, reference)])
        difference = proportional_difference(true=true, protected=published) if parts else np.full(len(true), np.nan)
        return cls(
            true=true[known],
            published=published[known],
            reference=third[known],
            records=np.ravel(records)[known],
            own=np.nan_to_num(np.ravel(before.errors)[known]),
            told=np.ravel(after.errors)[known],
            noise=np.ravel(after.perturbation_error)[known],
            fit=np.ravel(before.publishable)[known],
            still=np.ravel(after.publishable)[known],
            difference=difference[known],
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """The arrays by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def standardised(self) -> Floats:
        """Differences in standard errors of the noise, where there is any."""
        some = self.noise > 0
        return (self.published - self.true)[some] / self.noise[some]

    @property
    def relative(self) -> Floats:
        """Differences as a share of true figures that are not 0."""
        some = self.true != 0
        share: Floats = (self.published - self.true)[some] / np.abs(self.true[some])
        return share

    @property
    def error_differences(self) -> Floats:
        """By which share published standard errors are above those before protection, where these are not 0."""
        some = self.own > 0
        above: Floats = self.told[some] / self.own[some] - 1
        return above


def together(parts: Sequence[Beside]) -> Beside:
    """The cells of several tables as one."""
    every = [part.columns() for part in parts]
    return Beside(**{name: np.concatenate([columns[name] for columns in every]) for name in every[0]})


@dataclass(frozen=True, kw_only=True)
class Measures:
    """How far published figures are from true ones in some cells; NaN where the cells do not define it."""

    label: str
    """The class of the true number of records, or that these are all cells."""
    cells: int
    mean_error: float
    total_error: float
    reference_ratio: float
    """The mean error divided by that of the reference protection; below 1 ours is the better one."""
    mean_square_error: float
    expected_square: float
    """The mean of the perturbation variances that the query tool tells."""
    utility_loss: float
    """The mean of |P|/Y, the change as a share of the true figure, where that is not 0."""
    median_difference: float
    largest_tenth: float
    """The median relative difference, and what one in ten is above."""
    within: float
    """The share of figures within PERCENT of the true one."""
    near_reference: float
    """The share whose relative error is at most 10 points above the reference's."""
    near_either_way: float
    """The share whose relative error differs from the reference's by at most 10 points."""
    spearman: float
    share_difference: float
    share_difference_sd: float
    """The mean and standard deviation of the proportional difference c of the cells' shares."""
    cv_before: float
    cv_after: float
    """Median coefficients of variation; before protection by the fitted function of sampling errors."""
    error_ratio: float
    """The median ratio of published standard errors to √(var + (θ̃ − θ̂)²), the paper's form, which is confidential."""
    overlap: float
    """The mean overlap of 95% intervals with and without perturbation."""
    publishable: int
    """Figures that the rules leave unmarked before perturbation."""
    newly_publishable: int
    newly_marked: int


def measures(label: str, cells: Beside) -> Measures:
    """All measures of figures of some cells, taken together."""
    true, published, own, told = cells.true, cells.published, cells.own, cells.told
    pair: dict[str, Any] = {"true": true, "protected": published}
    relative = relative_error(**pair)
    seen = true != 0
    shares = spread(cells.difference[np.isfinite(cells.difference)])
    change = publication_change(before=cells.fit, after=cells.still)
    paper = np.sqrt(own**2 + (published - true) ** 2)
    told_ratio = np.divide(told, paper, out=np.full(len(true), np.nan), where=seen & (paper > 0))
    overlap = interval_overlap(
        low=true - WIDTH * own,
        high=true + WIDTH * own,
        protected_low=published - WIDTH * told,
        protected_high=published + WIDTH * told,
    )
    before = coefficient_of_variation(estimate=true, variance=own**2)
    after = coefficient_of_variation(estimate=published, variance=told**2)
    return Measures(
        label=label,
        cells=len(true),
        mean_error=mean_error(**pair),
        total_error=total_error(**pair),
        reference_ratio=error_ratio(**pair, reference=cells.reference),
        mean_square_error=mean((published - true) ** 2),
        expected_square=mean(cells.noise**2),
        utility_loss=mean(utility_loss(perturbation=published - true, estimate=true)[seen]),
        median_difference=quantile(relative, 0.5),
        largest_tenth=quantile(relative, 0.9),
        within=share_within(estimates=published, target=true, percent=PERCENT),
        near_reference=share_near_reference(**pair, reference=cells.reference),
        near_either_way=share_near_reference(**pair, reference=cells.reference, two_sided=True),
        spearman=spearman(**pair),
        share_difference=shares.mean,
        share_difference_sd=shares.deviation,
        cv_before=quantile(before[own > 0], 0.5),
        cv_after=quantile(after[own > 0], 0.5),
        error_ratio=quantile(told_ratio, 0.5),
        overlap=mean(overlap[seen & (own > 0)]),
        publishable=change.publishable + change.newly_suppressed,
        newly_publishable=change.newly_publishable,
        newly_marked=change.newly_suppressed,
    )


def measures_by_size(cells: Beside) -> tuple[Measures, ...]:
    """The same in each class of the true number of records."""
    places = size_classes(cells.records)

    def one(**columns: NDArray[Any]) -> Measures:
        inside = Beside(**columns)
        return measures(size_label(int(size_classes(inside.records[:1])[0])), inside)

    return tuple(by_class(one, classes=places, **cells.columns()).values())


@dataclass(frozen=True, kw_only=True)
class Distances:
    """How far apart the shares of whole tables are, on average over tables."""

    jensen_shannon: float
    hellinger: float
    root_integrated_squared_error: float
    root_mean_squared_error: float
    """The same with the mean of squared differences in place of their sum."""
    bottom_tail: float
    top_tail: float
    """The share of the tenth of smallest, and of largest, cells of a table that are still in it."""


def distances(tables: Sequence[Beside]) -> Distances:
    """The distances of tables whose cells add up to a whole, such as totals."""
    pairs: list[dict[str, Any]] = [{"true": part.true, "protected": part.published} for part in tables]
    squared = [root_integrated_squared_error(**pair) for pair in pairs]
    tails = [tail_classification(**pair) for pair in pairs]
    return Distances(
        jensen_shannon=_mean_of_defined([jensen_shannon_distance(**pair) for pair in pairs]),
        hellinger=_mean_of_defined([hellinger_distance(**pair) for pair in pairs]),
        root_integrated_squared_error=_mean_of_defined(squared),
        root_mean_squared_error=_mean_of_defined(
            [error / max(len(part.true), 1) ** 0.5 for error, part in zip(squared, tables, strict=True)]
        ),
        bottom_tail=_mean_of_defined([tail.bottom for tail in tails]),
        top_tail=_mean_of_defined([tail.top for tail in tails]),
    )


def quantile(values: Floats, share: float) -> float:
    """A quantile of the values that are defined; NaN of none."""
    some = values[np.isfinite(values)]
    return float(np.quantile(some, share)) if len(some) else float("nan")


def quantiles(values: Floats) -> dict[str, float]:
    """The quantiles of `SHARES`, by their names."""
    return {f"{share:g}": quantile(values, share) for share in SHARES}


def defined(answer: CubeAnswer) -> Flags:
    """The cells of a table that have a figure."""
    status = np.ravel(answer.status)
    known: Flags = np.isfinite(np.ravel(answer.values)) & (status != STATUSES.index("not defined"))
    return known


def _mean_of_defined(values: Sequence[float]) -> float:
    array = np.array(values)
    return mean(array[np.isfinite(array)])


# Sampling errors of a cube's tables by real replicate weights, beside the fitted function and what is published.

Replicates = Mapping[tuple[str, ...], Estimates]
"""Replicate variances of tables by the names of their dimensions, of the cells with records in their order."""


@dataclass(frozen=True, kw_only=True)
class ReplicateErrors:
    """One table of totals or means: standard errors from replicates, as fitted, and as published."""

    table: tuple[str, ...]
    figure: str
    """Weighted totals, or the means of a measure."""
    cells: int
    replicate_cv: float
    fitted_cv: float
    published_cv: float
    """Median coefficients of variation: before protection in two ways, and after it."""
    fitted_ratio: float
    fitted_low: float
    fitted_high: float
    """Standard errors by the fitted function relative to replicates': the median, and the middle 80% of cells."""
    published_ratio: float
    """The median of published standard errors relative to √(replicate variance + (θ̃ − θ̂)²), the paper's form."""
    overlap: float
    """The mean overlap of 95% intervals, by replicates around true figures and as published."""
    change: PublicationChange
    """What the rules leave unmarked, before protection by replicate errors and after it."""
    errors: Floats
    published_errors: Floats
    """Standard errors of every cell with records, for the chart."""


def replicates_of(opened: OpenRecords, planned: CubeStatistic) -> Replicates:
    """Replicate variances of the one-way tables and controls of a cube; empty without replicate weights."""
    if opened.data.records.replicates is None:
        return {}
    return {
        tuple(dimension.name for dimension in by): replicate_estimates(
            opened.data, opened.tables, by, planned.question.measures
        )
        for by in planned.margins
    }


def replicate_errors(
    replicates: Replicates, before: PublishedCube, published: PublishedCube
) -> tuple[ReplicateErrors, ...]:
    """Compare every table that has replicate variances, totals first."""
    found = []
    for by, estimates in replicates.items():
        held = np.ravel(before.cube.project(*by)["count"]) > 0
        tables = {"weighted totals": (before.totals(by), published.totals(by), estimates.variances)}
        for measure, variances in estimates.means.items():
            tables[f"means of {measure}"] = before.means(measure, by), published.means(measure, by), variances
        for figure, (true, told, variances) in tables.items():
            real = np.full(len(held), np.nan)
            real[held] = np.sqrt(variances)
            totals = np.ravel(before.cube.project(*by).values(before.weighting))
            found.append(_compared((by, figure), true, told, real, rules=before.rules, totals=totals))
    return tuple(found)


def _compared(
    named: tuple[tuple[str, ...], str],
    before: CubeAnswer,
    after: CubeAnswer,
    errors: Floats,
    *,
    rules: Rules,
    totals: Floats,
) -> ReplicateErrors:
    """One table; cells without records have no replicate variance and are left out.

    `rules` are those for figures before protection, and `totals` their weighted counts.
    """
    known = np.isfinite(errors) & defined(before) & defined(after)
    real, true, noisy, fitted, told = (
        np.ravel(values)[known] for values in (errors, before.values, after.values, before.errors, after.errors)
    )
    ratio = ratio_to_positive(fitted, real)
    overlap = interval_overlap(
        low=true - WIDTH * real,
        high=true + WIDTH * real,
        protected_low=noisy - WIDTH * told,
        protected_high=noisy + WIDTH * told,
    )
    variation = coefficient_of_variation(estimate=true, variance=real**2)
    fit = publishable(
        contributors=np.ravel(before.counts)[known],
        least=rules.least_count,
        variation=variation,
        most=np.inf if rules.largest_cv is None else rules.largest_cv,
    )
    fit &= totals[known] >= rules.least_weighted
    return ReplicateErrors(
        table=named[0],
        figure=named[1],
        cells=len(true),
        replicate_cv=quantile(variation, 0.5),
        fitted_cv=quantile(coefficient_of_variation(estimate=true, variance=fitted**2), 0.5),
        published_cv=quantile(coefficient_of_variation(estimate=noisy, variance=told**2), 0.5),
        fitted_ratio=quantile(ratio, 0.5),
        fitted_low=quantile(ratio, 0.1),
        fitted_high=quantile(ratio, 0.9),
        published_ratio=quantile(ratio_to_positive(told, np.sqrt(real**2 + (noisy - true) ** 2)), 0.5),
        overlap=mean(overlap),
        change=publication_change(before=fit, after=np.ravel(after.publishable)[known]),
        errors=real,
        published_errors=told,
    )
