"""The one table of records: open it, look at its columns, check units, weights, measures and codes."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from sfumato.engine.connect import Sources, open_tables
from sfumato.engine.faults import (
    Range,
    Units,
    check_attribute_type,
    check_codes,
    check_key_type,
    check_measure,
    check_measure_type,
    codes_of,
    faults_of,
    is_finite,
    refuse_empty,
    repeated_rows,
)
from sfumato.engine.lacking import columns_in_words, need
from sfumato.engine.memory import DataTotals
from sfumato.engine.query import Engine, Rows, is_number, times
from sfumato.errors import DataError
from sfumato.frame.codelists import Codelist
from sfumato.frame.records import Microdata, matching

HOLDER = "records"
"""What messages call the table."""


@dataclass(frozen=True, kw_only=True)
class RecordTables:
    """The records on an open engine."""

    engine: Engine
    records: Rows
    sources: Sources
    keep: Callable[[Rows], Rows]
    """Work rows out and keep them in the engine's memory, for as long as the engine is open."""

    @contextmanager
    def lent(self, table: pa.Table) -> Iterator[Rows]:
        """Lend a table for a while; what was made from it by then stays."""
        lent = self.engine.lend(table)
        try:
            yield lent
        finally:
            self.engine.take_back(lent)


@contextmanager
def connect_records(data: Microdata) -> Iterator[RecordTables]:
    """Open the engine of microdata with the records; everything temporary is dropped on leaving."""
    with open_tables(data) as (engine, opened, sources), ExitStack() as stack:

        def keep(rows: Rows) -> Rows:
            return stack.enter_context(rows.kept())

        yield RecordTables(engine=engine, records=opened["records"], sources=sources, keep=keep)


def check_record_columns(data: Microdata, tables: RecordTables) -> None:
    """Check that every column the data name exists and has a suitable type."""
    records = tables.records
    for column in data.units:
        check_key_type(records, column, HOLDER, "units")
    weights = () if data.records.weight is None else (data.records.weight, *replicate_columns(data, tables))
    for column in weights:
        need(records, HOLDER, column)
        if not is_number(records.types[column]):
            raise DataError(
                f"{HOLDER}, weight '{column}'",
                expected="numbers",
                found=f"a column of type {records.types[column]}",
                do="store the weights as numbers",
            )
    if data.records.consent is not None:
        need(records, HOLDER, data.records.consent)
        if not pa.types.is_boolean(records.types[data.records.consent]):
            raise DataError(
                f"{HOLDER}, consent '{data.records.consent}'",
                expected="true or false in every row",
                found=f"a column of type {records.types[data.records.consent]}",
                do="store the consent as true where the unit asked to be protected, and false elsewhere",
            )
    for name in data.attributes:
        need(records, HOLDER, name, called=data.column_of(name))
        check_attribute_type(records, name, HOLDER)
    for name in data.measures:
        check_measure_type(records, name, HOLDER, written=data.column_of(name))


def replicate_columns(data: Microdata, tables: RecordTables) -> tuple[str, ...]:
    """The columns of replicate weights, patterns resolved in the order of the table; at least two, or none at all."""
    described = data.records.replicates
    if described is None:
        return ()
    found: dict[str, None] = {}
    for pattern in described.columns:
        named = matching(pattern, tables.records.columns)
        if not named:
            raise DataError(
                f"{HOLDER}, replicate weights '{pattern}'",
                expected="a column of this name, or columns that match the pattern",
                found=f"the columns {columns_in_words(tables.records, pattern)}",
                do="correct `columns` under replicates, or the file",
            )
        found |= dict.fromkeys(named)
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
    looked_at: Collection[str] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> DataTotals:
    """Check units, weights, consent, measures and codes, and count the records; the first fault raises a DataError.

    Of attributes and measures all are checked, or those that are looked at.
    """
    looked_at = (*data.attributes, *data.measures) if looked_at is None else looked_at
    progress("units")
    totals = _check_units(data, tables)
    progress("weights")
    _check_weights(data, tables)
    _check_consent(data, tables)
    progress("measures")
    for name, measure in data.measures.items():
        if name in looked_at:
            check_measure(tables.records, name, measure, HOLDER)
    _check_sizes(data, tables, looked_at)
    progress("codes of attributes")
    # What a single record says is not shown, of public attributes either.
    attributes = tuple(name for name in data.attributes if name in looked_at)
    check_codes(tables.records, attributes, codelists, HOLDER, public=())
    return totals


