"""A client in a thread that asks new questions until the server is gone, and keeps what it was told."""

from dataclasses import dataclass, field
from itertools import count
from threading import Event, Thread
from typing import Any

import httpx

from tests.serve.live_serving import LiveServer

_STEPS = count(1)


@dataclass(eq=False)
class Asker:
    """One client: its questions, in order, with the answers that came."""

    server: LiveServer
    attributes: tuple[str, ...]
    answered: Event
    """Set when anybody got the first answer."""
    answers: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)
    refused: int = 0
    others: list[int] = field(default_factory=list)

    def begin(self) -> Thread:
        """Start asking."""
        thread = Thread(target=self._ask)
        thread.start()
        return thread

    def _ask(self) -> None:
        with self.server.client() as client:
            while True:
                step = next(_STEPS)
                by = [self.attributes[step % len(self.attributes)]]
                question = {"by": by, "epsilon": round(0.2 + step / 1e5, 6)}
                try:
                    answer = client.post("/live/tables", json=question, params={"outputFormat": "csv"})
                except httpx.HTTPError:
                    return
                if answer.status_code == 200:
                    self.answers.append((question, answer.content))
                    self.answered.set()
                elif answer.status_code == 403:
                    self.refused += 1
                    return
                else:
                    self.others.append(answer.status_code)
