"""So many questions at a time, each for so long; what fails is answered with a problem, like everything else."""

import asyncio
import logging

from anyio.to_thread import current_default_thread_limiter
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.serve.problems import FAILED, problem
from sfumato.serve.waited import COME_BACK, WAITED, Waited

_log = logging.getLogger("uvicorn.error")


class WorkLimits:
    """An application that works on a bounded number of questions for a bounded time.

    A thread cannot be stopped. Its client gets an answer in time all the same, and its place stays taken until it
    ends: so there are never more threads than places, nor more answers in memory than threads.
    """

    def __init__(self, app: ASGIApp, *, most: int, threads: int, seconds: float) -> None:
        self._app, self._most, self._threads, self._seconds = app, most, threads, seconds
        self._running = 0
        self._refusing: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if there is a place for it, and wait so long for the answer."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                current_default_thread_limiter().total_tokens = self._threads
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if self._running >= self._most:
            words = "The server works on as many questions as it can. To do: ask again in a few seconds."
            await problem(request, 503, words, COME_BACK)(scope, receive, send)
            return
        answered = expired = False
        waited = Waited(receive)

        async def watched(message: Message) -> None:
            nonlocal answered
            if not answered:
                answered = True
                self._running -= 1  # the work is done: whoever reads the answer slowly takes nobody's place
            if not expired:
                await send(message)

        def expire() -> None:
            nonlocal expired
            if not answered:
                expired = True
                waited.end()
                words = f"The answer took more than {self._seconds:g} s. To do: choose fewer codes, or ask later."
                refusal = problem(request, 503, words, COME_BACK)
                task = asyncio.ensure_future(refusal(scope, receive, send))
                self._refusing.add(task)
                task.add_done_callback(self._refusing.discard)

        self._running += 1
        here = WAITED.set(waited)
        timer = asyncio.get_running_loop().call_later(self._seconds, expire)
        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            _log.error("Could not answer", exc_info=error)
            if answered:
                raise  # half an answer is under way: closing the connection tells the client
            await problem(request, 500, FAILED)(scope, receive, watched)
        finally:
            timer.cancel()
            WAITED.reset(here)
            self._running -= not answered