def _check_units(data: Microdata, tables: RecordTables) -> DataTotals:
    records, q = tables.records, tables.engine.q
    filled = {column: Range.of(records, column) for column in data.units}
    for column, found in filled.items():
        refuse_empty(found, HOLDER, column)
    unit, period = data.records.unit, data.records.period
    if period is not None:
        _check_histories(data, tables, unit, period)
    elif repeated := Units(records, unit, filled[unit]).repeated():
        raise DataError(
            f"{HOLDER}, unit '{unit}'",
            expected="one record for each unit",
            found=f"{repeated:,} rows that repeat the unit of another row",
            do=f"add up the rows of a unit, or name it under `levels` and each row's own unit as `unit`, in "
            f"{data.records.path}",
        )
    # A unit that has one record is in one larger unit anyway.
    for lower, higher in pairwise(data.records.levels):
        # A panel may show a unit in one larger unit now and in another later.
        ends = records.group([lower, *filter(None, [period])], _first=f"min({q(higher)})", _last=f"max({q(higher)})")
        several = ends.where("_first <> _last").number()
        if several:
            raise DataError(
                f"{HOLDER}, columns '{lower}' and '{higher}'",
                expected=f"each '{lower}' to belong to one '{higher}'",
                found=f"{several:,} that belong to several",
                do="correct the rows, or the order of `levels`: smaller units come first",
            )
    if period is None:
        return DataTotals(records=filled[unit].rows)
    counts = records.row(units=f"count(DISTINCT {q(unit)})", periods=f"count(DISTINCT {q(period)})")
    return DataTotals(records=filled[unit].rows, **counts)


def _check_histories(data: Microdata, tables: RecordTables, unit: str, period: str) -> None:
    """Refuse two records of a unit in one period: noise that hides one would not hide both."""
    repeated = repeated_rows(tables.records, unit, period)
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
    records, q, replicates = tables.records, tables.engine.q, replicate_columns(data, tables)
    counted: dict[tuple[str, str], str] = {}
    for column in (weight, *replicates):
        words, least = ("not above 0", _LEAST_WEIGHT) if column == weight else ("below 0", 0)
        faults = {**faults_of(q(column)), words: times(f"{is_finite(q(column))} AND {q(column)} < {least}")}
        counted |= {(column, fault): times_found for fault, times_found in faults.items()}
    row = records.row(**{f"_{at}": times_found for at, times_found in enumerate(counted.values())})
    by_column: dict[str, list[str]] = {}
    for (column, fault), count in zip(counted, row.values(), strict=True):
        if count:
            by_column.setdefault(column, []).append(f"{count:,} {fault}")
    for column, wrong in by_column.items():
        kind = "weight" if column == weight else "replicate weight"
        raise DataError(
            f"{HOLDER}, {kind} '{column}'",
            expected=f"finite numbers {'above' if column == weight else 'not below'} 0 in every row",
            found=f"weights that are not: {', '.join(wrong)}",
            do=f"correct the rows in {data.records.path}; leave out those that count nothing, such as nonresponse with "
            "weight 0: a guarantee counts every record that is there",
        )
    for column in (weight, *replicates):
        if (records.row(_sum=f"sum(CAST({q(column)} AS DOUBLE))")["_sum"] or 0) >= LIMIT:
            raise DataError(
                f"{HOLDER}, weight '{column}'",
                expected=f"weights that are together below {LIMIT:.0e}",
                found="a larger sum",
                do="correct the weights, or divide all of them by the same number",
            )


def _check_consent(data: Microdata, tables: RecordTables) -> None:
    consent = data.records.consent
    if consent is None:
        return
    empty = tables.records.number(f"count(*) - count({tables.engine.q(consent)})")
    if empty:
        raise DataError(
            f"{HOLDER}, consent '{consent}'",
            expected="true or false in every row",
            found=f"{empty:,} rows without",
            do="fill them: true where the unit asked to be protected",
        )


def _check_sizes(data: Microdata, tables: RecordTables, looked_at: Collection[str]) -> None:
    """Refuse products that cannot be added up exactly in millionths."""
    records, q = tables.records, tables.engine.q
    weights = [None] if data.records.weight is None else [data.records.weight, *replicate_columns(data, tables)]
    for name in (name for name in data.measures if name in looked_at):
        value = f"abs(CAST({q(name)} AS DOUBLE))"
        sizes = [value if weight is None else f"{value} * CAST({q(weight)} AS DOUBLE)" for weight in weights]
        asked = {f"_large_{at}": times(f"{size} >= {LIMIT!r}") for at, size in enumerate(sizes)}
        sums = {f"_sum_{at}": f"coalesce(sum({size}), 0.0)" for at, size in enumerate([value, *sizes])}
        row = records.row(**asked, **sums)
        large = max(count for column, count in row.items() if column.startswith("_large_"))
        if large or any(total >= _ALL for column, total in row.items() if column.startswith("_sum_")):
            raise DataError(
                f"measure '{name}' in {HOLDER}",
                expected=f"values that, times the weight, stay below {LIMIT:.0e} in a row and {_ALL:.0e} in all",
                found=f"{large:,} rows with more" if large else "more in all",
                do="store the measure in a larger unit, such as thousands",
            )
