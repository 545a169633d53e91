"""A person with a browser builds a table, with and without JavaScript, by mouse or by keyboard alone."""

import io
import re
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Download, expect

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from tests.serve.in_thread import asking
from tests.serve.page.browser import Visit, press_until, sideways, visiting
from tests.serve.page.conftest import Visitor
from tests.serve.page.made import catalogue_of, dimension, table
from tests.serve.running import serving

TURNOVER = "turnover_by_state_industry"


def published(bundle: Path, table: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(bundle / f"tables/{table}.parquet").to_pylist()
    return rows


def workbook(download: Download) -> openpyxl.Workbook:
    return openpyxl.load_workbook(io.BytesIO(Path(download.path()).read_bytes()))


def build(visit: Visit, *, scripts: bool) -> None:
    """From the list of tables to turnover of two states by industry."""
    page = visit.page
    page.get_by_label("Search titles and variables").fill("turnover state")
    page.get_by_role("button", name="Find tables").click()
    expect(page.get_by_role("heading", name="2 tables of")).to_be_visible()
    page.get_by_role("link", name="Turnover by state and industry").click()
    expect(page.get_by_role("heading", name="Turnover, total, by industry and state")).to_be_visible()
    state = page.get_by_role("group", name="State", exact=True)
    state.locator("summary").click()
    if scripts:  # without them all codes are wanted until some are ticked
        state.get_by_role("button", name="Select none").click()
    state.get_by_label("New South Wales").check()
    state.get_by_label("Victoria").check()
    page.get_by_label("Upper end of the 90 % interval").check()
    page.get_by_role("combobox", name="Chart").select_option("Bars")
    page.get_by_role("button", name="Show the table").click()
    expect(page.locator("#result")).to_contain_text("114 figures in all")


def as_shown(row: dict[str, Any], rse: float | None) -> str:
    """The value of a cell with its marks, from the bundle."""
    if row["value"] is None:
        return ".."
    marks = ["p"] if row["status"] == "mostly perturbation" else []
    marks += ["**"] if rse is None or rse >= 50 else ["*"] if rse >= 25 else []
    return f"{row['value']:,}{' '.join(marks)}"


@pytest.mark.parametrize("scripts", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_a_person_builds_a_table_and_takes_it_home(
    scripts: bool, visit: Visitor, browser: Browser, bundles: dict[str, Path]
) -> None:
    with visit(java_script_enabled=scripts) as visited:
        page = visited.page
        build(visited, scripts=scripts)
        expect(page.locator("svg.chart rect").nth(10)).to_be_attached()
        expect(page.locator("dl.legend")).to_contain_text("use with caution: the error is 25 % or more")
        expect(page.locator("dl.legend")).to_contain_text("not published: the figure would reveal too much")
        page.locator("#downloads > summary").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Excel").click()
        book = workbook(download.value)
        link = page.get_by_label("Link to this table").input_value()
        shown = page.locator("table.figures").inner_text()
    rows = list(book["Table"].iter_rows(values_only=True, min_row=4))
    bundle = {(row["state"], row["industry"]): row for row in published(bundles["business"], TURNOVER)}
    industries = [one for one in dict.fromkeys(industry for _, industry in bundle) if one != "total"]
    assert len(rows) == len(industries) == 19
    for line, industry in zip(rows, industries, strict=True):
        for column, state in ((1, "NSW"), (4, "VIC")):
            row = bundle[state, industry]
            value, high, rse = (None if cell in ("..", ">") else cell for cell in line[column : column + 3])
            assert (value, high, rse) == (row["value"], row["high"], row["rse"])
    with visiting(browser, re.sub(r"(http://[^/]+).*", r"\1", link), link, java_script_enabled=scripts) as again:
        assert again.page.locator("table.figures").inner_text() == shown


def test_what_the_page_shows_is_what_the_bundle_has(visit: Visitor, bundles: dict[str, Path]) -> None:
    with visit(
        f"/tables/{TURNOVER}?valueCodes[state]=NSW&valueCodes[industry]=*&stub=industry&heading=state"
    ) as visited:
        cells = visited.page.locator("table.figures tbody td.value").evaluate_all(
            "cells => cells.map(cell => cell.firstChild.nodeValue ? cell.firstChild.nodeValue + "
            "(cell.querySelector('.mark')?.textContent ?? '') : cell.querySelector('.mark').textContent)"
        )
    every = [row for row in published(bundles["business"], TURNOVER) if row["state"] == "NSW"]
    rows = [row for row in every if row["industry"] != "total"]  # totals are added when they are asked for
    assert cells == [as_shown(row, row["rse"]) for row in rows]


@pytest.mark.slow
def test_the_form_counts_figures_as_codes_are_ticked(visit: Visitor) -> None:
    with visit(f"/tables/{TURNOVER}") as visited:
        page, cells = visited.page, visited.page.locator("#cells")
        expect(cells).to_have_text("304 figures")
        industry = page.get_by_role("group", name="Industry", exact=True)
        industry.locator("summary").click()
        industry.get_by_label("Search codes").fill("MINING")
        expect(industry.locator("li:visible")).to_have_count(1)
        industry.get_by_label("Mining").uncheck()
        expect(industry.locator("summary")).to_contain_text("18 of 19 selected")
        expect(cells).to_have_text("288 figures")
        industry.get_by_label("Search codes").fill("")
        industry.get_by_role("button", name="Select none").click()
        expect(industry.locator("summary")).to_contain_text("0 of 19 selected")
        industry.get_by_label("All 19 codes").check()
        expect(industry.get_by_label("Mining")).to_be_checked()
        page.get_by_label("State goes into").select_option("Total only")
        expect(cells).to_have_text("38 figures")
        page.get_by_role("button", name="Show the table").click()
        expect(page.locator("#announce")).to_have_text("19 rows, 2 columns, 38 figures in all.")
        expect(page.get_by_role("heading", name="Turnover, total, by industry")).to_be_focused()
        expect(page).to_have_url(re.compile(r"\?.*valueCodes%5Bindustry%5D=\*"))
        assert "state" not in page.url.split("?")[1]
        page.go_back()
        expect(page.get_by_role("heading", name="Turnover, total, by industry and state")).to_be_visible()


@pytest.mark.slow
def test_too_many_figures_are_said_with_numbers(browser: Browser, bundles: dict[str, Path], tmp_path: Path) -> None:
    with (
        serving(bundles["business"], "--most-cells", "100", "--state", tmp_path / "state") as small,
        visiting(browser, small.url, f"/tables/{TURNOVER}", refused=True) as visited,
    ):
        page = visited.page
        expect(page.get_by_role("heading", name="This selection has no answer")).to_be_visible()
        expect(page.locator("#result")).to_contain_text("These are 304 figures, and at most 100 are given at once.")
        expect(page.locator("#cells")).to_have_text("304 figures are too many: the most is 100. Choose fewer codes.")
        page.get_by_label("State goes into").select_option("Total only")
        expect(page.locator("#cells")).to_have_text("38 figures")
        page.get_by_role("button", name="Show the table").click()
        expect(page.locator("table.figures tbody tr")).to_have_count(19)


def test_a_link_that_fails_says_what_it_asked(visit: Visitor) -> None:
    path = "/tables/people?valueCodes[region]=Atlantis&valueCodes[job]=*&stub=region&heading=job"
    with visit(path, refused=True) as visited:
        result = visited.page.locator("#result")
        expect(result).to_contain_text("Atlantis")
        expect(result.get_by_role("row", name="valueCodes[region] Atlantis")).to_be_visible()
        visited.page.get_by_role("group", name="Region", exact=True).get_by_label("N", exact=True).check()
        visited.page.get_by_role("button", name="Show the table").click()
        expect(visited.page.locator("table.figures tbody tr")).to_have_count(1)


def test_text_from_an_address_stays_text(visit: Visitor) -> None:
    hostile = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>"
    with visit("/", refused=True) as visited:
        for path in (
            f"/?q={hostile}",
            f"/tables/{hostile}",
            f"/tables/people?valueCodes[region]={hostile}&chart={hostile}",
        ):
            visited.open(path)
            assert visited.page.locator("img, main script").count() == 0
        expect(visited.page.locator("#result")).to_contain_text("onerror=alert(1)")


@pytest.mark.slow
def test_the_keyboard_alone_builds_a_table(visit: Visitor, bundles: dict[str, Path]) -> None:
    with visit("/") as visited:
        page = visited.page
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        press_until(page, "Tab", "#q")
        page.keyboard.type("businesses state size")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="1 table of")).to_be_focused()
        press_until(page, "Tab", '.card a[href$="businesses_by_state_size"]')
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Build the table")).to_be_visible()
        press_until(page, "Tab", "#v0-at")
        page.keyboard.press("c")
        expect(page.locator("#v0-at")).to_have_value("columns")
        press_until(page, "Tab", "#v0-codes summary")
        page.keyboard.press("Enter")
        press_until(page, "Tab", '#v0-codes [data-tick="none"]')
        page.keyboard.press("Space")
        press_until(page, "Tab", '#v0-codes input[value="NSW"]')
        page.keyboard.press("Space")
        press_until(page, "Tab", "#v1-at")
        page.keyboard.press("r")
        press_until(page, "Tab", "#ask .send button")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Businesses by size by employment and state")).to_be_focused()
        press_until(page, "Tab", "#downloads summary")
        page.keyboard.press("Enter")
        press_until(page, "Tab", '[data-format="xlsx"]')
        with page.expect_download() as download:
            page.keyboard.press("Enter")
        book = workbook(download.value)
        page.keyboard.press("Escape")
        expect(page.locator("#downloads summary")).to_be_focused()
    every = [row for row in published(bundles["business"], "businesses_by_state_size") if row["state"] == "NSW"]
    rows = [row for row in every if row["size"] != "total"]
    found = [row[1] for row in book["Table"].iter_rows(values_only=True, min_row=4)]
    assert found == [row["value"] for row in rows]


