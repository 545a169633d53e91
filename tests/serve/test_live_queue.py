"""Analysts take turns in the queue, a bounded number wait, and what nobody waits for is neither begun nor charged."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from threading import Semaphore

import httpx
import pytest
from fastapi import Request
from starlette.responses import Response

from sfumato.live import ChargedSession, open_charged
from sfumato.release import load
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.users import Role, Users
from sfumato.serve.live.question import LiveQuestion
from sfumato.serve.live.queue import AT_A_TIME, OF_ONE, WAITING, LiveQueue
from sfumato_lab.economy.jobs.generate import Economy
from tests.serve.in_thread import asking
from tests.serve.live_serving import PLACE, of_jobs
from tests.serve.patient import PATIENCE
from tests.serve.raw import heard, posted, request

LAST = "last"


@dataclass(frozen=True, kw_only=True)
class Busy:
    """A server over jobs, with an address whose work takes as long as the test likes."""

    live: ChargedSession
    client: httpx.Client
    tokens: dict[str, str]
    send: Callable[[bytes, str], socket.socket]
    """Send something from the address of a user."""
    waiting: Callable[[], int]
    begun: Semaphore
    finish: Semaphore
    order: list[str]
    """Whose work was begun, in order."""

    def held(self, user: str, word: str = "", then: str = "") -> socket.socket:
        """Keep a thread of the queue busy for a user; `then` asks a question afterwards, in the same turn."""
        return self.send(request("GET", f"/held?word={word}&then={then}", self.token(user)), user)

    def asked(self, user: str) -> socket.socket:
        """Ask the question that costs something."""
        return self.send(posted("/live/tables", json.dumps(PLACE).encode(), self.token(user)), user)

    def token(self, user: str) -> str:
        return f"Authorization: Bearer {self.tokens[user]}"

    def until(self, number: int) -> bool:
        """Ask something else until so many wait in the queue."""
        return any(self.client.get("/health") and self.waiting() == number for _ in range(20_000))

    def is_charged(self) -> bool:
        """Whether the question was charged; told in turn, so after all that was asked before."""
        name, token = self.token("ann").split(": ")
        told = self.client.post("/live/prices", json=PLACE, headers={name: token})
        return bool(told.json()["answered"])


@pytest.fixture
def live(economy: Economy, tmp_path: Path) -> Iterator[ChargedSession]:
    with open_charged(load(of_jobs(economy.folder, tmp_path / "economy")), epsilon=Fraction(2)) as jobs:
        yield jobs


@contextmanager
def busy(live: ChargedSession, catalogue: Catalogue, state: Path, *, seconds: float = PATIENCE) -> Iterator[Busy]:
    kept = Users(state)
    added = {name: kept.add(name, Role.analyst) for name in ("ann", "bob", "cleo", "dan", "eve", "fay")}
    tokens = {name: token for name, (_, token) in added.items()}
    tokens["stella"] = kept.add("stella", Role.steward)[1]
    places = {name: f"127.0.0.{last}" for last, name in enumerate(tokens, 2)}
    queue = LiveQueue(live=live)
    app = make_app(catalogue, Settings(state=state, calls=0, seconds=seconds, audit=state / "audit"), queue=queue)
    begun, finish = Semaphore(0), Semaphore(0)
    order: list[str] = []

    @app.get("/held")
    async def held(request: Request, word: str, then: str) -> Response:
        user = app.state.context.access.user(request.scope)

        def work() -> None:
            order.append(word)
            begun.release()
            assert finish.acquire(timeout=PATIENCE)
            if then:
                queue.answer(LiveQuestion.model_validate_json(then).plan(live), user)

        await queue.work(work, client=app.state.context.client(request.scope))
        return Response("done")

    with asking(app) as client, ExitStack() as stack:
        stack.callback(finish.release, 1_000)
        address = (client.base_url.host, client.base_url.port or 0)

        def send(content: bytes, user: str) -> socket.socket:
            source = (places[user], 0)
            connection = stack.enter_context(socket.create_connection(address, timeout=PATIENCE, source_address=source))
            connection.sendall(content)
            return connection

        yield Busy(
            live=live,
            client=client,
            tokens=tokens,
            send=send,
            waiting=lambda: queue._counts.total,
            begun=begun,
            finish=finish,
            order=order,
        )


def test_one_who_asks_for_much_keeps_no_other_waiting(
    live: ChargedSession, catalogue: Catalogue, tmp_path: Path
) -> None:
    with busy(live, catalogue, tmp_path / "state") as server:
        many = [server.held("ann") for _ in range(20)]
        assert server.begun.acquire(timeout=PATIENCE)
        assert heard(server.asked("bob")).status == 200, "while a question of another is worked on and more wait"
        assert len(server.order) == 1
        server.finish.release(20)
        assert {heard(connection).status for connection in many} == {200}


@pytest.mark.slow
def test_the_line_is_bounded_for_each_and_for_all(live: ChargedSession, catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(live, catalogue, tmp_path / "state") as server:
        full = [server.held("ann") for _ in range(OF_ONE)]
        assert server.until(OF_ONE)
        told = heard(server.asked("ann"))
        assert (told.status, int(told.headers["retry-after"]) >= 1) == (429, True)
        for user in ("bob", "cleo", "dan"):
            full += [server.held(user) for _ in range(OF_ONE)]
        assert server.until(WAITING)
        told = heard(server.asked("eve"))
        assert (told.status, int(told.headers["retry-after"]) >= 1) == (503, True)
        assert "waiting already" in told.problem["detail"]
        assert server.client.get("/api/v2/config").status_code == 200, "published tables need no turn"
        server.finish.release(WAITING)
        assert {heard(connection).status for connection in full} == {200}


def test_who_leaves_leaves_the_line(live: ChargedSession, catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(live, catalogue, tmp_path / "state") as server:
        first = server.held("ann", "first")
        assert server.begun.acquire(timeout=PATIENCE)
        gone = [server.held("ann", "gone") for _ in range(10)] + [server.asked("ann")]
        assert server.until(1 + len(gone))
        for connection in gone:
            connection.close()
        assert server.until(1), "nothing of them is left, while the first is still worked on"
        last = server.held("ann", LAST)
        server.finish.release(2)
        assert [heard(connection).status for connection in (first, last)] == [200, 200]
        assert server.order == ["first", LAST]
        assert not server.is_charged()


@pytest.mark.slow
def test_the_log_has_the_question_of_those_who_waited_in_vain(
    live: ChargedSession, catalogue: Catalogue, tmp_path: Path
) -> None:
    with busy(live, catalogue, tmp_path / "state", seconds=3) as server:
        working = [server.held(user) for user in ("bob", "cleo")[:AT_A_TIME]]
        assert all(server.begun.acquire(timeout=PATIENCE) for _ in working)
        assert heard(server.asked("ann")).problem["status"] == 503
    entries = map(json.loads, (tmp_path / "state/audit/users.jsonl").read_text().splitlines())
    (entry,) = (entry for entry in entries if entry["user"] == "ann")
    assert (entry["status"], entry["asked"]["by"], entry["asked"]["epsilon"]) == (503, PLACE["by"], PLACE["epsilon"])


def test_long_questions_keep_no_steward_waiting(live: ChargedSession, catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(live, catalogue, tmp_path / "state") as server:
        working = [server.held(user) for user in ("bob", "cleo")[:AT_A_TIME]]
        assert all(server.begun.acquire(timeout=PATIENCE) for _ in working)
        for path in ("/steward", "/steward/budget", "/steward/what-if", "/live/config"):
            assert heard(server.send(request("GET", path, server.token("stella")), "stella")).status == 200
        server.finish.release(AT_A_TIME)
        assert [heard(connection).status for connection in working] == [200] * AT_A_TIME


@pytest.mark.slow
def test_a_question_that_took_too_long_to_begin_is_not_charged(
    live: ChargedSession, catalogue: Catalogue, tmp_path: Path
) -> None:
    with busy(live, catalogue, tmp_path / "state", seconds=3) as server:
        working = [server.held(user) for user in ("bob", "cleo")[:AT_A_TIME]]
        assert all(server.begun.acquire(timeout=PATIENCE) for _ in working)
        late = server.asked("ann")
        assert {heard(connection).problem["status"] for connection in (*working, late)} == {503}
        server.finish.release(2)
        assert server.until(0)
    assert not charged(live)


@pytest.mark.slow
def test_a_question_whose_client_was_told_is_not_charged_though_it_was_begun(
    live: ChargedSession, catalogue: Catalogue, tmp_path: Path
) -> None:
    question = json.dumps(PLACE, separators=(",", ":"))
    with busy(live, catalogue, tmp_path / "state", seconds=3) as server:
        told = server.held("ann", then=question)
        assert server.begun.acquire(timeout=PATIENCE)
        assert heard(told).problem["status"] == 503
        server.finish.release()
        assert server.until(0)
    assert not charged(live)
    with busy(live, catalogue, tmp_path / "other") as server:
        server.finish.release()
        assert heard(server.held("ann", then=question)).status == 200
    assert charged(live), "in time it is"


def charged(live: ChargedSession) -> bool:
    """Whether the question was charged."""
    return live.price(LiveQuestion.model_validate(PLACE).plan(live)).answered
