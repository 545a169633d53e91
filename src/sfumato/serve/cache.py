"""Finished answers kept in memory, within a bound; the ones asked for least recently go first."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
_SHARE = 8


class BoundedCache(Generic[T]):
    """A cache that never holds more than a number of bytes, as its user counts them.

    >>> cache = BoundedCache[str](100)
    >>> cache.put("a", "x", size=10)
    >>> cache.get("a"), cache.get("b")
    ('x', None)
    """

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = Lock()

    @property
    def held(self) -> int:
        """How many bytes it holds."""
        return self._held

    def get(self, key: Hashable) -> T | None:
        """What is kept under a key."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, thing: T, *, size: int) -> None:
        """Keep a thing of a size; one that would fill a large share of the cache is not kept."""
        if size > self._most // _SHARE:
            return
        with self._lock:
            before = self._kept.pop(key, None)
            self._held += size - (before[1] if before else 0)
            self._kept[key] = (thing, size)
            while self._held > self._most:
                _, (_, freed) = self._kept.popitem(last=False)
                self._held -= freed
