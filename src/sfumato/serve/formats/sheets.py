"""An answer laid out in rows and columns: as HTML, Excel and Parquet show it."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.model import Answer, Metric, ServedDimension
from sfumato.serve.core.status import BEYOND, HAS_NONE, NO_FIGURE, RELIABILITY, SAID, STATUSES, SYMBOLS, CellStatus

# How an answer is to be written: codes or texts, a title, what goes into rows and columns.

Texts = Literal["codes", "texts", "both"]
_TEXTS: dict[str, Texts] = {"usecodes": "codes", "usetexts": "texts", "usecodesandtexts": "both"}
_SEPARATORS = {"separatortab": "\t", "separatorspace": " ", "separatorsemicolon": ";"}
PARAMETERS = (
    "UseCodes",
    "UseTexts",
    "UseCodesAndTexts",
    "IncludeTitle",
    "SeparatorTab",
    "SeparatorSpace",
    "SeparatorSemicolon",
    "ByteOrderMark",
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a client may choose about the writing of an answer."""

    texts: Texts | None = None
    """Codes, texts or both; each format has a habit of its own where nothing is said."""
    title: bool = False
    separator: str = ","
    byte_order_mark: bool = False
    """Whether a CSV file begins with the mark by which Excel knows UTF-8."""
    heading: tuple[str, ...] | None = None
    """The dimensions that go into columns; the metrics when not given."""
    stub: tuple[str, ...] | None = None
    source: str = ""
    license: str = ""
    url: str = ""
    linked: bool = True
    """Whether the table is at an address of its own, which its answers name; an ad-hoc one is nowhere."""

    @classmethod
    def read(
        cls,
        parameters: list[str],
        *,
        heading: tuple[str, ...] | None = None,
        stub: tuple[str, ...] | None = None,
        source: str = "",
        license: str = "",  # noqa: A002 — the field has this name
        url: str = "",
    ) -> "Options":
        """Read the words of `outputFormatParams`, whatever their case."""
        texts: Texts | None = None
        separator, title, mark = ",", False, False
        for word in parameters:
            low = word.strip().lower()
            if low in _TEXTS:
                texts = _TEXTS[low]
            elif low in _SEPARATORS:
                separator = _SEPARATORS[low]
            elif low == "includetitle":
                title = True
            elif low == "byteordermark":
                mark = True
            elif low:
                raise RefusedError(
                    "outputFormatParams", expected=f"some of {', '.join(PARAMETERS)}", found=word, do="correct it"
                )
        return cls(
            texts=texts,
            title=title,
            separator=separator,
            byte_order_mark=mark,
            heading=heading,
            stub=stub,
            source=source,
            license=license,
            url=url,
        )


