"""What can be wrong with a column of any table: its type, its codes, its numbers.

Messages count what is wrong. They show examples only of public attributes: a value of a confidential one, or a key,
would put a record on somebody's screen.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engine.keys import Range
from sfumato.engine.text import text
from sfumato.errors import DataError
from sfumato.frame import Codelist, Measure

if TYPE_CHECKING:
    import ibis.expr.types as ir

_TOGETHER = 20_000
"""Attributes are counted in one pass while the product of their codelists stays below this."""
_MOST_VALUES = 1_000_000
"""No more distinct values of a column than this are looked at."""


def need(table: "ir.Table", holder: str, column: str) -> None:
    """Refuse a table without a column that the release file names."""
    if column not in table.columns:
        raise DataError(
            f"{holder}, column '{column}'",
            expected=f"a column '{column}'",
            found=f"the columns {', '.join(table.columns)}",
            do="correct the name in the release file, or the file",
        )


def check_attribute_type(table: "ir.Table", name: str, holder: str) -> None:
    """Refuse an attribute whose values cannot be codes."""
    kind = table[name].type()
    if not (kind.is_string() or kind.is_integer() or kind.is_boolean()):
        raise DataError(
            f"attribute '{name}' in {holder}",
            expected="text, whole numbers or true/false, whose codes the codelist gives",
            found=f"a column of type {kind}",
            do="store the codes of the attribute as text",
        )


def check_measure_type(table: "ir.Table", name: str, holder: str) -> None:
    """Refuse a measure that is missing or has no numbers."""
    need(table, holder, name)
    if not table[name].type().is_numeric():
        raise DataError(
            f"measure '{name}' in {holder}",
            expected="numbers",
            found=f"a column of type {table[name].type()}",
            do="store the measure as whole numbers of its smallest unit",
        )


def codes_of(table: "ir.Table", name: str, holder: str) -> Codelist:
    """The codes of a public attribute, read off its column."""
    values = _values(table, [name])
    _refuse_nulls(values, name, holder)
    codes = sorted(values[name].to_pylist())
    if not codes or any(not code.strip() for code in codes):
        raise DataError(
            f"attribute '{name}' in {holder}",
            expected="codes that are not empty",
            found="no rows" if not codes else "rows with an empty code",
            do="fill the codes, or give a codelist in the release file",
        )
    return Codelist.of(codes)


def check_codes(
    table: "ir.Table",
    names: Sequence[str],
    codelists: Mapping[str, Codelist],
    holder: str,
    *,
    public: Collection[str],
) -> None:
    """Refuse attributes without a code or with one that is not in the codelist; only public codes are shown."""
    for group in _groups(names, codelists):
        values = _values(table, group)
        for name in group:
            _refuse_nulls(values, name, holder)
            _refuse_unknown(values, name, holder, codelists[name], public=name in public)


def refuse_empty(filled: Range, holder: str, column: str) -> None:
    """Refuse rows without a key."""
    if filled.empty:
        raise DataError(
            f"{holder}, column '{column}'",
            expected="a key in every row",
            found=f"{filled.empty:,} rows without one",
            do="fill the keys, or remove these rows",
        )


def check_measure(table: "ir.Table", name: str, measure: Measure, holder: str) -> None:
    """Refuse a measure that is not whole, finite and, unless it is clipped, within its bounds in every row."""
    column = table[name]
    finite = is_finite(column)
    counted = {
        "empty": table.count() - column.count(),
        "not finite": column.count() - finite.sum(),
    }
    if measure.outside == "refuse":
        counted[f"below {float(measure.minimum):g}"] = (finite & (column < float(measure.minimum))).sum()
    if measure.outside == "refuse" and measure.maximum is not None:
        counted[f"above {float(measure.maximum):g}"] = (finite & (column > float(measure.maximum))).sum()
    if column.type().is_floating():
        counted["not whole"] = (finite.ifelse(column, 0.0) % 1 != 0).sum()
    row = table.agg(**counted).to_pyarrow().to_pylist()[0]
    wrong = [f"{count:,} {fault}" for fault, count in row.items() if count]
    if wrong:
        raise DataError(
            f"measure '{name}' in {holder}",
            expected="whole, finite numbers within the measure's bounds in every row",
            found=f"values that are {', '.join(wrong)}",
            do='correct the rows, or state other bounds (minimum, maximum, or outside = "clip") under [data.measures]',
        )


def is_finite(column: "ir.NumericColumn") -> "ir.BooleanColumn":
    """Where a column has a number that is neither infinite nor NaN."""
    # Both engines order NaN above every number, while their tests for NaN and null disagree.
    return (column.abs() <= sys.float_info.max).fill_null(False)


def _groups(names: Sequence[str], codelists: Mapping[str, Codelist]) -> list[list[str]]:
    """Attributes that can be counted in one pass: as many as keep the number of combinations small."""
    groups: list[list[str]] = []
    for name in sorted(names, key=lambda name: len(codelists[name].codes)):
        if groups and prod(len(codelists[n].codes) for n in (*groups[-1], name)) <= _TOGETHER:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def _values(table: "ir.Table", names: list[str]) -> pa.Table:
    """The combinations of values that occur, each with its number of rows."""
    columns = table.select(**{name: text(table[name], name) for name in names})
    return columns.group_by(names).agg(_rows=columns.count()).limit(_MOST_VALUES).to_pyarrow()


def _refuse_nulls(values: pa.Table, name: str, holder: str) -> None:
    rows = pc.sum(pc.filter(values["_rows"], pc.is_null(values[name]))).as_py()
    if rows:
        raise DataError(
            f"attribute '{name}' in {holder}",
            expected="a code in every row",
            found=f"{rows:,} rows without one",
            do="fill them, for instance with a code for 'unknown' that the codelist has too",
        )


def _refuse_unknown(values: pa.Table, name: str, holder: str, codelist: Codelist, *, public: bool) -> None:
    unknown = values.filter(pc.invert(pc.is_in(values[name], value_set=pa.array(codelist.codes, pa.string()))))
    rows = pc.sum(unknown["_rows"]).as_py()
    if not rows:
        return
    examples = sorted(set(unknown[name].to_pylist()))
    shown = f": {', '.join(map(repr, examples[:5]))}{' …' if len(examples) > 5 else ''}" if public else ""
    raise DataError(
        f"attribute '{name}' in {holder}",
        expected=f"one of the {len(codelist.codes):,} codes of its codelist",
        found=f"{rows:,} rows with {len(examples):,} other values{shown}",
        do="add the codes to the codelist, or correct the rows",
    )
