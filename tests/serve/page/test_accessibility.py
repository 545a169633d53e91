"""An automatic check of accessibility finds nothing serious, on any page, in any light, on any screen."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from tests.serve.in_thread import asking
from tests.serve.page.browser import serious, visiting
from tests.serve.page.conftest import Visitor
from tests.serve.page.made import catalogue_of, dimension, table
from tests.serve.running import serving

PAGES = {
    "start": "/",
    "nothing found": "/?q=nothing+like+this",
    "table": "/tables/turnover_by_state_industry?totals=1",
    "deep table": "/tables/people?valueCodes[region]=*&valueCodes[job]=*&valueCodes[level]=*&stub=region,level",
    "lines": "/tables/indicators",
    "matrix": "/tables/flows_between_states?valueCodes[origin_state]=top(6)&valueCodes[destination_state]=top(6)"
    "&valueCodes[quarter]=2010-Q2&stub=origin_state&heading=destination_state&chart=matrix",
    "map": "/tables/jobs_by_place",
    "German": "/tables/turnover_by_state_industry?lang=de&unsure=grey&digits=fitting&scale=millions",
    "found nearly": "/?q=turnovr",
    "changes": "/tables/indicators?percent=change",
    "own groups": "/tables/people?own[job]=Office=a,b&valueCodes[job]=*&valueCodes[region]=*&stub=region&heading=job",
    "pages": "/tables/flows_between_states?row=11&column=11&chart=none",
    "flows": "/tables/flows_between_states?valueCodes[origin_state]=top(6)&valueCodes[destination_state]=top(6)"
    "&valueCodes[quarter]=2010-Q2&stub=origin_state&heading=destination_state",
    "refused": "/tables/people?valueCodes[region]=Atlantis&stub=region",
    "not found": "/tables/nothing_like_this",
    "no page": "/nothing",
    "reference": "/reference",
}


@pytest.mark.slow
@pytest.mark.parametrize("light", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_serious_is_found(name: str, width: int, light: str, visit: Visitor) -> None:
    # The policy of the page would not let the checker in; only this context does without it.
    with visit(PAGES[name], refused=True, width=width, color_scheme=light, bypass_csp=True) as visited:
        assert serious(visited) == []


@pytest.mark.slow
def test_nothing_serious_is_found_on_a_comparison(browser: Browser, bundles: dict[str, Path], tmp_path: Path) -> None:
    twice = (f"a={bundles['survey']}", f"b={bundles['survey']}", "--state", tmp_path / "state")
    with serving(*twice) as server, visiting(browser, server.url, "/tables/a-people", bypass_csp=True) as visited:
        visited.page.get_by_role("navigation", name="Comparisons").get_by_role("link").click()
        visited.page.wait_for_url("**/a-people~b-people")
        assert "Difference" in visited.page.locator("table.figures thead").inner_text()
        assert serious(visited) == []


@pytest.mark.slow
@pytest.mark.parametrize("light", ["light", "dark"])
def test_nothing_serious_is_found_in_a_frame(light: str, browser: Browser) -> None:
    sure, uncertain = (dimension(name, ("a", "b")) for name in ("place", "sex"))
    framed = Settings(embed=("https://www.example.org",))
    with (
        asking(make_app(catalogue_of(table(sure, uncertain, error=0.3)), framed)) as client,
        visiting(browser, str(client.base_url), "/embed/made", bypass_csp=True, color_scheme=light) as visited,
    ):
        assert "Symbols in this table" in visited.page.locator("h2").all_inner_texts()
        assert serious(visited) == []


@pytest.mark.slow
def test_the_checker_would_find_something(visit: Visitor) -> None:
    with visit("/", bypass_csp=True) as visited:
        visited.page.evaluate("document.querySelector('label[for=q]').remove()")
        found = Axe().run(visited.page).response["violations"]
        assert {"label", "serious"} & {one["id"] for one in found} | {one["impact"] for one in found}