T = TypeVar("T", bound=np.generic)
_SYMBOLS = np.array(SYMBOLS, dtype=object)


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Rows by the dimensions of the stub, columns by those of the heading."""

    stub: tuple[ServedDimension, ...]
    heading: tuple[ServedDimension, ...]
    cells: list[list[Any]]
    """Figures by row and column; None where there is none."""
    said: NDArray[np.int8]
    """The number in `status.SAID` of each figure."""
    metrics: list[Metric]
    """The metric of each column, or of each row where metrics are in the stub."""

    @classmethod
    def of(cls, answer: Answer, options: Options) -> "Grid":
        """Lay an answer out; without a wish the metrics are the columns."""
        axes = answer.axes
        stub, heading = placement([axis.name for axis in axes], options.heading, options.stub)
        order = [*stub, *heading]
        shape = tuple(map(len, axes))
        rows = int(np.prod([shape[axis] for axis in stub], dtype=np.int64))

        def laid_out(array: NDArray[T]) -> NDArray[T]:
            return array.reshape(shape).transpose(order).reshape(rows, -1)

        values = answer.values()
        figures = np.empty(len(values), dtype=object)
        figures[:] = values
        of = laid_out(np.broadcast_to(np.arange(len(answer.metrics)), shape))
        in_heading = len(axes) - 1 in heading
        return cls(
            stub=tuple(axes[axis] for axis in stub),
            heading=tuple(axes[axis] for axis in heading),
            cells=laid_out(figures).tolist(),
            said=laid_out(answer.said()),
            metrics=[answer.metrics[at] for at in (of[0] if in_heading else of[:, 0])] if of.size else [],
        )

    @property
    def wide(self) -> bool:
        """Whether the metrics are among the columns."""
        return any(dimension.role == "metric" for dimension in self.heading)

    @property
    def symbols(self) -> list[list[str]]:
        """The symbols of what is said of each figure, mostly empty."""
        found: list[list[str]] = _SYMBOLS[self.said].tolist()
        return found

    @property
    def single(self) -> bool:
        """Whether every row has one value, so that what is said of the row is said of that."""
        if self.said.shape[1] == 1:
            return True
        return self.wide and sum(metric.kind == "value" for metric in self.metrics) == 1

    def statuses(self, texts: Texts) -> list[str]:
        """For every row, what is to be said of its figures, in words: of which one, unless it is the only value.

        An error or an end of an interval that is missing because its value is, or is a bound, has nothing to add.
        """
        values = {metric.code for metric in self.metrics if metric.kind == "value"} if self.wide else set()
        names = self.column_texts(texts)
        kinds = self.metrics if self.wide else [None] * self.said.shape[1]
        own = [f"{name}: " for name in names]
        if self.single:
            own = [
                "" if metric is None or metric.kind == "value" or len(own) == 1 else name
                for metric, name in zip(kinds, own, strict=True)
            ]
        follows = [metric is not None and metric.about in values for metric in kinds]

        def words(row: list[int]) -> str:
            return "; ".join(
                name + SAID[number].text
                for name, number, after in zip(own, row, follows, strict=True)
                if number and not (after and (number < len(STATUSES) or number == HAS_NONE))
            )

        patterns, at = np.unique(self.said, axis=0, return_inverse=True)
        found = np.array([words(row) for row in patterns.tolist()], dtype=object)
        told: list[str] = found[at.ravel()].tolist()
        return told

    def row_texts(self, texts: Texts) -> Iterator[tuple[str, ...]]:
        """What stands before every row."""
        return product(*(shown(dimension, texts) for dimension in self.stub))

    def column_texts(self, texts: Texts) -> list[str]:
        """What stands above every column, in one line."""
        return [" ".join(parts) for parts in product(*(shown(dimension, texts) for dimension in self.heading))]

    def names(self, texts: Texts) -> list[str]:
        """What stands above the stub."""
        return [dimension.name if texts == "codes" else dimension.label for dimension in self.stub]


def placement(
    names: Sequence[str], heading: Sequence[str] | None, stub: Sequence[str] | None
) -> tuple[list[int], list[int]]:
    """Which axes go into the stub and which into the heading, as a client wishes; the metrics are last of `names`."""
    lower = [name.lower() for name in names]
    for name in (*(heading or ()), *(stub or ())):
        if name.lower() not in lower:
            raise RefusedError(
                "placement", expected=f"dimensions of the answer: {', '.join(names)}", found=name, do="correct it"
            )
    columns = list(dict.fromkeys(lower.index(name.lower()) for name in heading or ()))
    rows = list(dict.fromkeys(lower.index(name.lower()) for name in stub or ()))
    if set(columns) & set(rows):
        both = ", ".join(names[axis] for axis in set(columns) & set(rows))
        raise RefusedError(
            "placement", expected="each dimension in the heading or in the stub", found=f"{both} in both", do="choose"
        )
    if heading is None:
        last = [] if len(names) - 1 in rows else [len(names) - 1]
        columns = last if stub is None else [axis for axis in range(len(names)) if axis not in rows]
    rows += [axis for axis in range(len(names)) if axis not in (*rows, *columns)]
    return rows, columns


def shown(dimension: ServedDimension, texts: Texts) -> tuple[str, ...]:
    """The codes of a dimension, their labels, or both."""
    if texts == "codes":
        return dimension.codes
    if texts == "texts":
        return dimension.labels
    return tuple(f"{code} {label}" for code, label in zip(dimension.codes, dimension.labels, strict=True))


def legend(said: NDArray[np.int8]) -> list[CellStatus]:
    """What the symbols of some figures stand for, each once."""
    numbers = np.flatnonzero(np.bincount(said.ravel(), minlength=len(SAID))).tolist()
    used = {part.symbol: part for number in numbers for part in SAID[number].parts}
    return [part for part in (*STATUSES, NO_FIGURE, BEYOND, *RELIABILITY) if part.symbol in used]


# HTML: a table with a caption and scopes, which screen readers can follow and browsers can print.


def write_html(answer: Answer, options: Options) -> bytes:
    """The answer as a page without style or script."""
    title = escape(answer.table.title)
    used = legend(answer.said())
    marks = "".join(f"<dt>{escape(status.symbol)}</dt><dd>{escape(status.meaning)}</dd>" for status in used)
    notes = "".join(f"<p>{escape(note)}</p>" for note in (*answer.notes, *answer.table.notes))
    page = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>'
        f"{table_html(answer, options)}{f'<dl>{marks}</dl>' if marks else ''}<h2>Notes</h2>{notes}</body></html>"
    )
    return page.encode()


def table_html(answer: Answer, options: Options) -> str:
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
        heads = "".join(f"<th {scope}>{escape(text)}</th>" for text in shown(dimension, texts)) * repeat
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


# Parquet: a column for every dimension, with codes, and one for every metric, with its own type.

_RELIABILITY = pa.array([status.text for status in RELIABILITY], pa.string())


def write_parquet(answer: Answer, options: Options) -> bytes:
    """The answer as a Parquet file; the last columns have the status of the bundle and what errors say of values."""
    content = pa.BufferOutputStream()
    pq.write_table(as_arrow(answer, options), content, compression="zstd")
    return bytes(content.getvalue())


def as_arrow(answer: Answer, options: Options) -> pa.Table:
    """The answer as a table of columns, in the layout of the files of a bundle."""
    texts = options.texts or "codes"
    cells = int(np.prod(answer.shape, dtype=np.int64))
    places = np.unravel_index(np.arange(cells), answer.shape) if answer.shape else ()
    columns: dict[str, pa.Array] = {}
    for dimension, place in zip(answer.dimensions, places, strict=True):
        codes = pa.array(shown(dimension, texts), pa.string())
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
