"""The published files of a table: whole or in parts, once to whoever has them, and never another file."""

import asyncio
import shutil
from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers

from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.published_files import OpenFile, file_named
from sfumato.serve.core.stream import StreamedResponse, file_response
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


def test_what_was_checked_is_sent_whatever_takes_its_place(bundles: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(bundles["survey"], tmp_path / "bundle")
    published = file_named(open_catalogue([BundleSource(folder=copy)])["people"].files, "cubes/people.parquet")
    expected = (copy / published.name).read_bytes()
    opened = published.open()
    opened.check()
    copy.rename(tmp_path / "earlier")
    shutil.copytree(tmp_path / "earlier", copy)
    (copy / published.name).write_bytes(b"another file")

    async def read() -> bytes:
        response = file_response(opened, Headers(), {"ETag": "x"})
        assert isinstance(response, StreamedResponse)
        return b"".join([bytes(part) async for part in response.body_iterator])  # type: ignore[arg-type]

    assert asyncio.run(read()) == expected
    assert opened.file.closed
    with published.open().file as file, pytest.raises(RefusedError, match="published anew"):
        OpenFile(published=published, file=file).check()
