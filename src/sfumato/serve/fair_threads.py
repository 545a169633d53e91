"""Threads that clients take turns in: however much one of them asks for, another one's next question is soon due."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import HTTPException

T = TypeVar("T")
COME_BACK = {"Retry-After": "5"}


class FairThreads:
    """So many threads, never all of them for one client, and a line for each client that waits.

    A question that waited longer than anybody waits for an answer is not worked on.
    """

    def __init__(self, number: int, *, seconds: float) -> None:
        self._limiter = CapacityLimiter(number)
        self._free, self._most, self._seconds = number, max(number - 1, 1), seconds
        self._working: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By client, whoever had no turn for longest first."""

    async def work(self, work: Callable[[], T], *, client: str) -> T:
        """Do something in a thread, when it is the turn of the client."""
        await self._turn(client)
        try:
            return await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._end(client)

    async def _turn(self, client: str) -> None:
        loop = asyncio.get_running_loop()
        begun, turn = loop.time(), loop.create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._end(client)
            raise
        if loop.time() - begun > self._seconds:
            self._end(client)
            raise HTTPException(503, "Too many others were before. To do: ask again.", headers=COME_BACK)

    def _next(self) -> None:
        """Give free threads to those who wait."""
        while self._free:
            client = next((one for one in self._waiting if self._working[one] < self._most), None)
            if client is None:
                return
            line = self._waiting.pop(client)
            turn = line.popleft()
            if line:
                self._waiting[client] = line  # behind all others
            if not turn.done():
                self._free -= 1
                self._working[client] += 1
                turn.set_result(None)

    def _end(self, client: str) -> None:
        self._free += 1
        self._working[client] -= 1
        if not self._working[client]:
            del self._working[client]
        self._next()
