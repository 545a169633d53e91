"""Excel: a sheet with the table, one with what is said of each figure in the same cell, and one with notes."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from sfumato.serve.formats.grid import Grid, legend
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Answer
from sfumato.serve.status import SAID, SYMBOLS

TABLE, STATUS, NOTES = "Table", "Status", "Notes"
_WIDEST = 40


def write_xlsx(answer: Answer, options: Options) -> bytes:
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
    def of(cls, book: Workbook, answer: Answer) -> "_Look":
        decimals = {metric.decimals for metric in answer.metrics}
        return cls(
            title=book.add_format({"bold": True, "font_size": 13}),
            head=book.add_format({"bold": True, "text_wrap": True, "valign": "top"}),
            symbol=book.add_format({"align": "right", "font_color": "#555555"}),
            numbers={d: book.add_format({"num_format": "#,##0" + ("." + "0" * d if d else "")}) for d in decimals},
        )


def _sheet(sheet: Worksheet, answer: Answer, options: Options, grid: Grid, look: _Look, *, status: bool) -> None:
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
    wanted = np.array([bool(said.parts) and (everywhere or said.hides) for said in SAID])
    rows, columns = np.nonzero(wanted[grid.said])
    numbers = grid.said[rows, columns].tolist()
    for row, column, number in zip(rows.tolist(), columns.tolist(), numbers, strict=True):
        sheet.write_string(top + row, left + column, SYMBOLS[number], look.symbol)


def _notes(book: Workbook, sheet: Worksheet, answer: Answer, options: Options) -> None:
    bold, wrapped = book.add_format({"bold": True, "valign": "top"}), book.add_format({"text_wrap": True})
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 110)
    for row, (head, text) in enumerate(_said(answer, options)):
        sheet.write_string(row, 0, head, bold)
        sheet.write_string(row, 1, text, wrapped)


def _said(answer: Answer, options: Options) -> Iterator[tuple[str, str]]:
    table = answer.table
    yield "Table", table.title
    yield "Release", table.release
    yield "Population", table.population
    yield "Period", table.period
    yield "Updated", table.updated.strftime("%Y-%m-%d %H:%M UTC")
    yield from (("Source", options.source),) if options.source else ()
    yield from (("Licence", options.license),) if options.license else ()
    for metric in answer.metrics:
        yield metric.label, f"{metric.description} ({metric.unit})" if metric.unit else metric.description
    if table.has_status:
        yield STATUS, "The sheet with this name has, in the cell of every figure, what is to be said of it:"
    yield from ((status.symbol, status.meaning) for status in legend(answer.said()))
    for note in (*answer.notes, *table.notes):
        yield "Note", note
    for paragraph in table.guarantee:
        yield "Guarantee", paragraph
