"""Records made ready for many questions: codes and weights as integers, cells and their margins."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.cells import Dimension
from sfumato.engine.chunks import strides
from sfumato.engine.factors import KEYS, PRIME, UnitKeys, unit_keys
from sfumato.engine.query import Rows, text
from sfumato.engine.records import RecordTables
from sfumato.frame.records import Microdata
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import Keyed

# The cells of a table with its totals, and how finer cells add up to them.

Pair = tuple[Integers, Integers]
"""Whole units, and millionths from 0 to below a unit."""
_AT = "_at"
"""The period of a record, which tells the records of a unit apart."""
_HALF = 32
_LOW = 2**_HALF - 1


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Every combination of codes; with margins the last code of each dimension stands for all others together.

    The period has no such code.
    """

    by: tuple[Dimension, ...]
    margins: bool
    period: str | None = None

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(np.prod([len(dimension) for dimension in self.by], dtype=np.int64))

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that tell cells apart."""
        return tuple(dimension.name for dimension in self.by)

    def inner(self) -> tuple[Dimension, ...]:
        """The dimensions without the codes of totals."""
        if not self.margins:
            return self.by
        return tuple(
            d if d.name == self.period else Dimension(name=d.name, codes=d.codes[:-1], public=d.public) for d in self.by
        )

    def kept(self) -> list[tuple[str, ...]]:
        """The attributes that still tell cells apart in each kind of total; first all, which is no total."""
        if not self.margins:
            return [self.names]
        return [
            tuple(name for name, keep in zip(self.names, keeps, strict=True) if keep)
            for keeps in product(*((True,) if name == self.period else (True, False) for name in self.names))
        ]

    def codes(self, found: pa.Table, numbered: Mapping[str, tuple[str, ...]]) -> dict[str, Integers]:
        """The places in the dimensions of an answer's codes, which are numbered otherwise."""
        places = {}
        for dimension in self.inner():
            if dimension.name not in found.column_names:
                continue
            at = {code: place for place, code in enumerate(dimension.codes)}
            place = np.array([at.get(code, -1) for code in numbered[dimension.name]], dtype=np.int64)
            places[dimension.name] = place[found[dimension.name].to_numpy()]
            if (places[dimension.name] < 0).any():
                raise ValueError(f"a value of {dimension.name!r} is not in its codelist")
        return places

    def positions(self, codes: Mapping[str, Integers], kept: Sequence[str], rows: int) -> Integers:
        """Which cell rows count in; where an attribute is not kept, that is a total."""
        step = strides(self.by)
        at = np.zeros(rows, dtype=np.int64)
        for dimension in self.by:
            at += step[dimension.name] * (codes[dimension.name] if dimension.name in kept else len(dimension) - 1)
        return at

    def everywhere(self, codes: Mapping[str, Integers], rows: int) -> list[Integers]:
        """All cells rows count in: their own, and then each kind of total."""
        return [self.positions(codes, kept, rows) for kept in self.kept()]


def added(size: int, everywhere: Iterable[Integers], values: NDArray[Any]) -> NDArray[Any]:
    """What values add up to in every cell they count in."""
    sums = np.zeros(size, dtype=values.dtype)
    for positions in everywhere:
        np.add.at(sums, positions, values)
    return sums


def added_pair(size: int, everywhere: Sequence[Integers], values: Pair) -> Pair:
    """What whole units and millionths add up to, each sum in one way only."""
    whole, part = (added(size, everywhere, of) for of in values)
    return whole + part // ONE, part % ONE


def added_modulo(size: int, everywhere: Sequence[Integers], values: Integers) -> Integers:
    """What values below 2⁶¹ − 1 add up to modulo that."""
    high = added(size, everywhere, values >> _HALF)
    low = added(size, everywhere, values & _LOW)
    # 2³² · (a·2²⁹ + b) is a + b·2³², as 2⁶¹ is 1.
    high = (high >> 29) + ((high & (2**29 - 1)) << _HALF)
    sums: Integers = (high % PRIME + low % PRIME) % PRIME
    return sums


def ranked(positions: Integers, sizes: Integers, numbers: Integers, *, most: int) -> tuple[Integers, Integers]:
    """The rows with the largest sizes in each cell, equal ones by their numbers, and their ranks from 0."""
    order = np.lexsort((numbers, -sizes, positions))
    at = positions[order]
    begins = np.flatnonzero(np.concatenate([np.ones(min(len(at), 1), dtype=np.bool_), at[1:] != at[:-1]]))
    ranks = np.arange(len(at)) - np.repeat(begins, np.diff(np.append(begins, len(at))))
    return order[ranks < most], ranks[ranks < most]


