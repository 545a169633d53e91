"""Whoever asks for much, all at once, keeps neither pages nor other clients waiting."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Semaphore
from typing import Any

import httpx
import numpy as np

from sfumato.serve.app import make_app
from sfumato.serve.catalogue import Catalogue
from sfumato.serve.model import Column, Figures, Metric, Selection, ServedDimension, ServedTable
from sfumato.serve.settings import Settings
from sfumato.serve.turns import Turns
from tests.serve.in_thread import asking
from tests.serve.raw import heard, request

SIDE = 50
MANY = 30
SLOW = "outputFormat=xlsx&valueCodes[region]=N"


class Held:
    """Figures that are ready when the test says so; it knows which were begun."""

    def __init__(self) -> None:
        self.begun, self.finish = Semaphore(0), Semaphore(0)
        self.order: list[int] = []

    def figures(self, selection: Selection) -> Figures:
        self.order.append((selection.places[0] or ())[0])
        self.begun.release()
        assert self.finish.acquire(timeout=25)
        values = np.ones([len(places or ()) for places in selection.places])
        return Figures(columns=tuple(Column(values=values) for _ in selection.metrics), notes=())

    def began(self) -> bool:
        """Wait until one more is begun."""
        return self.begun.acquire(timeout=25)


def long_table(source: Held) -> ServedTable:
    codes = tuple(f"c{number}" for number in range(SIDE))
    return ServedTable(
        id="long",
        title="Long",
        release="r",
        population="all",
        period="2025",
        updated=datetime(2026, 1, 1, tzinfo=UTC),
        dimensions=tuple(ServedDimension(name=name, label=name, codes=codes, labels=codes) for name in "ab"),
        metrics=(Metric(code="value", label="Value", unit="jobs", decimals=0, kind="value", description=""),),
        method="none",
        guarantee=(),
        notes=(),
        digest="",
        source=source,
    )


@dataclass(frozen=True, kw_only=True)
class Busy:
    """A server with a table whose answers take as long as the test likes."""

    held: Held
    client: httpx.Client
    download: Callable[[int, int], socket.socket]
    """Ask for the code of a number, as the client whose address ends so."""
    turns: Turns

    def heard_of(self, number: int) -> bool:
        """Ask something else until the server has heard of so many downloads."""
        return any(self.client.get("/health") and self.turns.waiting == number for _ in range(10_000))


@contextmanager
def busy(catalogue: Catalogue, tmp_path: Path, **settings: Any) -> Iterator[Busy]:
    held = Held()
    app = make_app(catalogue.add(long_table(held)), Settings(state=tmp_path / "state", calls=0, **settings))
    with asking(app) as client, ExitStack() as stack:
        stack.callback(held.finish.release, 1_000)
        where = (client.base_url.host, client.base_url.port or 0)

        def download(code: int, last: int) -> socket.socket:
            source = (f"127.0.0.{last}", 0)
            connection = stack.enter_context(socket.create_connection(where, timeout=30, source_address=source))
            target = f"/api/v2/tables/long/data?outputFormat=xlsx&valueCodes[a]=c{code}&valueCodes[b]=*"
            connection.sendall(request("GET", target))
            return connection

        yield Busy(held=held, client=client, download=download, turns=app.state.served.turns)


def test_others_get_pages_and_downloads_while_one_client_waits_for_many(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path) as server:
        many = [server.download(code, 1) for code in range(MANY)]
        assert server.held.began()
        other = httpx.HTTPTransport(local_address="127.0.0.2")
        with httpx.Client(base_url=server.client.base_url, transport=other, timeout=30) as second:
            assert second.get(f"/api/v2/tables/people/data?{SLOW}").status_code == 200
        assert server.client.get("/tables/jobs_by_place").status_code == 200, "pages have threads of their own"
        assert server.client.get("/sdmx/2.1/dataflow").status_code == 200
        query = {"tableId": "jobs_by_place", "selection": {"selection": []}}
        assert server.client.post("/api/v2/savedqueries", json=query).status_code == 201
        assert len(server.held.order) == 1, "no client has all threads"
        server.held.finish.release(MANY)
        assert [heard(connection).status for connection in many] == [200] * MANY


def test_clients_take_turns(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, downloads=1) as server:
        first = [server.download(0, 1)]
        assert server.held.began()
        clients = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3}
        waiting = [server.download(code, last) for code, last in clients.items()]
        assert server.heard_of(1 + len(waiting))
        server.held.finish.release(1 + len(waiting))
        assert [heard(connection).status for connection in (*first, *waiting)] == [200] * 7
    turns = [clients[code] for code in server.held.order[1:]]
    assert [sorted(turns[:3]), sorted(turns[3:5]), turns[5]] == [[1, 2, 3], [1, 2], 1], "one each before anybody's next"


def test_a_client_that_waits_for_too_many_is_told_to_come_back(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, most_waiting=2) as server:
        both = [server.download(0, 1)]
        assert server.held.began()
        both.append(server.download(1, 1))
        assert server.heard_of(2)
        told = [heard(connection) for connection in (server.download(2, 1), server.download(3, 1))]
        assert {said.problem["status"] for said in told} == {429}
        assert all(int(said.headers["retry-after"]) >= 1 for said in told)
        server.held.finish.release(3)
        assert [heard(connection).status for connection in both] == [200, 200]
        assert heard(server.download(2, 1)).status == 200


def test_nobody_works_on_what_nobody_waits_for(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, downloads=1, seconds=0.3) as server:
        late = [server.download(code, 1) for code in range(3)]
        assert {heard(connection).problem["status"] for connection in late} == {503}
        server.held.finish.release(2)
        assert heard(server.download(7, 2)).status == 200
    assert len(server.held.order) == 2
    assert server.held.order[1] == 7