def test_variables_are_moved_with_a_button_and_swapped_with_a_link(visit: Visitor) -> None:
    with visit("/tables/people?valueCodes[region]=*&valueCodes[job]=*&stub=region,job") as visited:
        page = visited.page
        heads = page.locator("table.figures thead th.corner")
        expect(heads).to_have_text(["Region", "Job"])
        page.get_by_role("button", name="Move Job up").click()
        expect(heads).to_have_text(["Job", "Region"])
        expect(page).to_have_url(re.compile("stub=job,region"))
        expect(page.get_by_role("link", name="Deutsch")).to_have_attribute(
            "href", re.compile("stub=job%2Cregion.*lang=de")
        )
        page.get_by_role("link", name="Swap rows and columns").click()
        expect(heads).to_have_count(0)
        expect(page.locator("#turn")).to_be_focused()


def test_filters_with_several_codes_are_turned_like_pages(visit: Visitor) -> None:
    with visit("/tables/people?valueCodes[region]=*&valueCodes[job]=*&heading=contents&stub=region") as visited:
        page = visited.page
        pages = page.get_by_role("navigation", name="Codes of the filters")
        expect(pages).to_contain_text("Job: a (1 of 3)")
        first = page.locator("table.figures tbody").inner_text()
        pages.get_by_role("link", name="Next").click()
        expect(pages).to_contain_text("Job: b (2 of 3)")
        assert page.locator("table.figures tbody").inner_text() != first


