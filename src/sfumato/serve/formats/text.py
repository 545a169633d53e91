"""Answers as text: CSV, PX files, and the JSON of PxWebApi version 1."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from sfumato.serve.core.model import Answer, Marks, ServedDimension
from sfumato.serve.core.status import BEYOND, SAID, SYMBOLS
from sfumato.serve.formats.sheets import Grid, Options, legend

# CSV: one header line, a row for every combination, safe to open in a spreadsheet.

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


# The JSON of PxWebApi version 1: columns, comments, and rows of keys and values as texts.

_TYPES = {"time": "t", "metric": "c"}


def write_json_px(answer: Answer, _options: Options) -> bytes:
    """The answer with a row for every combination of codes; missing figures are `..`."""
    columns = [
        {"code": dimension.name, "text": dimension.label, "type": _TYPES.get(dimension.role or "", "d")}
        for dimension in answer.dimensions
    ]
    said = answer.said()
    contents = [
        {"code": metric.code, "text": metric.label, "type": "c", "unit": metric.unit, **_comment(said[..., at])}
        for at, metric in enumerate(answer.metrics)
    ]
    figures = zip(*(column.listed() for column in answer.columns), strict=True)
    keys = product(*(dimension.codes for dimension in answer.dimensions))
    patterns, of_row = np.unique(said.reshape(-1, len(answer.metrics)), axis=0, return_inverse=True)
    comments = [_comment(pattern) for pattern in patterns]
    content = {
        "columns": [*columns, *contents],
        "comments": [],  # those of codes; R's pxweb reads what is said of figures from columns and rows
        "data": [
            {"key": key, "values": [_text(value) for value in values], **comments[pattern]}
            for key, values, pattern in zip(keys, figures, of_row.ravel().tolist(), strict=True)
        ],
    }
    return json.dumps(content, ensure_ascii=False).encode()


def _text(value: Any) -> str:
    # Clients read one symbol as missing; comments say why.
    return ".." if value is None else repr(value)


def _comment(said: Marks) -> dict[str, str]:
    """What some figures are marked with, and why some are missing, in words; nothing where there is nothing to say."""
    words = "; ".join(status.meaning for status in legend(said))
    return {"comment": words} if words else {}


# PX files: the format of PC-Axis, with keywords, then the figures.

_LONGEST = 200
_MOST_DECIMALS = 6
_DATE = "%Y%m%d %H:%M"
_MISSING = {".": 1, "..": 2, "...": 3, BEYOND.symbol: 4, "?": 5}
"""By the symbol of a missing figure, how many dots the format has for it; the dash is the same in both."""
_WRITTEN = {symbol: f'"{"." * dots}"' for symbol, dots in _MISSING.items()}


def write_px(answer: Answer, options: Options) -> bytes:
    """The answer as a PX file in UTF-8."""
    grid = Grid.of(answer, options)
    lines = [*_keywords(answer, grid, options), "DATA="]
    for cells, symbols in zip(grid.cells, grid.symbols, strict=True):
        figures = (
            _WRITTEN.get(symbol, '"-"') if value is None else _number(value)
            for value, symbol in zip(cells, symbols, strict=True)
        )
        lines.append(" ".join(figures))
    return ("\n".join(lines) + ";\n").encode("utf-8", "replace")


def _keywords(answer: Answer, grid: Grid, options: Options) -> Iterator[str]:
    table, axes = answer.table, (*grid.stub, *grid.heading)
    contents = answer.contents
    yield 'CHARSET="ANSI";'
    yield 'AXIS-VERSION="2013";'
    yield 'CODEPAGE="utf-8";'
    yield 'LANGUAGE="en";'
    yield _keyword("CREATION-DATE", table.updated.strftime(_DATE))
    yield f"DECIMALS={_MOST_DECIMALS};"
    yield f"SHOWDECIMALS={max(metric.decimals for metric in answer.metrics)};"
    yield _keyword("MATRIX", table.id[:20])
    yield _keyword("SUBJECT-CODE", table.population[:20])
    yield _keyword("SUBJECT-AREA", table.release)
    yield _keyword("TABLEID", table.id)
    yield _keyword("TITLE", f"{table.title}, {table.period}")
    yield "DESCRIPTIONDEFAULT=NO;"
    yield _keyword("CONTENTS", table.title)
    yield _keyword("UNITS", answer.metrics[0].unit)
    yield from (_keyword("STUB", *(d.label for d in grid.stub)),) if grid.stub else ()
    yield from (_keyword("HEADING", *(d.label for d in grid.heading)),) if grid.heading else ()
    yield _keyword("CONTVARIABLE", contents.label)
    for axis in axes:
        yield _keyword("VALUES", *axis.labels, of=(axis.label,))
    for axis in axes:
        yield from _about(axis)
    for metric in answer.metrics:
        yield _keyword("UNITS", metric.unit, of=(metric.label,))
        yield _keyword("LAST-UPDATED", table.updated.strftime(_DATE), of=(metric.label,))
        yield _keyword("REFPERIOD", table.period, of=(metric.label,))
        yield f"PRECISION({_quoted(contents.label)},{_quoted(metric.label)})={metric.decimals};"
    yield from (_keyword("SOURCE", options.source),) if options.source else ()
    yield from (_keyword("COPYRIGHT-LICENSE", options.license),) if options.license else ()
    marks = (f"{status.symbol} {status.meaning}" for status in legend(grid.said))
    yield _keyword("NOTE", "#".join((*answer.notes, *table.notes, *marks)))
    for symbol, dots in _MISSING.items():
        yield _keyword(f"DATASYMBOL{dots}", symbol)
    yield from _marked(grid)


def _about(axis: ServedDimension) -> Iterator[str]:
    yield _keyword("CODES", *axis.codes, of=(axis.label,))
    yield _keyword("VARIABLECODE", axis.name, of=(axis.label,))
    if axis.role == "time":
        scale = "Q1" if "Q" in axis.codes[0] else "A1"
        periods = ",".join(_quoted(code.replace("-", "").replace("Q", "")) for code in axis.codes)
        yield f"TIMEVAL({_quoted(axis.label)})=TLIST({scale}),{periods};"
    if axis.total is not None and axis.total in axis.places:
        yield _keyword("ELIMINATION", axis.labels[axis.places[axis.total]], of=(axis.label,))


def _marked(grid: Grid) -> Iterator[str]:
    """The symbols that stand beside figures, each for the cell that these codes name."""
    beside = np.array([bool(said.parts) and not said.hides for said in SAID])
    rows, columns = np.nonzero(beside[grid.said])
    codes = [
        [",".join(map(_quoted, of)) for of in product(*(d.codes for d in side))] for side in (grid.stub, grid.heading)
    ]
    numbers = grid.said[rows, columns].tolist()
    for row, column, number in zip(rows.tolist(), columns.tolist(), numbers, strict=True):
        cell = ",".join(filter(None, (codes[0][row], codes[1][column])))
        yield f'DATANOTECELL({cell})="{SYMBOLS[number]}";'


def _keyword(name: str, *texts: str, of: Sequence[str] = ()) -> str:
    which = f"({','.join(map(_quoted, of))})" if of else ""
    return f"{name}{which}=" + ",\n".join(map(_quoted, texts)) + ";"


def _quoted(text: str) -> str:
    """A text between quotation marks; long ones go on in further pairs of marks, which readers put together."""
    plain = " ".join(text.replace('"', "'").split())
    pieces = [plain[at : at + _LONGEST] for at in range(0, len(plain), _LONGEST)] or [""]
    return "\n".join(f'"{piece}"' for piece in pieces)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.{_MOST_DECIMALS}f}".rstrip("0").rstrip(".")
