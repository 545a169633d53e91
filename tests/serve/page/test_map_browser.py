"""A person reads a map with a mouse, with a keyboard alone, in the dark, on paper, and without JavaScript."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.serve.page.browser import press_until, sideways
from tests.serve.page.conftest import Visitor

pytestmark = pytest.mark.slow
PLACES, FLOWS = "/tables/jobs_by_place", "/tables/flows_between_states"
FOCUSED = "document.activeElement.getAttribute('aria-label')"


def colour(page: Page, selector: str) -> str:
    """The fill of an element as it is seen."""
    found: str = page.locator(selector).first.evaluate("element => getComputedStyle(element).fill")
    return found


def test_arrow_keys_go_through_areas_in_the_order_of_the_table_and_enter_to_the_row(visit: Visitor) -> None:
    with visit(PLACES) as visited:
        page = visited.page
        names = [row[0] for row in visited.figures()]
        press_until(page, "Tab", "svg.map a")
        for at in range(3):
            assert page.evaluate(FOCUSED).startswith(f"{names[at]}: ")
            expect(page.locator("tr.lit")).to_contain_text(names[at])
            expect(page.locator("[data-reading]")).to_have_text(page.evaluate(FOCUSED))
            page.keyboard.press("ArrowRight")
        page.keyboard.press("End")
        assert page.evaluate(FOCUSED).startswith(f"{names[-1]}: ")
        page.keyboard.press("Tab")
        assert not page.evaluate("document.activeElement.matches('svg.map a')"), "a map is one stop"
        page.keyboard.press("Shift+Tab")
        address = page.url
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.textContent") == names[-1]
        expect(page.locator("table.figures tbody tr").last).to_be_in_viewport()
        assert page.url == address


def test_an_area_and_its_row_light_up_together(visit: Visitor) -> None:
    with visit(PLACES) as visited:
        page = visited.page
        row = page.locator("table.figures tbody tr").nth(4)
        row.hover()
        expect(page.locator("svg.map a.lit")).to_have_count(1)
        label = page.locator("svg.map a.lit").get_attribute("aria-label")
        assert label
        assert label.startswith(visited.figures()[4][0])
        assert page.locator("svg.map .spot").get_attribute("d")
        page.locator("svg.map a").nth(7).hover()
        expect(page.locator("tr.lit")).to_contain_text(visited.figures()[7][0])


def test_uncertain_areas_are_hatched_as_the_table_marks_them(visit: Visitor) -> None:
    with visit(PLACES) as visited:
        page = visited.page
        marked = page.locator("tr:has(td.mark1, td.mark2) th").all_inner_texts()
        hatched = page.locator('svg.map a:has([fill*="map-h"])').evaluate_all(
            "areas => areas.map(area => area.getAttribute('aria-label').split(':')[0])"
        )
        assert marked
        assert hatched == marked


def test_maps_fit_narrow_screens(visit: Visitor) -> None:
    with visit(PLACES, width=320) as visited:
        assert sideways(visited) == 0


def test_dark_maps_have_other_colours_and_maps_are_printed(visit: Visitor) -> None:
    with visit(PLACES) as light, visit(PLACES, color_scheme="dark") as dark:
        assert colour(light.page, "svg.map .area .q5") != colour(dark.page, "svg.map .area .q5")
        light.page.emulate_media(media="print")
        expect(light.page.locator("svg.map")).to_be_visible()
        expect(light.page.locator(".ask")).to_be_hidden()


def test_without_javascript_areas_are_links_to_their_rows(visit: Visitor) -> None:
    with visit(PLACES, java_script_enabled=False) as visited:
        page = visited.page
        names = [row[0] for row in visited.figures()]
        page.locator("svg.map a").nth(9).click()
        expect(page).to_have_url(re.compile("#r0-9$"))
        expect(page.locator("#r0-9")).to_have_text(names[9])
        expect(page.locator("#r0-9")).to_be_in_viewport()


def test_flows_say_where_they_go_and_a_new_question_has_a_new_map(visit: Visitor) -> None:
    with visit(FLOWS) as visited:
        page = visited.page
        labels = page.locator("svg.map a.flow").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
        assert any(" to " in label for label in labels)
        page.get_by_role("combobox", name="Chart").select_option("Matrix")
        page.get_by_role("button", name="Show the table").click()
        expect(page).to_have_url(re.compile("chart=matrix"))
        expect(page.locator("svg.map")).to_have_count(0)
        page.get_by_role("combobox", name="Chart").select_option("Map")
        page.get_by_role("button", name="Show the table").click()
        expect(page).to_have_url(re.compile("chart=map"))
        expect(page.locator("svg.map a[tabindex='0']")).to_have_count(1)
