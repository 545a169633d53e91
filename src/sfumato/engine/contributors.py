"""The largest contributors of every cell, its totals and its keys: all that the keyed perturbation of totals needs.

The columns of an answer are integers. Where units have levels, 0 is the record's own unit and 1, 2, … are larger ones;
contributors have ranks from 1 to the number that was asked for.

- `records`; `total`, `total_part`: Σ weight·value in whole units (rounded down) and the millionths left over;
  `weights`, `weights_part`: Σ weight. A weight counts in whole millionths, and is 1 where the data have none.
- `sampling_error`, `count_sampling_error`: standard errors of both sums in millionths, from replicate weights, else
  from the unit jackknife, else, without weights, 0.
- `units_0`: distinct units. `cell_key_0`: the sum of their keys modulo 2⁶¹ − 1, `guard_0` that of their guard words.
  `count_word_0`: the keyed word of the cell key.
- `value_0_1`: what the largest unit's records in the cell add up to; `weighted_0_1`, `weighted_part_0_1` the same with
  weights; `weight_0_1`: their weights, in millionths; `consent_0_1`: 1 where the unit, or any record of it in the cell,
  asked to be protected, or where the data have no such column. `unit_word_0_1`: a keyed word of the unit alone,
  `cell_word_0_1` one of unit and cell; words have 64 bits. All are 0 where a cell has fewer units.

Units are ordered by |value|, equal ones by key and then by name, so that all columns follow from the set of records in
a cell, whatever question led to it. A unit with the value 0 is a contributor too.
"""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.cells import Cells, Integers
from sfumato.engine.contributor_columns import Units, level_columns
from sfumato.engine.contributor_grid import Grid, added, added_modulo, added_pair
from sfumato.engine.contributor_rows import UnitColumns, prepared_rows
from sfumato.engine.largest_units import largest_units, unit_parts
from sfumato.engine.question import ContributorQuestion
from sfumato.engine.records import RecordTables
from sfumato.engine.sampling_errors import jackknife_errors, replicate_errors, squares, sum_of_squares
from sfumato.engine.wide_sums import modulo_prime, split, wide_sum
from sfumato.keys import Secret
from sfumato.microdata import Microdata
from sfumato.noise.factors import ONE
from sfumato.noise.keyed import Keyed

if TYPE_CHECKING:
    import ibis.expr.types as ir


def contributors(
    data: Microdata, tables: RecordTables, questions: Mapping[str, ContributorQuestion], secret: Secret
) -> dict[str, Cells]:
    """Answer every question with all its cells; the records must have been validated."""
    asked = questions.values()
    prepared = prepare(
        data,
        tables,
        secret,
        attributes=dict.fromkeys(name for q in asked for name in (*(d.name for d in q.by), *q.where)),
        measures=dict.fromkeys(q.measure for q in asked if q.measure is not None),
    )
    return {name: prepared.answer(question) for name, question in questions.items()}


