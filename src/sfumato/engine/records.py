"""The one table of records: open it, look at its columns, read its public codes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engine.column_faults import check_attribute_type, check_measure_type, codes_of, need
from sfumato.engine.connect import open_tables
from sfumato.errors import DataError
from sfumato.frame import Codelist
from sfumato.microdata import Microdata

if TYPE_CHECKING:
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
