"""Users have tokens that only they know, and a token that is revoked is worth nothing."""

import json
import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import UsersError
from sfumato.serve.core.users import TOKEN, Role, Users
from tests.cli.call import call


def test_a_token_names_its_holder_and_nobody_else(tmp_path: Path) -> None:
    users = Users(tmp_path / "state")
    ann, token = users.add("ann", Role.analyst)
    bob, other = users.add("bob", Role.steward)
    assert users.holder(token) == ann
    assert users.holder(other) == bob
    assert users.holder(token[:-1]) is None
    assert users.holder(token + "A") is None


@pytest.mark.slow
@given(st.text())
def test_no_other_text_is_a_token(text: str) -> None:
    assert not TOKEN.fullmatch(text)


def test_tokens_are_long_and_never_the_same(tmp_path: Path) -> None:
    users = Users(tmp_path / "state")
    tokens = {users.add(f"user{number}", Role.analyst)[1] for number in range(20)}
    assert len(tokens) == 20
    assert all(TOKEN.fullmatch(token) for token in tokens)


def test_the_file_has_no_token_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    users = Users(tmp_path / "state")
    _, token = users.add("ann", Role.analyst)
    content = users.path.read_text(encoding="utf-8")
    assert token not in content
    assert token.removeprefix("sfumato_") not in content
    assert stat.S_IMODE(users.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(users.path.parent.stat().st_mode) == 0o700


def test_a_user_shows_no_digest(tmp_path: Path) -> None:
    user, _ = Users(tmp_path / "state").add("ann", Role.analyst)
    assert user.digest.hex() not in repr(user)
    assert repr(user.digest) not in repr(user)


def test_a_revoked_token_is_worth_nothing_to_whoever_read_the_list_before(tmp_path: Path) -> None:
    server = Users(tmp_path / "state")
    ann, token = server.add("ann", Role.analyst)
    assert server.holder(token) == ann
    Users(tmp_path / "state").revoke("ANN")
    assert server.holder(token) is None
    assert server.still(ann.digest) is None


def test_a_token_expires(tmp_path: Path) -> None:
    user, _ = Users(tmp_path / "state").add("ann", Role.analyst, expires=datetime.now(UTC) + timedelta(days=1))
    assert user.expires is not None
    assert user.active(user.expires - timedelta(seconds=1))
    assert not user.active(user.expires)
    assert user.state(user.expires) == "expired"


def test_an_expiry_in_the_past_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsersError, match="a time to come"):
        Users(tmp_path / "state").add("ann", Role.analyst, expires=datetime.now(UTC))


def test_a_name_is_had_by_one_token_in_force(tmp_path: Path) -> None:
    users = Users(tmp_path / "state")
    _, first = users.add("ann", Role.analyst)
    with pytest.raises(UsersError, match="revoke"):
        users.add("Ann", Role.steward)
    users.revoke("ann")
    again, second = users.add("ann", Role.steward)
    assert users.holder(first) is None
    assert users.holder(second) == again
    assert len(users.all()) == 2


