"""Columns as the data name them: those of another name in the files, and those that are made out of others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import pyarrow as pa

from sfumato.engine.faults import OUTSIDE, is_finite, refuse_zone
from sfumato.engine.headcounts import head_columns
from sfumato.engine.query import Rows, is_date, is_number, is_text, text
from sfumato.errors import DataError
from sfumato.frame.attributes import OTHERS, Attribute, Measure
from sfumato.frame.data import Data
from sfumato.frame.periods import layout
from sfumato.frame.sources import told_apart


@dataclass(frozen=True)
class FileRows:
    """The rows of a table of files; engines may call columns otherwise: DuckDB adds _1 to the second of A and a."""

    rows: Rows
    written: Sequence[str]
    """The names of the columns in the files, in order."""
    marks: tuple[str, str] = ("", ".")
    """What groups the digits of numbers in texts, and what stands before their decimals; nothing where none may."""

    def with_periods(self, data: Data, table: str, schema: pa.Schema) -> "FileRows":
        """Rows with the period that a date falls in where periods are dates, and the text of any other date."""
        roles, periods, rows = data.roles(), data.dated(), self.rows
        at = zip(rows.columns, self.written, strict=True)
        named = {name: column for name, column in at if roles.get(column) == "text" and is_date(rows.types[name])}
        for column in named.values():  # engines tell their own zone
            refuse_zone(schema.field(column).type, table, column)
        made = {
            name: _period(f"CAST({rows.engine.q(name)} AS DATE)", periods.get(column, ""))
            for name, column in named.items()
        }
        chosen = {name: made.get(name, rows.engine.q(name)) for name in rows.columns}
        return replace(self, rows=rows.select(**chosen)) if made else self

    def named(self, data: Data, table: str) -> Rows:
        """The rows with columns as the data name them; others keep their names as far as they are in nobody's way."""
        rows, q, above = self.rows, self.rows.engine.q, dict[str, tuple[tuple[str, str], ...]]()
        at = dict(zip(self.written, rows.columns, strict=True))
        links = {name: data.column_of(name) for name in data.links_by_table().get(table, ())}
        made = {name: q(at[column]) for name, column in (links | head_columns(data)).items() if column in at}
        for name in (*data.attributes, *data.measures):
            if table in data.holders(name) and (column := data.column_of(name)) in at:
                if counted_in := data.counted_in(name):
                    above[name] = counted_in
                made[name] = self._made(name, at[column], data.attributes.get(name), table, coded=name in above)
        for name, measure in data.measures.items():
            if name in made and measure.derivation():
                made[name] = self._amount(at[data.column_of(name)], measure)
        others = {told_apart(column): q(name) for column, name in at.items() if told_apart(column) not in made}
        alike = Counter(map(str.casefold, (*made, *others)))
        chosen = {name: column for name, column in others.items() if alike[name.casefold()] == 1} | made
        rows = rows if chosen == {name: q(name) for name in rows.columns} else rows.select(**chosen)
        for name, pairs in above.items():
            rows = _rolled_up(rows, name, pairs)
        return rows

    def _made(self, name: str, column: str, described: Attribute | None, table: str, *, coded: bool) -> str:
        """The expression for an attribute or measure. What no rule names is `OUTSIDE`, and refused as such."""
        rows, engine = self.rows, self.rows.engine
        if described is None or not (described.derivation() or coded):
            return engine.q(column)
        kind = rows.types[column]
        has_codes = is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        if not (has_codes if described.classes is None else is_text(kind) or is_number(kind)):
            raise DataError(
                f"attribute '{name}' in {table}",
                expected="a column with text or whole numbers" if described.classes is None else "a column of numbers",
                found=f"a column of type {kind}",
                do="correct `column`, or store it as one of these",
            )
        given = text(rows, column)
        if described.classes is not None:
            made = self._classified(column, kind, described.classes)
        else:
            made = given if described.digits is None else f"substr({given}, 1, {described.digits})"
            made = made if described.recode is None else self._recoded(made, described.recode)
        nothing = "NULL" if described.empty is None else engine.literal(described.empty)
        return f"CASE WHEN coalesce(trim({given}), '') = '' THEN {nothing} ELSE {made} END"

    def _amount(self, column: str, measure: Measure) -> str:
        """A measure in whole numbers of its smallest unit, and what stands for none."""
        number = self.rows.engine.q(column)
        if not is_number(kind := self.rows.types[column]):
            return number
        if measure.cap is not None and kind == pa.float64():
            number = f"CASE WHEN {number} > {_HUGE!r} AND {is_finite(number)} THEN {_HUGE!r} ELSE {number} END"
        if pa.types.is_integer(kind):
            made = f"CAST({number} AS BIGINT) * {measure.factor}"
            if measure.cap is not None and kind.bit_width == _BITS:
                made = _within_bits(number, made, kind, measure.factor)
        elif measure.fractions == "round":
            made = _rounded(number, kind, measure.factor)
        else:
            made = _in_smallest_units(number, kind, measure.factor)
        return made if measure.empty is None else f"coalesce({made}, {measure.empty})"

    def _classified(self, column: str, kind: pa.DataType, classes: Mapping[str, Fraction]) -> str:
        engine, number = self.rows.engine, self.rows.engine.q(column)
        if is_text(kind):
            number, kind = self._written(number), pa.float64()
        steps = [
            f"WHEN {number} >= {_least(kind, least)} THEN {engine.literal(code)}"
            for code, least in reversed(list(classes.items()))
        ]
        infinite = f"WHEN NOT {is_finite(number)} THEN '{OUTSIDE}'" if pa.types.is_floating(kind) else ""
        return f"CASE {infinite} {' '.join(steps)} ELSE '{OUTSIDE}' END"

    def _written(self, given: str) -> str:
        """The number that a text is, by the marks of its files; nothing where it is none."""
        literal, (thousands, decimal), bare = self.rows.engine.literal, self.marks, f"trim({given})"
        if thousands == " ":  # also those at which no line is broken
            for blank in ("\u00a0", "\u202f"):
                bare = f"replace({bare}, {literal(blank)}, ' ')"
        grouped = f"|[0-9]{{1,3}}([{thousands}][0-9]{{3}})+" if thousands else ""
        decimals, alone = (f"([{decimal}][0-9]*)?", f"|[{decimal}][0-9]+") if decimal else ("", "")
        pattern = f"^[+-]?(([0-9]+{grouped}){decimals}{alone})$"  # to both engines alike
        plain = f"replace({bare}, {literal(thousands)}, '')" if thousands else bare
        plain = f"replace({plain}, ',', '.')" if decimal == "," else plain
        return f"CASE WHEN regexp_replace({bare}, {literal(pattern)}, '') = '' THEN CAST({plain} AS DOUBLE) END"

    def _recoded(self, given: str, recode: Mapping[str, tuple[str, ...]]) -> str:
        engine, steps, rest = self.rows.engine, [], f"'{OUTSIDE}'"
        for code, old in recode.items():
            if named := [one for one in old if one != OTHERS]:
                steps.append(f"WHEN {engine.among(given, named)} THEN {engine.literal(code)}")
            if OTHERS in old:
                rest = engine.literal(code)
        return f"CASE {' '.join(steps)} ELSE {rest} END" if steps else rest


