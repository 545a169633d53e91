"""Whoever asks for much, all at once, keeps neither pages nor other clients waiting."""

import json
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
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.model import Column, Figures, Metric, Selection, ServedDimension, ServedTable
from sfumato.serve.core.users import Role, Users
from sfumato.serve.core.worker_queue import WorkerQueue
from sfumato.serve.live.queue import WAITING
from sfumato.serve.pxweb.request import LONG
from tests.serve.in_thread import asking
from tests.serve.patient import PATIENCE
from tests.serve.raw import Said, heard, posted, request

SIDE = 50
MANY = 30
PEOPLE = "/api/v2/tables/people/data"
SLOW = "outputFormat=xlsx&valueCodes[region]=N"


class Held:
    """Figures that are ready when the test says so; it knows which were begun."""

    def __init__(self) -> None:
        self.begun, self.finish = Semaphore(0), Semaphore(0)
        self.order: list[int] = []

    def figures(self, selection: Selection) -> Figures:
        self.order.append((selection.places[0] or ())[0])
        self.begun.release()
        assert self.finish.acquire(timeout=PATIENCE)
        values = np.ones([len(places or ()) for places in selection.places])
        return Figures(columns=tuple(Column(values=values) for _ in selection.metrics), notes=())

    def is_quick(self, _selection: Selection) -> bool:
        return False

    def began(self) -> bool:
        """Wait until one more is begun."""
        return self.begun.acquire(timeout=PATIENCE)


def long_table(source: Held) -> ServedTable:
    codes = tuple(f"c{number}" for number in range(SIDE))
    dimensions = [ServedDimension(name=name, label=name, codes=codes, labels=codes) for name in "ab"]
    return table_of("long", dimensions, source)


def flow_table(source: Held) -> ServedTable:
    """A table that is opened at the latest period that has figures."""
    ends = [
        ServedDimension(name=f"{end}_place", label=end, codes=("N", "S"), labels=("N", "S"))
        for end in ("origin", "destination")
    ]
    years = ("2024", "2025")
    return table_of(
        "flows", [*ends, ServedDimension(name="year", label="Year", codes=years, labels=years, role="time")], source
    )


