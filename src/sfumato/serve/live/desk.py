"""Where ad-hoc questions wait for their turn: few at a time, a bounded number in all."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import HTTPException

from sfumato.engine.limits import TooSlowError
from sfumato.errors import BudgetError, SfumatoError
from sfumato.live import FormalLive, Live
from sfumato.plan import PlannedTable
from sfumato.serve.cache import BoundedCache
from sfumato.serve.errors import RefusedError
from sfumato.serve.live.made import made_table
from sfumato.serve.live.offered import Offered, offered
from sfumato.serve.live.schemas import LiveConfig, live_config
from sfumato.serve.model import ServedTable

T = TypeVar("T")
AT_A_TIME = 2
"""One question is counted while another is written."""
WAITING = 200
"""Questions that may wait; further ones are told to come back."""
_BYTES_A_CELL = 60
_LONGEST = 700
"""Letters of what was found that are shown: mostly these are words of ours."""


@dataclass(eq=False, kw_only=True)
class Desk:
    """Open data, the answers that were given lately, and the queue of questions."""

    live: Live | FormalLive
    answers: BoundedCache[ServedTable] = field(default_factory=lambda: BoundedCache[ServedTable](64_000_000))
    _limiter: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(AT_A_TIME))
    _waiting: int = 0

    async def config(self) -> LiveConfig:
        """What can be asked, and what is left of the budget."""
        live = self.live
        if not isinstance(live, FormalLive):
            return live_config(live, None, None)
        return await self.work(lambda: live_config(live, live.left(), self.methods))

    @cached_property
    def methods(self) -> Offered | None:
        """The methods that questions may name, where they cost something: the same for as long as the server runs."""
        return offered(self.live) if isinstance(self.live, FormalLive) else None

    async def table(self, planned: PlannedTable) -> ServedTable:
        """The answer to a question; the same question always has the same one."""
        found = self.answers.get(planned.digest(""))
        return await self.work(lambda: self._answered(planned)) if found is None else found

    async def work(self, work: Callable[[], T]) -> T:
        """Do something that takes long in a thread of the desk, in turn; errors are problems of the question."""
        if self._waiting >= WAITING:
            words = f"{WAITING} questions are waiting already. To do: ask again in a few seconds."
            raise HTTPException(503, words, headers={"Retry-After": "5"})
        self._waiting += 1
        try:
            return await to_thread.run_sync(work, limiter=self._limiter)
        except SfumatoError as error:
            raise as_refused(error) from error
        finally:
            self._waiting -= 1

    def _answered(self, planned: PlannedTable) -> ServedTable:
        key = planned.digest("")
        found = self.answers.get(key)  # somebody who waited before may have asked the same
        if found is None:
            found = made_table(self.live, planned, self.live.answered(planned))
            self.answers.put(key, found, size=planned.cells * _BYTES_A_CELL * len(found.metrics))
        return found


def as_refused(error: SfumatoError) -> RefusedError:
    """An error of a question with the HTTP status that goes with it."""
    if isinstance(error, RefusedError):
        return error
    status = 403 if isinstance(error, BudgetError) else 503 if isinstance(error, TooSlowError) else 400
    return RefusedError(
        error.where, expected=error.expected, found=error.found, do=error.do, status=status, longest=_LONGEST
    )
