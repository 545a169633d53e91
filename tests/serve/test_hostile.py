"""Whatever a client sends, it is refused soon and clearly, and the server goes on."""

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from sfumato.serve.core.http import RequestLimits, nested
from tests.serve import patient
from tests.serve.raw import chunked, closed, connected, heard, posted, request, said_to
from tests.serve.running import Server, serving

DATA = "/api/v2/tables/jobs_by_place/data"
V1 = "/api/v1/en/tables/jobs_by_place"
SAVED = "/api/v2/savedqueries"
ENDLESS = 64
"""How many megabytes an endless body would have, if the server read on."""


@pytest.fixture(autouse=True)
def still_answers(server: Server) -> Iterator[None]:
    """After every test the server answers as before."""
    before = said_to(server, request("GET", f"{DATA}?valueCodes[place]=*&valueCodes[industry]=*"))
    yield
    after = said_to(server, request("GET", f"{DATA}?valueCodes[place]=*&valueCodes[industry]=*"))
    assert (before.status, before.body) == (after.status, after.body)
    assert server.process.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "'; DROP TABLE jobs; --",
        '" OR 1=1 --',
        "x' UNION SELECT * FROM read_parquet('/etc/passwd') --",
        "{{7*7}}",
        "${jndi:ldap://localhost/a}",
        "<script>alert(1)</script>",
        "A\x00B",
        "\u202e\u0000",
        "\ud800",
    ],
)
def test_code_that_is_no_code_is_only_a_text(server: Server, code: str) -> None:
    body = json.dumps({"selection": [{"variableCode": "place", "valueCodes": [code]}]}).encode()
    assert said_to(server, posted(DATA, body)).problem["status"] == 400
    query = json.dumps({"query": [{"code": "place", "selection": {"filter": "item", "values": [code]}}]}).encode()
    assert said_to(server, posted(V1, query)).problem["status"] == 400


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    ["*" * 10_000 + "Z", "*a" * 3_000 + "Z", "?" * 12_000, "top(" * 3_000, "range(" + "a" * 9_000 + ")", "top(9e999)"],
)
def test_an_expression_that_takes_long_to_match_is_refused_or_matches_nothing(server: Server, expression: str) -> None:
    body = json.dumps({"selection": [{"variableCode": "place", "valueCodes": [expression]}]}).encode()
    assert said_to(server, posted(DATA, body)).status in (400, 404)


