"""Excel: a sheet with the table, and one with everything that is to be said of it."""

import io
from collections.abc import Iterator

from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from sfumato.serve.formats.grid import Grid, legend
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Answer
from sfumato.serve.status import NO_FIGURE

_WIDEST = 40


def write_xlsx(answer: Answer, options: Options) -> bytes:
    """The answer as a workbook; every text is a text, so that nothing in it can run."""
    content = io.BytesIO()
    book = Workbook(content, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    # The same answer gives the same bytes.
    book.set_properties({"title": answer.table.title, "created": answer.table.updated.replace(tzinfo=None)})
    _table(book, book.add_worksheet("Table"), answer, options)
    _notes(book, book.add_worksheet("Notes"), answer, options)
    book.close()
    return content.getvalue()


def _table(book: Workbook, sheet: Worksheet, answer: Answer, options: Options) -> None:
    grid, texts = Grid.of(answer, options), options.texts or "texts"
    bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
    decimals = {metric.decimals for metric in answer.metrics}
    numbers = {d: book.add_format({"num_format": "#,##0" + ("." + "0" * d if d else "")}) for d in decimals}
    marked = book.add_format({"align": "right", "font_color": "#555555"})
    top = 0
    if options.title:
        sheet.write_string(0, 0, answer.table.title, book.add_format({"bold": True, "font_size": 13}))
        top = 2
    status = ["status"] if answer.table.marks else []
    heads = [*grid.names(texts), *grid.column_texts(texts), *status]
    for column, text in enumerate(heads):
        sheet.write_string(top, column, text, bold)
    wide = any(dimension.role == "metric" for dimension in grid.heading)
    width = len(grid.stub)
    for number, (before, cells, symbols, words) in enumerate(
        zip(grid.row_texts(texts), grid.cells, grid.symbols, grid.statuses, strict=True)
    ):
        row = top + 1 + number
        for column, text in enumerate(before):
            sheet.write_string(row, column, text)
        for column, (value, symbol) in enumerate(zip(cells, symbols, strict=True)):
            if value is None:
                sheet.write_string(row, width + column, symbol, marked)
            else:
                metric = grid.metrics[column if wide else number]
                sheet.write_number(row, width + column, value, numbers[metric.decimals])
        if status:
            sheet.write_string(row, width + len(cells), words)
    for column, dimension in enumerate(grid.stub):
        longest = max(map(len, (dimension.label, *(dimension.codes if texts == "codes" else dimension.labels))))
        sheet.set_column(column, column, min(longest + 2, _WIDEST))
    sheet.set_column(width, max(len(heads) - 1, width), 16)
    sheet.freeze_panes(top + 1, width)


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
    yield from (*legend(answer), (NO_FIGURE.symbol, NO_FIGURE.meaning))
    for note in (*answer.notes, *table.notes):
        yield "Note", note
    for paragraph in table.guarantee:
        yield "Guarantee", paragraph
