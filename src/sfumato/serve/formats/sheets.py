"""An answer in rows and columns: as CSV, HTML, Excel and Parquet."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from sfumato.serve.core.model import Metric, TableAnswer
from sfumato.serve.core.status import RELIABILITY, REMARKS, SYMBOLS
from sfumato.serve.formats.layout import Grid, Options, axis_texts, legend

# CSV: one header line, a row for every combination, safe to open in a spreadsheet.

_FORMULA = re.compile(
    r"[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]"
)
"""Where a spreadsheet begins to calculate: it may trim what nobody sees, and take wide signs for narrow ones."""


def write_csv(answer: TableAnswer, options: Options) -> bytes:
    """The answer as CSV in UTF-8; the last column says what is to be said of a row, in tables that have it."""
    return b"".join(csv_parts(iter((answer,)), options))


def csv_parts(answers: Iterator[TableAnswer], options: Options) -> Iterator[bytes]:
    """Answers with the same columns as one table, the rows of one after those of the other."""
    texts = options.texts or "texts"
    for number, answer in enumerate(answers):
        grid = Grid.of(answer, options)
        lines = io.StringIO(newline="")
        writer = csv.writer(lines, delimiter=options.separator, quoting=csv.QUOTE_NONNUMERIC)
        if options.byte_order_mark and not number:
            lines.write("\ufeff")
        if options.title and not number:
            writer.writerow([as_text(answer.table.title)])
        heads, rows = [*grid.names(texts), *grid.column_texts(texts)], grid.cells
        if answer.table.has_status:
            heads.append("status")
            rows = [[*cells, as_text(words)] for cells, words in zip(rows, grid.statuses(texts), strict=True)]
        if not number:
            writer.writerow(map(as_text, heads))
        writer.writerows(
            (*map(as_text, before), *cells) for before, cells in zip(grid.row_texts(texts), rows, strict=True)
        )
        yield lines.getvalue().encode()


def as_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> as_text("=1+1"), as_text(" =1+1"), as_text("200+")
    ("'=1+1", "' =1+1", '200+')
    """
    return text if text[:1].isalnum() or not _FORMULA.match(text) else f"'{text}"


# HTML: a table with a caption and scopes, which screen readers can follow and browsers can print.


def write_html(answer: TableAnswer, options: Options) -> bytes:
    """The answer as a page without style or script."""
    title = escape(answer.table.title)
    used = legend(answer.remarks())
    marks = "".join(f"<dt>{escape(status.symbol)}</dt><dd>{escape(status.meaning)}</dd>" for status in used)
    notes = "".join(f"<p>{escape(note)}</p>" for note in (*answer.notes, *answer.table.notes))
    page = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>'
        f"{table_html(answer, options)}{f'<dl>{marks}</dl>' if marks else ''}<h2>Notes</h2>{notes}</body></html>"
    )
    return page.encode()


def table_html(answer: TableAnswer, options: Options) -> str:
    """The `<table>` alone."""
    grid = Grid.of(answer, options)
    texts = options.texts or "texts"
    parts = [f"<table><caption>{escape(answer.table.title)}, {escape(answer.table.period)}</caption><thead>"]
    span, names = 1, grid.names(texts)
    for dimension in grid.heading:
        span *= len(dimension)
    repeat = 1
    for level, dimension in enumerate(grid.heading):
        span //= len(dimension)
        last = level == len(grid.heading) - 1
        above = names if last else [""] * len(names)
        corner = "".join(f'<th scope="col">{escape(name)}</th>' if name else "<td></td>" for name in above)
        scope = f'scope="colgroup" colspan="{span}"' if span > 1 else 'scope="col"'
        heads = "".join(f"<th {scope}>{escape(text)}</th>" for text in axis_texts(dimension, texts)) * repeat
        parts.append(f"<tr>{corner}{heads}</tr>")
        repeat *= len(dimension)
    if not grid.heading:
        heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
        parts.append(f'<tr>{heads}<th scope="col">Figure</th></tr>')
    parts.append("</thead><tbody>")
    for number, (before, cells, symbols) in enumerate(
        zip(grid.row_texts(texts), grid.cells, grid.symbols, strict=True)
    ):
        begin = "".join(f'<th scope="row">{escape(text)}</th>' for text in before)
        metrics = grid.metrics if grid.wide else [grid.metrics[number]] * len(cells)
        figures = "".join(
            f"<td>{figure(value, metric, symbol)}</td>"
            for value, metric, symbol in zip(cells, metrics, symbols, strict=True)
        )
        parts.append(f"<tr>{begin}{figures}</tr>")
    return "".join([*parts, "</tbody></table>"])