MANY_TINY = {
    DATA: b'{"selection":[%s]}' % b",".join([b'{"variableCode":"o"}'] * 45_000),
    V1: b'{"query":[%s]}' % b",".join([b'{"code":"o","selection":{}}'] * 35_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("target", MANY_TINY)
def test_a_body_of_many_tiny_parts_is_refused_before_it_is_read(server: Server, target: str) -> None:
    assert "more than 1,000 lists and objects" in said_to(server, posted(target, MANY_TINY[target])).problem["detail"]


def test_a_question_names_a_bounded_number_of_dimensions(server: Server) -> None:
    named = [{"variableCode": "place", "valueCodes": ["*"]}] * 101
    said = said_to(server, posted(DATA, json.dumps({"selection": named}).encode()))
    assert (said.status, "at most 100 items" in said.problem["detail"]) == (400, True)
    query = [{"code": "place", "selection": {}}] * 101
    said = said_to(server, posted(V1, json.dumps({"query": query}).encode()))
    assert (said.status, "at most 100 items" in said.problem["detail"]) == (400, True)
    document = json.loads(said_to(server, request("GET", "/openapi.json")).body)
    posts = [operations["post"] for path, operations in document["paths"].items() if "post" in operations]
    bodies = [post["requestBody"]["content"]["application/json"]["schema"]["properties"] for post in posts]
    limits = [body[name].get("maxItems") for body in bodies for name in ("selection", "query") if name in body]
    assert sorted(limits, key=str) == [100, 100, None], "a saved query has its selection inside one"


def test_codes_may_be_as_many_as_a_body_has_room_for(server: Server) -> None:
    few = json.dumps({"selection": [{"variableCode": "place", "valueCodes": ["P00001"]}]}).encode()
    many = json.dumps({"selection": [{"variableCode": "place", "valueCodes": ["P00001"] * 90_000}]}).encode()
    answers = [said_to(server, posted(DATA, body)) for body in (few, many)]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].body == answers[1].body
    for fault in (b'"P00001",' * 90_000 + b"1", b"1," * 400_000 + b"1"):
        wrong = b'{"selection":[{"variableCode":"place","valueCodes":[%s]}]}' % fault
        assert "valid string" in said_to(server, posted(DATA, wrong)).problem["detail"]


def test_a_query_that_is_too_long_to_be_kept_is_refused_before_it_is_read(server: Server) -> None:
    said = said_to(server, posted(SAVED, b"{" + b" " * 20_000))
    assert (said.status, "at most 20,000 bytes" in said.problem["detail"]) == (413, True)


@pytest.mark.parametrize("said", ["Content-Type: text/plain", "Content-Type: application/x-json"])
def test_a_body_that_does_not_say_that_it_is_json_is_refused(server: Server, said: str) -> None:
    body = json.dumps({"selection": []}).encode()
    asked = request("POST", DATA, said, f"Content-Length: {len(body)}", body=body)
    assert "Content-Type: application/json" in said_to(server, asked).problem["detail"]


JSON = st.recursive(
    st.none() | st.text(alphabet='[]{}"\\a,:', max_size=8),
    lambda parts: (
        st.lists(parts, max_size=4) | st.dictionaries(st.text(alphabet='[{"\\', max_size=4), parts, max_size=4)
    ),
    max_leaves=30,
)


def parts_of(content: object) -> tuple[int, int]:
    """How many lists and objects there are, and how deep."""
    if not isinstance(content, list | dict):
        return 0, 0
    inside = [parts_of(part) for part in (content.values() if isinstance(content, dict) else content)]
    return 1 + sum(number for number, _ in inside), 1 + max((deep for _, deep in inside), default=0)


@given(JSON)
def test_lists_and_objects_are_counted_without_reading_the_body(content: object) -> None:
    assert nested(json.dumps(content).encode()) == parts_of(content)


@pytest.mark.slow
def test_a_selection_that_is_too_large_is_refused_before_it_is_worked_out(
    bundles: dict[str, Path], tmp_path: Path
) -> None:
    with serving(bundles["survey"], "--state", tmp_path / "state", "--most-cells", "50") as small:
        said = said_to(small, request("GET", "/api/v2/tables/people/data?valueCodes[region]=*&valueCodes[job]=*"))
        assert said.status == 403
        assert "50 cells" in said.problem["detail"]
        codes = [f"{number}*" for number in range(100_000)]
        many = json.dumps({"selection": [{"variableCode": "region", "valueCodes": codes}]}).encode()
        assert said_to(small, posted("/api/v2/tables/people/data", many)).problem["status"] == 400
        assert said_to(small, request("GET", "/api/v2/config")).status == 200


@pytest.mark.parametrize("target", [DATA, V1, SAVED])
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 400_000,
        b'{"a":' * 100_000,
        b'{"selection":' + b"[" * 100 + b"]" * 100 + b"}",
        b"[]" * 400_000,
        b'"\\' * 400_000,
        b"{",
        b"\xff\xfe\x00",
        b'{"selection": "\xc3\x28"}',
        b"1" * 900_000,
        b"NaN",
        b"\x00" * 1_000,
        b'{"selection": [{"variableCode": 1e400, "valueCodes": {"a": []}}], "query": [{"code": 1e400}]}',
    ],
    ids=lambda body: repr(body[:12]) if isinstance(body, bytes) else None,
)
def test_a_body_that_makes_no_sense_is_refused(server: Server, target: str, body: bytes) -> None:
    assert said_to(server, posted(target, body)).problem["status"] in ((400, 413) if target == SAVED else (400,))


def test_a_body_that_says_it_is_too_long_is_not_even_waited_for(server: Server) -> None:
    head = request("POST", DATA, "Content-Length: 99999999999999999999", "Content-Type: application/json")
    assert said_to(server, head).problem["status"] == 413
    assert said_to(server, request("POST", DATA, "Content-Length: 1000001")).problem["status"] == 413


def test_an_endless_body_is_refused_once_it_is_too_long(server: Server) -> None:
    head = request("POST", DATA, "Transfer-Encoding: chunked", "Content-Type: application/json")
    megabyte = b" " * 1_000_000
    assert said_to(server, head, *chunked(megabyte for _ in range(ENDLESS))).problem["status"] == 413


