"""Triangular noise from keyed words: one number around one for every word, the same on every machine."""

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Integers
from sfumato.noise.factors import ONE

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_MIDDLE = 2**32 - 1


def triangular(words: NDArray[np.uint64], *, spread: int) -> Integers:
    """Noise on [1 − b, 1 + b] with mode 1 in millionths, b being the spread in millionths; its variance is b²/6.

    The two halves of a word are independent and uniform, so their sum is triangular. All arithmetic is on integers, and
    rounding treats both sides alike: the mean is one exactly.

    >>> triangular(np.array([0, 2**64 - 1, 2**32 - 1], dtype=np.uint64), spread=300_000).tolist()
    [700000, 1300000, 1000000]
    """
    if not 0 < spread < ONE:
        raise ValueError("the spread must be above 0 and below 1, in whole millionths")
    from_middle = ((words >> _HALF) + (words & _LOW)).astype(np.int64) - _MIDDLE
    # Products stay below 2³² · 10⁶, far inside 64 bits; they are rounded to the nearest millionth.
    distance = (np.abs(from_middle) * spread + _MIDDLE // 2) // _MIDDLE
    noise: Integers = ONE + np.sign(from_middle) * distance
    return noise
