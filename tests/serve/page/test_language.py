"""The page speaks two languages: every text is in both, none is written into templates, labels follow code lists."""

import asyncio
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import httpx
import pytest

from sfumato.bundle.write import codelist_text
from sfumato.frame.codelists import Codelist
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.page.language import ENGLISH, languages
from tests.serve import patient
from tests.serve.page.catalogue_texts import TEMPLATES, nouns, texts
from tests.serve.page.made import catalogue_of, dimension, table
from tests.serve.running import Server

GERMAN = languages()["de"]
NAMES = {"sfumato", "OpenAPI", "SVG", "PNG", "SHA", "UTC", "ε", "α", "δ"}
"""Names that are the same in every language."""
HOSTILE = "<script>alert('{x}')</script>"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_every_text_is_in_every_catalogue_and_none_is_too_many() -> None:
    needed = set(texts())
    computed = {"{begin} and {end}", "relative error {error}%", "error {error}", "standard error"}
    for language in languages().values():
        if language is not ENGLISH:
            assert needed - language.texts.keys() == set()
            assert language.texts.keys() - needed == computed
        assert nouns() - {"ceil"} <= language.counts.keys() == ENGLISH.counts.keys()


def test_translations_keep_what_stands_in_braces() -> None:
    for text, other in GERMAN.texts.items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", other)), text


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.stem)
def test_no_text_is_written_into_a_template(file: Path) -> None:
    text = re.sub(r"\{#.*?#\}|\{\{.*?\}\}|\{%.*?%\}", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    attributes = re.findall(r'\b(?:title|aria-label|placeholder|alt)="([^"]*)"', text)
    written = [*re.findall(r">([^<]+)<", text), *attributes]
    words = [one for one in written if not one.startswith("/")]  # addresses are the same in every language
    assert [one for one in words if set(re.findall(r"[^\W\d_]{2,}", one)) - NAMES - {"kB", "br"}] == []


def test_numbers_are_written_as_readers_of_the_language_do() -> None:
    assert GERMAN.figures("1,234.5") == "1.234,5"
    assert GERMAN.count(1_200, "row") == "1.200 Zeilen"
    assert ENGLISH.figures("1,234.5") == "1,234.5"


def asked(server: Server, path: str, **headers: str) -> httpx.Response:
    return patient.get(f"{server.url}{path}", headers={"Accept": "text/html", **headers})


def test_the_address_names_the_language_or_the_browser_does(server: Server) -> None:
    for path, accepted, code in (
        ("/", "en", "en"),
        ("/", "de-AT, en;q=0.5", "de"),
        ("/", "fr", "en"),
        ("/?lang=de", "en", "de"),
        ("/?lang=xx", "de", "de"),
        ("/tables/people?lang=de", "en", "de"),
        ("/nothing?lang=de", "en", "de"),
        ("/reference?lang=de", "en", "de"),
    ):
        found = asked(server, path, **{"Accept-Language": accepted})
        assert f'<html lang="{code}">' in found.text
        assert found.status_code == 404 or "Accept-Language" in found.headers["vary"]


def test_links_and_forms_keep_a_language_that_was_chosen(server: Server) -> None:
    text = asked(server, "/tables/people?lang=de").text
    links = [unescape(link) for link in re.findall(r'<a [^>]*href="(/[^"]*)"', text)]
    inside = [link for link in links if not link.startswith(("/api", "/openapi", "/tables/people/files"))]
    assert all("lang=" in link for link in inside)
    assert '<input type="hidden" name="lang" value="de">' in text
    sent = asked(server, "/tables/people?form=1&lang=de&at[region]=rows&valueCodes[region]=*")
    assert (sent.status_code, "lang=de" in sent.headers["location"]) == (303, True)
    plain = asked(server, "/tables/people", **{"Accept-Language": "de"}).text
    assert "lang=de" not in re.sub(r'hreflang="\w+"|<nav.*?</nav>', "", plain, flags=re.DOTALL)


@pytest.mark.anyio
async def test_labels_are_those_of_the_language_where_the_code_list_has_them() -> None:
    made = table(dimension("sex", ("f", "m"), labels=("Women", "Men"), translations={"de": ("Frauen", "")}))
    transport = httpx.ASGITransport(app=make_app(catalogue_of(made), Settings()))
    async with httpx.AsyncClient(transport=transport, base_url="http://tables.test") as client:
        german = (await client.get("/tables/made?lang=de")).text
        english = (await client.get("/tables/made?lang=en")).text
        found = (await client.get("/?q=Frauen")).text
    assert ("Frauen" in german, "Women" in german, "Men" in german) == (True, False, True)
    assert ("Women" in english, "Frauen" in english) == (True, False)
    assert "/tables/made" in found


def test_a_code_list_with_several_languages_is_published_with_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "sex.csv").write_text("code,label,label_de,Title EN\nf,Women,Frauen,Female\nm,Men,,Male\n")
    read = Codelist.read(tmp_path / "sex.csv")
    assert read.labels == ("Women", "Men")
    assert dict(read.translations) == {"de": ("Frauen", ""), "en": ("Female", "Male")}
    assert codelist_text(read).decode().split("\r\n")[:2] == ["code,label,label_de,label_en", "f,Women,Frauen,Female"]
    more = read.with_unknown("x")
    assert dict(more.translations)["de"] == ("Frauen", "", "")
    assert codelist_text(Codelist.of({"f": "Women"})) == b"code,label\r\nf,Women\r\n"


