"""How an answer is laid out: codes or texts, rows and columns, and what is said of figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.serve.core.errors import RefusedError, said
from sfumato.serve.core.model import Metric, ServedDimension, TableAnswer
from sfumato.serve.core.status import BEYOND, HAS_NONE, NO_FIGURE, RELIABILITY, REMARKS, STATUSES, SYMBOLS, CellStatus

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
    part: bool = False
    """Whether nothing was selected, and a part of the table is given: readers are told."""
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
                known = ", ".join(PARAMETERS)
                raise RefusedError(
                    "outputFormatParams",
                    expected=f"some of {known}",
                    found=word,
                    do="correct it",
                    said=said(
                        "“{name}” in the address is “{text}”, and can be: {known}.",
                        name="outputFormatParams",
                        text=word,
                        known=known,
                    ),
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
    remarks: NDArray[np.int8]
    """The number in `status.REMARKS` of each figure."""
    metrics: list[Metric]
    """The metric of each column, or of each row where metrics are in the stub."""

    @classmethod
    def of(cls, answer: TableAnswer, options: Options) -> "Grid":
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
            remarks=laid_out(answer.remarks()),
            metrics=[answer.metrics[at] for at in (of[0] if in_heading else of[:, 0])] if of.size else [],
        )

    @property
    def wide(self) -> bool:
        """Whether the metrics are among the columns."""
        return any(dimension.role == "metric" for dimension in self.heading)

    @property
    def symbols(self) -> list[list[str]]:
        """The symbols of what is said of each figure, mostly empty."""
        found: list[list[str]] = _SYMBOLS[self.remarks].tolist()
        return found

    @property
    def single(self) -> bool:
        """Whether every row has one value, so that what is said of the row is said of that."""
        if self.remarks.shape[1] == 1:
            return True
        return self.wide and sum(metric.kind == "value" for metric in self.metrics) == 1

    def statuses(self, texts: Texts) -> list[str]:
        """For every row, what is to be said of its figures, in words: of which one, unless it is the only value.

        An error or an end of an interval that is missing because its value is, or is a bound, has nothing to add.
        """
        values = {metric.code for metric in self.metrics if metric.kind == "value"} if self.wide else set()
        names = self.column_texts(texts)
        kinds = self.metrics if self.wide else [None] * self.remarks.shape[1]
        own = [f"{name}: " for name in names]
        if self.single:
            own = [
                "" if metric is None or metric.kind == "value" or len(own) == 1 else name
                for metric, name in zip(kinds, own, strict=True)
            ]
        follows = [metric is not None and metric.about in values for metric in kinds]

        def words(row: list[int]) -> str:
            return "; ".join(
                name + REMARKS[number].text
                for name, number, after in zip(own, row, follows, strict=True)
                if number and not (after and (number < len(STATUSES) or number == HAS_NONE))
            )

        patterns, at = np.unique(self.remarks, axis=0, return_inverse=True)
        found = np.array([words(row) for row in patterns.tolist()], dtype=object)
        told: list[str] = found[at.ravel()].tolist()
        return told

    def row_texts(self, texts: Texts) -> Iterator[tuple[str, ...]]:
        """What stands before every row."""
        return product(*(axis_texts(dimension, texts) for dimension in self.stub))

    def column_texts(self, texts: Texts) -> list[str]:
        """What stands above every column, in one line."""
        return [" ".join(parts) for parts in product(*(axis_texts(dimension, texts) for dimension in self.heading))]

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


def axis_texts(dimension: ServedDimension, texts: Texts) -> tuple[str, ...]:
    """The codes of a dimension, their labels, or both."""
    if texts == "codes":
        return dimension.codes
    if texts == "texts":
        return dimension.labels
    return tuple(f"{code} {label}" for code, label in zip(dimension.codes, dimension.labels, strict=True))


def legend(remarks: NDArray[np.int8]) -> list[CellStatus]:
    """What the symbols of some figures stand for, each once."""
    numbers = np.flatnonzero(np.bincount(remarks.ravel(), minlength=len(REMARKS))).tolist()
    used = {part.symbol: part for number in numbers for part in REMARKS[number].parts}
    return [part for part in (*STATUSES, NO_FIGURE, BEYOND, *RELIABILITY) if part.symbol in used]
