"""Cells typed by hand."""

import numpy as np

from sfumato.cells import Cells, Dimension


def cells_of(**columns: list[int]) -> Cells:
    """Cells of one public dimension with these columns."""
    n = len(next(iter(columns.values())))
    place = Dimension(name="place", codes=tuple(map(str, range(n))))
    held = {name: np.array(column, dtype=np.int64) for name, column in columns.items()}
    return Cells(dimensions=(place,), positions=np.arange(n), columns=held)