def millionths(weight: str) -> str:
    """A weight in whole millionths, halves rounded up: by products and sums of floats, which are alike everywhere."""
    return f"CAST(floor(CAST({weight} AS DOUBLE) * CAST({ONE} AS DOUBLE) + CAST(0.5 AS DOUBLE)) AS BIGINT)"


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """What is known of the units of one level, beside the rows; never shown."""

    units: int = field(repr=False)
    """How many there are."""
    keys: NDArray[np.uint32] | None = field(repr=False)
    """The keys of units by their numbers; none where the key of a unit serves as its number."""
    repeated: int = field(repr=False)
    """How many units have several records."""
    most: int = field(repr=False)
    """The largest number of records of a unit."""

    def __len__(self) -> int:
        return self.units

    @property
    def numbers(self) -> int:
        """The numbers of units are below this."""
        return KEYS if self.keys is None else len(self.keys)

    def keys_of(self, numbers: Integers) -> Integers:
        """The keys of some units."""
        return numbers if self.keys is None else self.keys[numbers].astype(np.int64)

    @classmethod
    def of_records(cls, made: UnitKeys, *, numbered: bool) -> Self:
        """The records' own units, each of which has one record."""
        return cls(units=len(made), keys=made.by_number if numbered else None, repeated=0, most=1)


def prepared_rows(
    data: Microdata,
    tables: RecordTables,
    keyed: Keyed,
    *,
    attributes: Iterable[str],
    measures: Iterable[str],
    ordered: bool = False,
    few: bool = False,
) -> tuple[Rows, dict[str, tuple[str, ...]], tuple[Level, ...]]:
    """The rows, the codes that their numbers stand for, and the levels of units.

    Each attribute is a number from 0 under its own name, each measure a whole number. Where the data have weights,
    `_weight` is in millionths, and `_weighted_` before its name a measure times that; `_consent` is true or false. Of
    each level's unit, from 0 on, a row has the number `_unit_0`, the key `_key_0` and the guard word `_guard_0`; from 1
    on, `_repeated_1` is true where the unit has several rows. `_unit_0` is left out where keys serve as numbers.

    Rows that are `ordered` have those of a cell side by side, the attribute with the fewest codes changing slowest:
    that takes a while, and then questions are answered more quickly, those with filters above all. Rows for a `few`
    questions are not copied into the engine, which answers from them more slowly than from its own.
    """
    records, q, codes, levels = tables.records, tables.engine.q, {}, []
    columns = {f"_id_{level}": q(column) for level, column in enumerate(data.units)}
    columns |= {} if data.records.period is None else {_AT: q(data.records.period)}
    columns |= {f"_written_{name}": q(name) for name in attributes}
    columns |= {name: f"CAST({q(name)} AS BIGINT)" for name in measures}
    if data.records.weight is not None:
        columns["_weight"] = millionths(q(data.records.weight))
        columns |= {f"_weighted_{name}": f"{columns[name]} * {columns['_weight']}" for name in measures}
    if data.records.consent is not None:
        columns["_consent"] = q(data.records.consent)
    rows = records.select(**columns)
    # Beside rows that pass through here, keys are simply laid down. Other engines hold more rows than fit here, and
    # DuckDB works on disk once a limit of its memory is reached: there rows are joined with keys.
    passing = not tables.engine.is_distributed and data.memory is None and not ordered
    with ExitStack() as stack:
        for name in attributes:
            codes[name], numbered = _numbered(records, name)
            rows = _joined(rows, stack.enter_context(tables.lent(numbered)), [f"_written_{name}"])
        for level in range(len(data.units)):
            if level == 0 and passing:
                continue
            described, named = _named(records, data, level, keyed)
            levels.append(described)
            by = [name for name in (f"_id_{level}", _AT) if name in named.column_names]
            rows = _joined(rows, stack.enter_context(tables.lent(named)), by)
        if ordered and codes:
            rows = rows.in_order_of(*sorted(codes, key=lambda name: len(codes[name])))
        if not passing:
            return tables.keep(rows), codes, tuple(levels)
        own, laid = _laid(rows.fetch(), data, keyed, measures)
    if few:
        return tables.engine.lend(laid), codes, (own, *levels)
    with tables.lent(laid) as lent:
        return tables.keep(lent), codes, (own, *levels)