@pytest.mark.anyio
@pytest.mark.parametrize("codes", [("de", "en"), ("en", "de")])
async def test_nobody_is_given_what_was_kept_for_readers_of_another_language(codes: tuple[str, str]) -> None:
    sex = dimension("sex", ("f", "m"), labels=("Women", "Men"), translations={"de": ("Frauen", "Maenner")})
    own = "own[sex]=A=f%0AB=m"
    paths = (
        "/",
        "/reference",
        "/tables/made?chart=bars",
        "/tables/made?valueCodes[sex]=nothing",
        "/tables/made/chart.svg?chart=bars",
        "/tables/made/codes?variable=sex",
        f"/tables/made/data?outputFormat=csv&{own}",
        "/embed/made",
        "/tables/nothing",
    )
    made = replace(table(sex, dimension("age", ("1", "2"))), kind="cube")
    app = make_app(catalogue_of(made), Settings(embed=("https://www.example.org",)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://tables.test") as client:

        async def get(path: str, code: str) -> httpx.Response:
            return await client.get(path, headers={"Accept": "text/html", "Accept-Language": code})

        for path in paths:
            # All at a time, so that they wait for each other's answers, and then from what was kept.
            many = await asyncio.gather(*(get(path, code) for code in codes * 4))
            later = [await get(path, code) for code in codes]
            own_words = [{found.text for found in every} for every in (many[::2], many[1::2])]
            assert [len(texts) for texts in own_words] == [1, 1], path
            assert [{found.text} for found in later] == own_words, path
            if "own" not in path:  # groups have the names of the reader
                assert own_words[0] != own_words[1], path
            for found in (*many, *later):
                assert (
                    "Accept-Language" in found.headers.get("vary", "") or "no-store" in found.headers["cache-control"]
                )


@pytest.mark.anyio
@pytest.mark.parametrize("code", ["en", "de"])
async def test_hostile_names_stay_text_in_every_language(code: str) -> None:
    hostile = dimension(
        "sex", ("f", "m"), label=HOSTILE, labels=(HOSTILE, "m"), translations={"de": (HOSTILE, HOSTILE)}
    )
    made = replace(table(hostile), title=HOSTILE, release=HOSTILE, period=HOSTILE, kind="cube")
    settings = Settings(source=HOSTILE, license=HOSTILE, embed=("https://www.example.org",))
    transport = httpx.ASGITransport(app=make_app(catalogue_of(made), settings))
    async with httpx.AsyncClient(transport=transport, base_url="http://tables.test") as client:
        for path in ("/?x=1", f"/?q={HOSTILE}", "/tables/made?x=1", "/tables/made", "/embed/made", "/tables/none"):
            mark = "&" if "?" in path else "?"
            text = (await client.get(f"{path}{mark}lang={code}", headers={"Accept": "text/html"})).text
            assert "<script>alert" not in text
            scripts = re.findall(r"<script([^>]*)>([^<]*)</script>", text)
            assert len(scripts) == text.count("<script")
            data = [content for about, content in scripts if about == ' type="application/ld+json"']
            assert [content for _, content in scripts if content] == data  # which browsers do not run
            assert all(json.loads(content) for content in data)


def test_a_catalogue_of_tables_knows_languages_of_code_lists(catalogue: Catalogue) -> None:
    for served in catalogue:
        assert served.in_language("xx") is served
