"""Threads that clients take turns in: however much one of them asks for, another one's next question is soon due."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread

from sfumato.serve.waited import WAITED, refuse_unwaited

T = TypeVar("T")


class FairThreads:
    """So many threads, never all of them for one client, and a line for each client that waits.

    Whoever leaves, or is told that it took too long, leaves the line: nobody works on what nobody waits for.
    """

    def __init__(self, number: int) -> None:
        self._limiter = CapacityLimiter(number)
        self._free, self._most = number, max(number - 1, 1)
        self._working: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By client, whoever had no turn for longest first."""

    async def work(self, work: Callable[[], T], *, client: str) -> T:
        """Do something in a thread, when it is the turn of the client."""
        await self._turn(client)
        try:
            refuse_unwaited()
            return await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._end(client)

    async def _turn(self, client: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._next()
        waited = WAITED.get()
        try:
            await (asyncio.wait({turn}) if waited is None else waited.turn(turn))
            if not turn.done():
                refuse_unwaited()
        except BaseException:
            self._leave(client, turn)
            raise

    def _leave(self, client: str, turn: "asyncio.Future[None]") -> None:
        """Give back a turn, or the place in the line."""
        if turn.done():
            self._end(client)
            return
        line = self._waiting[client]
        line.remove(turn)
        if not line:
            del self._waiting[client]

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
            self._free -= 1
            self._working[client] += 1
            turn.set_result(None)

    def _end(self, client: str) -> None:
        self._free += 1
        self._working[client] -= 1
        if not self._working[client]:
            del self._working[client]
        self._next()
