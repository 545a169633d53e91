"""Numbers and dates that are texts in a workbook or a file of a statistics package, and which are none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engine.guesses import Wanted
from sfumato.engine.texts import and_others, day, literal, not_told, number, quoted
from sfumato.errors import DataError
from sfumato.frame.periods import YEARS
from sfumato.frame.sources import Format, Source
from sfumato.frame.texts import GROUP_OR_DECIMALS

if TYPE_CHECKING:  # only names for types
    import duckdb


KEPT = "\u2060"
"""Stands before a number of a workbook that is in a column of texts: it keeps its value, whatever marks texts have."""


@dataclass(frozen=True)
class TextCells:
    """Rows of which some columns are texts, as a query of DuckDB."""

    con: "duckdb.DuckDBPyConnection"
    source: Source
    wanted: Wanted
    kind: Format
    rows: str

    @property
    def marks(self) -> tuple[str, str]:
        """What groups the digits of numbers, and what stands before their decimals."""
        thousands = self.source.thousands or ""
        return thousands, self.source.decimal or ("," if thousands == "." else ".")

    def number(self, text: str, cast: str = "CAST") -> str:
        """The expression for the number of a cell: its own, or that of its text, with the marks that texts have."""
        own = f"CAST(substr({text}, 2) AS DOUBLE)"
        return f"CASE WHEN starts_with({text}, {literal(KEPT)}) THEN {own} ELSE {number(text, *self.marks, cast)} END"

    def first(self, name: str, condition: str) -> tuple[int, int]:
        """The first row of which something is true, and the number of such rows."""
        numbered = f"SELECT row_number() OVER () AS _row, {quoted(name)} FROM ({self.rows})"
        asked = f"SELECT coalesce(min(_row), 0), count(*) FROM ({numbered}) WHERE {condition}"
        row, times = self.con.execute(asked).fetchone() or (0, 0)
        return row, times

    def refuse_untold_marks(self, texts: Sequence[str]) -> None:
        """Refuse texts such as 1.250 where none tells whether that is a thousand and more, or one and some decimals."""
        numbers = [name for name in texts if self.wanted.role(name) in ("number", "weight")]
        if not numbers or self.source.thousands is not None or self.source.decimal is not None:
            return
        listed = ", ".join(f"trim({quoted(name)})" for name in numbers)
        values = f"SELECT unnest([{listed}]) AS _value FROM ({self.rows})"
        marked = f"contains({{}}, '.') AND NOT starts_with({{}}, {literal(KEPT)})"
        unlike = f"{marked.format('_value', '_value')} AND NOT regexp_full_match(_value, {literal(GROUP_OR_DECIMALS)})"
        if self.con.execute(f"SELECT _value FROM ({values}) WHERE {unlike} LIMIT 1").fetchone():
            return
        for name in numbers:
            row, times = self.first(name, marked.format(quoted(name), quoted(name)))
            if times:
                do = "" if self.kind == "excel" else "make a column of numbers of it in the file"
                raise not_told(f"{self.wanted.named}, column '{name}'", row, times, ".", do)

    def dates(self, name: str) -> str | None:
        """The expression for the dates of a column; None where most of its texts are none, and so no slips."""
        text, shown = quoted(name), [self.source.dates] if self.source.dates else ["2026-03-31", "31.03.2026"]
        tried = f"coalesce({', '.join(day(f'trim({text})', one, 'TRY_CAST') for one in shown)})"
        asked = f"SELECT count({tried}), count({text}) FROM ({self.rows})"
        fitting, filled = self.con.execute(asked).fetchone() or (0, 0)
        if 2 * fitting > filled > fitting:
            row, times = self.first(name, f"{text} IS NOT NULL AND ({tried}) IS NULL")
            raise DataError(
                f"{self.wanted.named}, column '{name}', row {row:,} below the heading",
                expected=f"a date from {YEARS[0]} to {YEARS[-1]}, as a text written as {' or '.join(shown)} is",
                found=f"something else{and_others(times)}",
                do='correct it, or say which words stand for no value: missing = ["NA"]',
            )
        return tried if fitting == filled > 0 else None
