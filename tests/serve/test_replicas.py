"""Several servers with one folder are one to their readers: who signed in, what was saved, and who left, all know."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from sfumato.serve.app import make_app
from sfumato.serve.core.access import SESSION_SECONDS, Sessions, Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.users import Role, Users
from tests.serve.in_thread import asking
from tests.serve.test_access import own, sign_in, with_rooms


@pytest.fixture
def replicas(catalogue: Catalogue, tmp_path: Path) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    settings = Settings(state=tmp_path / "state")
    with ExitStack() as stack:
        one, two = (stack.enter_context(asking(with_rooms(catalogue, settings))) for _ in range(2))
        yield one, two


def test_who_signs_in_at_one_is_signed_in_at_all_and_signs_out_of_all(
    replicas: tuple[httpx.Client, httpx.Client], tmp_path: Path
) -> None:
    one, two = replicas
    _, token = Users(tmp_path / "state").add("bea", Role.steward)
    assert sign_in(one, token).status_code == 303
    cookie = {"Cookie": f"sfumato={one.cookies['sfumato']}"}
    assert two.get("/steward/room", headers=cookie).text == "bea"
    assert two.post("/sign-out", headers=own(two) | cookie).status_code == 303
    assert one.get("/steward/room", headers=cookie).status_code == 303, "led to signing in"


def test_a_session_ends_with_its_token_everywhere(replicas: tuple[httpx.Client, httpx.Client], tmp_path: Path) -> None:
    one, _ = replicas
    users = Users(tmp_path / "state")
    _, token = users.add("bea", Role.steward)
    assert sign_in(one, token).status_code == 303
    cookie = {"Cookie": f"sfumato={one.cookies['sfumato']}"}
    users.revoke("bea")
    assert [client.get("/steward/room", headers=cookie).status_code for client in replicas] == [303, 303]


def test_a_query_that_was_saved_at_one_is_answered_by_all(replicas: tuple[httpx.Client, httpx.Client]) -> None:
    one, two = replicas
    query = {"tableId": "jobs_by_place", "selection": {"selection": []}}
    name = one.post("/api/v2/savedqueries", json=query).json()["id"]
    answers = [client.get(f"/api/v2/savedqueries/{name}/data").content for client in replicas]
    assert answers[0] == answers[1]
    assert two.post("/api/v2/savedqueries", json=query).json()["id"] == name


def test_a_session_outlasts_the_server_and_is_worth_nothing_to_who_reads_its_folder(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    settings = Settings(state=tmp_path / "state")
    _, token = Users(settings.state).add("bea", Role.steward)
    with asking(with_rooms(catalogue, settings)) as client:
        sign_in(client, token)
        name = client.cookies["sfumato"]
    with asking(with_rooms(catalogue, settings)) as client:
        assert client.get("/steward/room", headers={"Cookie": f"sfumato={name}"}).text == "bea"
        (kept,) = (settings.state / "sessions").iterdir()
        assert kept.stat().st_mode & 0o077 == 0
        assert kept.parent.stat().st_mode & 0o077 == 0
        assert name not in kept.name + kept.read_text()
        assert token not in kept.read_text()
        assert client.get("/steward/room", headers={"Cookie": f"sfumato={kept.name}"}).status_code == 303


@pytest.mark.parametrize(
    "changed",
    [
        {"ends": 0.0},
        {"begins": 0.0},
        {"begins": 9e12, "ends": 9e12},
        {"token": "zz"},
        {"ends": None},
    ],
)
def test_a_session_that_has_ended_or_is_damaged_is_nobody(tmp_path: Path, changed: dict[str, object]) -> None:
    users, sessions = Users(tmp_path), Sessions(tmp_path / "sessions")
    user, _ = users.add("bea", Role.steward)
    name = sessions.begin(user)
    assert sessions.token(name) == user.digest
    (kept,) = (tmp_path / "sessions").iterdir()
    kept.write_text(json.dumps(json.loads(kept.read_text()) | changed))
    assert sessions.token(name) is None


def test_sessions_are_a_bounded_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.serve.core.access.MOST_SESSIONS", 3)
    user, _ = Users(tmp_path).add("bea", Role.steward)
    sessions = Sessions(tmp_path / "sessions")
    names = [sessions.begin(user) for _ in range(5)]
    assert sum(sessions.token(name) is not None for name in names) == 3
    assert sessions.token(names[-1]) is not None
    assert SESSION_SECONDS == 12 * 60 * 60


def test_a_public_page_needs_no_folder(catalogue: Catalogue, tmp_path: Path) -> None:
    with asking(make_app(catalogue, Settings(state=tmp_path / "none"))) as client:
        assert client.get("/tables/jobs_by_place", headers={"Cookie": "sfumato=abc"}).status_code == 200
    assert not (tmp_path / "none").exists()