@pytest.mark.slow
def test_the_page_does_not_scroll_sideways_on_a_narrow_screen(visit: Visitor) -> None:
    paths = ("/", f"/tables/{TURNOVER}", "/tables/flows_between_states", "/tables/indicators", "/reference", "/nothing")
    with visit("/", width=320, refused=True) as visited:
        for path in paths:
            visited.open(path)
            visited.page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
            assert sideways(visited) == 0, path


def test_lines_can_be_copied(visit: Visitor) -> None:
    with visit("/tables/people", permissions=["clipboard-read", "clipboard-write"]) as visited:
        page = visited.page
        page.locator("#how-pyjstat summary").click()
        page.get_by_role("button", name="Copy the lines for Python, pyjstat").click()
        expect(page.locator("#announce")).to_have_text("Copied.")
        assert page.evaluate("navigator.clipboard.readText()") == page.locator("#lines-pyjstat").inner_text()


@pytest.mark.slow
def test_heads_of_a_long_table_stay_while_it_is_read(visit: Visitor) -> None:
    with visit("/tables/indicators") as visited:
        moved = visited.page.evaluate(
            """() => { const box = document.querySelector('.scroll.tall');
            const top = element => document.querySelector(element).getBoundingClientRect().top;
            box.scrollTop = 600;
            return [box.scrollTop, top('table.figures thead') - box.getBoundingClientRect().top]; }"""
        )
    assert moved[0] > 200
    assert abs(moved[1]) < 2


@pytest.mark.slow
def test_tables_are_found_while_the_words_are_written(visit: Visitor) -> None:
    with visit("/") as visited:
        page = visited.page
        field = page.get_by_label("Search titles and variables")
        field.press_sequentially("turnovr by stat")
        expect(page.locator("#result")).to_contain_text("These tables have “turnover by stat”")
        expect(field).to_be_focused()
        expect(page).to_have_url(re.compile(r"q=turnovr"))


@pytest.mark.slow
def test_a_chart_is_taken_along_as_a_picture(visit: Visitor) -> None:
    with visit(f"/tables/{TURNOVER}") as visited:
        page = visited.page
        page.locator("#downloads > summary").click()
        with page.expect_download() as download:
            page.get_by_role("button", name="PNG").click()
        assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
        assert download.value.suggested_filename == f"{TURNOVER}.png"


