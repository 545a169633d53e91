"""What needs a token is given to nobody else, and to no other site; published tables are given to everybody."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import httpx
import pytest
from fastapi import FastAPI
from starlette.responses import Response

from sfumato.serve.app import make_app
from sfumato.serve.context import Rendered
from sfumato.serve.core.access import Settings, require
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.users import Role, User, Users
from tests.cli.call import call
from tests.serve import patient
from tests.serve.in_thread import asking
from tests.serve.running import Server, serving

SECURE = "https://tables.example"


def with_rooms(catalogue: Catalogue, settings: Settings) -> FastAPI:
    """The application with routes that need a role; each wishes to be public, which it must not be."""
    app = make_app(catalogue, settings)

    @app.post("/live/asked", include_in_schema=False)
    @app.get("/live/asked")
    async def live(user: Annotated[User, require(Role.analyst)]) -> Response:
        return Response(user.name, headers={"Cache-Control": "public, max-age=300"})

    @app.get("/api/v2/live")
    async def live_beside_public_tables(user: Annotated[User, require(Role.analyst)]) -> Response:
        made = Rendered.of(user.name.encode(), media_type="text/plain")
        return Response(made.body, headers=made.headers)

    @app.get("/steward/room")
    async def steward(user: Annotated[User, require(Role.steward, page=True)]) -> Response:
        return Response(user.name)

    return app


@pytest.fixture
def users(tmp_path: Path) -> Users:
    return Users(tmp_path / "state")


@pytest.fixture
def client(catalogue: Catalogue, users: Users) -> Iterator[httpx.Client]:
    with asking(with_rooms(catalogue, Settings(state=users.path.parent))) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def own(client: httpx.Client) -> dict[str, str]:
    """The header that a browser sends with a form of this server."""
    return {"Origin": str(client.base_url).rstrip("/")}


def sign_in(client: httpx.Client, token: str) -> httpx.Response:
    return client.post("/sign-in", data={"token": token, "next": "/steward/room"}, headers=own(client))


@pytest.mark.parametrize("path", ["/live/asked", "/api/v2/live"])
def test_without_users_nothing_live_answers(client: httpx.Client, path: str) -> None:
    for headers in ({}, bearer("sfumato_" + "A" * 43), bearer("x")):
        refused = client.get(path, headers=headers)
        assert refused.status_code == 401
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.headers["www-authenticate"].startswith("Bearer")
    assert client.get("/api/v2/tables").status_code == 200


@pytest.mark.parametrize("path", ["/live/asked", "/api/v2/live"])
def test_what_needs_a_token_is_neither_kept_nor_shown_to_other_sites(
    client: httpx.Client, users: Users, path: str
) -> None:
    _, token = users.add("ann", Role.analyst)
    origin = {"Origin": "https://elsewhere.example"}
    for answer in (client.get(path, headers=bearer(token) | origin), client.get(path, headers=origin)):
        assert answer.headers["cache-control"] == "private, no-store"
        assert "authorization" in answer.headers["vary"].lower()
        assert "cookie" in answer.headers["vary"].lower()
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_a_token_opens_the_rooms_of_its_role(client: httpx.Client, users: Users) -> None:
    analyst, steward = (bearer(users.add(role.value, role)[1]) for role in Role)
    assert client.get("/live/asked", headers=analyst).text == "analyst"
    assert client.get("/live/asked", headers=steward).text == "steward"
    assert client.get("/steward/room", headers=steward).text == "steward"
    turned_away = client.get("/steward/room", headers=analyst)
    assert turned_away.status_code == 403, "a program has nothing to sign in with"
    assert client.get("/steward/room", headers=bearer("unknown")).status_code == 401


@pytest.mark.parametrize("wrong", ["Basic {}", "Bearer  x{}", "bearer{}", "Token {}", "Bearer {} {}"])
def test_a_token_that_is_not_shown_as_one_opens_nothing(client: httpx.Client, users: Users, wrong: str) -> None:
    _, token = users.add("ann", Role.analyst)
    assert client.get("/live/asked", headers={"Authorization": wrong.format(token, token)}).status_code == 401
    assert client.get("/live/asked", params={"access_token": token, "token": token}).status_code == 401
    assert client.get("/live/asked", headers=bearer(token)).status_code == 200


def test_two_tokens_in_one_request_open_nothing(client: httpx.Client, users: Users) -> None:
    _, token = users.add("ann", Role.analyst)
    twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    assert client.get("/live/asked", headers=httpx.Headers(twice)).status_code == 401


def test_a_revoked_token_opens_nothing_from_the_next_request_on(client: httpx.Client, users: Users) -> None:
    _, token = users.add("ann", Role.analyst)
    assert sign_in(client, token).status_code == 303
    assert client.get("/live/asked", headers=bearer(token)).status_code == 200
    assert client.get("/live/asked").status_code == 200
    Users(users.path.parent).revoke("ann")
    assert client.get("/live/asked", headers=bearer(token)).status_code == 401
    assert client.get("/live/asked").status_code == 401


def test_a_damaged_list_of_users_opens_nothing(client: httpx.Client, users: Users) -> None:
    _, token = users.add("ann", Role.analyst)
    users.path.write_bytes(b"{")
    assert client.get("/live/asked", headers=bearer(token)).status_code == 401
    assert client.get("/api/v2/tables", headers=bearer(token)).status_code == 200


def test_a_browser_signs_in_and_out(client: httpx.Client, users: Users) -> None:
    _, token = users.add("sue", Role.steward)
    assert client.get("/steward/room").headers["location"] == "/sign-in?next=%2Fsteward%2Froom"
    form = client.get("/sign-in?next=%2Fsteward%2Froom")
    assert 'value="/steward/room"' in form.text
    assert form.headers["cache-control"] == "private, no-store"
    done = sign_in(client, token)
    assert (done.status_code, done.headers["location"]) == (303, "/steward/room")
    cookie = done.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert token.lower() not in cookie
    assert client.get("/steward/room").text == "sue"
    assert "signed in as sue" in client.get("/sign-in").text
    kept = dict(client.cookies)
    assert client.post("/sign-out", headers=own(client)).status_code == 303
    assert client.get("/steward/room").status_code == 303
    client.cookies.update(kept)
    assert client.get("/steward/room").status_code == 303, "the session is over, not only the cookie gone"


@pytest.mark.parametrize("token", ["", "wrong", "sfumato_" + "A" * 43, "ä" * 100, "A" * 100_000])
def test_a_wrong_token_signs_nobody_in(client: httpx.Client, users: Users, token: str) -> None:
    users.add("ann", Role.analyst)
    refused = sign_in(client, token)
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
    assert "no token that is in force" in refused.text
    assert not token or token not in refused.text


@pytest.mark.parametrize("origin", ["https://elsewhere.example", "null", "http://127.0.0.1.elsewhere.example", None])
def test_the_page_of_another_site_does_nothing_in_the_name_of_who_is_signed_in(
    client: httpx.Client, users: Users, origin: str | None
) -> None:
    _, token = users.add("ann", Role.analyst)
    assert sign_in(client, token).status_code == 303
    headers = {} if origin is None else {"Origin": origin}
    assert client.post("/live/asked", headers=headers).status_code == 403
    assert client.post("/sign-out", headers=headers).status_code == 403
    assert client.post("/sign-in", data={"token": token}, headers=headers).status_code == 403
    assert client.get("/live/asked").text == "ann"
    assert client.post("/live/asked", headers=own(client)).text == "ann"
    assert client.post("/live/asked", headers=headers | bearer(token)).text == "ann"


@pytest.mark.parametrize(
    "there", ["https://elsewhere.example", "//elsewhere.example", "/\\elsewhere", "x", "/a\r\nb:c"]
)
def test_signing_in_leads_nowhere_else(client: httpx.Client, users: Users, there: str) -> None:
    _, token = users.add("ann", Role.analyst)
    done = client.post("/sign-in", data={"token": token, "next": there}, headers=own(client))
    assert (done.status_code, done.headers["location"]) == (303, "/")


def test_over_https_the_cookie_is_bound_to_it(catalogue: Catalogue, users: Users) -> None:
    _, token = users.add("ann", Role.analyst)
    with asking(with_rooms(catalogue, Settings(state=users.path.parent, url=SECURE))) as client:
        assert sign_in(client, token).status_code == 403, "the form of another address"
        done = client.post("/sign-in", data={"token": token}, headers={"Origin": SECURE})
        cookie, _, rest = done.headers["set-cookie"].partition(";")
        assert cookie.startswith("__Host-sfumato=")
        assert "Secure" in rest
        assert done.headers["strict-transport-security"].startswith("max-age=")
        assert client.get("/live/asked", headers={"Cookie": cookie}).text == "ann"
        other = cookie.removeprefix("__Host-")
        assert client.get("/live/asked", headers={"Cookie": other}).status_code == 401


def test_the_document_says_what_needs_a_token(catalogue: Catalogue, users: Users) -> None:
    document = with_rooms(catalogue, Settings(state=users.path.parent)).openapi()
    assert document["paths"]["/live/asked"]["get"]["security"] == [{"token": []}]
    assert "security" not in document["paths"]["/api/v2/tables"]["get"]
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


@pytest.mark.slow
def test_a_server_that_runs_takes_notice_of_users(bundles: dict[str, Path], tmp_path: Path) -> None:
    with serving(bundles["survey"], "--state", tmp_path / "state") as server:

        def signed_in(token: str) -> int:
            return patient.post(
                f"{server.url}/sign-in", data={"token": token}, headers={"Origin": server.url}
            ).status_code

        _, token = Users(tmp_path / "state").add("ann", Role.analyst)
        assert signed_in(token) == 303
        Users(tmp_path / "state").revoke("ann")
        assert signed_in(token) == 403


@pytest.mark.slow
def test_a_state_folder_that_others_can_look_into_stops_the_start(bundles: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    assert "chmod 700" in call("serve", bundles["survey"], "--state", folder, "--port", "0", refused=True).stderr


EVERYWHERE = ("/", "/api/v2/config", "/api/v2/tables/nowhere", "/nowhere", "/sign-in", "/openapi.json", "/reference")


@pytest.mark.parametrize("path", EVERYWHERE)
def test_every_answer_has_the_security_headers(server: Server, path: str) -> None:
    headers = patient.get(f"{server.url}{path}").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]
    assert "strict-transport-security" not in headers
    assert "server" not in headers
    shared = path.startswith(("/api", "/openapi"))
    assert headers.get("access-control-allow-origin") == ("*" if shared else None)
    assert headers["cross-origin-resource-policy"] == ("cross-origin" if shared else "same-origin")
    assert "access-control-allow-credentials" not in headers


@pytest.mark.parametrize(
    "path", ["/api/v2/tables/jobs_by_place/data", "/api/v1/en/tables/jobs_by_place", "/sdmx/2.1/data/x"]
)
def test_a_browser_may_ask_for_public_tables_from_anywhere_but_without_a_token(server: Server, path: str) -> None:
    asked = {
        "Origin": "https://elsewhere.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,authorization",
    }
    allowed = patient.options(f"{server.url}{path}", headers=asked)
    assert allowed.status_code == 204
    assert allowed.headers["access-control-allow-origin"] == "*"
    assert "POST" in allowed.headers["access-control-allow-methods"]
    assert "content-type" in allowed.headers["access-control-allow-headers"].lower()
    assert "authorization" not in allowed.headers["access-control-allow-headers"].lower()


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/live/asked", "/steward", "/", "/apis"])
def test_a_browser_may_ask_for_nothing_else_from_anywhere(server: Server, path: str) -> None:
    asked = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    refused = patient.options(f"{server.url}{path}", headers=asked)
    assert refused.status_code in (404, 405)
    assert not any(name.startswith("access-control") for name in refused.headers)


def test_an_answer_that_depends_on_accept_says_so(server: Server) -> None:
    asked = patient.get(f"{server.url}/sdmx/2.1/data/jobs_by_place")
    assert "accept" in asked.headers["vary"].lower()
    again = patient.get(str(asked.url), headers={"If-None-Match": asked.headers["etag"]})
    assert again.status_code == 304
    assert "accept" in again.headers["vary"].lower()


def test_the_reference_lists_every_operation(server: Server) -> None:
    page = patient.get(f"{server.url}/reference").text
    document = patient.get(f"{server.url}/openapi.json").json()
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"<code>{method.upper()} {path}</code>" in page
