"""The largest contributors of every cell, its totals and its keys: all that the keyed methods need."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.arrays import Integers, Words
from sfumato.cells import Cells
from sfumato.engine.factors import PRIME, modulo_prime, split, unbounded, wide_product, wide_sum
from sfumato.engine.query import Rows
from sfumato.engine.records import RecordTables
from sfumato.frame.records import Microdata
from sfumato.keys import Secret
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import Keyed
from sfumato.statistics.totals.question import ContributorQuestion
from sfumato.statistics.totals.tabulate_rows import (
    Grid,
    Level,
    UnitColumns,
    added,
    added_modulo,
    added_pair,
    prepared_rows,
    ranked,
)
from sfumato.statistics.totals.tabulate_sampling import (
    jackknife_errors,
    jackknife_ratio_errors,
    replicate_errors,
    squares,
    sum_of_squares,
)
from sfumato.statistics.totals.tabulate_units import Found, group_in_arrays, largest_units, sums_of_units, unit_parts
from sfumato.statistics.totals.tabulate_values import perturbed_columns, with_perturbed

# The columns of cells and of their largest units, from an engine's sums and the secret key.


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """Units that are among the largest of some cell, with what they have there."""

    columns: dict[str, Integers]
    """The unit's number, its value, weighted value, weight and consent."""

    @classmethod
    def of(cls, found: pa.Table, *, parts: int) -> Self:
        """The units an engine picked; `parts` make a unit of its weighted sums."""
        weighted = split(found["_weighted"].cast(pa.decimal128(38, 0)), by=parts)
        return cls(
            columns={
                "number": found["_unit"].to_numpy().astype(np.int64),
                "value": found["_value"].to_numpy().astype(np.int64),
                "weighted": weighted[0],
                "weighted_part": weighted[1],
                "weight": found["_weight"].to_numpy().astype(np.int64) * (ONE // parts),
                "consent": found["_consent"].to_numpy().astype(np.int64),
            },
        )


def level_columns(
    level: int,
    placed: Sequence[tuple[Integers, Units]],
    *,
    units: Integers,
    key: Integers,
    guard: Integers,
    records: Integers,
    most: int,
    keys_of: Callable[[Integers], Integers],
    keyed: Keyed,
) -> dict[str, Integers]:
    """The columns of one level: of all units of a cell together, and of its largest.

    `units`, `key` and `guard` are every cell's number of units and the sums of their keys and guard words; `placed`
    says in which cells units are, `most` how many of them to keep, and `keys_of` gives the keys of units by number.
    `records` is the sum of the keys of the records' own units: the noise of a larger unit depends on it too, so that
    one record more draws it anew even when its larger unit was there before.
    """
    word = keyed.words(key.astype(np.uint64), purpose="count").view(np.int64)
    columns = {"units": units, "cell_key": key, "guard": guard, "count_word": word}
    ranks = _of_ranks(placed, (len(key), most))
    number = ranks.pop("number")
    there = number >= 0
    unit = keys_of(number[there]).astype(np.uint64)
    cell = np.broadcast_to(records[:, None], number.shape)[there].astype(np.uint64)
    ranks["unit_word"] = _laid(there, keyed.words(unit, purpose="direction"))
    ranks["cell_word"] = _laid(there, keyed.words_of_pairs(unit, cell, purpose="size"))
    return {f"{name}_{level}": column for name, column in columns.items()} | {
        f"{name}_{level}_{rank + 1}": column[:, rank].copy() for name, column in ranks.items() for rank in range(most)
    }


def _of_ranks(placed: Sequence[tuple[Integers, Units]], shape: tuple[int, int]) -> dict[str, Integers]:
    """What the largest units of every cell have, by rank; their number is −1 where there are fewer."""
    positions = np.concatenate([at for at, _ in placed])
    columns = {name: np.concatenate([units.columns[name] for _, units in placed]) for name in placed[0][1].columns}
    rows, ranks = ranked(positions, np.abs(columns["value"]), columns["number"], most=shape[1])
    filled = {name: np.full(shape, -1 if name == "number" else 0, dtype=np.int64) for name in columns}
    for name, column in filled.items():
        column[positions[rows], ranks] = columns[name][rows]
    return filled


def _laid(there: NDArray[np.bool_], words: Words) -> Integers:
    """Words where there are units, and zeros elsewhere."""
    laid = np.zeros(there.shape, dtype=np.int64)
    laid[there] = words.view(np.int64)
    return laid


# The columns of an answer are integers. Where units have levels, 0 is the record's own unit and 1, 2, … are larger
# ones; contributors have ranks from 1 to the number that was asked for.
#
# - `records`; `total`, `total_part`: Σ weight·value in whole units (rounded down) and the millionths left over;
# `weights`, `weights_part`: Σ weight. A weight counts in whole millionths, and is 1 where the data have none. -
# `sampling_error`, `count_sampling_error`: standard errors of both sums in millionths, from replicate weights, else
# from the unit jackknife, else, without weights, 0; `mean_sampling_error`, where asked for: that of their ratio. -
# `units_0`: distinct units. `cell_key_0`: the sum of their keys modulo 2⁶¹ − 1, `guard_0` that of their guard words.
# `count_word_0`: the keyed word of the cell key. - `value_0_1`: what the largest unit's records in the cell add up to;
# `weighted_0_1`, `weighted_part_0_1` the same with weights; `weight_0_1`: their weights, in millionths; `consent_0_1`:
# 1. Where the data say who asked to be protected, only units that did, or any record of which in the cell did, have a
# rank. `unit_word_0_1`: a keyed word of the unit alone, `cell_word_0_1` one of unit and all records of the cell; words
# have 64 bits. All are 0 where a cell has fewer.
#
# Units are ordered by |value|, equal ones by key and then by name, so that all columns follow from the set of records
# in a cell, whatever question led to it. A unit with the value 0 is a contributor too.

Placed = tuple[Integers, Units]
"""Units, and the cells they are in."""
_FEW = 4
"""Passes over the rows that take no longer than to copy them first."""


def contributors(
    data: Microdata, tables: RecordTables, questions: Mapping[str, ContributorQuestion], secret: Secret
) -> dict[str, Cells]:
    """Answer every question with all its cells; the records must have been validated."""
    asked = questions.values()
    # Larger units are looked at twice: those with one record, and the others.
    passes = len(questions) * (2 * len(data.units) - 1)
    prepared = prepare(
        data,
        tables,
        secret,
        attributes=dict.fromkeys(name for q in asked for name in (*(d.name for d in q.by), *q.where)),
        measures=dict.fromkeys(q.measure for q in asked if q.measure is not None),
        few=passes <= _FEW,
    )
    return {name: prepared.answer(question) for name, question in questions.items()}


def prepare(
    data: Microdata,
    tables: RecordTables,
    secret: Secret,
    *,
    attributes: Iterable[str] | None = None,
    measures: Iterable[str] | None = None,
    ordered: bool = False,
    few: bool = False,
) -> "Prepared":
    """Make validated records ready for questions about some attributes and measures, or about all of them.

    Putting them in order takes longer, and pays where many questions follow; where only a `few` do, records are not
    copied into the engine.
    """
    group_in_arrays(tables)
    keyed = Keyed(key=secret.key)
    measures = tuple(data.measures if measures is None else measures)
    attributes = tuple(data.attributes if attributes is None else attributes)
    rows, codes, levels = prepared_rows(
        data, tables, keyed, attributes=attributes, measures=measures, ordered=ordered, few=few
    )
    q = tables.engine.q
    asked = {"_records": "count(*)"} | {name: f"max(abs({q(name)}))" for name in measures}
    asked |= {f"_least_{name}": f"min({q(name)})" for name in measures}
    if data.records.weight is not None:
        asked |= {"_weight": "max(_weight)"}
        asked |= {f"_weighted_{name}": f"max(abs({q(f'_weighted_{name}')}))" for name in measures}
    largest = {name: int(size or 0) for name, size in rows.row(**asked).items()}
    return Prepared(
        data=data,
        tables=tables,
        keyed=keyed,
        rows=rows,
        codes=codes,
        levels=levels,
        columns=UnitColumns(rows, len(levels[0])),
        largest=largest,
        signed=frozenset(name for name in measures if largest[f"_least_{name}"] < 0),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Records in the engine's memory with the keys of their units, to be asked many questions; it shows nothing."""

    data: Microdata = field(repr=False)
    tables: RecordTables = field(repr=False)
    keyed: Keyed = field(repr=False)
    rows: Rows = field(repr=False)
    codes: Mapping[str, tuple[str, ...]] = field(repr=False)
    """The codes of each attribute that its numbers in the rows stand for."""
    levels: tuple[Level, ...] = field(repr=False)
    columns: UnitColumns = field(repr=False)
    largest: Mapping[str, int] = field(repr=False)
    """The largest size of each measure, of its product with the weight, and of the weight."""
    signed: frozenset[str] = field(repr=False)
    """The measures with values below 0."""

    def answer(self, question: ContributorQuestion) -> Cells:
        """All cells of one question, with the columns that this module describes."""
        grid = Grid(by=question.by, margins=question.margins, period=question.period)
        rows = self._asked(question)
        columns = self._records(rows, grid, question)
        for level in range(1, len(self.levels)):
            columns |= self._level(rows, grid, question, level, columns["cell_key_0"])
        if question.noise is not None:
            top = len(self.levels) - 1
            with self.tables.engine.lending():
                moved = with_perturbed(rows, noise=question.noise, keyed=self.keyed, top=top)
                columns |= perturbed_columns(moved, grid, codes=self.codes, parts=self._parts, top=top)
        return Cells(dimensions=question.by, positions=np.arange(grid.size), columns=columns)

    def records_within(self, filters: Sequence[Mapping[str, Sequence[str]]]) -> Integers:
        """The number of records that pass each of some filters, in one pass over the rows."""
        names = list(dict.fromkeys(name for where in filters for name in where))
        found = self.rows.group(names, _records="count(*)").fetch()
        records, at = found["_records"].to_numpy(), {name: found[name].to_numpy() for name in names}
        counted = np.empty(len(filters), dtype=np.int64)
        for place, where in enumerate(filters):
            passed = np.ones(len(records), dtype=np.bool_)
            for name, codes in where.items():
                chosen = set(codes)
                passed &= np.array([code in chosen for code in self.codes[name]])[at[name]]
            counted[place] = records[passed].sum()
        return counted

    @property
    def _is_weighted(self) -> bool:
        return self.data.records.weight is not None

    @property
    def _parts(self) -> int:
        """How many of the engine's parts make a unit of a weighted sum."""
        return ONE if self._is_weighted else 1

    def _asked(self, question: ContributorQuestion) -> Rows:
        """The rows a question is about, with their `_value`, `_weighted` value, `_weight` and `_consent`."""
        q, among = self.tables.engine.q, self.tables.engine.among
        chosen = {
            name: [at for at, code in enumerate(self.codes[name]) if code in codes]
            for name, codes in question.where.items()
        }
        rows = self.rows.where(*(among(q(name), numbers) for name, numbers in chosen.items()))
        one = "CAST(1 AS BIGINT)"
        weight = "_weight" if self._is_weighted else one
        if question.measure is None:
            value, weighted = one, weight
        else:
            value = q(question.measure)
            weighted = q(f"_weighted_{question.measure}") if self._is_weighted else value
        return rows.with_columns(
            _value=value,
            _weighted=weighted,
            _weight=weight,
            _consent=one if self.data.records.consent is None else "CAST(_consent AS BIGINT)",
        )

    def _records(self, rows: Rows, grid: Grid, question: ContributorQuestion) -> dict[str, Integers]:
        """The columns of the records and of their own units; a unit is in one cell, so that totals can be merged."""
        sums = {"_total": wide_sum(rows, "_weighted")}
        if self._is_weighted:
            sums["_weights"] = wide_sum(rows, "_weight")
        jackknife = self._is_weighted and self.data.records.replicates is None
        if jackknife:
            weighted = "_weight" if question.measure is None else f"_weighted_{question.measure}"
            sums |= {f"_total{part}": s for part, s in squares(rows, "_weighted", self.largest[weighted]).items()}
            sums |= {f"_weights{part}": s for part, s in squares(rows, "_weight", self.largest["_weight"]).items()}
            if question.ratio:
                sums["_products"] = wide_product("_weighted", "_weight")
        parts = self._of_level(rows, 0)
        found = self._largest(parts, grid.names, question, 0, sums)
        cells, everywhere = found.cells, self._everywhere(found.cells, grid)
        records = added(grid.size, everywhere, cells["_units"].to_numpy())
        total, weights = (
            added_pair(grid.size, everywhere, split(cells[name], by=self._parts))
            for name in ("_total", "_weights" if self._is_weighted else "_units")
        )
        errors = [np.zeros_like(records) for _ in range(3)]
        if self.data.records.replicates is not None:
            errors = replicate_errors(self.data, self.tables, question, grid, (total, weights))
        elif jackknife:
            errors = [
                jackknife_errors(records, pair, added(grid.size, everywhere, sum_of_squares(cells, name)))
                for name, pair in (("_total", total), ("_weights", weights))
            ]
            if question.ratio:
                sizes = (
                    sum_of_squares(cells, "_total"),
                    unbounded(cells["_products"]),
                    sum_of_squares(cells, "_weights"),
                )
                summed = [added(grid.size, everywhere, size) for size in sizes]
                errors.append(jackknife_ratio_errors(records, total, weights, summed))
        if self.tables.engine.is_distributed:
            units = sums_of_units(self.tables, parts, grid.names, found.chosen)
        else:
            units = self._known(found.chosen, question.measure)
        keys = {name: added_modulo(grid.size, everywhere, modulo_prime(cells[name])) for name in ("_key", "_guard")}
        return {
            "records": records,
            "total": total[0],
            "total_part": total[1],
            "weights": weights[0],
            "weights_part": weights[1],
            "sampling_error": errors[0],
            "count_sampling_error": errors[1],
            **({"mean_sampling_error": errors[2]} if question.ratio else {}),
            **self._keyed(
                0, question, {"_units": records, "_records": keys["_key"], **keys}, self._placed(units, grid)
            ),
        }

    def _level(
        self, rows: Rows, grid: Grid, question: ContributorQuestion, level: int, records: Integers
    ) -> dict[str, Integers]:
        """The columns of larger units.

        Those with one record are in one cell, and merged to totals. The others can be in many cells, and are added up
        anew for every kind of total.
        """
        rows = self._of_level(rows, level)
        once, repeated = rows.where(f"NOT _repeated_{level}"), rows.where(f"_repeated_{level}")
        sums = {name: np.zeros(grid.size, dtype=np.int64) for name in ("_units", "_key", "_guard")}
        placed: list[Placed] = []

        def add(found: Found, rows: Rows, names: Sequence[str], kept: Sequence[str] | None) -> None:
            everywhere = self._everywhere(found.cells, grid, kept)
            sums["_units"] += added(grid.size, everywhere, found.cells["_units"].to_numpy())
            for name in ("_key", "_guard"):
                sums[name] += added_modulo(grid.size, everywhere, modulo_prime(found.cells[name]))
                sums[name] %= PRIME
            placed.extend(self._placed(sums_of_units(self.tables, rows, names, found.chosen), grid, kept))

        if self.levels[level].repeated < len(self.levels[level]):
            add(self._largest(once, grid.names, question, level), once, grid.names, None)
        if self.levels[level].repeated:
            with unit_parts(repeated, grid.names).kept() as finest:
                for kept in grid.kept():
                    parts = finest if kept == grid.names else unit_parts(finest, kept)
                    add(self._largest(parts, kept, question, level), repeated, kept, kept)
        return self._keyed(level, question, {**sums, "_records": records}, placed)

    def _largest(
        self,
        parts: Rows,
        names: Sequence[str],
        question: ContributorQuestion,
        level: int,
        sums: Mapping[str, str] | None = None,
    ) -> Found:
        of_records = 1 if question.measure is None else self.largest[question.measure]
        return largest_units(
            self.tables,
            parts,
            names,
            most=question.contributors,
            numbers=self.levels[level].numbers,
            largest=of_records * self.levels[level].most,
            asked_only=self.data.records.consent is not None,
            sums=sums,
        )

    def _known(self, chosen: pa.Table, measure: str | None) -> pa.Table:
        """What the records of units have, from the numbers of the units and the sizes of their values."""
        numbers, sizes = chosen["_unit"].to_numpy(), chosen["_size"].to_numpy()
        value = sizes * self.columns.signs(measure)[numbers] if measure in self.signed else sizes
        one = np.ones_like(sizes)
        weight = self.columns.column("_weight")[numbers] if self._is_weighted else one
        consent = one if self.data.records.consent is None else self.columns.column("_consent")[numbers]
        known = {"_value": value, "_weighted": value * weight, "_weight": weight, "_consent": consent}
        return pa.table({**dict(zip(chosen.column_names, chosen.columns, strict=True)), **known})

    def _everywhere(self, found: pa.Table, grid: Grid, kept: Sequence[str] | None = None) -> list[Integers]:
        """The cells that rows of an answer count in: all of them, or those where some attributes are kept."""
        codes = grid.codes(found, self.codes)
        if kept is None:
            return grid.everywhere(codes, found.num_rows)
        return [grid.positions(codes, kept, found.num_rows)]

    def _placed(self, units: pa.Table, grid: Grid, kept: Sequence[str] | None = None) -> list[Placed]:
        read = Units.of(units, parts=self._parts)
        return [(positions, read) for positions in self._everywhere(units, grid, kept)]

    def _keyed(
        self, level: int, question: ContributorQuestion, sums: Mapping[str, Integers], placed: Sequence[Placed]
    ) -> dict[str, Integers]:
        return level_columns(
            level,
            placed,
            units=sums["_units"],
            key=sums["_key"],
            guard=sums["_guard"],
            records=sums["_records"],
            most=question.contributors,
            keys_of=self.levels[level].keys_of,
            keyed=self.keyed,
        )

    def _of_level(self, rows: Rows, level: int) -> Rows:
        """The rows with the units of one level."""
        unit = f"_key_{level}" if self.levels[level].keys is None else f"_unit_{level}"
        return rows.with_columns(_key=f"_key_{level}", _guard=f"_guard_{level}", _unit=unit)


# The secret words of all units, by which cells that differ by one unit are noticed.


def guard_words(prepared: Prepared, level: int) -> Integers:
    """The words of all units of a level, ascending."""
    name = f"_guard_{level}"
    words = prepared.rows.select(name)
    # A unit of the records has one of them, and a larger one may have many.
    found = (words if level == 0 else words.distinct()).fetch()[name].to_numpy()
    return np.sort(found.astype(np.int64, copy=False))
