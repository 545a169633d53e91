"""An answer laid out in rows and columns, as sheets and pages show it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from sfumato.serve.errors import RefusedError
from sfumato.serve.formats.options import Options, Texts
from sfumato.serve.model import Answer, Metric, ServedDimension
from sfumato.serve.status import STATUSES


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Rows by the dimensions of the stub, columns by those of the heading."""

    stub: tuple[ServedDimension, ...]
    heading: tuple[ServedDimension, ...]
    cells: list[list[Any]]
    """Figures by row and column; None where there is none."""
    symbols: list[list[str]]
    """The symbol of each figure's status, mostly empty."""
    metrics: list[Metric]
    """The metric of each column, or of each row where metrics are in the stub."""
    statuses: list[str]
    """For every row, what is to be said of its figures, in words."""

    @classmethod
    def of(cls, answer: Answer, options: Options) -> "Grid":
        """Lay an answer out; without a wish the metrics are the columns."""
        axes = answer.axes
        stub, heading = placement([axis.name for axis in axes], options.heading, options.stub)
        order = [*stub, *heading]
        shape = tuple(map(len, axes))
        rows = int(np.prod([shape[axis] for axis in stub], dtype=np.int64))

        def laid_out(flat: Sequence[Any]) -> Any:
            array = np.empty(len(flat), dtype=object)
            array[:] = flat
            return array.reshape(shape).transpose(order).reshape(rows, -1)

        values = answer.values()
        symbols = answer.symbols()
        marks = [symbols.get(place, "") for place in range(len(values))] if symbols else [""] * len(values)
        metrics = laid_out([*answer.metrics] * (len(values) // len(answer.metrics)))
        words = [text for text in answer.texts() for _ in answer.metrics]
        return cls(
            stub=tuple(axes[axis] for axis in stub),
            heading=tuple(axes[axis] for axis in heading),
            cells=laid_out(values).tolist(),
            symbols=laid_out(marks).tolist(),
            metrics=(metrics[0] if len(axes) - 1 in heading else metrics[:, 0]).tolist() if metrics.size else [],
            statuses=["; ".join(dict.fromkeys(filter(None, row))) for row in laid_out(words).tolist()],
        )

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


def legend(answer: Answer) -> list[tuple[str, str]]:
    """The symbols that an answer may have, each with its meaning."""
    from_cells = sorted({int(number) for number in np.unique(answer.status())} - {0})
    return [(STATUSES[number].symbol, STATUSES[number].meaning) for number in from_cells]
