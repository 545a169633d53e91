"""Replicate variances of tables of a cube, from which its variance function is fitted."""

import numpy as np

from sfumato.arrays import Floats
from sfumato.cells import Dimension
from sfumato.cube.cube import MILLION
from sfumato.cube.sampling import Estimates
from sfumato.engine.contributor_rows import millionths
from sfumato.engine.positions import positions_of
from sfumato.engine.records import RecordTables, replicate_columns
from sfumato.engine.text import text
from sfumato.engine.wide_sums import split, wide_sum
from sfumato.microdata import Microdata


def replicate_estimates(
    data: Microdata, tables: RecordTables, by: tuple[Dimension, ...], measures: tuple[str, ...]
) -> Estimates:
    """Weighted totals of the cells of a table that are not empty, and their replicate variances.

    A variance is the rule's factor times the sum of squared differences between the replicates' estimates and the
    full sample's, of totals and of the means of measures.
    """
    described, weight, records = data.records.replicates, data.records.weight, tables.records
    if described is None or weight is None:
        raise ValueError("there are no replicate weights")
    columns = (weight, *replicate_columns(data, tables))
    rows = records.select(
        **{dimension.name: text(records[dimension.name], dimension.name) for dimension in by},
        **{f"_weight_{at}": millionths(records[column]) for at, column in enumerate(columns)},
        **{f"_value_{at}": records[name].cast("int64") for at, name in enumerate(measures)},
    )
    sums = {f"_total_{r}": wide_sum(rows[f"_weight_{r}"]) for r in range(len(columns))}
    for at in range(len(measures)):
        sums |= {f"_sum_{at}_{r}": wide_sum(rows[f"_value_{at}"] * rows[f"_weight_{r}"]) for r in range(len(columns))}
    names = [dimension.name for dimension in by]
    found = (rows.group_by(names).agg(**sums) if names else rows.agg(**sums)).to_pyarrow()
    # The order of a sum of floats matters, and engines give rows in any order.
    order = np.argsort(positions_of(found, by, by))

    def column(name: str) -> Floats:
        wholes, parts = split(found[name])
        return (wholes + parts / MILLION)[order]

    factor = float(described.factor(len(columns) - 1))
    totals = [column(f"_total_{r}") for r in range(len(columns))]
    means = {}
    for at, name in enumerate(measures):
        sums_of = (column(f"_sum_{at}_{r}") for r in range(len(columns)))
        means[name] = _variance([_mean(s, t) for s, t in zip(sums_of, totals, strict=True)], factor)
    return Estimates(totals=totals[0], variances=_variance(totals, factor), means=means)


def _variance(estimates: list[Floats], factor: float) -> Floats:
    """From the full sample's estimates, which come first, and those of the replicates."""
    full = estimates[0]
    squares = np.zeros(len(full))
    for replicate in estimates[1:]:
        squares += (replicate - full) ** 2
    return factor * squares


def _mean(sums: Floats, totals: Floats) -> Floats:
    mean: Floats = np.divide(sums, totals, out=np.full(len(totals), np.nan), where=totals > 0)
    return mean
