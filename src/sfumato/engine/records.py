"""The one table of records: open it, look at its columns, check units, weights, measures and codes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from sfumato.engine.connect import open_tables
from sfumato.engine.faults import (
    Range,
    check_attribute_type,
    check_codes,
    check_measure,
    check_measure_type,
    codes_of,
    is_finite,
    need,
    refuse_empty,
    repeated_keys,
)
from sfumato.engine.memory import DataTotals
from sfumato.errors import DataError
from sfumato.frame import Codelist
from sfumato.microdata import Microdata

if TYPE_CHECKING:  # only names for types
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

    from sfumato.engine.connect import Lender


HOLDER = "records"
"""What messages call the table."""


@dataclass(frozen=True, kw_only=True)
class RecordTables:
    """The records on an open engine."""

    backend: "BaseBackend"
    records: "ir.Table"
    lend: "Lender"
    """Make an Arrow table one of the engine's, in memory, for as long as the engine is open."""
    keep: "Callable[[ir.Table], ir.Table]"
    """Compute an expression and keep its rows in the engine's memory, for as long as the engine is open."""

    @property
    def is_duckdb(self) -> bool:
        """Whether the engine is DuckDB, whose aggregates can return the largest few of a group."""
        return bool(self.backend.name == "duckdb")

    @contextmanager
    def lent(self, table: "pa.Table") -> "Iterator[ir.Table]":
        """Lend a table for a while; what was made from it by then stays."""
        lent = self.lend(table)
        try:
            yield lent
        finally:
            if self.is_duckdb:  # Spark keeps no copy, and may read what it was given only later
                self.backend.con.unregister(lent.get_name())


@contextmanager
def connect_records(data: Microdata) -> Iterator[RecordTables]:
    """Open the engine of microdata with the records; everything temporary is dropped on leaving."""
    with open_tables(data) as (backend, opened, lend), ExitStack() as stack:

        def keep(expression: "ir.Table") -> "ir.Table":
            kept = expression.cache()
            stack.callback(kept.release)
            return kept

        yield RecordTables(backend=backend, records=opened["records"], lend=lend, keep=keep)


def check_record_columns(data: Microdata, tables: RecordTables) -> None:
    """Check that every column the data name exists and has a suitable type."""
    records = tables.records
    for column in data.units:
        need(records, HOLDER, column)
        kind = records[column].type()
        if not (kind.is_string() or kind.is_integer()):
            raise DataError(
                f"{HOLDER}, column '{column}'",
                expected="whole numbers or text, which name units",
                found=f"a column of type {kind}",
                do="store the names of units as text",
            )
    weights = () if data.records.weight is None else (data.records.weight, *replicate_columns(data, tables))
    for column in weights:
        need(records, HOLDER, column)
        if not records[column].type().is_numeric():
            raise DataError(
                f"{HOLDER}, weight '{column}'",
                expected="numbers",
                found=f"a column of type {records[column].type()}",
                do="store the weights as numbers",
            )
    if data.records.consent is not None:
        need(records, HOLDER, data.records.consent)
        if not records[data.records.consent].type().is_boolean():
            raise DataError(
                f"{HOLDER}, consent '{data.records.consent}'",
                expected="true or false in every row",
                found=f"a column of type {records[data.records.consent].type()}",
                do="store the consent as true where the unit asked to be protected, and false elsewhere",
            )
    for name in data.attributes:
        need(records, HOLDER, name)
        check_attribute_type(records, name, HOLDER)
    for name in data.measures:
        check_measure_type(records, name, HOLDER)


