"""Work is bounded: so many questions at a time, each for so long."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from tests.serve.in_thread import asking
from tests.serve.patient import PATIENCE

pytestmark = pytest.mark.slow  # it fills a server with work until it refuses


@dataclass(frozen=True)
class Slow:
    """A client of a server with a question that takes until `finish` is set."""

    client: httpx.Client
    begun: Event
    finish: Event


@contextmanager
def slow(catalogue: Catalogue, settings: Settings) -> Iterator[Slow]:
    app, begun, finish = make_app(catalogue, settings), Event(), Event()

    def work() -> None:
        begun.set()
        assert finish.wait(PATIENCE)

    @app.get("/slow")
    async def answer() -> Response:
        await run_in_threadpool(work)
        return Response("done")

    @app.get("/broken")
    async def broken() -> Response:
        raise ValueError("a secret text")

    with asking(app) as client:
        try:
            yield Slow(client, begun, finish)
        finally:
            finish.set()


def test_a_question_that_takes_too_long_is_given_up_and_keeps_its_place_until_it_ends(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    settings = Settings(state=tmp_path / "state", seconds=0.2, most_running=1, audit=tmp_path / "state/audit")
    with slow(catalogue, settings) as server:
        given_up = server.client.get("/slow")
        assert given_up.status_code == 503
        assert int(given_up.headers["retry-after"]) >= 1
        assert "took more than 0.2 s" in given_up.json()["detail"]
        busy = server.client.get("/api/v2/config")
        assert busy.status_code == 503
        assert int(busy.headers["retry-after"]) >= 1
        assert busy.headers["content-type"] == "application/problem+json"
        assert "nosniff" in busy.headers["x-content-type-options"]
        server.finish.set()
        assert any(server.client.get("/api/v2/config").status_code == 200 for _ in range(10_000))
    assert (tmp_path / "state/audit/public.jsonl").read_text().count('"status":503') >= 2


def test_others_are_answered_while_a_question_takes_long(catalogue: Catalogue, tmp_path: Path) -> None:
    with slow(catalogue, Settings(state=tmp_path / "state", most_running=2, seconds=PATIENCE)) as server:
        found: list[httpx.Response] = []
        long = Thread(target=lambda: found.append(server.client.get("/slow")))
        long.start()
        assert server.begun.wait(PATIENCE)
        assert server.client.get("/api/v2/config").status_code == 200
        server.finish.set()
        long.join()
        assert found[0].text == "done"


def test_a_fault_of_the_server_is_a_problem_that_tells_nothing_of_its_inside(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    with slow(catalogue, Settings(state=tmp_path / "state")) as server:
        failed = server.client.get("/broken")
        assert failed.status_code == 500
        assert failed.headers["content-type"] == "application/problem+json"
        assert "content-security-policy" in failed.headers
        assert "secret" not in failed.text
        assert server.client.get("/api/v2/config").status_code == 200
