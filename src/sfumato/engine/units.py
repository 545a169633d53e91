"""At most so many records of a unit, chosen by a key; and how many records units have."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engine.data import OpenRecords
from sfumato.engine.query import text
from sfumato.engine.records import RecordTables
from sfumato.frame.records import Microdata, UnitLimit
from sfumato.keys import Secret
from sfumato.noise.keyed import Keyed, hashes


@contextmanager
def within_limit(data: OpenRecords, limit: UnitLimit | None, secret: Secret | None) -> Iterator[OpenRecords]:
    """The records that are counted: all, or of every unit no more than a limit allows."""
    if limit is None:
        yield data
        return
    if secret is None:
        raise ValueError("a limit of records is kept by a key")
    dropped = _beyond(data.data, data.tables, limit, Keyed(key=secret.key))
    with data.tables.lent(dropped) as rows:
        kept = data.tables.records.join(rows, [data.data.records.unit], "anti")
        yield replace(data, tables=replace(data.tables, records=kept))


def records_of_units(tables: RecordTables, limit: UnitLimit) -> Mapping[int, int]:
    """How many units have so many records; confidential."""
    sizes = tables.records.group([limit.column], _records="count(*)").group(["_records"], _units="count(*)").fetch()
    return dict(sorted(zip(sizes["_records"].to_pylist(), sizes["_units"].to_pylist(), strict=True)))


def _beyond(data: Microdata, tables: RecordTables, limit: UnitLimit, keyed: Keyed) -> pa.Table:
    """The records that are left out, by their own unit; only units with more than the limit are looked at.

    The records of a unit are put in the order of keyed words of both names. The order of one unit depends on its own
    records alone, so that no other unit gains or loses a record by it; a larger limit keeps what a smaller one does.
    """
    records, own = tables.records, data.records.unit
    large = records.group([limit.column], _records="count(*)").where(f"_records > {limit.most}").select(limit.column)
    found = (
        records.join(large, [limit.column], "semi")
        .select(own, _unit=text(records, limit.column), _record=text(records, own))
        .fetch()
        .sort_by("_record")  # engines give rows in any order, and two words may be the same
    )
    words = keyed.words_of_pairs(hashes(found["_unit"]), hashes(found["_record"]), purpose=f"kept {limit.name}")
    units = pc.dictionary_encode(found["_unit"].combine_chunks()).indices.to_numpy(zero_copy_only=False)
    order = np.lexsort((words, units))
    ordered = units[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    ranks = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    return found.select([own]).take(pa.array(np.sort(order[ranks >= limit.most])))
