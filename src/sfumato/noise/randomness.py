"""Where random bits come from: the operating system in a release, a seed in a test."""

import os
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_KEY_BYTES = 16


class Randomness(Protocol):
    """A source of independent uniform 64-bit words; `OperatingSystem` and `Seeded` satisfy it."""

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """The next n words, never the same ones twice."""
        ...


class OperatingSystem:
    """The operating system's secure generator, the only source a release draws from.

    >>> OperatingSystem().words(3).shape
    (3,)
    """

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """The next n words of the operating system."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)


class Seeded:
    """A repeatable stream for tests and synthetic data only; no release file can reach it.

    >>> bool(Seeded(7).words(1) == Seeded(7).words(1))
    True
    """

    def __init__(self, seed: int) -> None:
        self._stream = np.random.Philox(seed)

    def words(self, n: int, /) -> NDArray[np.uint64]:
        """The next n words of the stream."""
        return self._stream.random_raw(n)


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