class UnitColumns:
    """What records have, by the number of their own unit; a column is fetched when it is first asked for."""

    def __init__(self, rows: Rows, units: int) -> None:
        self._rows, self._units = rows, units
        self._fetched: dict[str, NDArray[Any]] = {}

    def column(self, name: str) -> NDArray[Any]:
        """A column of the rows."""
        return self._of(name, self._rows.engine.q(name))

    def signs(self, measure: str) -> NDArray[Any]:
        """−1, 0 or 1 for every unit."""
        return self._of(f"_sign_{measure}", f"CAST(sign({self._rows.engine.q(measure)}) AS TINYINT)")

    def _of(self, name: str, expression: str) -> NDArray[Any]:
        if name not in self._fetched:
            found = self._rows.select("_unit_0", _found=expression).fetch()
            values = found["_found"].to_numpy()
            column = np.empty(self._units, dtype=values.dtype)
            column[found["_unit_0"].to_numpy()] = values
            self._fetched[name] = column
        return self._fetched[name]


def _joined(rows: Rows, lent: Rows, columns: Sequence[str]) -> Rows:
    return rows.join(lent, columns).without(*columns)


def _numbered(records: Rows, name: str) -> tuple[tuple[str, ...], pa.Table]:
    """The values of an attribute as text, and a table that numbers them."""
    values = records.select(name).distinct()
    found = values.select(_value=values.engine.q(name), _text=text(records, name)).fetch().sort_by("_text")
    width = np.int16 if found.num_rows < 2**15 else np.int32  # small numbers are grouped quickly
    numbers = np.arange(found.num_rows, dtype=width)
    return tuple(found["_text"].to_pylist()), pa.table({f"_written_{name}": found["_value"], name: numbers})


def _laid(rows: pa.Table, data: Microdata, keyed: Keyed, measures: Iterable[str]) -> tuple[Level, pa.Table]:
    """The records' own units, and the rows with their keys in place of their names."""
    made = unit_keys(rows["_id_0"], level=data.records.units[0], keyed=keyed)
    numbered = not _are_told_by_value(rows, data, measures)
    laid = dict(zip(rows.column_names, rows.columns, strict=True))
    for name in ("_id_0", _AT):
        laid.pop(name, None)
    laid |= {"_unit_0": made.numbers} if numbered else {}
    return Level.of_records(made, numbered=numbered), pa.table(laid | {"_key_0": made.keys, "_guard_0": made.guards})


def _are_told_by_value(rows: pa.Table, data: Microdata, measures: Iterable[str]) -> bool:
    """Whether the key and the size of a unit's value say all that matters of it.

    Two units that share both are then alike in every way, so that none needs a number of its own. Values must leave
    room for a key behind them in 64 bits.
    """
    if data.records.weight is not None or data.records.consent is not None:
        return False
    ends = [pc.min_max(rows[name]).as_py() for name in measures]
    return all((end["min"] or 0) >= 0 and (end["max"] or 0) < 2**63 // KEYS - 2 for end in ends)


def _named(records: Rows, data: Microdata, level: int, keyed: Keyed) -> tuple[Level, pa.Table]:
    """The units of a level, and a table that gives each of them its number and keys.

    Of the records' own units each period is listed by itself: numbers tell records apart, and keys units.
    """
    q, period = records.engine.q, data.records.period
    told = {f"_id_{level}": q(data.units[level])} | ({_AT: q(period)} if level == 0 and period is not None else {})
    names = records.select(**told)
    found = (names if level == 0 else names.group([f"_id_{level}"], _records="count(*)")).fetch()
    made = unit_keys(found[f"_id_{level}"], level=data.records.units[level], keyed=keyed)
    named = {name: found[name] for name in told} | {f"_unit_{level}": made.numbers}
    named |= {f"_key_{level}": made.keys.astype(np.int64), f"_guard_{level}": made.guards}
    if level == 0:
        return Level.of_records(made, numbered=True), pa.table(named)
    times = found["_records"].to_numpy()
    named[f"_repeated_{level}"] = times > 1
    repeated, most = int((times > 1).sum()), int(times.max(initial=1))
    return Level(units=len(made), keys=made.by_number, repeated=repeated, most=most), pa.table(named)
