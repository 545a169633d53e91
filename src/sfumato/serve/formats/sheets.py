"""An answer in rows and columns: as CSV, HTML, Excel and Parquet."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.serve.core.model import Metric, ServedDimension, TableAnswer
from sfumato.serve.core.status import RELIABILITY, REMARKS, SYMBOLS
from sfumato.serve.formats.layout import Grid, Options, Texts, axis_texts, legend
from sfumato.serve.formats.workbook import (
    BOLD,
    HEAD,
    SYMBOL,
    TITLE,
    WRAPPED,
    Pane,
    Workbook,
    column_name,
    refuse_beyond_excel,
    text_cell,
)

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
    book = Workbook(answer.table.title, answer.table.updated)  # the same answer gives the same bytes
    grid = Grid.of(answer, options)
    _sheet(book, TABLE, answer, options, grid)
    if answer.table.has_status:
        _sheet(book, STATUS, answer, options, grid)
    lines = [
        book.labels([head], at, BOLD) + book.labels([text], at, WRAPPED, left=1)
        for at, (head, text) in enumerate(_note_lines(answer, options), start=1)
    ]
    book.add(NOTES, _rows(lines, 1), widths=[(0, 0, 24), (1, 1, 110)], pane=Pane(0, 0))
    return book.content()


def _rows(lines: Iterable[str], first: int) -> Iterator[str]:
    """Rows of finished cells."""
    return (f'<row r="{row}">{cells}</row>' for row, cells in enumerate(lines, start=first))


def _sheet(book: Workbook, name: str, answer: TableAnswer, options: Options, grid: Grid) -> None:
    """The table with its figures, or in the same cells what is said of them."""
    texts = options.texts or "texts"
    heads, width = [*grid.names(texts), *grid.column_texts(texts)], len(grid.stub)
    words: list[str] | None = None
    if answer.table.has_status and grid.single:
        # With several values in a row nobody could tell which of them is meant.
        heads.append("status")
        words = grid.statuses(texts)
    title = [book.labels([answer.table.title], 1, TITLE)] if options.title else []
    top = 3 if options.title else 1
    refuse_beyond_excel(top + len(grid.cells), len(heads))
    before = [[book.text(text) for text in axis_texts(dimension, texts)] for dimension in grid.stub]
    columns = [column_name(at) for at in range(len(heads))]
    left, own = columns[:width], columns[width : width + grid.remarks.shape[1]]
    figures = _symbol_cells(book, grid, own) if name == STATUS else _figure_cells(book, grid, own)

    def lines() -> Iterator[str]:
        for number, (labels, cells) in enumerate(zip(product(*before), figures, strict=True)):
            row = top + 1 + number
            parts = [f'<c r="{column}{row}" t="s"><v>{text}</v></c>' for column, text in zip(left, labels, strict=True)]
            parts += [f'<c r="{column}{row}" {cell}' for column, cell in cells]
            if words is not None:
                parts.append(text_cell(f"{columns[-1]}{row}", book.text(words[number])))
            yield "".join(parts)

    rows = [*_rows(title, 1), *_rows([book.labels(heads, top, HEAD)], top), *_rows(lines(), top + 1)]
    widths = [(at, at, min(_longest(dimension, texts) + 2, _WIDEST)) for at, dimension in enumerate(grid.stub)]
    book.add(name, rows, widths=[*widths, (width, max(len(heads) - 1, width), 16)], pane=Pane(top, width))


def _longest(dimension: ServedDimension, texts: Texts) -> int:
    return max(map(len, (dimension.label, *(dimension.codes if texts == "codes" else dimension.labels))))


Cells = Iterator[list[tuple[str, str]]]
"""For every row the letters of columns, and cells from their look on."""


def _figure_cells(book: Workbook, grid: Grid, columns: Sequence[str]) -> Cells:
    """Plain numbers with all their digits, and symbols in place of missing ones."""
    missing = _cells_of_symbols(book, grid, [remark.hides for remark in REMARKS])
    looks, wide = [f's="{book.number(metric.decimals)}"><v>' for metric in grid.metrics], grid.wide
    for number, (cells, remarks) in enumerate(zip(grid.cells, grid.remarks.tolist(), strict=True)):
        row_looks = looks if wide else [looks[number]] * len(cells)
        yield [
            (column, missing[remark] if value is None else f"{look}{value!r}</v></c>")
            for column, look, value, remark in zip(columns, row_looks, cells, remarks, strict=True)
            if value is not None or remark in missing
        ]


def _symbol_cells(book: Workbook, grid: Grid, columns: Sequence[str]) -> Cells:
    """The symbols of what is said of figures, mostly none."""
    said = _cells_of_symbols(book, grid, [bool(remark.parts) for remark in REMARKS])
    for remarks in grid.remarks.tolist():
        yield [(column, said[remark]) for column, remark in zip(columns, remarks, strict=True) if remark in said]


def _cells_of_symbols(book: Workbook, grid: Grid, wanted: Sequence[bool]) -> dict[int, str]:
    """By the number of each wanted remark that a figure has its cell, from its look on."""
    numbers = [number for number in np.unique(grid.remarks).tolist() if wanted[number]]
    return {number: f's="{SYMBOL}" t="s"><v>{book.text(SYMBOLS[number])}</v></c>' for number in numbers}


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