def figure(value: float | None, metric: Metric, symbol: str) -> str:
    """A figure with as many digits as are worth showing, and its mark."""
    if value is None:
        return escape(symbol)
    text = f"{value:,.{metric.decimals}f}"
    return f"{text} <sup>{escape(symbol)}</sup>" if symbol else text


# Excel: a sheet with the table, one with what is said of each figure in the same cell, and one with notes.

TABLE, STATUS, NOTES = "Table", "Status", "Notes"
_WIDEST = 40


def write_xlsx(answer: TableAnswer, options: Options) -> bytes:
    """The answer as a workbook; every text is a text, so that nothing in it can run."""
    content = io.BytesIO()
    book = Workbook(content, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    # The same answer gives the same bytes.
    book.set_properties({"title": answer.table.title, "created": answer.table.updated.replace(tzinfo=None)})
    grid = Grid.of(answer, options)
    look = _Look.of(book, answer)
    _sheet(book.add_worksheet(TABLE, _ExactSheet), answer, options, grid, look, status=False)
    if answer.table.has_status:
        _sheet(book.add_worksheet(STATUS), answer, options, grid, look, status=True)
    _notes(book, book.add_worksheet(NOTES), answer, options)
    book.close()
    return content.getvalue()


class _ExactSheet(Worksheet):  # type: ignore[misc]  # the library has no types
    """A sheet whose numbers have all their digits: the library writes 16, and some decimals need one more."""

    def _xml_number_element(self, number: float, attributes: Sequence[tuple[str, Any]] = ()) -> None:
        said = "".join(f' {name}="{self._escape_attributes(value)}"' for name, value in attributes)
        self.fh.write(f"<c{said}><v>{number!r}</v></c>")


@dataclass(frozen=True, kw_only=True)
class _Look:
    """How cells look: titles, heads, symbols, and numbers by how many digits after the point they are shown with."""

    title: Format
    head: Format
    symbol: Format
    numbers: dict[int, Format]

    @classmethod
    def of(cls, book: Workbook, answer: TableAnswer) -> "_Look":
        decimals = {metric.decimals for metric in answer.metrics}
        return cls(
            title=book.add_format({"bold": True, "font_size": 13}),
            head=book.add_format({"bold": True, "text_wrap": True, "valign": "top"}),
            symbol=book.add_format({"align": "right", "font_color": "#555555"}),
            numbers={d: book.add_format({"num_format": "#,##0" + ("." + "0" * d if d else "")}) for d in decimals},
        )


def _sheet(sheet: Worksheet, answer: TableAnswer, options: Options, grid: Grid, look: _Look, *, status: bool) -> None:
    """The table with its figures, or in the same cells what is said of them."""
    texts = options.texts or "texts"
    top = 0
    if options.title:
        sheet.write_string(0, 0, answer.table.title, look.title)
        top = 2
    heads, width = [*grid.names(texts), *grid.column_texts(texts)], len(grid.stub)
    if answer.table.has_status and grid.single:
        # With several values in a row nobody could tell which of them is meant.
        heads.append("status")
        for row, words in enumerate(grid.statuses(texts), start=top + 1):
            sheet.write_string(row, len(heads) - 1, words)
    for column, text in enumerate(heads):
        sheet.write_string(top, column, text, look.head)
    for row, before in enumerate(grid.row_texts(texts), start=top + 1):
        for column, text in enumerate(before):
            sheet.write_string(row, column, text)
    _symbols(sheet, grid, look, top + 1, width, everywhere=status)
    if not status:
        _figures(sheet, grid, look, top + 1, width)
    for column, dimension in enumerate(grid.stub):
        longest = max(map(len, (dimension.label, *(dimension.codes if texts == "codes" else dimension.labels))))
        sheet.set_column(column, column, min(longest + 2, _WIDEST))
    sheet.set_column(width, max(len(heads) - 1, width), 16)
    sheet.freeze_panes(top + 1, width)


def _figures(sheet: Worksheet, grid: Grid, look: _Look, top: int, left: int) -> None:
    """Plain numbers, one in each cell that has any."""
    for number, cells in enumerate(grid.cells):
        for column, value in enumerate(cells):
            if value is not None:
                metric = grid.metrics[column if grid.wide else number]
                sheet.write_number(top + number, left + column, value, look.numbers[metric.decimals])


def _symbols(sheet: Worksheet, grid: Grid, look: _Look, top: int, left: int, *, everywhere: bool) -> None:
    """Symbols in place of missing figures, or `everywhere`."""
    wanted = np.array([bool(remark.parts) and (everywhere or remark.hides) for remark in REMARKS])
    rows, columns = np.nonzero(wanted[grid.remarks])
    numbers = grid.remarks[rows, columns].tolist()
    for row, column, number in zip(rows.tolist(), columns.tolist(), numbers, strict=True):
        sheet.write_string(top + row, left + column, SYMBOLS[number], look.symbol)


def _notes(book: Workbook, sheet: Worksheet, answer: TableAnswer, options: Options) -> None:
    bold, wrapped = book.add_format({"bold": True, "valign": "top"}), book.add_format({"text_wrap": True})
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 110)
    for row, (head, text) in enumerate(_note_lines(answer, options)):
        sheet.write_string(row, 0, head, bold)
        sheet.write_string(row, 1, text, wrapped)