def prepare(
    data: Microdata,
    tables: RecordTables,
    secret: Secret,
    *,
    attributes: Iterable[str] | None = None,
    measures: Iterable[str] | None = None,
) -> "Prepared":
    """Make validated records ready for questions about some attributes and measures, or about all of them."""
    keyed = Keyed(key=secret.key)
    measures = tuple(data.measures if measures is None else measures)
    attributes = tuple(data.attributes if attributes is None else attributes)
    rows, codes, keys = prepared_rows(data, tables, keyed, attributes=attributes, measures=measures)
    asked = {"_records": rows.count()} | {name: rows[name].abs().max() for name in measures}
    if data.records.weight is not None:
        asked |= {"_weight": rows["_weight"].max()}
        asked |= {f"_weighted_{name}": rows[f"_weighted_{name}"].abs().max() for name in measures}
    largest = {name: int(size or 0) for name, size in rows.agg(**asked).to_pyarrow().to_pylist()[0].items()}
    return Prepared(
        data=data,
        tables=tables,
        keyed=keyed,
        rows=rows,
        codes=codes,
        keys=keys,
        columns=UnitColumns(rows, len(keys[0])),
        largest=largest,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Records in the engine's memory with the keys of their units, to be asked many questions; it shows nothing."""

    data: Microdata = field(repr=False)
    tables: RecordTables = field(repr=False)
    keyed: Keyed = field(repr=False)
    rows: "ir.Table" = field(repr=False)
    codes: Mapping[str, tuple[str, ...]] = field(repr=False)
    """The codes of each attribute that its numbers in the rows stand for."""
    keys: tuple[NDArray[np.uint32], ...] = field(repr=False)
    """The keys of each level's units by their numbers."""
    columns: UnitColumns = field(repr=False)
    largest: Mapping[str, int] = field(repr=False)
    """The largest size of each measure, of its product with the weight, and of the weight."""

    def answer(self, question: ContributorQuestion) -> Cells:
        """All cells of one question, with the columns that this module describes."""
        grid = Grid(by=question.by, margins=question.margins)
        rows = self._asked(question)
        columns = self._records(rows, grid, question)
        for level in range(1, len(self.keys)):
            columns |= self._level(rows, grid, question, level)
        return Cells(dimensions=question.by, positions=np.arange(grid.size), columns=columns)

    @property
    def _is_weighted(self) -> bool:
        return self.data.records.weight is not None

    @property
    def _parts(self) -> int:
        """How many of the engine's parts make a unit of a weighted sum."""
        return ONE if self._is_weighted else 1

    def _asked(self, question: ContributorQuestion) -> "ir.Table":
        """The rows a question is about, with their `_value`, `_weighted` value, `_weight` and `_consent`."""
        import ibis  # noqa: PLC0415 (an engine is imported when it is used)

        rows = self.rows
        for name, codes in question.where.items():
            rows = rows.filter(rows[name].isin([at for at, code in enumerate(self.codes[name]) if code in codes]))
        one = ibis.literal(1, "int64")
        weight = rows["_weight"] if self._is_weighted else one
        if question.measure is None:
            value, weighted = one, weight
        else:
            value = rows[question.measure]
            weighted = rows[f"_weighted_{question.measure}"] if self._is_weighted else value
        return rows.mutate(
            _value=value,
            _weighted=weighted,
            _weight=weight,
            _consent=one if self.data.records.consent is None else rows["_consent"].cast("int64"),
        )

    def _records(self, rows: "ir.Table", grid: Grid, question: ContributorQuestion) -> dict[str, Integers]:
        """The columns of the records and of their own units; a unit is in one cell, so that totals can be merged."""
        sums = {"_total": wide_sum(rows["_weighted"]), "_weights": wide_sum(rows["_weight"])}
        jackknife = self._is_weighted and self.data.records.replicates is None
        if jackknife:
            sizes = {"_total": ("_weighted", f"_weighted_{question.measure}"), "_weights": ("_weight", "_weight")}
            for name, (column, size) in sizes.items():
                asked = squares(rows[column], self.largest[size if question.measure else "_weight"])
                sums |= {f"{name}{part}": square for part, square in asked.items()}
        found = largest_units(
            self.tables,
            _of_level(rows, 0),
            grid.names,
            most=question.contributors,
            numbers=len(self.keys[0]),
            largest=1 if question.measure is None else self.largest[question.measure],
            sums=sums,
            known=partial(self._known, question.measure),
        )
        cells = found.cells
        everywhere = grid.everywhere(grid.codes(cells, self.codes), cells.num_rows)
        records = added(grid.size, everywhere, cells["_units"].to_numpy())
        total, weights = (
            added_pair(grid.size, everywhere, split(cells[name], by=self._parts)) for name in ("_total", "_weights")
        )
        errors = [np.zeros_like(records), np.zeros_like(records)]
        if self.data.records.replicates is not None:
            errors = replicate_errors(self.data, self.tables, question, grid, (total, weights))
        elif jackknife:
            errors = [
                jackknife_errors(records, sums, added(grid.size, everywhere, sum_of_squares(cells, name)))
                for name, sums in (("_total", total), ("_weights", weights))
            ]
        key, guard = (added_modulo(grid.size, everywhere, modulo_prime(cells[name])) for name in ("_key", "_guard"))
        chosen = grid.everywhere(grid.codes(found.units, self.codes), found.units.num_rows)
        units = Units.of(found.units, parts=self._parts)
        return {
            "records": records,
            "total": total[0],
            "total_part": total[1],
            "weights": weights[0],
            "weights_part": weights[1],
            "sampling_error": errors[0],
            "count_sampling_error": errors[1],
            **level_columns(
                0,
                [(positions, units) for positions in chosen],
                units=records,
                key=key,
                guard=guard,
                most=question.contributors,
                keys=self.keys[0],
                keyed=self.keyed,
            ),
        }

    def _known(self, measure: str | None, numbers: Integers, sizes: Integers) -> dict[str, Integers]:
        """What the records of units have, from the numbers of the units and the sizes of their values."""
        value = sizes if measure is None else sizes * self.columns.signs(measure)[numbers]
        one = np.ones_like(sizes)
        weight = self.columns.column("_weight")[numbers] if self._is_weighted else one
        consent = one if self.data.records.consent is None else self.columns.column("_consent")[numbers]
        return {"_value": value, "_weighted": value * weight, "_weight": weight, "_consent": consent.astype(np.int64)}

    def _level(self, rows: "ir.Table", grid: Grid, question: ContributorQuestion, level: int) -> dict[str, Integers]:
        """The columns of larger units, which can be in many cells and are added up anew for every kind of total."""
        counted, key, guard = (np.zeros(grid.size, dtype=np.int64) for _ in range(3))
        placed = []
        with unit_parts(_of_level(rows, level), grid.names).cache() as finest:
            for kept in grid.kept():
                with nullcontext(finest) if kept == grid.names else unit_parts(finest, kept).cache() as parts:
                    found = largest_units(
                        self.tables,
                        parts,
                        kept,
                        most=question.contributors,
                        numbers=len(self.keys[level]),
                        largest=int(parts["_value"].abs().max().fill_null(0).execute()),
                    )
                cells = grid.positions(grid.codes(found.cells, self.codes), kept, found.cells.num_rows)
                counted[cells] = found.cells["_units"].to_numpy()
                key[cells], guard[cells] = modulo_prime(found.cells["_key"]), modulo_prime(found.cells["_guard"])
                chosen = grid.positions(grid.codes(found.units, self.codes), kept, found.units.num_rows)
                placed.append((chosen, Units.of(found.units, parts=self._parts)))
        return level_columns(
            level,
            placed,
            units=counted,
            key=key,
            guard=guard,
            most=question.contributors,
            keys=self.keys[level],
            keyed=self.keyed,
        )


def _of_level(rows: "ir.Table", level: int) -> "ir.Table":
    """The rows with the units of one level."""
    return rows.rename(_unit=f"_unit_{level}", _key=f"_key_{level}", _guard=f"_guard_{level}")
