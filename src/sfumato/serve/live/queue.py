"""Where ad-hoc questions wait for their turn: few at a time, a bounded number in all, and analysts in turn."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

from sfumato.live import ChargedSession, Session
from sfumato.serve.core.errors import refusing
from sfumato.serve.core.figures import BoundedCache
from sfumato.serve.core.model import ServedTable
from sfumato.serve.core.users import Role, User
from sfumato.serve.core.worker_queue import Counts, FairThreads, refuse_if_gone
from sfumato.serve.live.answer_table import answer_table
from sfumato.serve.live.available_methods import AvailableMethods, available_methods
from sfumato.serve.live.question import LiveConfig, live_config
from sfumato.statistics.published import PublishedTable

T = TypeVar("T")
AT_A_TIME = 2
"""One question is counted while another is written; two of one analyst come one after the other."""
WAITING = 200
"""Questions that may wait; further ones are told to come back."""
OF_ONE = 50
"""Questions of one analyst among them, so that nobody fills the line for all others."""
_BYTES_A_CELL = 60


@dataclass(eq=False, kw_only=True)
class LiveQueue:
    """Open data, the answers that were given lately, and the queue of questions."""

    live: Session
    answers: BoundedCache[ServedTable] = field(default_factory=lambda: BoundedCache[ServedTable](64_000_000))
    _threads: FairThreads = field(default_factory=lambda: FairThreads(AT_A_TIME))
    _counts: Counts = field(default_factory=lambda: Counts(OF_ONE, WAITING))

    def config(self, user: User) -> LiveConfig:
        """What can be asked, and what is left of the budget; the latter takes a while to find out."""
        return live_config(self.live, self.live.left(quota_of(user)), self.methods)

    @cached_property
    def methods(self) -> AvailableMethods | None:
        """The methods that questions may name, where they cost something: the same for as long as the server runs."""
        return None if self.live.most is None else available_methods(cast(ChargedSession, self.live))

    async def work(self, work: Callable[[], T], *, client: str) -> T:
        """Do all that a question needs in a thread of the queue, in turn; errors are problems of the question."""
        with refusing(), self._counts.one_more(client):
            return await self._threads.work(work, client=client)

    def answer(self, statistic: PublishedTable, user: User) -> ServedTable:
        """The answer to a question, as a part of work: the same question always has the same one."""
        key = statistic.digest_as_laid_out("")  # the same question in another order is another page
        refuse_if_gone()  # the last moment: what comes now may be charged
        self.live.charge(statistic, quota_of(user))
        found = self.answers.get(key)
        if found is None:
            refuse_if_gone()
            found = answer_table(self.live, statistic, self.live.answer(statistic))
            self.answers.put(key, found, size=statistic.cells * _BYTES_A_CELL * len(found.metrics))
        return found


def quota_of(user: User) -> str | None:
    """Whose quota a question counts against; stewards, who see the ledger, have none."""
    return None if user.may(Role.steward) else user.name
