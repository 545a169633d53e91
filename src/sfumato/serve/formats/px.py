"""PX: the files of PC-Axis, and the JSON that PxWebApi version 1 has for the same."""

import json
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.frame.periods import in_time
from sfumato.serve.core.model import Metric, ServedDimension, TableAnswer
from sfumato.serve.core.status import BEYOND, REMARKS, SYMBOLS
from sfumato.serve.formats.layout import Grid, Options, legend

# PX files: the format of PC-Axis, with keywords, then the figures.

_LONGEST = 200
_MOST_DECIMALS = 6
_DATE = "%Y%m%d %H:%M"
_MISSING = {".": 1, "..": 2, "...": 3, BEYOND.symbol: 4, "?": 5}
"""By the symbol of a missing figure, how many dots the format has for it; the dash is the same in both."""
_WRITTEN = {symbol: f'"{"." * dots}"' for symbol, dots in _MISSING.items()}


def write_px(answer: TableAnswer, options: Options) -> bytes:
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


def _keywords(answer: TableAnswer, grid: Grid, options: Options) -> Iterator[str]:
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
    yield _keyword("CONTENTS", table.counted)
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
    marks = (f"{status.symbol} {status.meaning}" for status in legend(grid.remarks))
    yield _keyword("NOTE", "#".join((*answer.notes, *table.notes, *marks)))
    for symbol, dots in _MISSING.items():
        yield _keyword(f"DATASYMBOL{dots}", symbol)
    yield from _cell_notes(grid)


_TIME_SCALES = {1: ("A1", ""), 4: ("Q1", "1"), 12: ("M1", "02")}
"""What PC-Axis calls years, quarters and months, and how the parts of a year are written after it."""


def _about(axis: ServedDimension) -> Iterator[str]:
    yield _keyword("CODES", *axis.codes, of=(axis.label,))
    yield _keyword("VARIABLECODE", axis.name, of=(axis.label,))
    if axis.role == "time" and (periods := in_time(axis.codes)):
        scale, digits = _TIME_SCALES[periods[0].in_a_year]
        values = ",".join(
            _quoted(f"{period.year}{period.part:{digits}}" if digits else str(period)) for period in periods
        )
        yield f"TIMEVAL({_quoted(axis.label)})=TLIST({scale}),{values};"
    if axis.total is not None and axis.total in axis.places:
        yield _keyword("ELIMINATION", axis.labels[axis.places[axis.total]], of=(axis.label,))


def _cell_notes(grid: Grid) -> Iterator[str]:
    """The symbols that stand beside figures, each for the cell that these codes name."""
    beside = np.array([bool(remark.parts) and not remark.hides for remark in REMARKS])
    rows, columns = np.nonzero(beside[grid.remarks])
    codes = [
        [",".join(map(_quoted, of)) for of in product(*(d.codes for d in side))] for side in (grid.stub, grid.heading)
    ]
    numbers = grid.remarks[rows, columns].tolist()
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


# The JSON of PxWebApi version 1: columns, comments, and rows of keys and values as texts.

_TYPES = {"time": "t", "metric": "c"}


def write_json_px(answer: TableAnswer, options: Options) -> bytes:
    """The answer with a row for every combination of codes; missing figures are `..`."""
    return b"".join(json_px_parts(iter((answer,)), options))


def json_px_parts(answers: Iterator[TableAnswer], _options: Options) -> Iterator[bytes]:
    """Answers with the same columns as one, the rows of one after those of the other.

    Columns come last: what is to be said of each is known when all of its figures are.
    """
    columns: list[dict[str, str]] = []
    metrics: tuple[Metric, ...] = ()
    used = np.zeros((0, len(REMARKS)), dtype=np.bool_)
    for number, answer in enumerate(answers):
        if not number:
            metrics = answer.metrics
            used = np.zeros((len(metrics), len(REMARKS)), dtype=np.bool_)
            columns = [
                {"code": dimension.name, "text": dimension.label, "type": _TYPES.get(dimension.role or "", "d")}
                for dimension in answer.dimensions
            ]
        figures = zip(*(column.listed() for column in answer.columns), strict=True)
        keys = product(*(dimension.codes for dimension in answer.dimensions))
        remarks = answer.remarks().reshape(-1, len(metrics))
        patterns, of_row = np.unique(remarks, axis=0, return_inverse=True)
        used[np.arange(len(metrics)), patterns] = True
        comments = [_comment(pattern) for pattern in patterns]
        rows = [
            {"key": key, "values": [_text(value) for value in values], **comments[pattern]}
            for key, values, pattern in zip(keys, figures, of_row.ravel().tolist(), strict=True)
        ]
        before = ", " if number else '{"comments": [], "data": ['  # comments are those of codes, which have none
        yield (before + json.dumps(rows, ensure_ascii=False)[1:-1]).encode()
    contents = [
        {"code": metric.code, "text": metric.label, "type": "c", "unit": metric.unit, **_comment(np.flatnonzero(own))}
        for metric, own in zip(metrics, used, strict=True)
    ]
    yield f'], "columns": {json.dumps([*columns, *contents], ensure_ascii=False)}}}'.encode()


def _text(value: Any) -> str:
    # Clients read one symbol as missing; comments say why.
    return ".." if value is None else repr(value)


def _comment(remarks: NDArray[Any]) -> dict[str, str]:
    """What some figures are marked with, and why some are missing, in words; nothing where there is nothing to say."""
    words = "; ".join(status.meaning for status in legend(remarks))
    return {"comment": words} if words else {}