def replicate_columns(data: Microdata, tables: RecordTables) -> tuple[str, ...]:
    """The columns of replicate weights, patterns resolved in the order of the table; at least two, or none at all."""
    described = data.records.replicates
    if described is None:
        return ()
    found: dict[str, None] = {}
    for pattern in described.columns:
        matching = described.matching(pattern, tables.records.columns)
        if not matching:
            raise DataError(
                f"{HOLDER}, replicate weights '{pattern}'",
                expected="a column of this name, or columns that match the pattern",
                found=f"the columns {', '.join(tables.records.columns)}",
                do="correct `columns` under replicates, or the file",
            )
        found |= dict.fromkeys(matching)
    others = {*data.units, *data.attributes, *data.measures, data.records.weight, data.records.consent}
    both = [column for column in found if column in others]
    if both or len(found) < 2:
        raise DataError(
            f"{HOLDER}, replicate weights",
            expected="at least two columns, none of them used for anything else",
            found=f"'{both[0]}', which has another use" if both else "only one",
            do="correct `columns` under replicates",
        )
    return tuple(found)


def read_record_codes(data: Microdata, tables: RecordTables) -> dict[str, Codelist]:
    """The codelist of every attribute; those not declared are public and read off the records, for keyed methods."""
    return {name: data.declared_codes(name) or codes_of(tables.records, name, HOLDER) for name in data.attributes}


# Whether records are sound: units, weights, consent, measures and codes.
#
# Messages count what is wrong and quote no record.

LIMIT = 4e12
"""A record's value times its weight stays below this, and so do all weights together: below 2⁶² in millionths."""
_ALL = 9e18
"""All values, with or without their weights, stay below this together: exact in 64 bits."""
_LEAST_WEIGHT = 0.5e-6
"""A smaller weight is none in whole millionths."""


def validate_records(
    data: Microdata,
    tables: RecordTables,
    codelists: Mapping[str, Codelist],
    progress: Callable[[str], None] = lambda _: None,
) -> DataTotals:
    """Check units, weights, consent, measures and codes, and count the records; the first fault raises a DataError."""
    progress("units")
    totals = _check_units(data, tables)
    progress("weights")
    _check_weights(data, tables)
    _check_consent(data, tables)
    progress("measures")
    for name, measure in data.measures.items():
        check_measure(tables.records, name, measure, HOLDER)
    _check_sizes(data, tables)
    progress("codes of attributes")
    # What a single record says is not shown, of public attributes either.
    check_codes(tables.records, tuple(data.attributes), codelists, HOLDER, public=())
    return totals


def _check_units(data: Microdata, tables: RecordTables) -> DataTotals:
    records = tables.records
    filled = {column: Range.of(records, column) for column in data.units}
    for column, found in filled.items():
        refuse_empty(found, HOLDER, column)
    unit, period = data.records.unit, data.records.period
    if period is not None:
        _check_histories(data, tables, unit, period)
    elif repeated := repeated_keys(records, unit, filled[unit]):
        raise DataError(
            f"{HOLDER}, unit '{unit}'",
            expected="one record for each unit",
            found=f"{repeated:,} rows that repeat the unit of another row",
            do=f"add up the rows of a unit, or name it under `levels` and each row's own unit as `unit`, in "
            f"{data.records.path}",
        )
    # A unit that has one record is in one larger unit anyway.
    for lower, higher in pairwise(data.records.levels):
        ends = records.group_by(lower).agg(_first=records[higher].min(), _last=records[higher].max())
        several = int(ends.filter(ends["_first"] != ends["_last"]).count().execute())
        if several:
            raise DataError(
                f"{HOLDER}, columns '{lower}' and '{higher}'",
                expected=f"each '{lower}' to belong to one '{higher}'",
                found=f"{several:,} that belong to several",
                do="correct the rows, or the order of `levels`: smaller units come first",
            )
    if period is None:
        return DataTotals(records=filled[unit].rows)
    counts = records.agg(units=records[unit].nunique(), periods=records[period].nunique()).to_pyarrow().to_pylist()[0]
    return DataTotals(records=filled[unit].rows, **counts)


