"""Answers are compressed for who takes them so: the same content, a tag of its own, nothing private, nothing tiny."""

import asyncio
import gzip
import io
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest
from fastapi import Request
from starlette.responses import Response, StreamingResponse

from sfumato.serve.app import make_app
from sfumato.serve.core import compress
from sfumato.serve.core.access import PRIVATE, Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.compress import SMALL
from tests.serve.in_thread import asking

LARGE = "/api/v2/tables/jobs_by_place/metadata"
XLSX = "/api/v2/tables/jobs_by_place/data?outputFormat=xlsx"


@pytest.fixture(scope="module")
def client(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    app = make_app(catalogue, Settings(state=tmp_path_factory.mktemp("state"), calls=0))

    @app.get("/private")
    async def private(request: Request) -> Response:
        request.scope[PRIVATE] = True
        return Response("a" * 10_000, media_type="text/plain")

    @app.get("/stream")
    async def stream() -> Response:
        async def parts() -> Any:
            for number in range(100):
                yield f"{number:090d}\n"

        return StreamingResponse(parts(), media_type="text/csv", headers={"ETag": '"abc"'})

    @app.get("/unknown-length")
    async def unknown_length() -> Response:
        response = Response(media_type="text/csv", headers={"ETag": '"abc"'})
        del response.headers["content-length"]
        return response

    with asking(app) as found:
        yield found


def get(client: httpx.Client, path: str, accepted: str = "identity", **headers: str) -> tuple[httpx.Response, bytes]:
    """The answer and its bytes as they came."""
    with client.stream("GET", path, headers={"Accept-Encoding": accepted} | headers) as response:
        content = b"".join(response.iter_raw())
    return response, content


def plain(content: bytes, coding: str) -> bytes:
    if coding == "gzip":
        return gzip.decompress(content)
    read: bytes = pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    return read


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_compressed_answer_has_the_same_content_and_another_tag(client: httpx.Client, coding: str) -> None:
    whole, content = get(client, LARGE)
    small, packed = get(client, LARGE, coding)
    assert small.headers["content-encoding"] == coding
    assert len(packed) * 2 < len(content)
    assert int(small.headers["content-length"]) == len(packed)
    assert plain(packed, coding) == content
    assert "content-encoding" not in whole.headers
    assert {whole.headers["etag"], small.headers["etag"]} == {
        whole.headers["etag"],
        f'{whole.headers["etag"][:-1]}-{coding}"',
    }
    assert all("Accept-Encoding" in found.headers["vary"] for found in (whole, small))


@pytest.mark.parametrize("coding", ["identity", "gzip", "zstd"])
def test_who_has_an_answer_in_any_coding_is_told_that_it_is_the_same(client: httpx.Client, coding: str) -> None:
    first, _ = get(client, LARGE, coding)
    for known in (first.headers["etag"], f"W/{first.headers['etag']}", f'"ff", {first.headers["etag"]}', "*"):
        again, content = get(client, LARGE, coding, **{"If-None-Match": known})
        assert (again.status_code, content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    changed, _ = get(client, LARGE, coding, **{"If-None-Match": '"00ff-gzip"'})
    assert changed.status_code == 200


def test_a_stream_is_compressed_as_it_comes(client: httpx.Client) -> None:
    whole, content = get(client, "/stream")
    small, packed = get(client, "/stream", "gzip, zstd")
    assert (small.headers["content-encoding"], small.headers["etag"]) == ("gzip", '"abc-gzip"')
    assert "content-length" not in small.headers
    assert gzip.decompress(packed) == content
    assert "content-encoding" not in whole.headers


def test_head_of_a_stream_says_what_get_would(client: httpx.Client) -> None:
    got, _ = get(client, "/stream", "gzip")
    head = client.head("/unknown-length", headers={"Accept-Encoding": "gzip"})
    names = ("content-encoding", "etag", "vary")
    assert [head.headers[name] for name in names] == [got.headers[name] for name in names]
    assert "content-length" not in head.headers


def test_a_stream_is_sent_as_it_is_to_who_takes_no_gzip(client: httpx.Client) -> None:
    response, content = get(client, "/stream", "zstd, gzip;q=0")
    assert "content-encoding" not in response.headers
    assert content == get(client, "/stream")[1]


def test_a_part_of_a_file_is_a_part_of_that_file(client: httpx.Client) -> None:
    listed = client.get("/tables/jobs_by_place/files").json()["files"]
    path = max((one for one in listed if one["name"].endswith(".csv")), key=lambda one: int(one["bytes"]))["address"]
    _, content = get(client, path)
    part, some = get(client, path, "gzip", Range="bytes=100-4099")
    assert (part.status_code, some) == (206, content[100:4100])
    assert "content-encoding" not in part.headers
    whole, packed = get(client, path, "gzip")
    assert (whole.headers["content-encoding"], gzip.decompress(packed)) == ("gzip", content)
    assert "accept-ranges" not in whole.headers, "parts are of the file as it is"


@pytest.mark.parametrize(
    "path", [XLSX, "/health", "/private", "/api/v2/tables/jobs_by_place/data?outputFormat=parquet"]
)
def test_what_would_not_gain_or_could_tell_a_secret_is_sent_as_it_is(client: httpx.Client, path: str) -> None:
    response, content = get(client, path, "gzip")
    assert response.status_code == 200
    assert "content-encoding" not in response.headers
    assert len(content) == int(response.headers["content-length"])
    assert path == "/health" or len(content) > SMALL


def test_head_says_what_get_would(client: httpx.Client) -> None:
    got, content = get(client, LARGE, "gzip")
    head = client.head(LARGE, headers={"Accept-Encoding": "gzip"})
    assert (head.headers["content-length"], head.headers["etag"]) == (str(len(content)), got.headers["etag"])
    assert head.content == b""


def test_many_who_ask_for_the_same_have_it_compressed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, hold, calls = threading.Event(), threading.Event(), []

    def slow(body: bytes, name: str) -> bytes:
        calls.append(name)
        begun.set()
        assert hold.wait(60)
        return gzip.compress(body)

    monkeypatch.setattr(compress, "compressed", slow)
    answer = Response("a" * 60_000, media_type="text/plain", headers={"ETag": '"ab"'})
    app = compress.Compression(answer, cache_bytes=1_000_000)
    found: list[bytes] = []

    async def ask() -> None:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"accept-encoding", b"gzip")]}

        async def send(message: Any) -> None:
            found.append(message.get("body", b""))

        async def receive() -> Any:
            raise AssertionError("nothing is sent")

        await app(scope, receive, send)

    async def many() -> None:
        tasks = [asyncio.ensure_future(ask()) for _ in range(20)]
        await asyncio.to_thread(begun.wait, 60)
        tasks[0].cancel()  # whoever began leaves
        await asyncio.sleep(0)
        hold.set()
        await asyncio.gather(*tasks[1:])
        await ask()

    asyncio.run(many())
    assert calls == ["gzip"]
    bodies = {body for body in found if body}
    assert [gzip.GzipFile(fileobj=io.BytesIO(body)).read() for body in bodies] == [b"a" * 60_000]


@pytest.mark.parametrize("accepted", ["zstd", "gzip", "identity"])
@pytest.mark.parametrize("path", [LARGE, "/tables/jobs_by_place"])
def test_a_proxy_that_asks_again_is_told_that_the_answer_depends_on_the_coding(
    accepted: str, path: str, client: httpx.Client
) -> None:
    first, _ = get(client, path, accepted)
    again, _ = get(client, path, accepted, **{"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert set(first.headers["vary"].split(", ")) == set(again.headers["vary"].split(", "))