@pytest.mark.slow
def test_on_paper_no_column_is_lost_and_the_source_is_named(visit: Visitor) -> None:
    with visit(f"/tables/{TURNOVER}", width=700) as visited:
        page = visited.page
        shown = page.locator("table.figures tbody td").count()
        page.emulate_media(media="print")
        assert not page.locator("table.figures").is_visible()
        parts = page.locator("table.paper:visible")
        assert parts.locator("tbody td").count() == shown
        assert all("Mining" in text for text in parts.all_inner_texts())
        wide = page.evaluate("[...document.querySelectorAll('table.paper')].map(one => one.offsetWidth)")
        assert max(wide) <= 700
        expect(page.locator(".source")).to_contain_text("Source: Office.")
        expect(page.locator(".source")).to_contain_text(f"/tables/{TURNOVER}")


@pytest.mark.slow
def test_an_open_page_says_that_its_table_is_out_of_date(visit: Visitor) -> None:
    with visit("/tables/people") as visited:
        page = visited.page
        page.route("**/version", lambda route: route.fulfill(json={"version": "another"}))
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(page.get_by_text("New figures were published since this page was made.")).to_be_visible()
        page.evaluate(
            "() => { const own = fetch; window.caches_ = []; window.fetch = (address, options) => "
            "{ window.caches_.push(options.cache); return own(address, options); }; }"
        )
        page.get_by_role("link", name="Show the new figures").click()
        expect(page.locator("#outdated")).to_be_hidden()
        # Browsers may keep a page for minutes: the same address would show the figures of before.
        assert page.evaluate("window.caches_[0]") == "reload"


@pytest.mark.slow
def test_long_words_and_periods_stay_where_they_belong(browser: Browser) -> None:
    places = dimension("place", ("a", "b"), labels=("Rindfleischetikettierungsüberwachungsaufgabe" * 4, "b"))
    quarters = dimension("quarter", tuple(f"2025-Q{at}" for at in range(1, 5)), role="time")
    with (
        asking(make_app(catalogue_of(table(places, quarters)), Settings())) as client,
        visiting(browser, str(client.base_url), "/tables/made", width=360) as visited,
    ):
        page = visited.page
        over = "heads => heads.filter(head => head.scrollWidth > head.clientWidth + 1).map(head => head.textContent)"
        assert page.locator("table.figures th").evaluate_all(over) == []
        tall = page.locator("table.figures thead th", has_text="2025-Q").evaluate_all(
            "heads => heads.map(head => Math.round(head.getClientRects()[0].height))"
        )
        assert max(tall) < 50, "2025-Q1 stands in one line"
        # The form is folded, so that a telephone shows figures first; what it asks for is shown above it again.
        expect(page.locator("table.figures thead")).to_be_in_viewport()
        expect(page.get_by_role("button", name="Show the table")).to_be_hidden()
        page.locator("#build > summary").click()
        page.get_by_role("button", name="Show the table").click()
        expect(page.locator("#result-title")).to_be_focused()
        expect(page.get_by_role("button", name="Show the table")).to_be_hidden()


@pytest.mark.slow
def test_without_scripts_a_link_leads_past_the_form(browser: Browser) -> None:
    with (
        asking(make_app(catalogue_of(table(dimension("place", ("a", "b")))), Settings())) as client,
        visiting(browser, str(client.base_url), "/tables/made", width=360, java_script_enabled=False) as visited,
    ):
        expect(visited.page.get_by_role("button", name="Show the table")).to_be_visible()
        expect(visited.page.get_by_role("link", name="Skip to the table").last).to_be_in_viewport()


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        f"/tables/{TURNOVER}?chart=bars",
        f"/tables/{TURNOVER}?chart=matrix",
        f"/tables/{TURNOVER}?chart=ranking",
        "/tables/indicators",
        "/tables/links_between_states?chart=matrix",
        "/tables/jobs_by_place",
    ],
)
def test_no_label_of_a_chart_is_clipped(query: str, visit: Visitor) -> None:
    with visit(query) as visited:
        clipped = visited.page.evaluate(
            """() => { const chart = document.querySelector('svg.chart'), box = chart.getBoundingClientRect();
            return [...chart.querySelectorAll('text')].filter(text => { const own = text.getBoundingClientRect();
            return own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1
            || own.bottom > box.bottom + 1; }).map(text => text.textContent); }"""
        )
    assert clipped == []
