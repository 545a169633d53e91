"""Ad-hoc questions are bounded: in memory, and in how many wait; the server tells, and goes on."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from select import select
from threading import Event, Semaphore

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import Response

from sfumato.live import Live, open_live
from sfumato.release_file import load
from sfumato.serve.app import make_app
from sfumato.serve.catalogue import Catalogue
from sfumato.serve.live.desk import AT_A_TIME, WAITING, Desk
from sfumato.serve.settings import Settings
from tests.serve.in_thread import asking
from tests.serve.live_serving import of_businesses, users
from tests.serve.raw import heard, posted, request

WIDE = {"by": ["state", "industry", "size"]}
NARROW = {"by": ["state"]}
TOO_MANY = 5


@dataclass(frozen=True, kw_only=True)
class Opened:
    """An application over records, whose engine the test can reach, and the header of an analyst."""

    app: FastAPI
    live: Live
    desk: Desk
    analyst: str

    @property
    def known(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.analyst}"}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with open_live(load(of_businesses(tmp_path_factory.mktemp("limits") / "business"))) as records:
        yield records


@pytest.fixture
def opened(live: Live, catalogue: Catalogue, tmp_path: Path) -> Opened:
    analyst, _ = users(tmp_path / "state")
    desk = Desk(live=live)
    app = make_app(catalogue, Settings(state=tmp_path / "state", calls=0), desk=desk)
    return Opened(app=app, live=live, desk=desk, analyst=analyst)


def test_a_question_that_needs_too_much_memory_is_refused_and_the_next_is_answered(opened: Opened) -> None:
    engine = opened.live.prepared.tables.backend.con
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


def test_when_too_many_questions_wait_further_ones_are_told_to_come_back(opened: Opened) -> None:
    begun, finish = Semaphore(0), Event()

    def work() -> None:
        begun.release()
        assert finish.wait(30)

    @opened.app.get("/held")
    async def held() -> Response:
        await opened.desk.work(work)
        return Response("done")

    question = posted("/live/tables", b'{"by": ["state"]}', f"Authorization: Bearer {opened.analyst}")
    with asking(opened.app) as client, ExitStack() as stack:
        stack.callback(finish.set)
        address = (client.base_url.host, client.base_url.port or 0)

        def send(content: bytes) -> socket.socket:
            connection = stack.enter_context(socket.create_connection(address, timeout=30))
            connection.sendall(content)
            return connection

        working = [send(request("GET", "/held")) for _ in range(AT_A_TIME)]
        assert all(begun.acquire(timeout=30) for _ in working)
        waiting = {send(question) for _ in range(WAITING - AT_A_TIME + TOO_MANY)}
        for _ in range(TOO_MANY):
            told = select(list(waiting), [], [], 30)[0][0]
            waiting.remove(told)
            said = heard(told)
            assert said.problem["status"] == 503
            assert "waiting already" in said.problem["detail"]
            assert int(said.headers["retry-after"]) >= 1
        assert client.get("/api/v2/config").status_code == 200, "published tables need no turn"
        assert select(list(waiting), [], [], 0)[0] == [], "the others still wait"
        finish.set()
        assert {heard(connection).status for connection in (*working, *waiting)} == {200}
