"""Sampling errors of weighted totals: from replicate weights, or from the spread of the units."""

from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.engine.chunks import positions_of
from sfumato.engine.factors import split, unbounded, wide_sum
from sfumato.engine.query import Rows, text, texts
from sfumato.engine.records import RecordTables, replicate_columns
from sfumato.errors import DataError
from sfumato.frame.records import Microdata
from sfumato.noise.factors import ONE
from sfumato.statistics.totals.question import ContributorQuestion
from sfumato.statistics.totals.tabulate_rows import Grid, Pair, added_pair, millionths

_BITS = 31
"""Numbers below 2⁶² are two halves of so many bits, and no product of halves leaves 64 bits."""


def replicate_errors(
    data: Microdata, tables: RecordTables, question: ContributorQuestion, grid: Grid, estimates: Sequence[Pair]
) -> list[Integers]:
    """The standard errors of totals, of sums of weights, and of their ratios, in millionths, from replicate weights.

    An estimate comes as whole units and millionths. Its variance is the rule's factor times the sum of its squared
    differences from the replicates' estimates.
    """
    columns, described, records = replicate_columns(data, tables), data.records.replicates, tables.records
    if described is None:
        raise ValueError("there are no replicate weights")
    q, among = tables.engine.q, tables.engine.among
    rows = records.where(*(among(text(records, name), codes) for name, codes in question.where.items())).select(
        **texts(records, grid.names),
        **({} if question.measure is None else {"_value": f"CAST({q(question.measure)} AS BIGINT)"}),
        **{f"_weight_{at}": millionths(q(column)) for at, column in enumerate(columns)},
    )
    sums = {f"_weights_{at}": wide_sum(rows, f"_weight_{at}") for at in range(len(columns))}
    if question.measure is not None:
        sums |= {f"_total_{at}": wide_sum(rows, f"_value * _weight_{at}") for at in range(len(columns))}
    found = rows.group(grid.names, **sums).fetch()
    places = _everywhere(grid, found)
    totals = "weights" if question.measure is None else "total"
    factor = float(described.factor(len(columns)))
    squares = [np.zeros(grid.size) for _ in range(3)]
    means = _ratio(*estimates)
    for at in range(len(columns)):  # one after the other: the order of a sum of floats matters
        replicates = [added_pair(grid.size, places, split(found[f"_{kind}_{at}"])) for kind in (totals, "weights")]
        for place, (estimate, replicate) in enumerate(zip(estimates, replicates, strict=True)):
            squares[place] += _difference(estimate, replicate) ** 2
        # A replicate without any weight in a cell has no mean there, and shows nothing of it.
        own = _ratio(*replicates)
        squares[2] += np.where(np.isnan(own) | np.isnan(means), 0.0, own - means) ** 2 * float(ONE) ** 2
    return [_whole(np.sqrt(factor * part)) for part in squares]


def squares(rows: Rows, column: str, most: int) -> dict[str, str]:
    """What to sum for the exact sum of squares of whole numbers, none larger than `most`, which is below 2⁶²."""
    if most < 2**_BITS:
        return {"_low": wide_sum(rows, f"{column} * {column}")}
    # Of a negative number, the lower half is positive.
    low, high = f"({column} & {2**_BITS - 1})", f"({column} >> {_BITS})"
    halves = {"_low": f"{low} * {low}", "_mixed": f"{low} * {high}", "_high": f"{high} * {high}"}
    return {name: wide_sum(rows, product) for name, product in halves.items()}


def sum_of_squares(found: pa.Table, name: str) -> NDArray[Any]:
    """The sums of squares from what `squares` asked for, as integers without limit."""
    total = unbounded(found[f"{name}_low"])
    if f"{name}_high" in found.column_names:
        mixed, high = unbounded(found[f"{name}_mixed"]), unbounded(found[f"{name}_high"])
        total = total + mixed * 2 ** (_BITS + 1) + high * 2 ** (2 * _BITS)
    return total


def jackknife_errors(units: Integers, sums: Pair, squares: NDArray[Any]) -> Integers:
    """The unit jackknife's standard errors in millionths: √(n/(n−1)·Σ(x − mean)²) over the n units of a cell.

    It is what leaving out one unit at a time shows of a total whose units were drawn independently, without strata; a
    cell of one unit shows nothing, and has 0. All is exact but the root, which is rounded to the nearest.
    """
    total = sums[0].astype(object) * ONE + sums[1].astype(object)
    several = np.maximum(units - 1, 1).astype(object)
    fourfold = 4 * (units.astype(object) * squares - total * total) * (units > 1) // several
    roots = [(isqrt(variance) + 1) // 2 for variance in fourfold]  # to the nearest, on integers without limit
    if any(root >= 2**63 for root in roots):
        raise _too_large()
    return np.array(roots, dtype=np.int64)


def jackknife_ratio_errors(units: Integers, total: Pair, weights: Pair, summed: Sequence[NDArray[Any]]) -> Integers:
    """The unit jackknife's standard errors of means R = T/W in millionths: √(n/(n−1)·Σ(w(y − R))²)/W.

    `summed` has Σ(wy)², Σ(wy)w and Σw², all in millionths squared.
    """
    above, below = (pair[0].astype(object) * ONE + pair[1].astype(object) for pair in (total, weights))
    first, mixed, second = summed
    several = np.maximum(units - 1, 1).astype(object)
    # Of Σ(w(y − R))²·W², exactly: W²Σ(wy)² − 2TWΣ(wy)w + T²Σw².
    spread = below * below * first - 2 * above * below * mixed + above * above * second
    fourfold = [
        0 if n < 2 or w == 0 else 4 * ONE * ONE * int(n) * v // (int(m) * w**4)
        for n, v, m, w in zip(units.tolist(), spread, several, below, strict=True)
    ]
    roots = [(isqrt(max(variance, 0)) + 1) // 2 for variance in fourfold]
    if any(root >= 2**63 for root in roots):
        raise _too_large()
    return np.array(roots, dtype=np.int64)


def _ratio(total: Pair, weights: Pair) -> NDArray[np.float64]:
    """Means; NaN where there is no weight."""
    above, below = (pair[0] + pair[1] / ONE for pair in (total, weights))
    ratio: NDArray[np.float64] = np.divide(above, below, out=np.full(len(below), np.nan), where=below > 0)
    return ratio


def _everywhere(grid: Grid, found: pa.Table) -> list[Integers]:
    """All cells that the rows of an answer in text count in."""
    inner = grid.inner()
    at = positions_of(found, inner, inner)
    shape = tuple(map(len, inner))
    codes = np.unravel_index(at, shape) if shape else ()
    return grid.everywhere({d.name: c.astype(np.int64) for d, c in zip(inner, codes, strict=True)}, found.num_rows)


def _difference(estimate: Pair, replicate: Pair) -> NDArray[np.float64]:
    difference: NDArray[np.float64] = (replicate[0] - estimate[0]) * float(ONE) + (replicate[1] - estimate[1])
    return difference


def _whole(errors: NDArray[np.float64]) -> Integers:
    if (errors >= 2.0**63).any():
        raise _too_large()
    return np.rint(errors).astype(np.int64)


def _too_large() -> DataError:
    return DataError(
        "sampling error",
        expected=f"errors below {2.0**63 / ONE:.2g}, which can be told in millionths",
        found="a larger one",
        do="store the measure in a larger unit, such as thousands",
    )
