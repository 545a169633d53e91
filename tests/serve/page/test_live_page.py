"""An analyst with a browser: signs in, sees what a question costs, asks it, and asks it again for nothing."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from sfumato.privacy.ledger import Ledger
from sfumato.release import load
from tests.serve.live_serving import LiveServer
from tests.serve.page.browser import press_until, serious, sideways
from tests.serve.page.conftest import Visitor

pytestmark = pytest.mark.slow  # a server, a ledger and a browser for every question

PLACES = "/live?by=place&epsilon=0.2&method=smooth-pareto"
PAGES = {
    "form": "/live",
    "price": PLACES,
    "a weaker method": "/live?by=place&epsilon=0.5&method=laplace",
    "no number": "/live?by=place&epsilon=much",
}


def left(server: LiveServer) -> float:
    """What ad-hoc questions may still cost, as programs are told."""
    with server.client() as client:
        return float(client.get("/live/config").json()["budget"]["left"])


def figures(page: Page) -> list[str]:
    """The values, without the marks beside them."""
    page.wait_for_load_state()
    found: list[str] = page.locator("#result td.value").evaluate_all(
        "cells => cells.map(cell => cell.firstChild.nodeValue)"
    )
    return found


@pytest.mark.parametrize(
    ("scripts", "attribute"),
    [(True, "Ownership"), (False, "Population of the place")],
    ids=["with JavaScript", "without JavaScript"],
)
def test_the_price_comes_before_the_answer_and_a_repetition_is_free(
    scripts: bool, attribute: str, analyst: Visitor, asked: LiveServer
) -> None:
    before = left(asked)
    with analyst(java_script_enabled=scripts) as visited:
        page = visited.page
        expect(page.get_by_text("Tick at least one attribute")).to_be_visible()
        page.get_by_role("group", name="By", exact=True).get_by_label(attribute).check()
        page.get_by_role("textbox", name="ε").fill("0.25")
        page.get_by_role("button", name="What would it cost?").click()
        expect(page.get_by_role("heading", name="This would cost ε = 0.25")).to_be_visible()
        expect(page.get_by_role("table", name="Mean absolute error of a cell")).to_be_visible()
        assert left(asked) == before, "a price costs nothing"
        page.get_by_role("button", name="Ask, and spend ε = 0.25").click()
        expect(page.get_by_role("heading", level=2, name=re.compile("^Jobs by"))).to_be_visible()
        expect(page.get_by_role("heading", name="What was done to these numbers")).to_be_visible()
        assert left(asked) == before - 0.25
        expect(page.get_by_text(f"ε = {before - 0.25:g} of 2")).to_be_visible()
        answered = figures(page)
        expect(page.get_by_role("heading", name="Symbols in this table")).to_be_visible()
        method = parse_qs(urlsplit(page.url).query)["method"][0]
        page.get_by_role("link", name="Change the question").click()
        expect(page.get_by_role("heading", name="the stored answer costs nothing")).to_be_visible()
        page.get_by_role("button", name="Show the stored answer").click()
        expect(page.get_by_role("heading", level=2, name=re.compile("^Jobs by"))).to_be_visible()
        assert figures(page) == answered
    assert left(asked) == before - 0.25
    with asked.client() as client:
        names = {one["label"]: one["name"] for one in client.get("/live/config").json()["attributes"]}
    question: dict[str, Any] = {"by": [names[attribute]], "epsilon": 0.25, "method": method}
    said = asked.ask(question).json()
    of_metrics = len(said["dimension"]["contents"]["category"]["index"])
    assert answered == [f"{value:,}" for value in said["value"][::of_metrics]]


def test_the_head_leads_where_the_role_allows(analyst: Visitor, steward: Visitor) -> None:
    def led(page: Page) -> list[str]:
        return page.get_by_role("navigation", name="Site").get_by_role("link").all_inner_texts()

    with steward("/") as signed:
        assert led(signed.page) == ["All tables", "Ad-hoc tables", "Steward"]
    with analyst("/") as signed:
        assert led(signed.page) == ["All tables", "Ad-hoc tables"]
        signed.page.get_by_role("link", name="Ad-hoc tables").click()
        expect(signed.page.get_by_role("heading", name="Ad-hoc tables: Jobs by place and industry")).to_be_visible()
        expect(signed.page.get_by_role("link", name="Ad-hoc tables")).to_have_attribute("aria-current", "page")
        signed.page.get_by_role("button", name="Sign out").click()
        expect(signed.page.get_by_role("link", name="Sign in")).to_be_visible()
        assert led(signed.page) == ["All tables", "Sign in"]
        signed.page.get_by_role("link", name="Sign in").click()
        expect(signed.page.get_by_label("Token")).to_be_visible()


def test_methods_that_the_budget_refuses_are_not_offered_and_the_reason_is_said(analyst: Visitor) -> None:
    with analyst() as visited:
        page = visited.page
        names = [text.rstrip(" *") for text in page.get_by_label("Method").locator("option").all_inner_texts()]
        assert names[0] == "Best for the question"
        assert "smooth-pareto" in names
        assert not {"laplace", "noise-infusion", "noisy-quantiles"} & {*names}
        page.get_by_text("Why not other methods").click()
        reasons = page.locator(".reasons").last
        expect(reasons).to_contain_text("laplace")
        expect(reasons).to_contain_text("protects single people and no employers")


def test_a_refusal_is_shown_to_its_last_word(analyst: Visitor) -> None:
    with analyst(PAGES["a weaker method"]) as visited:
        result = visited.page.locator("#result")
        expect(result.get_by_role("heading", name="This would be refused")).to_be_visible()
        expect(result).to_contain_text(
            "a table protected for individuals only, which hides neither the size nor the shape of any employer's "
            "workforce (individuals only, alpha = 0.1, epsilon = 0.5)"
        )
        assert "…" not in result.inner_text()
        assert result.get_by_role("button").count() == 0


def test_before_anything_is_spent_it_says_what_to_expect(analyst: Visitor, asked: LiveServer) -> None:
    before = left(asked)
    with analyst("/live?by=place&epsilon=0.25&wish=10") as visited:
        page = visited.page
        result = page.locator("#result")
        expect(result).to_contain_text(re.compile(r"\d+ figures are likely to be usable of 50"))
        expect(result).to_contain_text("This method has the smallest error for the question.")
        wished = re.search(r"An error of 10 % in a cell of 100 jobs takes ε = ([\d.]+) or more", result.inner_text())
        assert wished
        choices = page.get_by_role("table", name="Errors where no establishment has more than a tenth of the jobs")
        cells = [
            [cell.strip() for cell in row.split("\t")] for row in choices.locator("tbody").inner_text().splitlines()
        ]
        by_epsilon = {float(row[0]): float(row[1].replace(",", "")) for row in cells}
        assert sorted(by_epsilon.values(), reverse=True) == [by_epsilon[one] for one in sorted(by_epsilon)]
        # The wished error lies between those of the epsilons around it.
        assert all((error <= 10) == (epsilon >= float(wished[1])) for epsilon, error in by_epsilon.items())
    assert left(asked) == before


def test_an_answer_is_laid_out_downloaded_and_linked_like_others(analyst: Visitor, asked: LiveServer) -> None:
    with analyst("/live?by=place&by=ownership&epsilon=0.25&method=smooth-pareto") as visited:
        page = visited.page
        page.get_by_role("button", name="Ask, and spend").click()
        expect(page.get_by_role("heading", name="Build the table")).to_be_visible()
        before = left(asked)
        page.get_by_role("link", name="Swap rows and columns").click()
        expect(page.locator("table.figures tbody tr")).to_have_count(4)
        page.get_by_role("combobox", name="Chart").select_option("Ranking")
        page.get_by_role("button", name="Show the table").click()
        page.wait_for_url("**chart=ranking**")  # the chart of before is there, too
        expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
        page.locator("#downloads > summary").click()
        with page.expect_download() as download:
            page.locator('[data-format="csv"]').click()
        assert len(Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()) == 201
        link = page.get_by_label("Link to this table").input_value()
        shown = page.locator("table.figures").inner_text()
        visited.open(link)
        assert page.locator("table.figures").inner_text() == shown
    assert left(asked) == before, "a layout costs nothing"


def test_a_link_to_an_answer_that_nobody_paid_for_leads_to_its_price(analyst: Visitor, asked: LiveServer) -> None:
    before = left(asked)
    with analyst("/live/table?by=education&epsilon=0.5&method=vector-bell", refused=True) as visited:
        expect(visited.page.get_by_role("heading", name="This would cost ε = 0.5")).to_be_visible()
        visited.open("/live/table/chart.svg?by=education&epsilon=0.5&method=vector-bell")
        expect(visited.page.get_by_role("heading", name="This is not allowed")).to_be_visible()
    assert left(asked) == before


def test_the_keyboard_alone_asks(analyst: Visitor, asked: LiveServer) -> None:
    before = left(asked)
    with analyst() as visited:
        page = visited.page
        press_until(page, "Tab", 'input[name="by"][value="industry"]')
        page.keyboard.press("Space")
        press_until(page, "Tab", "#epsilon")
        page.keyboard.type("0.125")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="This would cost ε = 0.125")).to_be_focused()
        expect(page.locator("#announce")).to_have_text("This would cost ε = 0.125")
        press_until(page, "Tab", "#result button")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=2, name="Jobs by industry")).to_be_visible()
        press_until(page, "Tab", "#result .scroll")
    assert left(asked) == before - 0.125


@pytest.mark.parametrize("light", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 320])
def test_nothing_serious_is_found_and_nothing_scrolls_sideways(width: int, light: str, analyst: Visitor) -> None:
    with analyst(refused=True, width=width, color_scheme=light, bypass_csp=True) as visited:
        for path in PAGES.values():
            visited.open(path)
            assert serious(visited) == []
            assert sideways(visited) == 0
        visited.open("/live?by=ownership&epsilon=0.25")
        visited.page.locator("#result button").click()
        expect(visited.page.get_by_role("heading", level=2, name="Jobs by ownership")).to_be_visible()
        assert serious(visited) == []
        assert sideways(visited) == 0


def test_numbers_are_written_as_people_do(analyst: Visitor) -> None:
    with analyst(PLACES) as visited:
        text = visited.page.locator("main").inner_text()
        assert not re.search(r"\d[eE][+-]?\d", text)
        assert re.search(r"^1,000\t[\d,]+$", text, re.MULTILINE)


def test_only_what_was_asked_was_charged(analyst: Visitor, asked: LiveServer) -> None:
    release = load(asked.release)
    before = Ledger.open(release.ledger).balance(release.account)
    with analyst(refused=True) as visited:
        for path in PAGES.values():
            visited.open(path)
    assert Ledger.open(release.ledger).balance(release.account) == before
