"""Groups of codes on the page: chosen in the form, summed exactly with errors of their own, or refused."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl

import httpx
import pytest
from playwright.sync_api import Browser, expect

from sfumato.serve.core.catalogue import BundleSource, Catalogue, open_catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.selection import read_groupings, select
from sfumato.serve.page.reading import read
from sfumato.serve.page.view import view_of
from tests.serve import patient
from tests.serve.page.browser import serious, visiting
from tests.serve.running import Server, serving

GROUPINGS = """
[[grouping]]
name = "halves"
dimension = "region"
label = "Halves"
groups = { north = { label = "Northern half", codes = ["N", "E"] }, south = { label = "South", codes = ["S"] } }
"""
HALVES = [("codelist[region]", "agg_halves"), ("valueCodes[contents]", "weighted,weighted_error")]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("groups") / "groupings.toml"
    path.write_text(GROUPINGS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def grouping(bundles: dict[str, Path], file: Path) -> Catalogue:
    return open_catalogue([BundleSource(folder=bundles["survey"])], groupings=read_groupings(file))


@pytest.fixture(scope="module")
def running(bundles: dict[str, Path], file: Path) -> Iterator[Server]:
    state = file.parent / "state"
    with serving(bundles["survey"], bundles["business"], "--groupings", file, "--state", state) as server:
        yield server


def test_a_group_has_the_exact_sum_of_its_codes_and_the_error_of_that_sum(grouping: Catalogue) -> None:
    table = grouping["people"]
    question = read(table, [*HALVES, ("totals", "1"), ("percent", "none")])
    view = view_of(question, question.selection())
    single = view_of(plain := read(table, [("valueCodes[region]", "*"), ("totals", "1"), HALVES[1]]), plain.selection())
    assert view.rows[0].texts == ("Northern half", "South", "Total of all 4")
    values, errors = single.values[:, 0, 0], single.values[:, 0, 1]
    assert view.values[:, 0, 0] == pytest.approx([values[0] + values[1], values[2], values[4]])
    asked = {"region": ["north", "south"], "contents": ["weighted_error"]}
    api = table.answer(select(table, asked, codelists={"region": "agg_halves"})).values()
    assert view.values[:, 0, 1] == pytest.approx([*api, errors[4]]), "the error of a sum is no sum of errors"


def test_groups_of_all_codes_have_the_plain_total(grouping: Catalogue) -> None:
    region = grouping["people"].dimensions[0]
    halves = region.groupings[0]
    assert {code for _, members in halves.groups.values() for code in members} != {*region.codes}
    question = read(grouping["people"], [("valueCodes[region]", "*"), ("totals", "1")])
    assert view_of(question, question.selection()).rows[0].texts[-1] == "Total"


def test_a_link_keeps_the_groups(grouping: Catalogue) -> None:
    table = grouping["people"]
    question = read(table, [*HALVES, ("valueCodes[region]", "north"), ("valueCodes[job]", "*"), ("stub", "job")])
    again = read(table, parse_qsl(question.query()))
    assert again.selection() == question.selection()
    assert again.query() == question.query()
    assert "codelist[region]=agg_halves" in httpx.QueryParams(question.query()).__str__().replace("%5B", "[").replace(
        "%5D", "]"
    )


@pytest.mark.parametrize(
    ("listed", "wanted", "ticked", "found"),
    [
        ("vs_people_region", "agg_halves", ["N", "W"], ("north", "south")),  # other codes were ticked: all groups
        ("agg_halves", "agg_halves", ["north"], ("north",)),
        ("agg_halves", "vs_people_region", ["north"], ("N", "E", "S", "W")),
        ("vs_people_region", "vs_people_region", ["N"], ("N",)),
    ],
)
def test_a_form_with_another_list_means_all_of_it(
    listed: str, wanted: str, ticked: list[str], found: tuple[str, ...], grouping: Catalogue
) -> None:
    table = grouping["people"]
    sent = [("at[region]", "rows"), ("listed[region]", listed), ("codelist[region]", wanted)]
    question = read(table, [*sent, *(("valueCodes[region]", code) for code in ticked)])
    assert table.answer(question.selection()).dimensions[0].codes == found


def test_what_cannot_be_grouped_is_refused_with_the_reason(catalogue: Catalogue) -> None:
    question = read(catalogue["turnover_by_state_industry"], [("codelist[state]", "agg_halves")])
    with pytest.raises(RefusedError, match="groups are for cubes, whose sums are exact"):
        question.selection()


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_a_person_groups_a_variable(scripts: bool, running: Server, browser: Browser) -> None:
    path = "/tables/people?valueCodes[region]=N,W&valueCodes[job]=*&stub=region&heading=job"
    with visiting(browser, running.url, path, java_script_enabled=scripts) as visited:
        page = visited.page
        heads = page.locator("table.figures tbody th")
        expect(heads).to_have_text(["N", "W"])
        page.get_by_label("Region, group by").select_option("Halves (2 groups)")
        if scripts:
            expect(page.locator("#cells")).to_have_text("12 figures")
            expect(page.get_by_text("All of the other list.")).to_be_hidden()  # folded up with the codes
        page.get_by_role("button", name="Show the table").click()
        expect(heads).to_have_text(["Northern half", "South"])
        expect(page.locator("#result")).to_contain_text("Region is grouped.")
        expect(page).to_have_url(re.compile("codelist%5Bregion%5D=agg_halves"))
        region = page.get_by_role("group", name="Region", exact=True)
        expect(region.locator("[data-count]")).to_have_text("2 of 2 selected")
        page.get_by_label("Region, group by").select_option("No groups (4 codes)")
        page.get_by_role("button", name="Show the table").click()
        expect(heads).to_have_text(["N", "E", "S", "W"])


@pytest.mark.slow
def test_downloads_and_lines_have_the_groups(running: Server) -> None:
    page = patient.get(f"{running.url}/tables/people", params=[*HALVES, ("valueCodes[region]", "*")]).text
    assert "code_list={&#34;region&#34;: &#34;agg_halves&#34;}" in page
    assert 'lines-pxweb"' not in page, "PxWebApi 1 knows no groups"
    parameters = [("outputFormat", "csv"), *HALVES, ("valueCodes[region]", "*")]
    data = patient.get(f"{running.url}/api/v2/tables/people/data", params=parameters).text
    assert "Northern half" in data or "north" in data


@pytest.mark.slow
def test_the_form_with_groups_has_no_serious_finding(running: Server, browser: Browser) -> None:
    path = "/tables/people?codelist[region]=agg_halves&totals=1"
    with visiting(browser, running.url, path, width=320, bypass_csp=True) as visited:
        assert serious(visited) == []
