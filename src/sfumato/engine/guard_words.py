"""The secret words of all units, by which cells that differ by one unit are noticed."""

import numpy as np

from sfumato.arrays import Integers
from sfumato.engine.contributors import Prepared


def guard_words(prepared: Prepared, level: int) -> Integers:
    """The words of all units of a level, ascending."""
    name = f"_guard_{level}"
    words = prepared.rows.select(name)
    # A unit of the records has one of them, and a larger one may have many.
    found = (words if level == 0 else words.distinct()).to_pyarrow()[name].to_numpy()
    return np.sort(found.astype(np.int64, copy=False))
