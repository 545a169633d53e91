"""Whoever asks for much, all at once, keeps no page waiting and is told to come back."""

import socket
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Semaphore

import numpy as np

from sfumato.serve.app import make_app
from sfumato.serve.catalogue import Catalogue
from sfumato.serve.model import Column, Figures, Metric, Selection, ServedDimension, ServedTable
from sfumato.serve.settings import Settings
from sfumato.serve.turns import LARGE
from tests.serve.in_thread import asking
from tests.serve.raw import heard, request

SIDE = 110
CLIENTS = 9
EACH = 2
DOWNLOAD = "/api/v2/tables/long/data?outputFormat=csv&valueCodes[a]=*&valueCodes[b]=*"


class Held:
    """Figures that are ready when the test says so."""

    def __init__(self) -> None:
        self.begun, self.finish = Semaphore(0), Event()

    def figures(self, selection: Selection) -> Figures:
        self.begun.release()
        assert self.finish.wait(25)
        values = np.ones([len(places or ()) for places in selection.places])
        return Figures(columns=tuple(Column(values=values) for _ in selection.metrics), notes=())


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


def test_a_page_is_answered_while_many_large_downloads_are_running(catalogue: Catalogue, tmp_path: Path) -> None:
    assert SIDE * SIDE > LARGE
    held = Held()
    app = make_app(catalogue.add(long_table(held)), Settings(state=tmp_path / "state"))
    with asking(app) as client, ExitStack() as stack:
        stack.callback(held.finish.set)
        where = (client.base_url.host, client.base_url.port or 0)

        def download(last: int) -> socket.socket:
            source = (f"127.0.0.{last}", 0)
            connection = stack.enter_context(socket.create_connection(where, timeout=30, source_address=source))
            connection.sendall(request("GET", DOWNLOAD))
            return connection

        first = [download(1) for _ in range(EACH)]
        assert all(held.begun.acquire(timeout=25) for _ in first)
        refused = heard(download(1))
        assert refused.problem["status"] == 429
        assert int(refused.headers["retry-after"]) >= 1
        others = [download(2 + number // EACH) for number in range((CLIENTS - 1) * EACH)]
        assert client.get("/tables/jobs_by_place").status_code == 200
        assert client.get("/sdmx/2.1/dataflow").status_code == 200
        query = {"tableId": "jobs_by_place", "selection": {"selection": []}}
        assert client.post("/api/v2/savedqueries", json=query).status_code == 201
        assert not held.begun.acquire(blocking=False), "two are worked out at a time"
        held.finish.set()
        assert [heard(connection).status for connection in (*first, *others)] == [200] * EACH * CLIENTS
        assert heard(download(1)).status == 200
