"""Threads for pages, and others for downloads: whoever asks for much keeps neither pages nor others waiting."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from fastapi import HTTPException

from sfumato.serve.fair_threads import FairThreads
from sfumato.serve.waited import COME_BACK

T = TypeVar("T")


class Counts:
    """How many answers each client waits for, and how many it and all together may."""

    def __init__(self, most: int, in_all: int) -> None:
        self._most, self._in_all = most, in_all
        self._waiting: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Answers that clients wait for, those that are being written included."""
        return self._waiting.total()

    @contextmanager
    def one_more(self, client: str) -> Iterator[None]:
        """Count an answer while its client waits; where too many are waited for, it is asked to come back."""
        if self.total >= self._in_all:
            words = f"{self._in_all} questions are waiting already. To do: ask again in a few seconds."
            raise HTTPException(503, words, headers=COME_BACK)
        if self._waiting[client] >= self._most:
            words = f"{self._most} answers are being written for you. To do: ask again once you have some of them."
            raise HTTPException(429, words, headers=COME_BACK)
        self._waiting[client] += 1
        try:
            yield
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]


@dataclass(frozen=True, kw_only=True, eq=False)
class Turns:
    """Who works in which thread, and how many answers each client waits for."""

    pages: FairThreads
    downloads: FairThreads
    counts: Counts = field(repr=False)

    @classmethod
    def of(cls, *, pages: int, downloads: int, most: int, in_all: int) -> "Turns":
        """So many threads of each kind, and nobody waiting."""
        return cls(pages=FairThreads(pages), downloads=FairThreads(downloads), counts=Counts(most, in_all))

    @property
    def waiting(self) -> int:
        """Answers that clients wait for, those that are being written included."""
        return self.counts.total

    async def page(self, work: Callable[[], T], *, client: str) -> T:
        """Write a page in a thread, in turn with other clients."""
        return await self._in_turn(self.pages, work, client)

    async def download(self, work: Callable[[], T], *, client: str) -> T:
        """Write an answer in a thread, in turn with other clients."""
        return await self._in_turn(self.downloads, work, client)

    async def _in_turn(self, threads: FairThreads, work: Callable[[], T], client: str) -> T:
        with self.counts.one_more(client):
            return await threads.work(work, client=client)