def _check_histories(data: Microdata, tables: RecordTables, unit: str, period: str) -> None:
    """Refuse two records of a unit in one period: noise that hides one would not hide both."""
    records = tables.records
    pairs = records.group_by(unit, period).agg(_rows=records.count())
    repeated = int((pairs["_rows"] - 1).sum().fill_null(0).execute())
    if repeated:
        raise DataError(
            f"{HOLDER}, unit '{unit}' and period '{period}'",
            expected="at most one record for each unit and period",
            found=f"{repeated:,} rows that repeat the unit and period of another row",
            do=f"add up or choose among the rows of a unit in a period, in {data.records.path}",
        )


def _check_weights(data: Microdata, tables: RecordTables) -> None:
    weight = data.records.weight
    if weight is None:
        return
    records = tables.records
    counted = {
        (weight, fault): count for fault, count in _faults(records, weight, least=_LEAST_WEIGHT, words="not above 0")
    }
    for column in replicate_columns(data, tables):
        counted |= {(column, fault): count for fault, count in _faults(records, column, least=0, words="below 0")}
    row = records.agg([count.name(f"_{at}") for at, count in enumerate(counted.values())]).to_pyarrow().to_pylist()[0]
    by_column: dict[str, list[str]] = {}
    for (column, fault), count in zip(counted, row.values(), strict=True):
        if count:
            by_column.setdefault(column, []).append(f"{count:,} {fault}")
    for column, wrong in by_column.items():
        kind = "weight" if column == weight else "replicate weight"
        raise DataError(
            f"{HOLDER}, {kind} '{column}'",
            expected=f"finite numbers {'above' if column == weight else 'not below'} 0 in every row",
            found=f"weights that are {', '.join(wrong)}",
            do="correct the rows",
        )
    for column in (weight, *replicate_columns(data, tables)):
        if float(records[column].cast("float64").sum().fill_null(0).execute()) >= LIMIT:
            raise DataError(
                f"{HOLDER}, weight '{column}'",
                expected=f"weights that are together below {LIMIT:.0e}",
                found="a larger sum",
                do="correct the weights, or divide all of them by the same number",
            )


def _faults(records: "ir.Table", column: str, *, least: float, words: str) -> "list[tuple[str, ir.IntegerScalar]]":
    """How many rows have a weight that is none."""
    weight = records[column]
    finite = is_finite(weight)
    return [
        ("empty", records.count() - weight.count()),
        ("not finite", weight.count() - finite.sum()),
        (words, (finite & (weight < least)).sum()),
    ]


def _check_consent(data: Microdata, tables: RecordTables) -> None:
    consent = data.records.consent
    if consent is None:
        return
    empty = int((tables.records.count() - tables.records[consent].count()).execute())
    if empty:
        raise DataError(
            f"{HOLDER}, consent '{consent}'",
            expected="true or false in every row",
            found=f"{empty:,} rows without",
            do="fill them: true where the unit asked to be protected",
        )


def _check_sizes(data: Microdata, tables: RecordTables) -> None:
    """Refuse products that cannot be added up exactly in millionths."""
    records = tables.records
    weights = [None] if data.records.weight is None else [data.records.weight, *replicate_columns(data, tables)]
    for name in data.measures:
        value = records[name].cast("float64").abs()
        sizes = [value if weight is None else value * records[weight].cast("float64") for weight in weights]
        asked = [(size >= LIMIT).sum().fill_null(0).name(f"_large_{at}") for at, size in enumerate(sizes)]
        sums = [size.sum().fill_null(0).name(f"_sum_{at}") for at, size in enumerate([value, *sizes])]
        row = records.agg([*asked, *sums]).to_pyarrow().to_pylist()[0]
        large = max(count for column, count in row.items() if column.startswith("_large_"))
        if large or any(total >= _ALL for column, total in row.items() if column.startswith("_sum_")):
            raise DataError(
                f"measure '{name}' in {HOLDER}",
                expected=f"values that, times the weight, stay below {LIMIT:.0e} in a row and {_ALL:.0e} in all",
                found=f"{large:,} rows with more" if large else "more in all",
                do="store the measure in a larger unit, such as thousands",
            )
