"""An automatic check of accessibility finds nothing serious, on any page, in any light, on any screen."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.serve.page.browser import serious
from tests.serve.page.conftest import Visitor

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
    "comparison": "/tables/jobs_by_place_industry~private_by_place_industry",
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
def test_the_checker_would_find_something(visit: Visitor) -> None:
    with visit("/", bypass_csp=True) as visited:
        visited.page.evaluate("document.querySelector('label[for=q]').remove()")
        found = Axe().run(visited.page).response["violations"]
        assert {"label", "serious"} & {one["id"] for one in found} | {one["impact"] for one in found}
