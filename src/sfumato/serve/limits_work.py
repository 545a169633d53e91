"""So many questions at a time, each for so long; what fails is answered with a problem, like everything else."""

import asyncio
import logging
from collections import Counter

from anyio.to_thread import current_default_thread_limiter
from fastapi import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.serve.problems import FAILED, problem
from sfumato.serve.rate import address_of
from sfumato.serve.waited import COME_BACK, WAITED, Waited

_log = logging.getLogger("uvicorn.error")


class WorkLimits:
    """An application that works on a bounded number of questions for a bounded time.

    A thread cannot be stopped. Its client gets an answer in time all the same, and its place stays taken until it
    ends: so there are never more threads than places, nor more answers in memory than threads. An address has a share
    of the places, whatever tokens it shows: one that asks for much leaves most of them to others.
    """

    def __init__(self, app: ASGIApp, *, most: int, of_one: int, threads: int, seconds: float) -> None:
        self._app, self._most, self._of_one, self._threads, self._seconds = app, most, of_one, threads, seconds
        self._running: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if there is a place for it, and wait so long for the answer."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                current_default_thread_limiter().total_tokens = self._threads
            await self._app(scope, receive, send)
            return
        request, asking = Request(scope), address_of(scope)
        refusal = self._full(request, asking)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        answered = False
        refusing: asyncio.Task[None] | None = None
        waited = Waited(receive)

        async def watched(message: Message) -> None:
            nonlocal answered
            if not answered:
                answered = True
                self._leave(asking)  # the work is done: whoever reads the answer slowly takes nobody's place
            if refusing is None:
                await send(message)

        def expire() -> None:
            nonlocal refusing
            if not answered:
                waited.end()
                words = f"The answer took more than {self._seconds:g} s. To do: choose fewer codes, or ask later."
                refusing = asyncio.ensure_future(problem(request, 503, words, COME_BACK)(scope, receive, send))

        self._running[asking] += 1
        here = WAITED.set(waited)
        timer = asyncio.get_running_loop().call_later(self._seconds, expire)
        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            _log.error("Could not answer", exc_info=error)
            if answered and refusing is None:
                raise  # half an answer is under way: closing the connection tells the client
            await problem(request, 500, FAILED)(scope, receive, watched)
        finally:
            timer.cancel()
            WAITED.reset(here)
            if not answered:
                self._leave(asking)
            if refusing is not None:
                await refusing  # a request that ends without an answer would get one that is no problem

    def _full(self, request: Request, asking: str) -> Response | None:
        """What refuses a question that there is no place for."""
        if self._running.total() >= self._most:
            words = "The server works on as many questions as it can. To do: ask again in a few seconds."
            return problem(request, 503, words, COME_BACK)
        if self._running[asking] >= self._of_one:
            words = f"{self._of_one} questions of your address are worked on. To do: ask again once some are answered."
            return problem(request, 429, words, COME_BACK)
        return None

    def _leave(self, asking: str) -> None:
        """Give back a place."""
        self._running[asking] -= 1
        if not self._running[asking]:
            del self._running[asking]
