"""Records made ready for many questions: codes and weights as integers, every unit with its keys, in the engine."""

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engine.records import RecordTables
from sfumato.engine.text import text
from sfumato.engine.unit_keys import unit_keys
from sfumato.microdata import Microdata
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import Keyed

if TYPE_CHECKING:
    import ibis.expr.types as ir


def millionths(weight: "ir.NumericColumn") -> "ir.IntegerColumn":
    """A weight in whole millionths, halves rounded up: by products and sums of floats, which are alike everywhere."""
    return (weight.cast("float64") * float(ONE) + 0.5).floor().cast("int64")


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """What is known of the units of one level, beside the rows; never shown."""

    keys: NDArray[np.uint32] = field(repr=False)
    """The keys of units by their numbers."""
    repeated: int = field(repr=False)
    """How many units have several records."""
    most: int = field(repr=False)
    """The largest number of records of a unit."""

    def __len__(self) -> int:
        return len(self.keys)


def prepared_rows(
    data: Microdata,
    tables: RecordTables,
    keyed: Keyed,
    *,
    attributes: Iterable[str],
    measures: Iterable[str],
    ordered: bool = False,
) -> "tuple[ir.Table, dict[str, tuple[str, ...]], tuple[Level, ...]]":
    """The rows, the codes that their numbers stand for, and the levels of units.

    Each attribute is a number from 0 under its own name, each measure a whole number. Where the data have weights,
    `_weight` is in millionths, and `_weighted_` before its name a measure times that; `_consent` is true or false. Of
    each level's unit, from 0 on, a row has the number `_unit_0`, the key `_key_0` and the guard word `_guard_0`; from 1
    on, `_repeated_1` is true where the unit has several rows. Only names of units pass through Python.

    Rows that are `ordered` have those of a cell side by side, the attribute with the fewest codes changing slowest:
    that takes a while, and then questions are answered more quickly, those with filters above all.
    """
    records, codes, levels = tables.records, {}, []
    columns = {f"_id_{level}": records[column] for level, column in enumerate(data.units)}
    columns |= {f"_written_{name}": records[name] for name in attributes}
    columns |= {name: records[name].cast("int64") for name in measures}
    if data.records.weight is not None:
        columns["_weight"] = millionths(records[data.records.weight])
        columns |= {f"_weighted_{name}": columns[name] * columns["_weight"] for name in measures}
    if data.records.consent is not None:
        columns["_consent"] = records[data.records.consent]
    rows = records.select(**columns)
    with ExitStack() as stack:
        for name in attributes:
            codes[name], numbered = _numbered(records, name)
            rows = _joined(rows, stack.enter_context(tables.lent(numbered)), f"_written_{name}")
        for level, column in enumerate(data.units):
            described, named = _named(records, column, level, keyed)
            levels.append(described)
            rows = _joined(rows, stack.enter_context(tables.lent(named)), f"_id_{level}")
        if ordered:
            rows = rows.order_by(sorted(codes, key=lambda name: len(codes[name])))
        return tables.keep(rows), codes, tuple(levels)


class UnitColumns:
    """What records have, by the number of their own unit; a column is fetched when it is first asked for."""

    def __init__(self, rows: "ir.Table", units: int) -> None:
        self._rows, self._units = rows, units
        self._fetched: dict[str, NDArray[Any]] = {}

    def column(self, name: str) -> NDArray[Any]:
        """A column of the rows."""
        return self._of(name, self._rows[name])

    def signs(self, measure: str) -> NDArray[Any]:
        """−1, 0 or 1 for every unit."""
        return self._of(f"_sign_{measure}", self._rows[measure].sign().cast("int8"))

    def _of(self, name: str, expression: "ir.Column") -> NDArray[Any]:
        if name not in self._fetched:
            found = self._rows.select("_unit_0", _found=expression).to_pyarrow()
            values = found["_found"].to_numpy()
            column = np.empty(self._units, dtype=values.dtype)
            column[found["_unit_0"].to_numpy()] = values
            self._fetched[name] = column
        return self._fetched[name]


def _joined(rows: "ir.Table", lent: "ir.Table", column: str) -> "ir.Table":
    return rows.inner_join(lent, column).drop(column)


def _numbered(records: "ir.Table", name: str) -> tuple[tuple[str, ...], pa.Table]:
    """The values of an attribute as text, and a table that numbers them."""
    values = records.select(_value=records[name]).distinct()
    found = values.mutate(_text=text(values["_value"], "_text")).to_pyarrow().sort_by("_text")
    width = np.int16 if found.num_rows < 2**15 else np.int32  # small numbers are grouped quickly
    numbers = np.arange(found.num_rows, dtype=width)
    return tuple(found["_text"].to_pylist()), pa.table({f"_written_{name}": found["_value"], name: numbers})


def _named(records: "ir.Table", column: str, level: int, keyed: Keyed) -> tuple[Level, pa.Table]:
    """The units of a level, and a table that gives each of them its number and keys."""
    names = records.select(**{f"_id_{level}": records[column]})
    found = (names if level == 0 else names.group_by(f"_id_{level}").agg(_records=names.count())).to_pyarrow()
    made = unit_keys(found[f"_id_{level}"], level=column, keyed=keyed)
    named = {f"_id_{level}": found[f"_id_{level}"], f"_unit_{level}": made.numbers}
    named |= {f"_key_{level}": made.keys, f"_guard_{level}": made.guards}
    if level == 0:  # a unit has one record
        return Level(keys=made.by_number, repeated=0, most=1), pa.table(named)
    times = found["_records"].to_numpy()
    named[f"_repeated_{level}"] = times > 1
    described = Level(keys=made.by_number, repeated=int((times > 1).sum()), most=int(times.max(initial=1)))
    return described, pa.table(named)
