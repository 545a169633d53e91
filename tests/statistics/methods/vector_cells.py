"""Blocks of worker cells typed by hand."""

import numpy as np
from numpy.typing import ArrayLike

from sfumato.cells import Cells, Dimension


def block_cells(
    count: ArrayLike,
    *,
    largest: ArrayLike | None = None,
    largest_employer: ArrayLike | None = None,
    establishments: ArrayLike = 1,
) -> Cells:
    """Cells whose rows are workplace cells and whose columns are worker cells, with every column a method may need.

    Where nothing else is said each workplace cell is one establishment.
    """
    counts = np.atleast_2d(np.asarray(count, dtype=np.int64))
    rows, width = counts.shape
    employer = counts.sum(axis=1, keepdims=True) if largest_employer is None else np.reshape(largest_employer, (-1, 1))
    held = {
        "count": counts,
        "largest": counts if largest is None else np.atleast_2d(np.asarray(largest)),
        "largest_employer": employer,
        "establishments": np.reshape(establishments, (-1, 1)),
    }
    columns = {name: np.broadcast_to(column, counts.shape).astype(np.int64).ravel() for name, column in held.items()}
    place = Dimension(name="place", codes=tuple(map(str, range(rows))))
    worker = Dimension(name="worker", codes=tuple(map(str, range(width))), public=False)
    return Cells(dimensions=(place, worker), positions=np.arange(counts.size), columns=columns)