def test_a_compressed_body_is_not_unpacked(server: Server) -> None:
    bomb = gzip.compress(b" " * 100_000_000)
    assert said_to(server, posted(DATA, bomb, "Content-Encoding: gzip")).problem["status"] == 415


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (("Content-Encoding: identity", "Content-Encoding: gzip"), 415),
        (("Content-Encoding: identity, br",), 415),
        (("Content-Encoding: identity",), 200),
        (("Content-Encoding:",), 200),
    ],
)
def test_compressed_bodies_are_answered_as_documented(server: Server, headers: tuple[str, ...], status: int) -> None:
    answer = said_to(server, posted(DATA, b'{"selection": []}', *headers))
    assert answer.status == status
    paths = patient.get(f"{server.url}/openapi.json").json()["paths"]
    assert str(status) in paths["/api/v2/tables/{id}/data"]["post"]["responses"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/tables/../../../../etc/passwd",
        "/api/v2/tables/%2e%2e%2f%2e%2e%2fetc%2fpasswd/metadata",
        "/api/v2/savedqueries/%2e%2e%2fusers",
        "/api/v2/savedqueries/..%2fusers.json",
        "/api/v2/codelists/%00",
        "/static/%2e%2e/%2e%2e/app.py",
        "/static/../settings.py",
        "/tables/%c0%ae%c0%ae%2fusers.json",
        "/tables/%ff%fe",
        "/sdmx/2.1/data/%2e%2e%2f%2e%2e",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/users.json",
        "/audit/users.jsonl",
        "http://elsewhere.example/users.json",
        "http://elsewhere.example/../etc/passwd",
        "ftp://elsewhere.example/",
        "/api/v2/tables/%252e%252e%252f",
    ],
)
def test_no_path_leads_out_of_the_tables(server: Server, path: str) -> None:
    said = said_to(server, request("GET", path))
    assert said.status in (400, 404)
    assert b"root:" not in said.body
    assert b"sha256" not in said.body


@pytest.mark.parametrize(
    "method", ["TRACE", "CONNECT", "PUT", "DELETE", "PATCH", "PROPFIND", "get", "X" * 5_000, "OPTIONS"]
)
def test_a_method_that_is_not_offered_is_refused(server: Server, method: str) -> None:
    said = said_to(server, request(method, DATA, "Content-Length: 0"))
    assert said.problem["status"] == 405
    assert {"GET", "POST"} <= set(said.headers["allow"].split(", "))


def test_a_header_does_not_change_the_method(server: Server) -> None:
    said = said_to(server, request("GET", "/api/v2/config", "X-HTTP-Method-Override: DELETE"))
    assert said.status == 200


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: -1",),
        ("Content-Length: 1e3",),
        ("Transfer-Encoding: gzip",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Host: elsewhere",),
        ("No colon",),
        ("Space : before",),
        ("Null: \x00",),
    ],
)
def test_headers_that_contradict_one_another_are_refused(server: Server, headers: tuple[str, ...]) -> None:
    said = said_to(server, request("POST", DATA, *headers))
    assert said.problem["status"] in (400, 501)
    assert said.headers["x-content-type-options"] == "nosniff"


SMUGGLED = request("GET", "/api/v2/config", "X-Smuggled: yes")


