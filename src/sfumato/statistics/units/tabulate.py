"""Totals of the values of units by cell, with what the largest unit has, and in how many cells a unit is."""

import numpy as np
import pyarrow as pa

from sfumato.arrays import Integers
from sfumato.cells import Cells
from sfumato.engine.chunks import positions_of
from sfumato.engine.factors import split, wide_sum
from sfumato.engine.query import Rows, texts, total
from sfumato.engine.records import RecordTables
from sfumato.errors import DataError, ReleaseError
from sfumato.noise.factors import ONE
from sfumato.statistics.totals.tabulate_rows import millionths
from sfumato.statistics.units.question import HEAVIEST, NEGATIVE, RECORDS, UnitQuestion

MOST = 2**61
"""Totals stay below this, and scales of noise in their parts below twice as much."""


def unit_totals(tables: RecordTables, question: UnitQuestion) -> Cells:
    """All cells of a question with the columns `count` and `largest`; the records must have been validated.

    Where values may be below 0 these are of what is above 0, and others of what is below. Of weighted records `count`
    is rounded down to whole units, and `largest` and `heaviest`, the largest weight, are rounded up. `records` is their
    number, or what they weigh in millionths.
    """
    names = [dimension.name for dimension in question.by]
    signs = ("", NEGATIVE) if question.signed else ("",)
    rows = _rows(tables, question)
    if question.several:
        parts = {f"_{sign}value": total(f"_{sign}value") for sign in signs}
        rows = rows.group([*names, "_unit"], _weight=total("_weight"), _heaviest="max(_weight)", **parts)
    made = {"_heaviest": "max(_heaviest)", "_records": total("_weight")}
    for sign in signs:
        made |= {f"_{sign}total": wide_sum(rows, f"_{sign}value"), f"_{sign}largest": f"max(_{sign}value)"}
    found = rows.group(names, **made).fetch()
    places = positions_of(found, question.by, question.by)
    parts_of_one = ONE if question.weight else 1
    columns = {RECORDS: found["_records"].to_numpy()}
    if question.weight:
        columns[HEAVIEST] = -(-found["_heaviest"].to_numpy() // ONE)
    for sign in signs:
        columns[f"{sign}count"] = split(found[f"_{sign}total"].cast(pa.decimal128(38, 0)), by=parts_of_one)[0]
        columns[f"{sign}largest"] = -(-found[f"_{sign}largest"].to_numpy() // parts_of_one)
    empty = {HEAVIEST: 1}
    laid = {name: _laid(question, places, column, empty.get(name, 0)) for name, column in columns.items()}
    return Cells(dimensions=question.by, positions=np.arange(question.cells), columns=laid)


def _rows(tables: RecordTables, question: UnitQuestion) -> Rows:
    """The records a question is about: codes as text, the unit, its value or both parts of it, and the weight.

    Values of weighted records are in millionths, and the weight is one for others.
    """
    records, q, among = tables.records, tables.engine.q, tables.engine.among
    weight = "CAST(1 AS BIGINT)" if question.weight is None else millionths(q(question.weight))
    rows = records.select(
        **texts(records, question.attributes),
        _unit=q(question.unit),
        _amount=f"CAST({q(question.measure)} AS BIGINT)",
        _weight=weight,
    ).where(*(among(q(name), codes) for name, codes in question.where.items()))
    value = "_amount" if question.weight is None else "_amount * _weight"
    parts = {"_value": f"greatest({value}, 0)", f"_{NEGATIVE}value": f"greatest(-({value}), 0)"}
    return rows.with_columns(**(parts if question.signed else {"_value": value}), _heaviest="_weight")


def _laid(question: UnitQuestion, places: Integers, column: Integers, empty: int) -> Integers:
    laid = np.full(question.cells, empty, dtype=np.int64)
    laid[places] = column
    return laid


def refuse_unsuitable(tables: RecordTables, name: str, question: UnitQuestion, *, most_cells: int, parts: int) -> None:
    """Refuse units in more cells than declared, and amounts beyond 64 bits, before anything is charged.

    `parts` are of one in the scale of the noise: α is so many of these, or one, whichever is more.
    """
    rows = _rows(tables, question)
    if question.apart:
        names = [dimension.name for dimension in question.by]
        cells = rows.group([*names, "_unit"], _records="count(*)").group(["_unit"], _cells="count(*)")
        found = cells.number("coalesce(max(_cells), 0)")
        if found > most_cells:
            raise ReleaseError(
                f"table '{name}', most_cells",
                expected=f"no '{question.unit}' with records in more than {most_cells:,} "
                f"cell{'s' if most_cells > 1 else ''}, which epsilon is divided by",
                found=f"one with records in {found:,}",
                do=f"write protect = {{ …, most_cells = {found} }} if everyone may know it, or make the table by "
                f"attributes of the '{question.unit}' itself, or by fewer",
            )
    sizes = {"_all": "coalesce(sum(CAST(abs(_amount) AS DOUBLE) * CAST(_weight AS DOUBLE)), 0.0)"}
    row = rows.row(**sizes, _heaviest="coalesce(max(_weight), 0)")
    one = ONE if question.weight else 1
    scale = max(float(row["_all"]) / one, question.floor * (float(row["_heaviest"]) / one + 1)) * parts
    # What larger units have is added up in millionths of 64 bits where there are weights.
    added = float(row["_all"]) if question.several else 0.0
    if float(row["_all"]) / one >= MOST or scale >= MOST or added >= MOST:
        raise DataError(
            f"table '{name}', measure '{question.measure}'",
            expected=f"values, and the floor times the largest weight, that stay below {MOST / parts:.2g} in all"
            + (f", and below {MOST / one:.2g} where larger units are protected" if question.several else ""),
            found="more",
            do="store the measure in a larger unit, such as thousands, or choose an alpha with fewer decimals",
        )
