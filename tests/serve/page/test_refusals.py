"""A reader who is refused reads one sentence in the language of the page, and nothing that was sent becomes markup."""

import re
from dataclasses import replace
from html import unescape

import httpx
import pytest

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.http import MOST_ADDRESS
from tests.serve.page.made import catalogue_of, dimension, table

HOSTILE = "<script>alert('{x}')</script>"
PLACE, SEX = dimension("place", ("N", "S")), dimension("sex", ("f", "m"), eliminable=False)
ONE = "valueCodes[place]=N&valueCodes[sex]=f"
REFUSED = {
    "table": ("/tables/nothing", "nothing"),
    "three tables": ("/tables/made~made~made", ""),
    "code": ("/tables/made?valueCodes[place]=Atlantis", "Atlantis"),
    "figure": ("/tables/made?valueCodes[place]=N&valueCodes[contents]=Atlantis", "Atlantis"),
    "no code of what must have one": ("/tables/made?form=1&at[place]=rows&valueCodes[place]=N&at[sex]=columns", "Sex"),
    "variable": ("/tables/made?valueCodes[planet]=N", "planet"),
    "word": ("/tables/made?chart=pie", "pie"),
    "number": ("/tables/made?page=first", "first"),
    "name": ("/tables/made?colour=red", "colour"),
    "place of a variable": ("/tables/made?at[place]=ceiling", "ceiling"),
    "too many": ("/tables/made?valueCodes[place]=*&valueCodes[sex]=*&valueCodes[contents]=*", "8"),
    "groups": ("/tables/made?own[place]=A=N", "Place"),
    "list": ("/tables/made?codelist[place]=coasts&valueCodes[place]=*", "Place"),
    "comparison": ("/tables/made~other", ""),
    "frame": ("/embed/made", ""),
    "codes of a variable": ("/tables/made/codes?variable=planet", "planet"),
    "file": ("/tables/made/files/secret.csv", "secret.csv"),
    "format": (f"/tables/made/data?{ONE}&outputFormat=papyrus", "papyrus"),
    "options of a format": (f"/tables/made/data?{ONE}&outputFormatParams=nicely", "nicely"),
    "chart": (f"/tables/made/chart.svg?{ONE}&chart=none", ""),
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def asked(path: str, code: str) -> httpx.Response:
    made = table(PLACE, SEX)
    app = make_app(catalogue_of(made, replace(table(SEX), id="other")), Settings(most_cells=6))
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://tables.test", follow_redirects=True
    ) as client:
        found: httpx.Response = await client.get(path, headers={"Accept": "text/html", "Accept-Language": code})
        return found


def sentence(page: str) -> str:
    found = re.search(r'<div class="fault">\s*<p>(.*?)</p>', page, flags=re.DOTALL)
    return unescape(found[1]) if found else ""


@pytest.mark.anyio
@pytest.mark.parametrize("name", REFUSED)
async def test_a_refusal_is_a_sentence_in_the_language_of_the_reader(name: str) -> None:
    path, quoted = REFUSED[name]
    english, german = (await asked(path, "en"), await asked(path, "de"))
    assert english.status_code == german.status_code >= 400
    told = sentence(english.text), sentence(german.text)
    assert len(set(told)) == 2
    assert all(quoted in text and text.endswith(".") for text in told)
    assert "Needed:" not in english.text + german.text


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path", ["/tables/{}", "/tables/made?valueCodes[place]={}", "/tables/made?{}=1", "/tables/made?chart={}"]
)
async def test_what_was_sent_stays_text(path: str) -> None:
    page = (await asked(path.format(HOSTILE.replace("/", "%2F")), "en")).text
    assert "<script>alert" not in page
    assert "{x}" in page


@pytest.mark.anyio
async def test_a_refusal_says_what_to_do() -> None:
    too_many, wrong = [(await asked(REFUSED[name][0], "en")).text for name in ("too many", "code")]
    assert "Choose fewer codes." in sentence(too_many)
    assert "fewer" not in sentence(wrong)


@pytest.mark.anyio
async def test_an_address_that_is_too_long_is_told_of_in_the_language_of_the_reader() -> None:
    pages = [(await asked(f"/tables/made?own[place]={'N' * MOST_ADDRESS}", code)).text for code in ("en", "de")]
    assert "Choose fewer codes" in pages[0]
    assert "Wählen Sie weniger Codes" in pages[1]
