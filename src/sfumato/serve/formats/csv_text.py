"""CSV: one header line, a row for every combination, safe to open in a spreadsheet."""

import csv
import io

from sfumato.serve.formats.grid import Grid
from sfumato.serve.formats.options import Options
from sfumato.serve.model import Answer

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_csv(answer: Answer, options: Options) -> bytes:
    """The answer as CSV in UTF-8; the last column has the status of the row, in tables that have one."""
    grid = Grid.of(answer, options)
    texts = options.texts or "texts"
    lines = io.StringIO(newline="")
    writer = csv.writer(lines, delimiter=options.separator, quoting=csv.QUOTE_NONNUMERIC)
    if options.title:
        writer.writerow([as_text(answer.table.title)])
    status = ["status"] if answer.table.marks else []
    writer.writerow(map(as_text, [*grid.names(texts), *grid.column_texts(texts), *status]))
    safe = [tuple(map(as_text, row)) for row in grid.row_texts(texts)]
    writer.writerows(
        (*before, *cells, *([words] if status else []))
        for before, cells, words in zip(safe, grid.cells, grid.statuses, strict=True)
    )
    mark = "\ufeff" if options.byte_order_mark else ""
    return (mark + lines.getvalue()).encode()


def as_text(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> as_text("=1+1"), as_text("200+")
    ("'=1+1", '200+')
    """
    return f"'{text}" if text.startswith(_FORMULA) else text
