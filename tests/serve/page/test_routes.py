"""Pages over HTTP: headers, copies that are still good, forms, snippets that run, and lists too long to write out."""

import hashlib
import re
import shutil
from dataclasses import replace
from html import unescape
from math import isnan
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from tests.serve import patient
from tests.serve.in_thread import asking
from tests.serve.page.made import catalogue_of, dimension, table
from tests.serve.raw import request, said_to
from tests.serve.running import Server

FORM = {
    "form": "1",
    "at[state]": "columns",
    "at[industry]": "rows",
    "valueCodes[state]": ["NSW", "VIC"],
    "valueCodes[industry]": "*",
    "valueCodes[contents]": "value",
    "chart": "auto",
    "percent": "none",
}


def page(server: Server, path: str, **parameters: Any) -> httpx.Response:
    return patient.get(f"{server.url}{path}", params=parameters or None)


async def asked(app: FastAPI, path: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://tables.test") as client:
        return await client.get(path)


def test_browsers_are_told_to_run_nothing_foreign(server: Server) -> None:
    for path in ("/", "/tables/people", "/tables/nothing"):
        headers = page(server, path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize("path", ["/nothing", "/live", "/tables/people/nothing", "/static/other/page.css"])
def test_a_browser_gets_a_page_of_what_went_wrong_and_a_program_a_problem(path: str, server: Server) -> None:
    shown = patient.get(f"{server.url}{path}", headers={"Accept": BROWSER})
    assert (shown.status_code, shown.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such page" in shown.text
    assert 'href="/"' in shown.text
    for accepted in ("*/*", "application/json", "application/problem+json, text/html;q=0.9", "text/html;q=0"):
        told = patient.get(f"{server.url}{path}", headers={"Accept": accepted})
        assert (told.status_code, told.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("path", ["/api/nothing", "/api/v2/tables/nothing", "/sdmx/2.1/nothing"])
def test_interfaces_of_programs_answer_browsers_as_they_answer_programs(path: str, server: Server) -> None:
    told = patient.get(f"{server.url}{path}", headers={"Accept": BROWSER})
    assert told.status_code in (400, 404)
    assert told.headers["content-type"] == "application/problem+json"


def test_other_errors_of_pages_are_pages_too(server: Server) -> None:
    long = patient.get(f"{server.url}/?q={'x' * 17_000}", headers={"Accept": BROWSER})
    assert (long.status_code, "The address would be too long" in long.text) == (414, True)
    wrong = patient.post(f"{server.url}/", headers={"Accept": BROWSER})
    assert (wrong.status_code, wrong.headers["content-type"]) == (405, "text/html; charset=utf-8")
    hostile = patient.get(f"{server.url}/<script>alert(1)</script>", headers={"Accept": BROWSER})
    assert "<script>" not in hostile.text


@pytest.mark.parametrize(
    "path", ["//evil.example/x", "///evil.example", "/\\evil.example", "//evil.example/tables/people"]
)
def test_no_page_leads_to_another_host_whatever_address_was_asked_for(server: Server, path: str) -> None:
    shown = said_to(server, request("GET", path, f"Accept: {BROWSER}"))  # a client of ours would mend the address
    links = [unescape(link) for link in re.findall(r'(?:href|action)="([^"]+)"', shown.body.decode())]
    assert shown.status == 404
    assert [link for link in links if link.startswith(("//", "/\\"))] == []
    assert any("lang=de" in link for link in links)


def test_a_server_without_ad_hoc_tables_leads_to_its_tables_only(server: Server) -> None:
    head = re.search(r'<nav aria-label="Site">(.*?)</nav>', page(server, "/").text, re.DOTALL)
    assert head
    assert re.findall(r'href="([^"]+)"', head[1]) == ["/"]


def test_pages_have_no_inline_script_or_style(server: Server) -> None:
    for path in ("/", "/tables/turnover_by_state_industry", "/tables/flows_between_states", "/tables/nothing"):
        text = page(server, path).text
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
        data = r'<script type="application/ld\+json">[^<]*</script>'  # which browsers do not run
        runs = re.sub(data, "", text)
        assert re.findall(r"<script[^>]*>([^<]*)</script>", runs) == [""]


def test_a_page_that_has_not_changed_is_not_sent_again(server: Server) -> None:
    first = page(server, "/tables/people")
    again = patient.get(first.url, headers={"If-None-Match": first.headers["etag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_files_of_the_page_are_kept_for_good_under_their_version(server: Server) -> None:
    text = page(server, "/").text
    for path in re.findall(r'(?:href|src)="(/static/[^"]+)"', text):
        found = page(server, path)
        assert found.status_code == 200
        assert "immutable" in found.headers["cache-control"]
        assert page(server, re.sub(r"/static/\w+/", "/static/other/", path)).status_code == 404


def test_a_form_is_answered_with_its_link(server: Server) -> None:
    answer = page(server, "/tables/turnover_by_state_industry", **FORM)
    assert answer.status_code == 303
    link = urlsplit(answer.headers["location"])
    assert dict(parse_qsl(link.query)) == {
        "valueCodes[state]": "NSW,VIC",
        "valueCodes[industry]": "*",
        "valueCodes[contents]": "turnover",
        "stub": "industry",
        "heading": "state,contents",
    }
    assert page(server, answer.headers["location"]).status_code == 200


@pytest.mark.parametrize("missing", ["valueCodes[industry]", "at[industry]"])
def test_a_form_without_a_mandatory_variable_is_refused_with_the_form(missing: str, server: Server) -> None:
    sent = {"form": "1", "at[industry]": "rows", "valueCodes[industry]": "*", "at[place_size]": "filter"}
    answer = page(server, "/tables/jobs_by_industry", **{name: text for name, text in sent.items() if name != missing})
    assert answer.status_code == 400
    assert 'id="ask"' in answer.text
    assert "This selection has no answer" in answer.text


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("at[state]", "filters", "can be: rows, columns, filter, out"),
        ("foo", "1", "foo"),
        ("valueCode[state]", "NSW", "valueCode[state]"),
        ("contents", "zzz", "contents"),
        ("valueCodes[contents]", "zzz", "zzz"),
    ],
)
def test_an_address_that_is_not_understood_is_refused_and_never_read_in_part(
    name: str, text: str, said: str, server: Server
) -> None:
    for others in ({}, {"valueCodes[industry]": "*"}):
        answer = page(server, "/tables/turnover_by_state_industry", **others, **{name: text})
        assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8")
        assert said in unescape(answer.text)
        assert 'id="ask"' in answer.text


def test_what_was_done_is_said_in_the_words_of_the_bundle(server: Server) -> None:
    text = unescape(page(server, "/tables/jobs_by_place").text)
    assert "What was done to these numbers" in text
    assert "was changed by random noise before it was published" in text
    assert "This table by itself: strong, alpha = 0.1" in text
    assert "<code>error</code> is the mean absolute error" in text


def test_filters_of_the_start_page_count_what_is_left(server: Server) -> None:
    text = page(server, "/", variable="Industry", release="Jobs by place and industry").text
    assert text.count('class="card"') == 4
    assert "Industry (4)" in text
    assert "Place (2)" not in text.split("Variable</label>")[0]


@pytest.mark.filterwarnings("ignore:Shouldn't use this function:DeprecationWarning")  # what pyjstat calls itself
def test_the_lines_for_python_run_and_give_the_figures_of_the_bundle(server: Server, bundles: dict[str, Path]) -> None:
    codes = {"valueCodes[state]": "NSW,total", "valueCodes[industry]": "*", "valueCodes[contents]": "value"}
    text = page(server, "/tables/turnover_by_state_industry", **codes).text
    rows = pq.read_table(bundles["business"] / "tables/turnover_by_state_industry.parquet").to_pylist()
    known = [row for row in rows if row["industry"] != "total"]  # all codes are those without the published total
    expected = [row["value"] for row in known if row["state"] in ("NSW", "total")]
    for id_ in ("pxwebpy", "pyjstat"):
        lines = unescape(re.search(rf'id="lines-{id_}">(.*?)</code>', text, re.DOTALL)[1])  # type: ignore[index]
        assert server.url in lines
        namespace: dict[str, Any] = {}
        exec(compile(lines, id_, "exec"), namespace)
        found = [None if isnan(value) else value for value in namespace["frame"]["value"].tolist()]
        assert sorted(map(str, found)) == sorted(str(None if v is None else float(v)) for v in expected)


def test_the_addresses_of_the_other_lines_answer(server: Server) -> None:
    text = page(server, "/tables/people").text
    power = unescape(re.search(r'id="lines-excel">(.*?)</code>', text, re.DOTALL)[1])  # type: ignore[index]
    address = re.search(r'Web\.Contents\("([^"]+)"\)', power)[1]  # type: ignore[index]
    assert patient.get(address).headers["content-type"].startswith("text/csv")
    r = unescape(re.search(r'id="lines-pxweb">(.*?)</code>', text, re.DOTALL)[1])  # type: ignore[index]
    assert patient.get(re.search(r'pxweb_get\("([^"]+)"', r)[1]).json()["title"]  # type: ignore[index]


def test_a_host_that_is_no_host_is_not_repeated(server: Server) -> None:
    answer = patient.get(f"{server.url}/tables/people", headers={"Host": 'x"><script>'})
    assert "<script>" not in answer.text.replace('<script type="module"', "")


def test_every_download_of_the_page_answers(server: Server) -> None:
    text = page(server, "/tables/profit_by_industry_size").text
    links = re.findall(r'href="([^"]+)" data-format="([^"]+)"', text)
    assert [written for _, written in links] == ["xlsx", "csv", "json-stat2", "px", "parquet", "html"]
    for link, _ in links:
        assert page(server, unescape(link)).status_code == 200
    drawing = re.search(r'href="([^"]+chart\.svg[^"]+)"', text)
    assert drawing
    assert page(server, unescape(drawing[1])).text.startswith("<svg")


LONG = table(
    dimension("place", [f"P{number:04}" for number in range(2_000)], eliminable=False),
    dimension("sex", ("f", "m"), labels=("<b>women</b>", "men")),
)


@pytest.mark.anyio
async def test_a_long_list_of_codes_is_searched(tmp_path: Path) -> None:
    app = make_app(catalogue_of(LONG), Settings(state=tmp_path))
    every = (await asked(app, "/tables/made")).text
    assert "300 of 2,000 are listed" in every
    assert every.count('name="valueCodes[place]"') == 301
    found = (await asked(app, "/tables/made/codes?variable=place&find=p19")).text
    assert "100 codes have this" in found
    assert found.count("<li>") == 100
    form = "at[place]=rows&at[sex]=columns&valueCodes[sex]=*&valueCodes[place]=P0001&find[place]=p19&form=1"
    searched = await asked(app, f"/tables/made?{form}")
    assert searched.status_code == 200
    assert 'value="P0001" checked' in searched.text
    assert 'value="P1900"' in searched.text


@pytest.mark.anyio
async def test_chosen_codes_that_are_not_listed_stay_chosen(tmp_path: Path) -> None:
    app = make_app(catalogue_of(LONG), Settings(state=tmp_path))
    text = (await asked(app, "/tables/made?valueCodes[place]=range(P0000,P0999)&valueCodes[sex]=*")).text
    assert "1,000 of 2,000 selected" in text
    kept = re.search(r'value="([^"]+)" data-kept="(\d+)"', text)
    assert kept
    assert int(kept[2]) + len(re.findall(r'name="valueCodes\[place\]" value="P\d+" checked', text)) == 1_000


@pytest.mark.anyio
async def test_labels_are_written_as_text(tmp_path: Path) -> None:
    text = (await asked(make_app(catalogue_of(LONG), Settings(state=tmp_path)), "/tables/made")).text
    assert "&lt;b&gt;women" in text
    assert "<b>women" not in text


@pytest.mark.anyio
@pytest.mark.parametrize("additive", [True, False])
async def test_sums_and_percentages_are_offered_only_where_figures_add_up(tmp_path: Path, *, additive: bool) -> None:
    made = table(dimension("sex", ("F", "M"), eliminable=False), totals=False)
    made = replace(made, metrics=tuple(replace(metric, additive=additive) for metric in made.metrics))
    text = (await asked(make_app(catalogue_of(made), Settings(state=tmp_path)), "/tables/made")).text
    assert ("Sums of its cells are yours to make" in text) is additive
    assert ("its cells do not add up" in text) is not additive
    assert ('name="percent"' in text) is additive


# What is beyond a cap, kept elsewhere, or shown elsewhere.


def test_a_selection_beyond_the_cap_leads_to_the_published_files(server: Server, bundles: dict[str, Path]) -> None:
    app_settings = Settings(most_cells=10)
    opened = open_catalogue([BundleSource(folder=bundles["business"])])
    with asking(make_app(opened, app_settings)) as client:
        shown = client.get("/tables/turnover_by_state_industry", headers={"Accept": BROWSER})
        assert shown.status_code == 403
        address = re.search(r'href="(/tables/turnover_by_state_industry/files/[^"]+\.parquet)"', shown.text)
        assert address
        taken = client.get(address[1])
        told = client.get("/api/v2/tables/turnover_by_state_industry/data?valueCodes[state]=*&valueCodes[industry]=*")
        assert (told.status_code, "/tables/turnover_by_state_industry/files" in told.json()["detail"]) == (403, True)
        listed = client.get("/tables/turnover_by_state_industry/files").json()["files"]
    assert taken.content == (bundles["business"] / "tables/turnover_by_state_industry.parquet").read_bytes()
    assert {one["name"] for one in listed} >= {"tables/turnover_by_state_industry.parquet", "codelists/state.csv"}
    assert page(server, "/tables/turnover_by_state_industry/files/manifest.json").status_code == 404
    assert page(server, "/tables/turnover_by_state_industry/files/..%2Fsfumato.key").status_code == 404


def test_a_file_that_was_changed_on_the_disk_is_not_sent(bundles: dict[str, Path], tmp_path: Path) -> None:
    copy = shutil.copytree(bundles["survey"], tmp_path / "bundle")
    with asking(make_app(open_catalogue([BundleSource(folder=copy)]), Settings())) as client:
        (copy / "cubes/people.parquet").write_bytes(b"another file")
        found = client.get("/tables/people/files/cubes/people.parquet")
    assert (found.status_code, b"another file" in found.content) == (503, False)


def test_only_sites_that_the_office_names_may_show_a_table_in_a_frame(server: Server) -> None:
    assert page(server, "/embed/people").status_code == 404
    made = table(dimension("sex", ("f", "m")))
    with asking(make_app(catalogue_of(made), Settings(embed=("https://www.example.org",)))) as client:
        frame, whole = client.get("/embed/made"), client.get("/tables/made")
    assert "frame-ancestors https://www.example.org;" in f"{frame.headers['content-security-policy']};"
    assert "frame-ancestors 'none'" in whole.headers["content-security-policy"]
    assert "&lt;iframe src=" in whole.text
    assert "<form" not in frame.text


def test_a_table_says_which_version_it_is(server: Server, bundles: dict[str, Path]) -> None:
    digest = hashlib.sha256((bundles["survey"] / "manifest.json").read_bytes()).hexdigest()[:16]
    told = page(server, "/tables/people/version")
    assert told.json() == {"version": digest}
    assert told.headers["cache-control"] == "no-cache"
    text = page(server, "/tables/people").text
    assert f'data-version="{digest}"' in text
    assert text.count(digest) >= 3  # in the citation, below the table, and in what was done


def test_groups_of_a_reader_are_downloaded_from_the_page(server: Server) -> None:
    asked_for = {"own[job]": "Office = a,b", "valueCodes[job]": "*", "valueCodes[region]": "*", "stub": "region"}
    text = page(server, "/tables/people", **asked_for).text
    address = unescape(re.search(r'href="([^"]+)" data-format="csv"', text)[1])  # type: ignore[index]
    lines = patient.get(f"{server.url}{address}").text.splitlines()
    assert any('"Office"' in line for line in lines)
    assert page(server, "/tables/people/data", outputFormat="exe").status_code == 400
