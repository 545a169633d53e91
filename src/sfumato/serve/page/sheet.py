"""A view as text: heads with spans, lines with cells, and a legend of every symbol that occurs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from sfumato.serve.core.model import Metric
from sfumato.serve.core.status import BEYOND, HAS_NONE, IS_BEYOND, NO_FIGURE, RELIABILITY, REMARKS, STATUSES
from sfumato.serve.page.figures import FigureWriter
from sfumato.serve.page.language import Language
from sfumato.serve.page.question import ReaderQuestion
from sfumato.serve.page.view import Edge, View

MOST_SHOWN = 3_000
"""How many figures a page shows; others are on further pages, and downloads have all."""
MOST_ACROSS = 120
"""How many figures stand side by side at most."""
PAPER = 100
"""How many letters fit side by side on paper; a wider table is printed in parts, each with the heads of its rows."""
_MOST_HEAD, _BLANK, _SHORT, _LONG = 30, 3, 12, 24
_LEGEND = (*STATUSES[1:], NO_FIGURE, BEYOND, *RELIABILITY[1:])


class Head(NamedTuple):
    """A cell that names rows or columns."""

    text: str
    span: int
    id: str

    @property
    def kind(self) -> str:
        """How it is broken: a word is not, and a long one has room enough not to have a line for each word."""
        return "word" if self.is_word else "long" if len(self.text) > _LONG else ""

    @property
    def is_word(self) -> bool:
        """Whether it is one short word, such as 2025-Q1, which stays in one line."""
        return len(self.text) <= _SHORT and " " not in self.text


class Cell(NamedTuple):
    """A figure as it is shown, its mark or symbol, and what a screen reader says of it."""

    text: str
    mark: str
    spoken: str
    kind: str
    headers: str


class Line(NamedTuple):
    """A row: the heads that begin at it, and its cells."""

    heads: tuple[Head, ...]
    cells: tuple[Cell, ...]
    total: bool


class Part(NamedTuple):
    """Which rows and columns of a view are shown; each column has all figures that are shown."""

    top: int
    bottom: int
    left: int
    right: int


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """What the page shows of a view."""

    names: tuple[str, ...]
    """What stands above the heads of the rows."""
    above: tuple[tuple[Head, ...], ...]
    """The heads of the columns, by level."""
    levels: tuple[str, ...]
    """What the levels of columns are."""
    lines: tuple[Line, ...]
    legend: tuple[tuple[str, str, int], ...]
    """Symbols that occur, their meanings, and how often they occur."""
    rows: int
    columns: int
    """How many rows and columns of figures there are, shown or not."""
    part: Part
    figures: int
    """How many figures every column has."""
    printed: tuple["Sheet", ...] = ()
    """The parts in which it is printed, where it is too wide for paper."""

    @property
    def cut(self) -> bool:
        """Whether some of the table is not shown."""
        return len(self.lines) < self.rows or self.across < self.columns

    @property
    def across(self) -> int:
        """How many columns of figures are shown."""
        return (self.part.right - self.part.left) * self.figures

    @property
    def tall(self) -> int:
        """How many rows there are on a page."""
        return _room(self.columns // self.figures, self.figures)[0]

    @property
    def wide(self) -> int:
        """How many columns there are on a page."""
        return _room(self.columns // self.figures, self.figures)[1]


def sheet_of(view: View, question: ReaderQuestion) -> Sheet:
    """Write the part of a view out that is shown, as much as fits on a page."""
    writer, part = FigureWriter.of(view, question.display, question.say), shown_part(view)
    whole = _written(view, writer, part)
    parts = _on_paper(whole)
    if len(parts) < 2:
        return whole
    printed = tuple(_written(view, writer, part._replace(left=left, right=right), ids=False) for left, right in parts)
    return Sheet(**{**vars(whole), "printed": printed})


def _room(columns: int, figures: int) -> tuple[int, int]:
    """How many rows and columns of so many figures each fit on a page."""
    wide = max(min(columns, MOST_ACROSS // figures), 1)
    return max(MOST_SHOWN // (wide * figures), 1), wide


def shown_part(view: View) -> Part:
    """Which part of a view is shown: from the row and the column on that were asked for."""
    rows, columns = view.values.shape[:2]
    tall, wide = _room(columns, view.shown)
    top, left = (min(at, max(there - 1, 0)) for at, there in zip(view.corner, (rows, columns), strict=True))
    return Part(top, min(top + tall, rows), left, min(left + wide, columns))


def _written(view: View, writer: FigureWriter, part: Part, *, ids: bool = True) -> Sheet:
    metrics = view.metrics[: view.shown]
    order = view.order[part.top : part.bottom]
    labels = tuple(", ".join(filter(None, writer.label(metric, metrics))) for metric in metrics)
    levels = [
        *view.columns,
        *([Edge(writer.say("Figure"), labels, None, False)] if len(metrics) > 1 or not view.columns else []),
    ]
    begin, end = part.left * len(metrics), part.right * len(metrics)
    above = tuple(tuple(heads) for heads in _above(levels, begin, end))
    complex_heads = ids and (len(levels) > 1 or len(view.rows) > 1)
    texts = writer.rows(view.values[list(order), part.left : part.right], len(metrics))
    used: Counter[str] = Counter()
    lines = []
    totals = view.row_totals()
    row_heads, row_ids = _beside(view.rows, order)
    column_ids = _ids_above(above, end - begin)
    for at, row in enumerate(order):
        cells = []
        for place in range(end - begin):
            column, metric = divmod(place, len(metrics))
            headers = f"{row_ids[at]} {column_ids[place]}" if complex_heads else ""
            number = int(view.remarks[row, part.left + column, metric])
            if view.left_out is not None and view.left_out[row, part.left + column, metric] and metrics[metric].about:
                cells.append(Cell("", "", "", f"{metrics[metric].kind} none", headers))  # the figure says it
                continue
            cells.append(_cell(metrics[metric], number, texts[at][place], headers, used, say=writer.say))
        lines.append(Line(row_heads[at], tuple(cells), bool(totals[row])))
    return Sheet(
        names=tuple(edge.label for edge in view.rows),
        above=above,
        levels=tuple(edge.label for edge in levels),
        lines=tuple(lines),
        legend=tuple((one.symbol, writer.say(one.meaning), used[one.symbol]) for one in _LEGEND if used[one.symbol]),
        rows=view.values.shape[0],
        columns=view.values.shape[1] * len(metrics),
        part=part,
        figures=len(metrics),
    )


def _on_paper(sheet: Sheet) -> list[tuple[int, int]]:
    """The columns of every part that fits on paper beside the heads of the rows."""
    heads = [max((len(head.text) for line in sheet.lines for head in line.heads), default=0)]
    room = PAPER - len(sheet.names) * (min(*heads, _MOST_HEAD) + _BLANK)
    lowest = [head.text for head in sheet.above[-1]] if sheet.above else []
    figures = [max((len(line.cells[at].text) for line in sheet.lines), default=0) for at in range(sheet.across)]
    # Heads are broken between words.
    longest = [max(map(len, text.split()), default=0) for text in lowest] or [0] * sheet.across
    widths = [max(pair) + _BLANK + 2 for pair in zip(figures, longest, strict=True)]
    parts: list[tuple[int, int]] = []
    begin, used = sheet.part.left, 0
    for at in range(sheet.part.left, sheet.part.right):
        place = (at - sheet.part.left) * sheet.figures
        needed = sum(widths[place : place + sheet.figures])
        if used and used + needed > room:
            parts.append((begin, at))
            begin, used = at, 0
        used += needed
    return [*parts, (begin, sheet.part.right)]


def _cell(metric: Metric, number: int, text: str, headers: str, used: Counter[str], *, say: Language) -> Cell:
    """A figure with what is said of it, counted for the legend."""
    said = REMARKS[number]
    if not text and not said.hides and not said.mark:
        # The page made no figure of one that there is: a share of nothing, or an error in percent of 0.
        said = REMARKS[IS_BEYOND if metric.kind == "error" else HAS_NONE]
    used.update(part.symbol for part in said.parts)
    kind = f"{metric.kind} none" if not text else f"{metric.kind} mark{said.mark}" if said.mark else metric.kind
    return Cell(text, said.symbol, ", ".join(say(part.text) for part in said.parts), kind, headers)


def _above(levels: Sequence[Edge], begin: int, end: int) -> Iterator[list[Head]]:
    """The heads of every level, each over the columns that belong to it and are shown."""
    span, repeat = prod(len(edge.texts) for edge in levels), 1
    for level, edge in enumerate(levels):
        span //= len(edge.texts)
        heads = []
        for number, text in enumerate(edge.texts * repeat):
            shown = min((number + 1) * span, end) - max(number * span, begin)
            if shown > 0:
                heads.append(Head(text, shown, f"c{level}-{number}"))
        yield heads
        repeat *= len(edge.texts)


def _ids_above(above: Sequence[Sequence[Head]], wide: int) -> list[str]:
    """For every column the identifiers of its heads."""
    ids: list[list[str]] = [[] for _ in range(wide)]
    for heads in above:
        place = 0
        for head in heads:
            for column in range(place, place + head.span):
                ids[column].append(head.id)
            place += head.span
    return [" ".join(found) for found in ids]


def _beside(edges: Sequence[Edge], order: Sequence[int]) -> tuple[list[tuple[Head, ...]], list[str]]:
    """The heads that begin at every row, each as long as rows have it, and for every row all that it has."""
    if not edges:
        return [()] * len(order), [""] * len(order)
    every = list(product(*(edge.texts for edge in edges)))
    texts = [every[row] for row in order]
    heads: list[list[Head]] = [[] for _ in order]
    ids: list[list[str]] = [[] for _ in order]
    for level in range(len(edges)):
        begin = 0
        for at in range(1, len(texts) + 1):
            if at < len(texts) and level < len(edges) - 1 and texts[at][: level + 1] == texts[begin][: level + 1]:
                continue
            head = Head(texts[begin][level], at - begin, f"r{level}-{begin}")
            heads[begin].append(head)
            for row in range(begin, at):
                ids[row].append(head.id)
            begin = at
    return [tuple(found) for found in heads], [" ".join(found) for found in ids]
