"""Directions from keyed words: up or down, each for half of all words."""

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers


def directions(words: NDArray[np.uint64]) -> Integers:
    """+1 or −1 for every word, by its lowest bit.

    >>> directions(np.array([0, 1, 2], dtype=np.uint64)).tolist()
    [1, -1, 1]
    """
    return 1 - ((words & np.uint64(1)).astype(np.int64) << 1)
