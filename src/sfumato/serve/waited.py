"""Whether somebody still waits for an answer: what nobody waits for any more is not begun, and never charged."""

import asyncio
from contextvars import ContextVar

from fastapi import HTTPException
from starlette.types import Receive

COME_BACK = {"Retry-After": "5"}


class Waited:
    """A request whose client waits for the answer, until it leaves or is told that it took too long."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def over(self) -> bool:
        """Whether nobody waits any more."""
        return self._over.done()

    def end(self) -> None:
        """Say that the client was told, or left."""
        if not self._over.done():
            self._over.set_result(None)

    async def turn(self, turn: "asyncio.Future[None]") -> None:
        """Return when it is the turn of this request, or when nobody waits for it any more."""
        if turn.done():
            return
        watching = asyncio.ensure_future(self._watch())
        try:
            await asyncio.wait({turn, self._over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        """Notice when the client leaves; its body was read before, so that nothing else can come."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.end()


WAITED: ContextVar[Waited | None] = ContextVar("waited", default=None)
"""The request that is worked on, also in the threads that work on it."""


def refuse_unwaited() -> None:
    """Go no further if nobody waits: called before a question is charged."""
    waited = WAITED.get()
    if waited is not None and waited.over:
        raise HTTPException(503, "Nobody waits for the answer any more. To do: ask again.", headers=COME_BACK)