@pytest.mark.parametrize("name", ["", "public", "Public", "a b", "a\nb", "-a", "x" * 65, "ännchen", "a\x1b[31m"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsersError, match="choose another name"):
        Users(tmp_path / "state").add(name, Role.analyst)


def test_a_steward_may_do_what_an_analyst_may_and_not_the_other_way_round(tmp_path: Path) -> None:
    users = Users(tmp_path / "state")
    analyst, steward = users.add("ann", Role.analyst)[0], users.add("sue", Role.steward)[0]
    assert [user.may(role) for user in (analyst, steward) for role in Role] == [True, False, True, True]


def test_users_added_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    together = Barrier(8)

    def add(number: int) -> None:
        together.wait()
        Users(tmp_path / "state").add(f"user{number}", Role.analyst)

    threads = [Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {user.name for user in Users(tmp_path / "state").all()} == {f"user{number}" for number in range(8)}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 2, "users": []}', b'{"format": 1, "users": [{}]}'])
def test_a_damaged_list_lets_nobody_in_and_is_named(content: bytes, tmp_path: Path) -> None:
    users = Users(tmp_path / "state")
    _, token = users.add("ann", Role.analyst)
    users.path.write_bytes(content)
    with pytest.raises(UsersError, match="a list as sfumato users writes it"):
        users.holder(token)


def test_a_list_that_others_can_read_is_refused(tmp_path: Path) -> None:
    users = Users(tmp_path / "state")
    users.add("ann", Role.analyst)
    users.path.chmod(0o640)
    with pytest.raises(UsersError, match="mode 640"):
        Users(tmp_path / "state").all()


def test_a_folder_that_others_can_look_into_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(UsersError, match="chmod 700"):
        Users(folder).add("ann", Role.analyst)


@pytest.mark.slow
def test_the_command_shows_a_token_once(tmp_path: Path) -> None:
    state = tmp_path / "state"
    added = call("users", "add", "ann", "--role", "analyst", "--state", state)
    (token,) = re.findall(TOKEN.pattern, added.stdout)
    listed = call("users", "list", "--state", state)
    assert re.search(r"ann +analyst +active", listed.stdout)
    revoked = call("users", "revoke", "ann", "--state", state)
    after = call("users", "list", "--state", state)
    assert re.search(r"ann +analyst +revoked", after.stdout)
    assert not any(token in text for done in (listed, revoked, after) for text in (done.stdout, done.stderr))
    assert Users(state).holder(token) is None


def test_the_command_speaks_json(tmp_path: Path) -> None:
    state = tmp_path / "state"
    arguments = ("users", "add", "sue", "--role", "steward", "--days", "30", "--state", state, "--json")
    added = json.loads(call(*arguments).stdout)
    assert Users(state).holder(added["token"])
    assert added["user"]["expires"] > added["user"]["made"]
    listed = json.loads(call("users", "list", "--state", state, "--json").stdout)
    assert listed == {"users": [added["user"]]}
    revoked = json.loads(call("users", "revoke", "sue", "--state", state, "--json").stdout)
    assert revoked["user"]["state"] == "revoked"


def test_the_command_says_when_there_is_nobody(tmp_path: Path) -> None:
    assert "Nobody." in call("users", "list", "--state", tmp_path / "state").stdout
    assert "nobody with this name" in call("users", "revoke", "ann", "--state", tmp_path / "state", refused=True).stderr
    assert not (tmp_path / "state").exists()


def rewritten(path: Path, expires: datetime) -> None:
    """The list with another time of expiry: to a server, the clock of the machine was set."""
    content = json.loads(path.read_text())
    content["users"][0]["expires"] = expires.isoformat()
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "running"])
def test_a_token_that_expired_stays_expired_when_the_clock_is_set_back(tmp_path: Path, restarted: bool) -> None:
    day, now = timedelta(days=1), datetime.now(UTC)
    server = Users(tmp_path / "state")
    _, token = server.add("ann", Role.analyst, expires=now + day)
    assert server.holder(token) is not None
    rewritten(server.path, now - day)
    assert server.holder(token) is None
    rewritten(server.path, now + day)
    server = Users(tmp_path / "state") if restarted else server
    assert server.holder(token) is None
    assert [user.state(now) for user in server.all()] == ["expired"]
    assert server.add("ann", Role.analyst, expires=now + day)[0].active(now), "a new token is believed"


def test_an_expiry_that_cannot_be_noted_holds_while_the_server_runs(tmp_path: Path) -> None:
    server = Users(tmp_path / "state")
    _, token = server.add("ann", Role.analyst, expires=datetime.now(UTC) + timedelta(days=1))
    _, other = server.add("bob", Role.analyst)
    rewritten(server.path, datetime.now(UTC) - timedelta(days=1))
    (server.path.parent / ".users.json.lock").unlink()
    (server.path.parent / ".users.json.lock").symlink_to("elsewhere")
    assert server.holder(token) is None
    assert server.holder(other) is not None
