"""HTTP as clients and proxies expect it: HEAD, entity tags, and redirections that name no host."""

import httpx
import pytest

from tests.serve import patient
from tests.serve.raw import request, said_to
from tests.serve.running import Server

PATHS = ("/", "/tables/jobs_by_place", "/api/v2/tables/jobs_by_place/data", "/sdmx/2.1/data/jobs_by_place")


@pytest.mark.parametrize("path", [*PATHS, "/api/v2/tables/nothing", "/sdmx/2.1/data/nothing"])
def test_head_is_get_without_the_body(path: str, server: Server) -> None:
    with httpx.Client(base_url=server.url, timeout=patient.PATIENCE) as client:
        whole, head, after = client.get(path), client.head(path), client.get(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert after.content == whole.content, "nothing of a body is left on the connection"
    for name in ("content-type", "content-length", "etag", "content-security-policy", "cache-control"):
        assert head.headers.get(name) == whole.headers.get(name)
    assert int(head.headers["content-length"]) == len(whole.content) or "content-encoding" in whole.headers


def test_head_is_refused_where_there_is_no_get(server: Server) -> None:
    assert patient.head(f"{server.v2}/savedqueries").status_code == 405
    assert "HEAD" in patient.delete(f"{server.v2}/config").headers["allow"].split(", ")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("said", ["{0}", "*", "W/{0}", '"a,b", {0}', '"other",W/{0} , "x"'])
def test_a_client_that_names_the_answer_in_any_way_has_it(said: str, path: str, server: Server) -> None:
    first = patient.get(f"{server.url}{path}")
    headers = {"If-None-Match": said.format(first.headers["etag"])}
    again = patient.get(f"{server.url}{path}", headers=headers)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize("said", ['"other"', 'W/"other", "x"', '"*"', "", "{0}"])
def test_a_client_that_names_another_answer_gets_this_one(said: str, server: Server) -> None:
    path = f"{server.url}{PATHS[0]}"
    bare = patient.get(path).headers["etag"].strip('"')
    assert patient.get(path, headers={"If-None-Match": said.format(bare)}).status_code == 200


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ("/tables/jobs_by_place/?view=table&x=%2F", "/tables/jobs_by_place?view=table&x=%2F"),
        ("/api/v2/tables/", "/api/v2/tables"),
        ("/tables/%3Fa%25%5C/", "/tables/%3Fa%25%5C"),
    ],
)
def test_a_slash_too_many_is_taken_away_on_the_same_host(asked: str, place: str, server: Server) -> None:
    said = said_to(server, request("GET", asked).replace(b"localhost", b"elsewhere.example"))
    assert (said.status, said.headers["location"]) == (307, place)


@pytest.mark.parametrize("path", ["//elsewhere.example/", "//elsewhere.example//", "//", "/tables//"])
def test_no_path_sends_anybody_elsewhere(path: str, server: Server) -> None:
    location = said_to(server, request("GET", path)).headers.get("location", "/")
    assert location.startswith("/")
    assert not location.startswith("//")


@pytest.mark.parametrize("target", ["http://tables.test/api/v2/config", "HTTP://tables.test:80/api/v2/config?lang=en"])
def test_a_target_may_be_a_whole_address(target: str, server: Server) -> None:
    said = said_to(server, request("GET", target))
    assert (said.status, said.body) == (200, patient.get(f"{server.v2}/config").content)


def test_the_host_of_a_whole_address_counts_and_not_the_header(server: Server) -> None:
    page = said_to(server, request("GET", "http://tables.test/tables/jobs_by_place"))
    assert b"http://tables.test/api/v2/" in page.body
    assert said_to(server, request("GET", "http://tables.test")).status == 200
    assert said_to(server, request("GET", "http:///api/v2/config")).status == 404
