"""Repeatable trials: the same seed gives the same figures. Nothing drawn here is ever published."""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_KEY_BYTES = 16


class Repeatable:
    """A stream of uniform words for one purpose, the same whichever thread draws first.

    >>> bool(Repeatable(1, "a").words(1) == Repeatable(1, "a").words(1))
    True
    """

    def __init__(self, seed: int, *purpose: object) -> None:
        self._key = blake2b(repr((seed, purpose)).encode(), digest_size=_KEY_BYTES).digest()
        self._stream = np.random.Philox(key=np.frombuffer(self._key, dtype=np.uint64))

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """The next n words of the stream."""
        return self._stream.random_raw(n)

    @property
    def key(self) -> bytes:
        """Sixteen bytes that name the stream, for keyed functions."""
        return self._key
