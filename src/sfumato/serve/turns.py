"""Threads for pages, and others for downloads: whoever asks for much keeps no page waiting."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import HTTPException

T = TypeVar("T")
LARGE = 10_000
"""An answer of more figures than this is a large one, of which each client has only a few at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Turns:
    """Who works in which thread, and how many large answers each client waits for."""

    pages: CapacityLimiter
    downloads: CapacityLimiter
    most: int
    """Large answers that one client may wait for at a time."""
    _waiting: Counter[str] = field(default_factory=Counter, repr=False)

    @classmethod
    def of(cls, *, pages: int, downloads: int, most: int) -> "Turns":
        """So many threads of each kind, and nobody waiting."""
        return cls(pages=CapacityLimiter(pages), downloads=CapacityLimiter(downloads), most=most)

    async def page(self, work: Callable[[], T]) -> T:
        """Write a page in a thread."""
        return await to_thread.run_sync(work, limiter=self.pages)

    async def download(self, work: Callable[[], T], *, cells: int, client: str) -> T:
        """Write an answer of so many figures in a thread; a client that waits for enough large ones is refused."""
        if cells <= LARGE:
            return await to_thread.run_sync(work, limiter=self.downloads)
        if self._waiting[client] >= self.most:
            words = f"{self.most} large answers are being written for you. To do: ask again once you have one of them."
            raise HTTPException(429, words, headers={"Retry-After": "5"})
        self._waiting[client] += 1
        try:
            return await to_thread.run_sync(work, limiter=self.downloads)
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]
