"""The cube of a table of records: counts, weights and measures of every combination of codes, exactly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sfumato.cells import Dimension
from sfumato.cube.cube import MILLION, Cube
from sfumato.cube.section import COUNT, MEASURE_PARTS, WEIGHTED
from sfumato.engine.contributor_rows import millionths
from sfumato.engine.positions import positions_of
from sfumato.engine.records import RecordTables
from sfumato.engine.text import text
from sfumato.engine.wide_sums import integers, split, wide_sum
from sfumato.microdata import Microdata

if TYPE_CHECKING:
    import ibis.expr.types as ir

_ROWS = 1_000_000
"""Cells that are fetched from the engine at a time."""


@dataclass(frozen=True, kw_only=True)
class CubeQuestion:
    """Count records, weigh them and sum measures in every combination of the codes of some attributes."""

    by: tuple[Dimension, ...]
    measures: tuple[str, ...] = ()
    weight_unit: int | None = None
    """What every weight is rounded to a multiple of first; None leaves them as they are, in millionths."""

    @property
    def looks_at(self) -> frozenset[str]:
        """Every attribute and measure whose values decide the answer."""
        return frozenset([*(dimension.name for dimension in self.by), *self.measures])

    @property
    def cells(self) -> int:
        """The number of cells, empty ones included."""
        return prod(map(len, self.by))


@dataclass(frozen=True, kw_only=True)
class RecordTotals:
    """What a cube has to hold, all records together; confidential."""

    records: int
    weights: float
    largest_weight: float
    measures: Mapping[str, float] = field(default_factory=dict)
    """Of each measure times the weight."""
    largest: Mapping[str, float] = field(default_factory=dict)
    """The largest of these of one record."""


def tabulated_cube(data: Microdata, tables: RecordTables, question: CubeQuestion) -> Cube:
    """The cube with the columns `count`, `weighted` in millionths, and each measure times the weight in thousandths.

    Records without weights have no column `weighted`: it would be the count again, and protected by a second draw.
    Memory holds the cube and a part of the cells that are not empty, however many records there are.
    """
    rows = _weighed(data, tables, question)
    names = [dimension.name for dimension in question.by]
    parts = dict.fromkeys(question.measures, MEASURE_PARTS)
    sums = {"_count": rows.count()}
    if data.records.weight is not None:
        parts = {WEIGHTED: MILLION} | parts
        sums["_weights"] = wide_sum(rows["_weight"])
    sums |= {f"_sum_{at}": wide_sum(rows[f"_value_{at}"] * rows["_weight"]) for at in range(len(question.measures))}
    columns = {name: np.zeros(question.cells, dtype=np.int64) for name in (COUNT, *parts)}
    grouped = rows.group_by(names).agg(**sums) if names else rows.agg(**sums)
    for batch in grouped.to_pyarrow_batches(chunk_size=_ROWS):
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
    records = tables.records
    weight = None if data.records.weight is None else records[data.records.weight].cast("float64")
    products = {
        name: records[name].cast("float64") * (1.0 if weight is None else weight) for name in dict.fromkeys(measures)
    }
    asked = {"_records": records.count()}
    if weight is not None:
        asked |= {"_weights": weight.sum(), "_largest": weight.max()}
    for at, product in enumerate(products.values()):
        asked |= {f"_sum_{at}": product.sum(), f"_most_{at}": product.max()}
    row = records.agg(**asked).to_pyarrow().to_pylist()[0]
    n = int(row["_records"])
    return RecordTotals(
        records=n,
        weights=float(row.get("_weights", n) or 0),
        largest_weight=float(row.get("_largest", 1) or 0),
        measures={name: float(row[f"_sum_{at}"] or 0) for at, name in enumerate(products)},
        largest={name: float(row[f"_most_{at}"] or 0) for at, name in enumerate(products)},
    )


def _weighed(data: Microdata, tables: RecordTables, question: CubeQuestion) -> "ir.Table":
    import ibis

    records, column = tables.records, data.records.weight
    if column is None:
        weight = ibis.literal(MILLION, "int64")
    elif question.weight_unit is not None:
        units = (records[column].cast("float64") / float(question.weight_unit) + 0.5).floor().cast("int64")
        weight = units * (question.weight_unit * MILLION)
    else:
        weight = millionths(records[column])
    return records.select(
        **{dimension.name: text(records[dimension.name], dimension.name) for dimension in question.by},
        _weight=weight,
        **{f"_value_{at}": records[name].cast("int64") for at, name in enumerate(question.measures)},
    )