def _note_lines(answer: TableAnswer, options: Options) -> Iterator[tuple[str, str]]:
    table = answer.table
    yield "Table", table.title
    yield "Release", table.release
    yield "Population", table.population
    yield "Period", table.period
    yield "Updated", table.updated.strftime("%Y-%m-%d")
    yield from (("Source", options.source),) if options.source else ()
    yield from (("Licence", options.license),) if options.license else ()
    for metric in answer.metrics:
        yield metric.label, f"{metric.description} ({metric.unit})" if metric.unit else metric.description
    if table.has_status:
        yield STATUS, "The sheet with this name has, in the cell of every figure, what is to be said of it:"
    yield from ((status.symbol, status.meaning) for status in legend(answer.remarks()))
    for note in (*answer.notes, *table.notes):
        yield "Note", note
    for paragraph in table.guarantee:
        yield "Guarantee", paragraph


# Parquet: a column for every dimension, with codes, and one for every metric, with its own type.

_RELIABILITY = pa.array([status.text for status in RELIABILITY], pa.string())


def write_parquet(answer: TableAnswer, options: Options) -> bytes:
    """The answer as a Parquet file; the last columns have the status of the bundle and what errors say of values."""
    content = pa.BufferOutputStream()
    pq.write_table(as_arrow(answer, options), content, compression="zstd")
    return bytes(content.getvalue())


def as_arrow(answer: TableAnswer, options: Options) -> pa.Table:
    """The answer as a table of columns, in the layout of the files of a bundle."""
    texts = options.texts or "codes"
    cells = int(np.prod(answer.shape, dtype=np.int64))
    places = np.unravel_index(np.arange(cells), answer.shape) if answer.shape else ()
    columns: dict[str, pa.Array] = {}
    for dimension, place in zip(answer.dimensions, places, strict=True):
        codes = pa.array(axis_texts(dimension, texts), pa.string())
        columns[dimension.name] = pa.DictionaryArray.from_arrays(pa.array(place.astype(np.int32)), codes)
    names = {metric.code: metric.code for metric in answer.metrics}
    names |= {answer.table.metrics[place].code: name for name, place in answer.table.contents.also}  # as in the bundle
    for metric, column in zip(answer.metrics, answer.columns, strict=True):
        missing = None if column.missing is None else column.missing.ravel()
        columns[names[metric.code]] = pa.array(column.values.ravel(), mask=missing)
    if answer.table.marks:
        columns["status"] = pa.array(answer.texts(), pa.string())
    values = [(m, c) for m, c in zip(answer.metrics, answer.columns, strict=True) if m.kind == "value"]
    for metric, column in values if any(answer.table.rating) else ():
        marks = np.zeros(cells, np.int8) if column.marks is None else column.marks.ravel()
        name = "reliability" if len(values) == 1 else f"{metric.code}_reliability"
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(marks), _RELIABILITY)
    return pa.table(columns)
