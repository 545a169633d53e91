"""Ad-hoc questions are bounded in memory; the server tells, and goes on."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from sfumato.live import GuardedSession, open_guarded
from sfumato.release import load
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.live.queue import LiveQueue
from tests.serve.in_thread import asking
from tests.serve.live_serving import of_businesses, users

WIDE = {"by": ["state", "industry", "size"]}
NARROW = {"by": ["state"]}


@dataclass(frozen=True, kw_only=True)
class Opened:
    """An application over records, whose engine the test can reach, and the header of an analyst."""

    app: FastAPI
    live: GuardedSession
    analyst: str

    @property
    def known(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.analyst}"}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedSession]:
    with open_guarded(load(of_businesses(tmp_path_factory.mktemp("limits") / "business"))) as records:
        yield records


@pytest.fixture
def opened(live: GuardedSession, catalogue: Catalogue, tmp_path: Path) -> Opened:
    analyst, _ = users(tmp_path / "state")
    app = make_app(catalogue, Settings(state=tmp_path / "state", calls=0), queue=LiveQueue(live=live))
    return Opened(app=app, live=live, analyst=analyst)


@pytest.mark.slow
def test_a_question_that_needs_too_much_memory_is_refused_and_the_next_is_answered(opened: Opened) -> None:
    engine = opened.live.prepared.tables.engine.con
    with asking(opened.app) as client:

        def ask(question: dict[str, list[str]]) -> httpx.Response:
            return client.post("/live/tables", json=question, headers=opened.known)

        engine.execute("SET memory_limit = '2MB'")
        refused = ask(WIDE)
        assert refused.status_code == 400
        assert refused.headers["content-type"] == "application/problem+json"
        assert "memory" in refused.json()["detail"]
        assert "most_memory" in refused.json()["detail"]
        assert "SET" not in refused.text, "nothing of what the engine says"
        assert client.get("/api/v2/config").status_code == 200
        engine.execute("SET memory_limit = '1GB'")
        assert ask(NARROW).status_code == 200
        assert ask(WIDE).status_code == 200, "a question that was refused can be asked again"