def table_of(name: str, dimensions: list[ServedDimension], source: Held) -> ServedTable:
    return ServedTable(
        id=name,
        title="Long",
        release="r",
        population="all",
        period="2025",
        updated=datetime(2026, 1, 1, tzinfo=UTC),
        dimensions=tuple(dimensions),
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
    sent: Callable[[bytes, int], socket.socket]
    """Send something as the client whose address ends so."""
    download: Callable[..., socket.socket]
    """Ask for the code of a number, as the client whose address ends so, with any headers."""
    queue: WorkerQueue
    renew: Callable[[], None]
    """Serve the same tables as if they were published anew."""
    tokens: tuple[str, ...]
    """The headers of two analysts."""

    def heard_of(self, number: int) -> bool:
        """Ask something else until the server has heard of so many downloads."""
        counts = (self.queue.counts, self.queue.sharing)
        return any(self.client.get("/health") and sum(one.total for one in counts) == number for _ in range(10_000))

    def quick(self, last: int, *headers: str) -> Said:
        """What the client whose address ends so is told when it asks for two figures."""
        return heard(self.sent(request("GET", f"{PEOPLE}?valueCodes[region]=N", *headers), last))


@contextmanager
def busy(catalogue: Catalogue, tmp_path: Path, held: Held | None = None, **settings: Any) -> Iterator[Busy]:
    held, users = held or Held(), Users(tmp_path / "state")
    tokens = tuple(f"Authorization: Bearer {users.add(name, Role.analyst)[1]}" for name in ("ann", "bob"))
    tables = Catalogue(tables={**catalogue.tables, "long": long_table(held), "flows": flow_table(held)})
    app = make_app(
        tables,
        Settings(**{"state": tmp_path / "state", "calls": 0, "seconds": PATIENCE} | settings),
    )
    with asking(app) as client, ExitStack() as stack:
        stack.callback(held.finish.release, 1_000)
        where = (client.base_url.host, client.base_url.port or 0)

        def sent(content: bytes, last: int) -> socket.socket:
            source = (f"127.0.0.{last}", 0)
            connection = stack.enter_context(socket.create_connection(where, timeout=PATIENCE, source_address=source))
            connection.sendall(content)
            return connection

        def download(code: int, last: int, *headers: str) -> socket.socket:
            target = f"/api/v2/tables/long/data?outputFormat=xlsx&valueCodes[a]=c{code}&valueCodes[b]=*"
            return sent(request("GET", target, *headers), last)

        context = app.state.context
        yield Busy(
            held=held,
            client=client,
            sent=sent,
            download=download,
            queue=context.worker_queue,
            renew=lambda: context.editions.replace(tables),
            tokens=tokens,
        )


def test_others_get_pages_and_downloads_while_one_client_waits_for_many(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path) as server:
        many = [server.download(code, 1) for code in range(MANY)]
        assert server.held.began()
        other = httpx.HTTPTransport(local_address="127.0.0.2")
        with httpx.Client(base_url=server.client.base_url, transport=other, timeout=PATIENCE) as second:
            assert second.get(f"{PEOPLE}?{SLOW}").status_code == 200
        assert server.client.get("/tables/jobs_by_place").status_code == 200, "pages have threads of their own"
        assert server.client.get("/sdmx/2.1/dataflow").status_code == 200
        query = {"tableId": "jobs_by_place", "selection": {"selection": []}}
        assert server.client.post("/api/v2/savedqueries", json=query).status_code == 201
        assert len(server.held.order) == 1, "no client has all threads"
        server.held.finish.release(MANY)
        assert [heard(connection).status for connection in many] == [200] * MANY


def test_nobody_waits_while_a_table_is_opened_for_the_first_time(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path) as server:
        opening = server.sent(request("GET", "/tables/flows"), 1)
        assert server.held.began()
        assert server.quick(1).status == 200
        server.held.finish.release(1_000)
        assert heard(opening).status == 200


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
    with busy(catalogue, tmp_path, downloads=1, seconds=3) as server:
        late = [server.download(0, 1)]
        assert server.held.began()
        late += [server.download(code, 1) for code in (1, 2)]
        assert {heard(connection).problem["status"] for connection in late} == {503}
        server.held.finish.release()
        server.download(7, 2)
        assert server.held.began()
    assert server.held.order == [0, 7]


def test_users_who_waited_in_vain_are_told_so_as_a_problem(catalogue: Catalogue, tmp_path: Path) -> None:
    audit = tmp_path / "state/audit"
    with busy(catalogue, tmp_path, downloads=1, seconds=0.3, audit=audit) as server:
        late = [server.download(code, 1, server.tokens[0]) for code in range(12)]
        told = [heard(connection) for connection in late]
        assert [said.problem["status"] for said in told] == [503] * len(late)
        assert all("took more than 0.3 s" in said.problem["detail"] for said in told)
        assert all(int(said.headers["retry-after"]) >= 1 for said in told)
        assert all(said.headers["x-content-type-options"] == "nosniff" for said in told)
    entries = [json.loads(line) for line in (audit / "users.jsonl").read_text().splitlines()]
    assert [(entry["user"], entry["status"]) for entry in entries] == [("ann", 503)] * len(late)


def test_an_address_has_its_share_of_the_places_and_no_more(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, most_of_one=2) as server:
        both = [server.download(code, 1) for code in range(2)]
        assert server.heard_of(2)
        told = server.quick(1)
        assert (told.problem["status"], int(told.headers["retry-after"]) >= 1) == (429, True)
        assert server.quick(2).status == 200
        server.held.finish.release(2)
        assert [heard(connection).status for connection in both] == [200, 200]
        assert server.quick(1).status == 200, "places are given back"


def test_what_a_token_asks_for_counts_against_its_address(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, most_of_one=3) as server:
        ann, bob = server.tokens
        held = [server.download(0, 1), server.download(1, 1, ann), server.download(2, 1, bob)]
        assert server.heard_of(3)
        assert {server.quick(1, *token).problem["status"] for token in ((), (ann,), (bob,))} == {429}
        assert server.quick(2, ann).status == 200, "the same user elsewhere"
        server.held.finish.release(3)
        assert {heard(connection).status for connection in held} == {200}


def test_two_clients_that_ask_for_all_they_can_leave_room_for_a_third(catalogue: Catalogue, tmp_path: Path) -> None:
    most = 10
    with busy(catalogue, tmp_path, most_running=3 * most, most_of_one=most) as server:
        many = [
            server.download(code, last, *token)
            for last in (2, 3)
            for token in ((), *((one,) for one in server.tokens))
            for code in range(most)
        ]
        assert server.heard_of(2 * most)
        assert server.quick(1).status == 200
        third = server.download(0, 1)
        assert server.heard_of(2 * most + 1)
        server.held.finish.release(1_000)
        assert heard(third).status == 200
        assert {heard(connection).status for connection in many} == {200, 429}


def test_a_long_body_is_read_in_the_turn_of_its_client(catalogue: Catalogue, tmp_path: Path) -> None:
    def body(times: int) -> bytes:
        return json.dumps({"selection": [{"variableCode": "region", "valueCodes": ["N"] * times}]}).encode()

    with busy(catalogue, tmp_path) as server:
        first = server.download(0, 1)
        assert server.held.began()
        long, other = (server.sent(posted(PEOPLE, body(LONG)), last) for last in (1, 2))
        assert heard(other).status == 200, "another client has its own turn"
        assert server.heard_of(2), "it waits behind what the client asked for before"
        short = heard(server.sent(posted(PEOPLE, body(1)), 1))
        assert short.status == 200
        server.held.finish.release()
        assert heard(long).body == short.body
        assert heard(first).status == 200


def test_lines_leave_places_for_what_is_answered_at_once(catalogue: Catalogue, tmp_path: Path) -> None:
    with busy(catalogue, tmp_path, most_lined_up=2) as server:
        both = [server.download(last, last) for last in (1, 2)]
        assert server.heard_of(2)
        told = heard(server.download(3, 3))
        assert (told.problem["status"], int(told.headers["retry-after"]) >= 1) == (503, True)
        assert server.quick(3).status == 200
        server.held.finish.release(2)
        assert [heard(connection).status for connection in both] == [200, 200]
    default = Settings()
    assert default.most_lined_up + default.most_sharing + WAITING < default.most_running
    assert default.most_waiting < default.most_of_one <= default.most_running // 8