def _period(date: str, written: str) -> str:
    """The period in which a date falls, as periods are written; the date itself where none are."""
    length, between = layout(written) or ("", "")
    part = {"quarter": f"quarter({date})", "month": f"lpad(CAST(month({date}) AS STRING), 2, '0')"}.get(length)
    if length == "":
        return f"CAST({date} AS STRING)"
    year = f"CAST(year({date}) AS STRING)"
    return year if part is None else f"concat({year}, '{between}', CAST({part} AS STRING))"


def _rolled_up(rows: Rows, name: str, above: Sequence[tuple[str, str]]) -> Rows:
    """The rows with codes of an attribute counted in those above them; others, known or not, stay as they are.

    A join looks each code up; a condition for each would be ten times as slow.
    """
    engine, q = rows.engine, rows.engine.q
    below, upper = zip(*above, strict=True)
    known = engine.lend(pa.table({name: pa.array(below, pa.string()), "_above": pa.array(upper, pa.string())}))
    counted = {column: q(column) for column in rows.columns} | {name: f"coalesce({q('_above')}, {q(name)})"}
    return rows.join(known, [name], "left").select(**counted)


def _in_smallest_units(number: str, kind: pa.DataType, factor: int) -> str:
    """A number times its factor, exactly; a half, which is refused as not whole, where it has more decimals.

    A decimal number is the binary one nearest to it: if a whole number of units divided by the factor is that very
    binary number, of the precision that the file has, it is what was written.
    """
    value = f"CAST({number} AS DOUBLE)"
    units = f"round({value} * {factor})"
    written = f"{units} / {factor} = {value}"
    if kind == pa.float32():
        written = f"CAST({units} / {factor} AS FLOAT) = {number}"
    return f"CASE WHEN {written} THEN {units} ELSE floor({units}) + 0.5 END"


_BITS = 64
_HUGE = 2.0**960
"""Of binary numbers with a cap, which any factor leaves finite: what is above is cut off, however much it is."""


def _within_bits(number: str, made: str, kind: pa.DataType, factor: int) -> str:
    """A whole number times its factor where 64 bits hold that, and otherwise the most of it that they hold.

    For measures with a cap, which is far below: what is above is cut off, however much it is.
    """
    most = (2 ** (_BITS - 1) - 1) // factor
    least = "" if pa.types.is_unsigned_integer(kind) else f"WHEN {number} < -{most} THEN -{most * factor} "
    return f"CASE WHEN {number} > {most} THEN {most * factor} {least}ELSE {made} END"


_MOST_DIGITS = 38
"""Of decimals, in both engines."""
_WHOLE_DIGITS = 15
"""Of amounts that are rounded exactly; larger ones are refused later."""


def _rounded(number: str, kind: pa.DataType, factor: int) -> str:
    """A number times its factor, rounded, a half away from 0; decimals exactly, and binary numbers as they are."""
    value = f"round(CAST({number} AS DOUBLE) * {factor})"
    digits = len(str(factor))
    if not pa.types.is_decimal(kind) or kind.scale + _WHOLE_DIGITS + digits + 1 > _MOST_DIGITS:
        return value
    held = f"CAST({number} AS DECIMAL({_MOST_DIGITS - digits - 1}, {max(kind.scale, 0)}))"
    exact = f"CAST(round({held} * CAST({factor} AS DECIMAL({digits}, 0))) AS DOUBLE)"
    return f"CASE WHEN abs(CAST({number} AS DOUBLE)) < 1e{_WHOLE_DIGITS} THEN {exact} ELSE {value} END"


def _least(kind: pa.DataType, least: Fraction) -> str:
    """The least number of a class as a column of some type has it.

    Whole numbers and decimals are compared exactly. A binary number stands for the decimals that are rounded to it:
    0.3 is in the class that begins with 0.3, although its binary number is a little below.
    """
    if pa.types.is_floating(kind):
        return f"CAST('{float(least)!r}' AS {'FLOAT' if kind == pa.float32() else 'DOUBLE'})"
    scale = max(kind.scale, 0) if pa.types.is_decimal(kind) else 0
    whole = ceil(least * 10**scale)
    if not scale:
        return str(whole)
    digits = f"{abs(whole):0{scale + 1}}"
    return f"{'-' if whole < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
