"""Threads for pages, and others for downloads: whoever asks for much keeps neither pages nor others waiting."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from fastapi import HTTPException

from sfumato.serve.fair_threads import COME_BACK, FairThreads

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, eq=False)
class Turns:
    """Who works in which thread, and how many answers each client waits for."""

    pages: FairThreads
    downloads: FairThreads
    most: int
    """Answers that one client may wait for at a time."""
    _waiting: Counter[str] = field(default_factory=Counter, repr=False)

    @classmethod
    def of(cls, *, pages: int, downloads: int, most: int, seconds: float) -> "Turns":
        """So many threads of each kind, and nobody waiting."""
        return cls(
            pages=FairThreads(pages, seconds=seconds), downloads=FairThreads(downloads, seconds=seconds), most=most
        )

    @property
    def waiting(self) -> int:
        """Answers that clients wait for, those that are being written included."""
        return self._waiting.total()

    async def page(self, work: Callable[[], T], *, client: str) -> T:
        """Write a page in a thread, in turn with other clients."""
        return await self._in_turn(self.pages, work, client)

    async def download(self, work: Callable[[], T], *, client: str) -> T:
        """Write an answer in a thread, in turn with other clients."""
        return await self._in_turn(self.downloads, work, client)

    async def _in_turn(self, threads: FairThreads, work: Callable[[], T], client: str) -> T:
        if self._waiting[client] >= self.most:
            words = f"{self.most} answers are being written for you. To do: ask again once you have some of them."
            raise HTTPException(429, words, headers=COME_BACK)
        self._waiting[client] += 1
        try:
            return await threads.work(work, client=client)
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]
