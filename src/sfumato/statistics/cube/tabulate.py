"""The cube of a table of records, and replicate variances of its tables; memory holds it and one chunk."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa

from sfumato.arrays import Floats, Integers
from sfumato.cells import Dimension
from sfumato.engine.chunks import positions_of
from sfumato.engine.factors import integers, split, wide_sum
from sfumato.engine.query import Rows, texts
from sfumato.engine.records import RecordTables, replicate_columns
from sfumato.errors import DataError
from sfumato.frame.records import Microdata
from sfumato.statistics.cube.cube import MILLION, Cube, ratio_to_positive
from sfumato.statistics.cube.figures import Estimates
from sfumato.statistics.cube.question import CubeQuestion, RecordTotals
from sfumato.statistics.cube.section import COUNT, MEASURE_PARTS, WEIGHTED
from sfumato.statistics.totals.tabulate_rows import millionths

# A cube from records that come in chunks: memory holds the cube and one chunk, however many records there are.


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Some records: for each its cell, counted through the product with the last dimension fastest, and its weight."""

    positions: Integers
    weights: Integers
    """In whole millionths."""


def tabulated(dimensions: tuple[Dimension, ...], chunks: Iterable[Chunk]) -> Cube:
    """The cube of the records: `count`, and `weighted` in millionths, 0 in empty cells."""
    size = prod(map(len, dimensions))
    count, weighted = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for chunk in chunks:
        _check(chunk, size)
        # Whole numbers are added as whole numbers; a histogram with weights would go through floating point.
        np.add.at(count, chunk.positions, 1)
        np.add.at(weighted, chunk.positions, chunk.weights)
    shape = tuple(map(len, dimensions))
    return Cube(
        dimensions=dimensions,
        columns={"count": count.reshape(shape), "weighted": weighted.reshape(shape)},
        parts={"weighted": MILLION},
    )


def _check(chunk: Chunk, size: int) -> None:
    if chunk.positions.shape != chunk.weights.shape:
        raise ValueError("one weight for every record")
    if len(chunk.positions) and (int(chunk.positions.min()) < 0 or int(chunk.positions.max()) >= size):
        raise ValueError("every record lies in a cell of the product")
    if len(chunk.weights) and int(chunk.weights.min()) < 1:
        raise DataError(
            "weights",
            expected="positive weights",
            found=f"{int((chunk.weights < 1).sum()):,} that are not",
            do="give these records a weight, or leave them out",
        )


# The cube of a table of records: counts, weights and measures of every combination of codes, exactly.

_ROWS = 1_000_000
"""Cells that are fetched from the engine at a time."""


def tabulated_cube(data: Microdata, tables: RecordTables, question: CubeQuestion) -> Cube:
    """The cube with the columns `count`, `weighted` in millionths, and each measure times the weight in thousandths.

    Records without weights have no column `weighted`: it would be the count again, and protected by a second draw.
    Memory holds the cube and a part of the cells that are not empty, however many records there are.
    """
    rows = _weighed(data, tables, question)
    names = [dimension.name for dimension in question.by]
    parts = dict.fromkeys(question.measures, MEASURE_PARTS)
    sums = {"_count": "count(*)"}
    if data.records.weight is not None:
        parts = {WEIGHTED: MILLION} | parts
        sums["_weights"] = wide_sum(rows, "_weight")
    sums |= {f"_sum_{at}": wide_sum(rows, f"_value_{at} * _weight") for at in range(len(question.measures))}
    columns = {name: np.zeros(question.cells, dtype=np.int64) for name in (COUNT, *parts)}
    with tables.engine.batches(rows.group(names, **sums), _ROWS) as batches:
        for batch in batches:
            found = pa.Table.from_batches([batch])
            places = positions_of(found, question.by, question.by)
            columns[COUNT][places] = found["_count"].to_numpy()
            if WEIGHTED in columns:
                columns[WEIGHTED][places] = integers(found["_weights"])
            for at, name in enumerate(question.measures):
                wholes, left = split(found[f"_sum_{at}"], by=MILLION // MEASURE_PARTS)
                columns[name][places] = wholes + (2 * left >= MILLION // MEASURE_PARTS)
    shape = tuple(map(len, question.by))
    return Cube(
        dimensions=question.by,
        columns={name: column.reshape(shape) for name, column in columns.items()},
        parts=parts,
    )


def record_totals(data: Microdata, tables: RecordTables, measures: tuple[str, ...]) -> RecordTotals:
    """What the records add up to, in floating point: to refuse what no cube can hold before anything is charged."""
    q = tables.engine.q
    weight = None if data.records.weight is None else f"CAST({q(data.records.weight)} AS DOUBLE)"
    times_weight = "" if weight is None else f" * {weight}"
    products = {name: f"CAST({q(name)} AS DOUBLE){times_weight}" for name in dict.fromkeys(measures)}
    asked = {"_records": "count(*)"}
    if weight is not None:
        asked |= {"_weights": f"sum({weight})", "_largest": f"max({weight})"}
    for at, product in enumerate(products.values()):
        asked |= {f"_sum_{at}": f"sum({product})", f"_most_{at}": f"max({product})"}
    row = tables.records.row(**asked)
    n = int(row["_records"])
    return RecordTotals(
        records=n,
        weights=float(row.get("_weights", n) or 0),
        largest_weight=float(row.get("_largest", 1) or 0),
        measures={name: float(row[f"_sum_{at}"] or 0) for at, name in enumerate(products)},
        largest={name: float(row[f"_most_{at}"] or 0) for at, name in enumerate(products)},
    )


def _weighed(data: Microdata, tables: RecordTables, question: CubeQuestion) -> Rows:
    records, column, q = tables.records, data.records.weight, tables.engine.q
    if column is None:
        weight = f"CAST({MILLION} AS BIGINT)"
    elif question.weight_unit is not None:
        units = f"CAST(floor(CAST({q(column)} AS DOUBLE) / {question.weight_unit} + 0.5) AS BIGINT)"
        weight = f"{units} * {question.weight_unit * MILLION}"
    else:
        weight = millionths(q(column))
    return records.select(
        **texts(records, (dimension.name for dimension in question.by)),
        _weight=weight,
        **{f"_value_{at}": f"CAST({q(name)} AS BIGINT)" for at, name in enumerate(question.measures)},
    )


# Replicate variances of tables of a cube, from which its variance function is fitted.


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
    names, q = [dimension.name for dimension in by], tables.engine.q
    rows = records.select(
        **texts(records, names),
        **{f"_weight_{at}": millionths(q(column)) for at, column in enumerate(columns)},
        **{f"_value_{at}": f"CAST({q(name)} AS BIGINT)" for at, name in enumerate(measures)},
    )
    sums = {f"_total_{r}": wide_sum(rows, f"_weight_{r}") for r in range(len(columns))}
    for at in range(len(measures)):
        sums |= {f"_sum_{at}_{r}": wide_sum(rows, f"_value_{at} * _weight_{r}") for r in range(len(columns))}
    found = rows.group(names, **sums).fetch()
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
        means[name] = _variance([ratio_to_positive(s, t) for s, t in zip(sums_of, totals, strict=True)], factor)
    return Estimates(totals=totals[0], variances=_variance(totals, factor), means=means)


def _variance(estimates: list[Floats], factor: float) -> Floats:
    """From the full sample's estimates, which come first, and those of the replicates."""
    full = estimates[0]
    squares = np.zeros(len(full))
    for replicate in estimates[1:]:
        squares += (replicate - full) ** 2
    return factor * squares
