"""The secret words of all units, by which cells that differ by one unit are noticed."""

import numpy as np

from sfumato.cells import Integers
from sfumato.engine.contributors import Prepared


def guard_words(prepared: Prepared) -> Integers:
    """The word of every record's unit, ascending."""
    words = prepared.rows.select("_guard_0").to_pyarrow()["_guard_0"].to_numpy()
    return np.sort(words.astype(np.int64))
