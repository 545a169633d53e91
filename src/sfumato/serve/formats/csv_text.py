"""CSV: one header line, a row for every combination, safe to open in a spreadsheet."""

import csv
import io
import re

from sfumato.serve.formats.grid import Grid
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Answer

_FORMULA = re.compile(
    r"[\t\r\n]|[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]"
)
"""Where a spreadsheet begins to calculate: it may trim what nobody sees, and take wide signs for narrow ones."""


def write_csv(answer: Answer, options: Options) -> bytes:
    """The answer as CSV in UTF-8; the last column says what is to be said of a row, in tables that have it."""
    grid = Grid.of(answer, options)
    texts = options.texts or "texts"
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, delimiter=options.separator, quoting=csv.QUOTE_NONNUMERIC)
    if options.title:
        writer.writerow([as_text(answer.table.title)])
    heads, rows = [*grid.names(texts), *grid.column_texts(texts)], grid.cells
    if answer.table.has_status:
        heads.append("status")
        rows = [[*cells, as_text(words)] for cells, words in zip(rows, grid.statuses(texts), strict=True)]
    writer.writerow(map(as_text, heads))
    writer.writerows((*map(as_text, before), *cells) for before, cells in zip(grid.row_texts(texts), rows, strict=True))
    mark = "\ufeff" if options.byte_order_mark else ""
    return (mark + lines.getvalue()).encode()


def as_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> as_text("=1+1"), as_text(" =1+1"), as_text("200+")
    ("'=1+1", "' =1+1", '200+')
    """
    return text if text[:1].isalnum() or not _FORMULA.match(text) else f"'{text}"
