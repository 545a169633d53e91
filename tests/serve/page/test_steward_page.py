"""A steward with a browser: what is left, what was charged, what other parameters would do, and who asks what."""

import re
from fractions import Fraction

import pytest
from playwright.sync_api import Locator, Page, expect

from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from sfumato.statistics.registry import build
from tests.serve.live_serving import PLACE, LiveServer
from tests.serve.page.browser import press_until, serious, sideways
from tests.serve.page.conftest import Visitor

pytestmark = pytest.mark.slow  # a server, a ledger and a browser for every question


@pytest.fixture(autouse=True, scope="module")
def question(asked: LiveServer) -> None:
    """The analyst asked one question, twice."""
    for _ in range(2):
        assert asked.ask(PLACE | {"where": {"ownership": ["private"]}}).status_code == 200


def row(page: Page, table: str, name: str) -> Locator:
    return page.locator(f"table:has(#{table}-table) tbody tr").filter(has_text=name).first


def cells(of: Locator) -> list[str]:
    return of.locator("th, td").all_inner_texts()


@pytest.mark.parametrize("scripts", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_the_steward_sees_budgets_history_and_questions(scripts: bool, steward: Visitor, asked: LiveServer) -> None:
    release = load(asked.release)
    balance = Ledger.open(release.ledger).balance(release.account)
    with steward(java_script_enabled=scripts) as visited:
        page = visited.page
        account = cells(row(page, "left", "jobs, 2025"))
        assert account[3:6] == ["8", f"{float(balance.spent_epsilon):g}", f"{float(balance.remaining_epsilon):g}"]
        assert cells(row(page, "left", "Ad-hoc questions"))[3:6] == ["2", "0.25", "1.75"]
        charge = cells(row(page, "history", "charge"))
        assert charge[3:] == ["live tables", "live-place (about ownership: private)", "strong, α = 0.1, ε = 0.25"]
        top = cells(row(page, "top", "ownership: private"))
        assert top == [
            "live-place",
            "alpha: 0.1; by: place; epsilon: 0.25; method: smooth-pareto; where: ownership: private",
            "ann",
            "2",
        ]
        expect(row(page, "lately", "POST /live/tables")).to_contain_text("ann")


@pytest.mark.parametrize("scripts", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_the_steward_asks_what_other_parameters_would_do(scripts: bool, steward: Visitor) -> None:
    with steward(java_script_enabled=scripts) as visited:
        page = visited.page
        page.get_by_label("Method", exact=True).select_option("log-laplace")
        page.get_by_label("ε", exact=True).fill("1")
        page.get_by_label("Workers of the establishment").fill("1,300")
        page.get_by_role("button", name="Show errors").click()
        expect(page.get_by_text("one establishment of 1,300 workers")).to_be_visible()
        expect(page.get_by_role("img", name="Expected error of log-laplace by epsilon")).to_be_visible()
        page.wait_for_load_state()
        heads = cells(page.locator("table:has(#what-table) thead tr"))
        shown = cells(page.locator("table:has(#what-table) tbody tr").last)
    planned = build("log-laplace", alpha=Fraction("0.1"), epsilon=Fraction(4)).planned_error()
    assert (heads, shown[0]) == (["ε", "α = 0.05", "α = 0.1", "α = 0.2"], "4")
    assert float(shown[2].replace(",", "")) == pytest.approx((planned.share or 0) * 1300, rel=0.005)


def test_parameters_that_make_no_sense_are_answered_in_words(steward: Visitor) -> None:
    with steward("/steward?alpha=-1", refused=True) as visited:
        alert = visited.page.get_by_role("alert")
        expect(alert).to_contain_text("a number above 0, up to 1,000")
        expect(alert).to_contain_text("-1")


def test_numbers_are_written_as_people_do(steward: Visitor) -> None:
    with steward("/steward?method=smooth-laplace&epsilon=0.0001&alpha=0.00001&delta=0.0000001") as visited:
        text = visited.page.locator("main").inner_text()
        assert not re.search(r"\d[eE][+-]?\d", text)
        assert "α = 0.00001" in text


def test_the_keyboard_reaches_every_part(steward: Visitor) -> None:
    with steward() as visited:
        page = visited.page
        for part in ("left", "what", "top", "lately", "history"):
            press_until(page, "Tab", f'[aria-labelledby="{part}-table"]')


@pytest.mark.parametrize("light", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_nothing_serious_is_found_and_nothing_scrolls_sideways(width: int, light: str, steward: Visitor) -> None:
    with steward(refused=True, width=width, color_scheme=light, bypass_csp=True) as visited:
        for path in ("/steward", "/steward?alpha=-1", "/sign-in"):
            visited.open(path)
            assert serious(visited) == []
            assert sideways(visited) == 0


def test_what_was_asked_for_can_be_read_whole_on_a_narrow_screen(steward: Visitor) -> None:
    with steward(width=320) as visited:
        cell = row(visited.page, "top", "ownership: private").locator("td").first
        assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
        cell.scroll_into_view_if_needed()
        expect(cell).to_be_in_viewport(ratio=0.9)
