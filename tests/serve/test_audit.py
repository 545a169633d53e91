"""Who asked what is written down, before the answer goes out; no figure and no token ever is."""

import json
import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import pytest
from fastapi import Request
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.responses import Response

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings, require
from sfumato.serve.core.audit import AuditedQuery, AuditLog
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.users import Role, User, Users
from tests.serve import patient
from tests.serve.in_thread import asking
from tests.serve.raw import request, said_to
from tests.serve.running import serving


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


@pytest.mark.slow
def test_the_log_says_who_asked_what_and_how_it_went(bundles: dict[str, Path], tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(bundles["survey"], bundles["jobs"], "--state", state) as server:
        _, token = Users(state).add("ann", Role.analyst)
        asked = {"valueCodes[region]": "*", "valueCodes[contents]": "weighted"}
        figures = server.get("/tables/people/data", **asked).json()["value"]
        server.get("/tables/people/data", **asked)
        server.get("/tables/people/data", **{"valueCodes[region]": "nowhere"})
        known = {"Authorization": f"Bearer {token}"}
        patient.get(f"{server.v2}/tables/people/data", params=asked, headers=known)
        patient.get(f"{server.v2}/tables", params={"query": token})
        patient.get(f"{server.v2}/tables/{token}")
        patient.post(f"{server.url}/sign-in", data={"token": token}, headers={"Origin": server.url})
    public, users = entries(state / "audit/public.jsonl"), entries(state / "audit/users.jsonl")
    first, cached, refused, *_ = public
    for entry in (first, cached):
        assert entry["user"] == "public"
        assert entry["address"] == "127.0.0.0/24"
        assert (entry["table"], entry["cells"], entry["status"]) == ("people", len(figures), 200)
        assert entry["asked"] == {"region": "*", "contents": ["weighted"]}
        assert entry["milliseconds"] >= 0
    assert refused["status"] == 400
    assert "nowhere" in refused["query"]
    assert [entry["user"] for entry in users] == ["ann"]
    assert users[0]["asked"] == first["asked"]
    written = (state / "audit/public.jsonl").read_text() + (state / "audit/users.jsonl").read_text()
    assert token not in written
    assert written.count("(token)") == 2
    shown = {str(figure) for figure in figures if abs(figure) > 1_000}
    assert shown
    assert not any(figure in written for figure in shown)
    for file in (state / "audit").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.slow
def test_head_is_logged_as_it_was_sent(bundles: dict[str, Path], tmp_path: Path) -> None:
    asked = {"valueCodes[region]": "*", "valueCodes[contents]": "weighted"}
    with serving(bundles["survey"], "--state", tmp_path / "state") as server:
        patient.head(f"{server.v2}/tables/people/data", params=asked)
        patient.get(f"{server.v2}/tables/people/data", params=asked)
        patient.head(f"{server.v2}/savedqueries")
    head, get, refused = entries(tmp_path / "state/audit/public.jsonl")
    assert [entry["method"] for entry in (head, get, refused)] == ["HEAD", "GET", "HEAD"]
    assert (head["asked"], head["cells"], head["status"]) == (get["asked"], get["cells"], 200)
    assert refused["status"] == 405


@pytest.mark.slow
@pytest.mark.parametrize(("addresses", "written"), [("full", "127.0.0.1"), ("none", "unknown")])
def test_addresses_are_written_as_the_office_wishes(
    addresses: str, written: str, bundles: dict[str, Path], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    with serving(bundles["survey"], "--state", state, "--addresses", addresses) as server:
        server.get("/config")
    assert entries(state / "audit/public.jsonl")[0]["address"] == written


@pytest.mark.slow
def test_nothing_that_is_sent_ends_a_line_or_makes_one(bundles: dict[str, Path], tmp_path: Path) -> None:
    state = tmp_path / "state"
    forged = '%0a{"user":"ann","status":200}%0d%0a%e2%80%a8%1b[2J'
    with serving(bundles["survey"], "--state", state) as server:
        said_to(server, request("GET", f"/api/v2/tables/{forged}?a={forged}"))
        said_to(server, request("GET", f"/{'%0a' * 1_000}?{'%0a' * 3_000}"))
        said_to(server, request("PROP" * 100, f"/{forged}"))
    content = (state / "audit/public.jsonl").read_bytes()
    assert content.count(b"\n") == 3
    assert content.isascii()
    assert all(byte >= 0x20 or byte == 0x0A for byte in content)
    assert {entry["user"] for entry in entries(state / "audit/public.jsonl")} == {"public"}
    assert all(len(line) < 8_100 for line in content.splitlines())


@settings(deadline=None)  # how long a disk takes says nothing of the entry
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=200), max_size=5))
def test_any_entry_is_one_line_that_reads_as_it_was_written(entry: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        log = AuditLog(Path(folder) / "log.jsonl")
        log.write(entry)
        log.close()
        assert entries(log.path) == [entry]


def test_a_full_file_is_put_aside_and_nothing_is_lost(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit/log.jsonl", largest=1_000)
    for number in range(200):
        log.write({"number": number}, durably=number % 50 == 0)
    log.close()
    files = [*log.full(), log.path]
    assert len(files) > 2
    assert all(file.stat().st_size < 1_100 for file in files)
    assert [entry["number"] for file in files for entry in entries(file)] == list(range(200))


def test_only_so_many_full_files_are_kept_where_that_is_wished(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit/log.jsonl", largest=100, keep=3)
    for number in range(200):
        log.write({"number": number})
    log.close()
    assert len(log.full()) == 3
    assert [entry["number"] for file in [*log.full(), log.path] for entry in entries(file)][-1] == 199


def test_a_line_that_a_failure_cut_short_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "audit/log.jsonl"
    log = AuditLog(path)
    log.write({"number": 1})
    log.close()
    with path.open("ab") as file:
        file.write(b'{"numb')
    again = AuditLog(path)
    again.write({"number": 2})
    again.close()
    assert path.read_text().splitlines() == ['{"number":1}', '{"numb', '{"number":2}']


def test_a_user_gets_no_answer_that_is_not_in_the_log(catalogue: Catalogue, tmp_path: Path) -> None:
    state = tmp_path / "state"
    _, token = Users(state).add("ann", Role.analyst)
    app = make_app(catalogue, Settings(state=state, audit=state / "audit"))

    @app.get("/live/asked")
    async def live(user: Annotated[User, require(Role.analyst)], request: Request) -> Response:
        AuditedQuery(table="live", asked={"by": ["place"]}, cells=7).attach(request.scope)
        return Response(f"an answer for {user.name}")

    with asking(app) as client:
        known = {"Authorization": f"Bearer {token}"}
        assert client.get("/live/asked", headers=known).text == "an answer for ann"
        (entry,) = entries(state / "audit/users.jsonl")
        assert (entry["user"], entry["asked"], entry["cells"]) == ("ann", {"by": ["place"]}, 7)

    blocked = make_app(catalogue, Settings(state=state, audit=state / "blocked"))
    blocked.router.routes[:0] = [route for route in app.router.routes if getattr(route, "path", "") == "/live/asked"]
    (state / "blocked").write_text("a file where the folder should be")
    with asking(blocked) as client:
        refused = client.get("/live/asked", headers=known)
        assert refused.status_code == 503
        assert "an answer" not in refused.text
        assert client.get("/api/v2/config").status_code == 200


@pytest.mark.slow
def test_a_server_that_is_killed_loses_no_entry(bundles: dict[str, Path], tmp_path: Path) -> None:
    state = tmp_path / "state"
    with serving(bundles["survey"], "--state", state) as server:
        for _ in range(20):
            server.get("/config")
        server.process.kill()
        server.process.wait(30)
    assert len(entries(state / "audit/public.jsonl")) == 20
