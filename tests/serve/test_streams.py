"""Answers beyond the cap are written while they are read: the same bytes, in bounded memory."""

import tracemalloc
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as some

from sfumato.serve.app import make_app
from sfumato.serve.core import stream
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.model import Selection
from sfumato.serve.core.selection import everything
from sfumato.serve.sdmx.flow import Flow
from sfumato.serve.sdmx.formats import WRITERS
from sfumato.serve.sdmx.query import DataQuery
from sfumato.serve.sdmx.series import in_parts
from tests.serve.in_thread import asking

Both = tuple[httpx.Client, httpx.Client]
CAP = 500
"""Figures: a small cap, beyond which every table of the bundles is."""


@given(
    lengths=some.lists(some.integers(1, 5), min_size=1, max_size=4),
    cut=some.integers(0, 4),
    most=some.integers(1, 200),
    left_out=some.integers(0, 4),
)
def test_parts_are_the_whole_in_its_order(lengths: list[int], cut: int, most: int, left_out: int) -> None:
    *dimensions, metrics = [tuple(range(length)) for length in lengths]
    places = tuple(None if at == left_out else one for at, one in enumerate(dimensions))
    whole = Selection(places=places, metrics=metrics)
    order = list(range(len(lengths)))[:cut]

    def cells(part: Selection) -> Iterator[tuple[int | None, ...]]:
        return product(*((None,) if one is None else one for one in (*part.places, part.metrics)))

    parts = list(stream.in_parts(whole, order, most))
    assert [cell for part in parts for cell in cells(part)] == list(cells(whole))
    uncut = [one for at, one in enumerate((*places, metrics)) if at not in order and one is not None]
    least = len(list(product(*uncut)))
    assert all(part.cells <= max(most, least) for part in parts)


@pytest.fixture(scope="module")
def clients(
    catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """A server that gives everything at once, and one with a small cap."""
    folder = tmp_path_factory.mktemp("state")
    with (
        asking(make_app(catalogue, Settings(state=folder / "whole", most_cells=10_000_000))) as whole,
        asking(make_app(catalogue, Settings(state=folder / "capped", most_cells=CAP))) as capped,
    ):
        yield whole, capped


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts so small that every answer has many."""
    monkeypatch.setattr(stream.in_parts, "__defaults__", (97,))


ADDRESSES = {
    "generic": "/sdmx/2.1/data/flows_between_states?format=genericdata",
    "specific": "/sdmx/2.1/data/jobs_by_place_industry?format=structurespecificdata",
    "flat": "/sdmx/2.1/data/jobs_by_place_industry?dimensionAtObservation=AllDimensions",
    "keys": "/sdmx/2.1/data/flows_between_states?detail=serieskeysonly",
    "csv 1": "/sdmx/2.1/data/flows_between_states/AL+AK..?format=csvdata",
    "csv 2": "/sdmx/2.1/data/jobs_by_place_industry?format=csvdata2",
    "PxWeb": "/api/v2/tables/jobs_by_place_industry/data?outputFormat=csv&outputFormatParams=IncludeTitle,ByteOrderMark"
    "&valueCodes[place]=*&valueCodes[industry]=*&valueCodes[ownership]=*",
    "JSON of PxWeb 1": "/api/v2/tables/jobs_by_place_industry/data?outputFormat=json-px"
    "&valueCodes[place]=*&valueCodes[industry]=*&valueCodes[ownership]=*",
    "PxWeb, other rows": "/api/v2/tables/jobs_by_place_industry/data?outputFormat=csv&stub=contents,industry"
    "&valueCodes[place]=*&valueCodes[industry]=*&valueCodes[ownership]=*",
}


@pytest.mark.parametrize("name", ADDRESSES)
@pytest.mark.usefixtures("small_parts")
def test_what_is_written_in_parts_is_what_is_written_at_once(name: str, clients: Both) -> None:
    whole, capped = (client.get(ADDRESSES[name]) for client in clients)
    assert whole.status_code == capped.status_code == 200, capped.text[:500]
    assert "content-length" in whole.headers
    assert "content-length" not in capped.headers, "it is not known before it is written"
    assert capped.content == whole.content
    assert capped.headers["content-type"] == whole.headers["content-type"]
    again = clients[1].get(ADDRESSES[name], headers={"If-None-Match": capped.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = clients[1].head(ADDRESSES[name])
    assert (head.status_code, head.headers["etag"]) == (200, capped.headers["etag"])
    assert "content-length" not in head.headers


def test_formats_that_are_made_whole_say_which_ones_may_be_larger(clients: Both) -> None:
    _, capped = clients
    json = capped.get("/sdmx/2.1/data/flows_between_states?format=jsondata")
    assert json.status_code == 413
    assert "XML and CSV may be larger" in json.json()["detail"]
    chosen = "valueCodes[place]=*&valueCodes[industry]=*&valueCodes[ownership]=*"
    book = capped.get(f"/api/v2/tables/jobs_by_place_industry/data?outputFormat=xlsx&{chosen}")
    assert book.status_code == 403
    assert "as csv or json-px it may be larger" in book.json()["detail"]


def test_even_a_stream_has_an_end(clients: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("sfumato.serve.context", "sfumato.serve.sdmx.routes"):
        monkeypatch.setattr(f"{room}.MOST", CAP)
    refused = clients[1].get("/sdmx/2.1/data/flows_between_states?format=csvdata")
    assert (refused.status_code, refused.json()["detail"].count("at most 500")) == (413, 1)


LONG = "/sdmx/2.1/data/indicators?format=genericdata"
"""More than the buffers between a server and a client hold."""


@pytest.mark.slow
def test_nothing_is_written_for_a_client_that_left_and_each_reads_so_many_at_a_time(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Selection] = []
    parts = stream.in_parts

    def counted(*asked: Any) -> Iterator[Selection]:
        for part in parts(*asked):
            written.append(part)
            yield part

    monkeypatch.setattr(stream, "in_parts", counted)
    monkeypatch.setattr(stream, "OF_ONE", 1)
    app = make_app(catalogue, Settings(state=tmp_path, most_cells=CAP))
    streams: stream.Streams = app.state.context.streams
    with asking(app) as client:
        client.headers["Accept-Encoding"] = "identity"  # compressed, buffers of some machines hold all of it
        with client.stream("GET", LONG) as response:
            next(response.iter_raw(1_000))
            assert streams.under_way == 1
            second = client.get(LONG)
            assert second.status_code == 429
            assert "once you have some of them" in second.json()["detail"]
        while streams.under_way:
            client.get("/health")
        begun = len(written)
        assert begun * stream.PART < everything(catalogue["indicators"]).cells, "far from all of it was written"
        with client.stream("GET", LONG) as response:
            assert response.status_code == 200, "who left may ask again"
    assert begun > 0


@pytest.mark.slow
def test_a_stream_takes_the_memory_of_a_part(catalogue: Catalogue) -> None:
    flow = Flow(table=catalogue["indicators"], agency="SFUMATO")
    query = DataQuery.read(flow, "all", {})
    for data_format, write in WRITERS.items():
        if not data_format.in_parts:
            continue
        tracemalloc.start()
        length = sum(len(text) for text in write(in_parts(flow, query), ""))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < length / 5, data_format.name
