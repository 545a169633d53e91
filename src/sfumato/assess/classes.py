"""Classes of cells: any measure by stratum or by size, through one helper."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")

SIZE_CLASSES = ((0, 0), (1, 9), (10, 99), (100, 999), (1_000, 9_999), (10_000, None))
"""Classes of true cell counts, both ends included."""
AMOUNT_CLASSES = ((0, 0), (1, 999), (1_000, 10**6 - 1), (10**6, 10**9 - 1), (10**9, 10**12 - 1), (10**12, None))
"""Classes of amounts such as money, without their sign."""
_WORDS = {10**6: "1 million", 10**9: "1 billion", 10**12: "1 trillion"}
EDGE_CLASSES = (
    *((0, 0), (1, 6), (7, 9), (10, 19), (20, 35), (36, 75), (76, 161), (162, 272)),
    (273, None),
)
"""Classes of cells of a graph by their number of distinct edges, as Abowd and McKinney (2016) have them."""

Bounds = tuple[tuple[int, int | None], ...]


def by_class(
    measure: Callable[..., Result], *, classes: NDArray[Any], **columns: NDArray[Any]
) -> dict[int | str, Result]:
    """Apply a measure to the cells of each class alone; classes without a cell are left out.

    >>> by_class(lambda values: int(values.sum()), classes=np.array([1, 0, 1]), values=np.array([5, 7, 2]))
    {0: 7, 1: 7}
    """
    order = np.argsort(classes, kind="stable")
    names, starts = np.unique(classes[order], return_index=True)
    members = np.split(order, starts[1:]) if len(names) else []
    return {
        name: measure(**{column: values[inside] for column, values in columns.items()})
        for name, inside in zip(names.tolist(), members, strict=True)
    }


def size_classes(counts: NDArray[np.int64], bounds: Bounds = SIZE_CLASSES) -> NDArray[np.intp]:
    """The place of every true count in the classes."""
    ends = [high for _, high in bounds if high is not None]
    return np.searchsorted(ends, counts, side="left")


def size_label(place: int, bounds: Bounds = SIZE_CLASSES) -> str:
    """A class in words.

    >>> size_label(0), size_label(1), size_label(5)
    ('0', '1–9', '10,000+')
    >>> size_label(3, AMOUNT_CLASSES)
    '1 million to below 1 billion'
    """
    low, high = bounds[place]
    if low in _WORDS:
        return f"{_WORDS[low]} or more" if high is None else f"{_WORDS[low]} to below {_WORDS[high + 1]}"
    if high is None:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
