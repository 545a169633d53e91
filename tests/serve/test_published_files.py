"""The published files of a table: whole or in parts, once to whoever has them, and never another file."""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message

from sfumato.serve.core.catalogue import BundleSource, Catalogue, open_catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.published_files import OpenFile, file_named
from sfumato.serve.core.stream import file_response
from tests.serve import patient
from tests.serve.running import Server


def test_a_file_may_be_taken_in_parts_and_is_not_sent_again_to_who_has_it(server: Server) -> None:
    path = "/tables/people/files/cubes/people.parquet"
    whole = patient.get(f"{server.url}{path}")
    tag, length = whole.headers["etag"], len(whole.content)
    assert int(whole.headers["content-length"]) == length

    def taken(**headers: str) -> httpx.Response:
        return patient.get(
            f"{server.url}{path}", headers={name.replace("_", "-"): text for name, text in headers.items()}
        )

    for name in (tag, "*", f'"other", W/{tag}'):
        again = taken(if_none_match=name)
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    parts = {"0-9": slice(0, 10), "10-": slice(10, None), "-7": slice(-7, None), f"5-{10**17}": slice(5, None)}
    for part, expected in parts.items():
        found = taken(range=f"bytes={part}")
        assert (found.status_code, found.content) == (206, whole.content[expected]), part
        assert found.headers["content-range"].endswith(f"/{length}")
    assert taken(range="bytes=0-9", if_range=tag).status_code == 206
    for odd in ("bytes=b-c", "bytes=9-0", "bytes=0-1,4-5", "lines=0-1", "bytes=-", "bytes=" + "9" * 30 + "-"):
        assert (taken(range=odd).status_code, taken(range=odd).content) == (200, whole.content), odd
    assert taken(range="bytes=0-9", if_range='"other"').content == whole.content
    for beyond in (f"bytes={length}-", "bytes=-0"):
        found = taken(range=beyond)
        assert (found.status_code, found.headers["content-range"]) == (416, f"bytes */{length}")
        assert found.headers["content-type"] == "application/problem+json"


def sent(response: Response, *, parts: int = 10**6) -> bytes:
    """The body that a client gets, which leaves before it has more messages than so many."""
    found: list[Message] = []

    async def send(message: Message) -> None:
        if len(found) >= parts:
            raise OSError
        found.append(message)

    async def receive() -> Message:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    with suppress(ClientDisconnect):
        asyncio.run(response({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send))
    return b"".join(message.get("body", b"") for message in found)


@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_file_is_closed_however_early_its_reader_leaves(catalogue: Catalogue, parts: int) -> None:
    opened = file_named(catalogue["people"].files, "cubes/people.parquet").open()
    response = file_response(opened, Headers(), {"ETag": "x"})
    sent(response, parts=parts)
    assert opened.file.closed


def test_who_wants_the_head_of_a_file_is_told_of_all_of_it_and_nothing_is_read(
    server: Server, catalogue: Catalogue
) -> None:
    path = f"{server.url}/tables/people/files/cubes/people.parquet"
    whole, head = patient.get(path), httpx.head(path, headers={"Range": "bytes=0-9"}, timeout=60)
    names = ("content-length", "etag", "accept-ranges", "content-type")
    assert (head.status_code, head.content) == (200, b"")
    assert [head.headers[name] for name in names] == [whole.headers[name] for name in names]
    opened = file_named(catalogue["people"].files, "cubes/people.parquet").open()
    assert sent(file_response(opened, Headers(), {"ETag": "x"}, body=False)) == b""


def test_what_was_checked_is_sent_whatever_takes_its_place(bundles: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(bundles["survey"], tmp_path / "bundle")
    published = file_named(open_catalogue([BundleSource(folder=copy)])["people"].files, "cubes/people.parquet")
    expected = (copy / published.name).read_bytes()
    opened = published.open()
    opened.check()
    copy.rename(tmp_path / "earlier")
    shutil.copytree(tmp_path / "earlier", copy)
    (copy / published.name).write_bytes(b"another file")

    assert sent(file_response(opened, Headers(), {"ETag": "x"})) == expected
    assert opened.file.closed
    with published.open().file as file, pytest.raises(RefusedError, match="published anew"):
        OpenFile(published=published, file=file).check()
