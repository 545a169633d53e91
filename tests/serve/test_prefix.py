"""A server below a path is whole: no address of any page, document or redirection leads out of it."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.core.prefix import OURS
from sfumato.serve.core.users import Role, Users
from tests.serve.in_thread import asking

URL = "https://office.example/statistics/tables"
PREFIX = "/statistics/tables"
_LINK = re.compile(r'(?:href|action|src|data-[a-z-]+)="(/[^"]*|https?:[^"]*)"')
_ROOTED = re.compile(r"""["'`(]/(?![/*])""")
"""In a script or style sheet, an address that begins at the root."""


@pytest.fixture(scope="module")
def client(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    state = tmp_path_factory.mktemp("prefix") / "state"
    app = make_app(catalogue, Settings(state=state, url=URL, calls=0, embed=("https://paper.example",)))
    with asking(app) as found:
        yield found


def shape(path: str, query: str) -> tuple[object, ...]:
    """What tells one kind of address from another: pages of many tables look alike."""
    asked = parse_qs(query)
    kind = re.sub(r"^/tables/[^/]+", lambda one: "/tables/both" if "~" in one[0] else "/tables/one", path)
    words = [asked.get(name, [""])[0] for name in ("lang", "outputFormat")]
    return ("files" if "/files/" in kind else kind, *words)


def test_every_link_of_every_page_stays_below_the_path_and_leads_somewhere(client: httpx.Client) -> None:
    waiting, seen, kinds = [f"{PREFIX}/", f"{PREFIX}/embed/jobs_by_place"], set(), set()
    while waiting:
        there = urlsplit(waiting.pop())
        if (alike := shape(there.path.removeprefix(PREFIX), there.query)) in seen:
            continue
        seen.add(alike)
        path = f"{there.path}?{there.query}" if there.query else there.path
        response = client.get(path)
        kind = response.headers["content-type"].partition(";")[0]
        kinds.add(kind)
        assert response.status_code == 200, path
        if kind in ("text/javascript", "text/css"):
            assert not _ROOTED.search(response.text), f"{path} would miss what it asks for"
        for link in map(unescape, _LINK.findall(response.text) if kind == "text/html" else ()):
            parts = urlsplit(urljoin(f"{URL}/", link))
            assert parts.netloc == "office.example"
            assert parts.path.startswith(f"{PREFIX}/"), f"{link} on {path}"
            waiting.append(parts._replace(scheme="", netloc="").geturl())
    assert {"text/html", "text/css", "image/svg+xml", "text/javascript", "application/json"} <= kinds
    found = {kind for kind, *_ in seen}
    for path in ("version", "chart.svg"):
        assert f"/tables/one/{path}" in found, "scripts ask for it"
    assert {"files", "/reference"} <= found
    assert any("de" in one for one in seen), "the page in another language"


def test_codes_and_files_are_found_below_the_path(client: httpx.Client) -> None:
    (action,) = re.findall(r'id="ask"[^>]*action="([^"]*)"', client.get(f"{PREFIX}/tables/jobs_by_place").text)
    assert client.get(f"{action}/codes?variable=place").status_code == 200
    files = client.get(f"{PREFIX}/tables/jobs_by_place/files").json()["files"]
    assert files
    assert all(one["address"].startswith(f"{URL}/tables/jobs_by_place/files/") for one in files)


def test_lines_for_other_pages_and_programs_name_the_path(client: httpx.Client) -> None:
    text = unescape(client.get(f"{PREFIX}/tables/jobs_by_place?chart=bars").text)
    own = re.findall(r"https://office\.example[^\s\"<>]*", text)
    assert f"{URL}/embed/jobs_by_place" in {link.partition("?")[0] for link in own}
    assert all(link.startswith(URL) for link in own)
    about = json.loads(client.get(f"{PREFIX}/catalog/jobs_by_place?format=schema.org").text)
    (data,) = re.findall(
        r'<script type="application/ld\+json">(.*?)</script>', client.get(f"{PREFIX}/tables/jobs_by_place").text
    )
    assert json.loads(data) == about


@pytest.mark.parametrize("before", ["", PREFIX])
def test_a_proxy_may_take_the_path_off_or_leave_it(client: httpx.Client, before: str) -> None:
    assert client.get(f"{before}/api/v2/tables").json()["tables"]
    assert client.get(f"{before}/api/v2/tables").headers["access-control-allow-origin"] == "*"
    assert client.get(f"{before}/tables/jobs_by_place").status_code == 200
    assert client.get(f"{before}x/tables/jobs_by_place").status_code == 404


def test_redirections_stay_below_the_path(client: httpx.Client) -> None:
    found = [
        client.get(f"{PREFIX}/tables/jobs_by_place/"),
        client.get(f"{PREFIX}/tables/jobs_by_place?form=1&valueCodes[place]=*"),
    ]
    assert [response.status_code for response in found] == [307, 303]
    assert all(response.headers["location"].startswith(f"{PREFIX}/tables/jobs_by_place") for response in found)


def test_programs_are_given_whole_addresses(client: httpx.Client) -> None:
    texts = [
        client.get(f"{PREFIX}/{path}").text
        for path in (
            "api/v2/tables",
            "api/v2/tables/jobs_by_place/metadata",
            "api/v2/config",
            "sdmx/2.1/dataflow/all/all/latest?detail=allstubs",
        )
    ]
    own = [link for text in texts for link in re.findall(r'https?://office\.example[^"<]*', text)]
    assert own
    assert all(link.startswith(f"{URL}/") for link in own)
    assert client.get(f"{PREFIX}/openapi.json").json()["servers"] == [{"url": URL}]


def test_the_tag_of_a_page_is_known_again(client: httpx.Client) -> None:
    first = client.get(f"{PREFIX}/tables/jobs_by_place")
    again = client.get(f"{PREFIX}/tables/jobs_by_place", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.headers["etag"]) == (304, first.headers["etag"])


def test_signing_in_leads_back_below_the_path(catalogue: Catalogue, tmp_path: Path) -> None:
    _, token = Users(tmp_path / "state").add("bea", Role.steward)
    with asking(make_app(catalogue, Settings(state=tmp_path / "state", url=URL))) as client:
        form = {"token": token, "next": "/tables/jobs_by_place"}
        signed = client.post(f"{PREFIX}/sign-in", data=form, headers={"Origin": "https://office.example"})
        assert (signed.status_code, signed.headers["location"]) == (303, f"{PREFIX}/tables/jobs_by_place")
        assert signed.headers["set-cookie"].startswith("__Host-sfumato=")


def test_no_label_is_taken_for_a_link(catalogue: Catalogue, tmp_path: Path) -> None:
    table, label = catalogue["jobs_by_place"], ' href="/elsewhere" '
    first = replace(table.dimensions[0], labels=(label, *table.dimensions[0].labels[1:]))
    own = Catalogue(tables={table.id: replace(table, title=label, dimensions=(first,))})
    with asking(make_app(own, Settings(state=tmp_path, url=URL))) as client:
        for path in ("/tables/jobs_by_place", "/", "/api/v2/tables/jobs_by_place/data?outputFormat=html"):
            text = client.get(f"{PREFIX}{path}").text
            assert "/elsewhere" in text
            assert f"{PREFIX}/elsewhere" not in text


@pytest.mark.parametrize("prefix", ["/tables", "/api", "/sdmx/2.1", "/catalog/of"])
def test_a_path_that_looks_like_one_of_ours_may_be_taken_off_by_the_proxy_or_left(
    prefix: str, catalogue: Catalogue, tmp_path: Path
) -> None:
    settings = Settings(state=tmp_path / "state", url=f"https://office.example{prefix}", calls=0)
    pages = ("/", "/tables/jobs_by_place", "/tables/jobs_by_place/files", "/api/v2/config", "/api/v1/en", "/catalog")
    with asking(make_app(catalogue, settings)) as client:
        for path in (*pages, "/sdmx/2.1/dataflow", "/catalog/jobs_by_place", "/health"):
            left, taken = client.get(f"{prefix}{path}"), client.get(path)
            assert (left.status_code, taken.status_code) == (200, 200), path
            assert left.content == taken.content, path


def test_every_beginning_of_an_address_of_ours_is_known(catalogue: Catalogue, tmp_path: Path) -> None:
    app = make_app(catalogue, Settings(state=tmp_path / "state", metrics=True, embed=("https://paper.example",)))
    paths = {path for route in app.routes for path in [getattr(route, "path", "")] if path}
    paths |= set(app.openapi()["paths"])
    assert {path.split("/")[1] for path in paths} - {""} <= set(OURS)
