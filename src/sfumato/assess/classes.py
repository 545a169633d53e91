"""Classes of cells: any measure by stratum or by size, through one helper."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")

SIZE_CLASSES = ((0, 0), (1, 9), (10, 99), (100, 999), (1_000, 9_999), (10_000, None))
"""Classes of true cell counts, both ends included."""


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


def size_classes(counts: NDArray[np.int64]) -> NDArray[np.intp]:
    """The place of every true count in `SIZE_CLASSES`."""
    ends = [high for _, high in SIZE_CLASSES if high is not None]
    return np.searchsorted(ends, counts, side="left")


def size_label(place: int) -> str:
    """A class of `SIZE_CLASSES` in words.

    >>> size_label(0), size_label(1), size_label(5)
    ('0', '1–9', '10,000+')
    """
    low, high = SIZE_CLASSES[place]
    if high is None:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