@pytest.mark.parametrize("path", [DATA, "/api/v2/config", "/api/v2/savedqueries"])
@pytest.mark.parametrize("method", ["POST", "GET", "HEAD"])
@pytest.mark.parametrize(
    "headers",
    [
        (f"Content-Length: {len(SMUGGLED) + 5}", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("transfer-encoding: Chunked", "CONTENT-LENGTH: 0"),
        ("Content-Length: 5, 5", "Transfer-Encoding: chunked"),
    ],
)
def test_a_request_with_two_lengths_is_refused_and_nothing_after_it_is_answered(
    server: Server, headers: tuple[str, ...], method: str, path: str
) -> None:
    with connected(server) as connection:
        connection.sendall(request(method, path, *headers, body=b"0\r\n\r\n") + SMUGGLED)
        said = heard(connection)
        assert "Transfer-Encoding" in said.problem["detail"]
        assert (said.status, said.headers["connection"]) == (400, "close")
        assert nothing_more(connection)


def test_a_request_with_two_lengths_is_refused_behind_one_that_is_answered(server: Server) -> None:
    two = request("POST", DATA, "Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n")
    with connected(server) as connection:
        connection.sendall(request("GET", "/api/v2/config") + two + SMUGGLED)
        assert [heard(connection).status, heard(connection).status] == [200, 400]
        assert nothing_more(connection)


def test_chunks_are_unknown_to_the_oldest_http(server: Server) -> None:
    old = request("POST", DATA, "Transfer-Encoding: chunked", body=b"0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0")
    with connected(server) as connection:
        connection.sendall(old + SMUGGLED)
        assert heard(connection).problem["status"] == 400
        assert nothing_more(connection)


@pytest.mark.parametrize("hidden", ["Content-Length: 5", "Transfer-Encoding: chunked", "Authorization: Bearer x", ""])
def test_a_line_that_ends_in_two_places_is_refused_and_nothing_after_it_is_answered(
    server: Server, hidden: str
) -> None:
    first = request("GET", "/api/v2/config", f"X-Told: a\n{hidden}")
    with connected(server) as connection:
        connection.sendall(request("GET", "/api/v2/config") + first + SMUGGLED)
        assert heard(connection).status == 200
        assert "carriage return" in heard(connection).problem["detail"]
        assert nothing_more(connection)


@pytest.mark.parametrize("after", ["X-Told: a\n\n", "X-Told: a\nX-More: b\r\n\r\n", "\n"])
def test_lines_after_chunks_end_in_one_place_too(server: Server, after: str) -> None:
    chunks = f"2\r\n{{}}\r\n0\r\n{after}".encode()
    first = request("POST", "/api/v2/savedqueries", "Transfer-Encoding: chunked", body=chunks)
    with connected(server) as connection:
        connection.sendall(first + SMUGGLED)
        assert "carriage return" in heard(connection).problem["detail"]
        assert nothing_more(connection)


def nothing_more(connection: socket.socket) -> bool:
    """Whether the server closes a connection without another answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("host", ["[", "a b", "]:99999999", "elsewhere.example:x", "%00", "a/../b?c#d", "@", ""])
@pytest.mark.parametrize("path", ["/nowhere", "/", "/tables/jobs_by_place", "/sign-in", "/api/v2/tables"])
def test_a_host_that_is_none_does_no_harm(server: Server, host: str, path: str) -> None:
    said = said_to(server, f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert said.status in (200, 400, 404)
    assert f"//{host}".encode() not in said.body or host == ""


def test_what_is_no_http_is_refused_as_a_problem(server: Server) -> None:
    assert said_to(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").problem["status"] == 400


def test_an_address_that_is_too_long_is_refused(server: Server) -> None:
    assert said_to(server, request("GET", f"/api/v2/tables?query={'a' * 20_000}")).problem["status"] == 414
    assert said_to(server, request("GET", f"/{'a' * 500_000}")).problem["status"] in (414, 431)


def test_headers_that_are_too_long_are_refused(server: Server) -> None:
    many = [f"X-{number}: {'a' * 100}" for number in range(350)]
    assert said_to(server, request("GET", "/api/v2/config", *many)).problem["status"] == 431
    assert said_to(server, request("GET", "/api/v2/config", f"X-Long: {'a' * 1_000_000}")).problem["status"] == 431


def test_thousands_of_parameters_are_read_soon(server: Server) -> None:
    same = "&".join(f"valueCodes[place]=P{number}*" for number in range(600))
    assert said_to(server, request("GET", f"{DATA}?{same}")).problem["status"] == 400
    others = "&".join(f"a{number}=1" for number in range(2_000))
    assert said_to(server, request("GET", f"/api/v2/config?{others}")).status == 200
    empty = "&" * 15_000
    assert said_to(server, request("GET", f"/api/v2/config?{empty}")).status == 200


@pytest.mark.parametrize(
    "token",
    ["wrong", "", "sfumato_", "sfumato_" + "A" * 43, "A" * 30_000, "gr\u00fc\u00dfe", "\udcff\udcfe", "a b c", "%00"],
)
def test_a_bad_token_makes_nobody_of_the_client(server: Server, token: str) -> None:
    said = said_to(server, request("GET", "/api/v2/config", f"Authorization: Bearer {token}"))
    assert said.status in (200, 400)
    assert token == "" or token not in said.body.decode()


@pytest.mark.slow
def test_a_client_that_goes_on_after_it_was_refused_is_left(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(request("GET", "/api/v2/config", "Transfer-Encoding: chunked"))
        assert heard(connection).status == 200
        assert closed(connection)


def test_a_question_whose_client_left_before_its_end_is_not_passed_on() -> None:
    """What came so far is valid JSON: answered, it could be charged for nobody."""
    coming = [{"type": "http.request", "body": b"{}", "more_body": True}, {"type": "http.disconnect"}]
    passed_on, sent = [], []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        passed_on.append(scope)

    async def receive() -> Message:
        return coming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": DATA, "raw_path": DATA.encode(), "query_string": b""}
    anyio.run(RequestLimits(app, most=1_000), {**scope, "headers": []}, receive, send)
    assert not passed_on
    assert sent[0]["status"] == 400


def test_slow_clients_keep_nobody_waiting(server: Server) -> None:
    with ExitStack() as stack:
        slow: list[socket.socket] = []
        for _ in range(300):
            slow.append(stack.enter_context(connected(server)))
            slow[-1].sendall(b"POST /api/v2/savedqueries HTTP/1.1\r\nHost: localhost\r\n")
        assert said_to(server, request("GET", "/api/v2/config")).status == 200
    assert said_to(server, request("GET", "/api/v2/config")).status == 200


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(request("GET", "/api/v2/config") + request("GET", "/nowhere"))
        assert [heard(connection).status, heard(connection).status] == [200, 404]
