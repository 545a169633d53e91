"""Sampling errors of a cube's tables by real replicate weights, beside the fitted function and what is published."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Floats
from sfumato.assess.cube_measures import WIDTH, defined, quantile
from sfumato.assess.measures import coefficient_of_variation, interval_overlap, mean
from sfumato.assess.suppression import PublicationChange, publication_change, publishable
from sfumato.cube.answer import Answer, Rules
from sfumato.cube.query import PublishedCube
from sfumato.cube.sampling import Estimates
from sfumato.engine.cube_sampling import replicate_estimates
from sfumato.engine.opened import OpenRecords
from sfumato.planned_cube import PlannedCube

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


def replicates_of(opened: OpenRecords, planned: PlannedCube) -> Replicates:
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
            found.append(_compared((by, figure), true, told, real, published.rules))
    return tuple(found)


def _compared(
    named: tuple[tuple[str, ...], str], before: Answer, after: Answer, errors: Floats, rules: Rules
) -> ReplicateErrors:
    """One table; cells without records have no replicate variance and are left out."""
    known = np.isfinite(errors) & defined(before) & defined(after)
    real, true, noisy, fitted, told = (
        np.ravel(values)[known] for values in (errors, before.values, after.values, before.errors, after.errors)
    )
    ratio = _over(fitted, real)
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
        published_ratio=quantile(_over(told, np.sqrt(real**2 + (noisy - true) ** 2)), 0.5),
        overlap=mean(overlap),
        change=publication_change(before=fit, after=np.ravel(after.publishable)[known]),
        errors=real,
        published_errors=told,
    )


def _over(above: Floats, below: Floats) -> Floats:
    ratio: Floats = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return ratio
