"""Threads that clients take turns in, a bounded number of questions, and no work that nobody waits for."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.to_thread import current_default_thread_limiter
from fastapi import HTTPException, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sfumato.serve.core.http import FAILED, problem
from sfumato.serve.core.rate_limit import address_of

# Whether somebody still waits for an answer: what nobody waits for any more is not begun, and never charged.

COME_BACK = {"Retry-After": "5"}


class ClientPresence:
    """Whether the client of a request waits for the answer: until it leaves, or is told that it took too long."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def gone(self) -> bool:
        """Whether nobody waits any more."""
        return self._gone.done()

    def end(self) -> None:
        """Say that the client was told, or left."""
        if not self._gone.done():
            self._gone.set_result(None)

    async def until(self, *any_of: "asyncio.Future[Any]") -> None:
        """Return when one of these is done, or when nobody waits for it any more."""
        if any(one.done() for one in any_of):
            return
        watching = asyncio.ensure_future(self._watch())
        try:
            await asyncio.wait({*any_of, self._gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        """Notice when the client leaves; its body was read before, so that nothing else can come."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.end()


PRESENCE: ContextVar[ClientPresence | None] = ContextVar("presence", default=None)
"""The request that is worked on, also in the threads that work on it."""


def refuse_if_gone() -> None:
    """Go no further if nobody waits: called before a question is charged."""
    presence = PRESENCE.get()
    if presence is not None and presence.gone:
        raise HTTPException(503, "Nobody waits for the answer any more. To do: ask again.", headers=COME_BACK)


async def _until(*any_of: "asyncio.Future[Any]") -> None:
    """Wait for one of these, as long as somebody waits for the answer."""
    presence = PRESENCE.get()
    if presence is None:
        await asyncio.wait(any_of, return_when=asyncio.FIRST_COMPLETED)
        return
    await presence.until(*any_of)
    if not any(one.done() for one in any_of):
        refuse_if_gone()


# Identical questions at a time are one question: all who ask it get the one answer, or the one error.

T = TypeVar("T")


class SharedAnswer(Generic[T]):
    """An answer that several requests wait for.

    Each waits in the line of its own client, so that nobody waits behind the questions of another one. Whoever has a
    turn first begins the work, in a task of its own: who leaves then takes nothing from the others.
    """

    def __init__(self) -> None:
        self.answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.askers = 0
        self._work: asyncio.Task[None] | None = None

    @property
    def begun(self) -> bool:
        """Whether somebody works on it, or did."""
        return self._work is not None

    def begin(self, work: Callable[[], Awaitable[T]]) -> None:
        """Begin to work, for everybody who asks."""
        here = PRESENCE.set(None)  # it is not for one request alone
        try:
            self._work = asyncio.ensure_future(self._finish(work))
        finally:
            PRESENCE.reset(here)

    async def _finish(self, work: Callable[[], Awaitable[T]]) -> None:
        try:
            self.answer.set_result(await work())
        except asyncio.CancelledError:
            self.answer.cancel()  # the server stops
            raise
        except Exception as error:
            self.answer.set_exception(error)
            self.answer.exception()  # it is known, even if nobody waits for it any more


# Threads that clients take turns in: however much one of them asks for, another one's next question is soon due.


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
        turn = self._line_up(client)
        try:
            await _until(turn)
        except BaseException:
            self._leave(client, turn)
            raise
        try:
            refuse_if_gone()
            return await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._end(client)

    async def work_once(self, shared: SharedAnswer[T], work: Callable[[], T], *, client: str) -> T:
        """The same for all who ask the same question: one of them has it worked out, when it is the turn of any."""
        turn, first = self._line_up(client), False
        try:
            await _until(turn, shared.answer)
            if turn.done() and not shared.begun:
                refuse_if_gone()
                shared.begin(partial(self._work_in_turn, work, client))
                first = True
        finally:
            if not first:
                self._leave(client, turn)
        # The place of whoever began stays taken until the work ends, since a thread cannot be stopped.
        await (asyncio.wait({shared.answer}) if first else _until(shared.answer))
        return shared.answer.result()

    async def _work_in_turn(self, work: Callable[[], T], client: str) -> T:
        try:
            return await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._end(client)

    def _line_up(self, client: str) -> "asyncio.Future[None]":
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._next()
        return turn

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


# Threads for pages, and others for downloads: whoever asks for much keeps neither pages nor others waiting.


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
class WorkerQueue:
    """Who works in which thread, and how many answers each client waits for."""

    pages: FairThreads
    downloads: FairThreads
    counts: Counts = field(repr=False)
    sharing: Counts = field(repr=False)
    """Of those who wait for what somebody else asked first: it costs no work."""
    _shared: dict[Hashable, SharedAnswer[Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, *, pages: int, downloads: int, most: int, in_all: int, sharing: int) -> "WorkerQueue":
        """So many threads of each kind, and nobody waiting."""
        return cls(
            pages=FairThreads(pages),
            downloads=FairThreads(downloads),
            counts=Counts(most, in_all),
            sharing=Counts(most, sharing),
        )

    async def page(self, work: Callable[[], T], *, client: str, question: Hashable = None) -> T:
        """Write a page in a thread, in turn with other clients."""
        return await self._in_turn(self.pages, work, client, question)

    async def download(self, work: Callable[[], T], *, client: str, question: Hashable = None) -> T:
        """Write an answer in a thread, in turn with other clients.

        All who ask the same `question` meanwhile get the one answer, or the one error; it has to name all that the
        answer depends on.
        """
        return await self._in_turn(self.downloads, work, client, question)

    async def _in_turn(self, threads: FairThreads, work: Callable[[], T], client: str, question: Hashable) -> T:
        if question is None:
            with self.counts.one_more(client):
                return await threads.work(work, client=client)
        shared = self._shared.get(question)
        with (self.counts if shared is None else self.sharing).one_more(client):
            if shared is None:
                shared = self._shared[question] = SharedAnswer()
            shared.askers += 1
            try:
                return await threads.work_once(shared, work, client=client)
            finally:
                shared.askers -= 1
                over = shared.answer.done() or not (shared.askers or shared.begun)
                if over and self._shared.get(question) is shared:  # whoever asks from now on asks anew
                    del self._shared[question]


# So many questions at a time, each for so long; what fails is answered with a problem, like everything else.

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
        presence = ClientPresence(receive)

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
                presence.end()
                words = f"The answer took more than {self._seconds:g} s. To do: choose fewer codes, or ask later."
                refusing = asyncio.ensure_future(problem(request, 503, words, COME_BACK)(scope, receive, send))

        self._running[asking] += 1
        here = PRESENCE.set(presence)
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
            PRESENCE.reset(here)
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
