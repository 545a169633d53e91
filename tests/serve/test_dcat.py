"""The catalogue for portals and search engines: the same statements in every format, with what DCAT-AP requires."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from lxml import etree

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.dcat.catalogue import schema_org
from sfumato.serve.dcat.graph import Address, Literal, Thing, write_json_ld, write_rdf_xml, write_turtle
from tests.serve import patient
from tests.serve.in_thread import asking
from tests.serve.running import Server

URL = "https://tables.example.org"
TYPES = {"jsonld": "application/ld+json", "turtle": "text/turtle", "rdfxml": "application/rdf+xml"}
REQUIRED = {
    "dcat:Catalog": {"dct:title", "dct:description", "dct:publisher", "dcat:dataset"},
    "dcat:Dataset": {"dct:title", "dct:description"},
    "dcat:Distribution": {"dcat:accessURL"},
    "dcat:DataService": {"dct:title", "dcat:endpointURL"},
}
"""What DCAT-AP says that each has to have."""


@pytest.fixture(scope="module")
def client(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    said: dict[str, Any] = {"url": URL, "source": "Office <of> figures", "license": "CC-BY-4.0"}
    settings = Settings(state=tmp_path_factory.mktemp("state"), **said)
    with asking(make_app(catalogue, settings)) as found:
        yield found


def graph(client: httpx.Client, path: str = "/catalog") -> dict[str, list[dict[str, Any]]]:
    """Everything that is described, by what it is."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in client.get(path).json()["@graph"]:
        found.setdefault(one["@type"], []).append(one)
    return found


def test_everything_has_what_dcat_ap_requires(client: httpx.Client, catalogue: Catalogue) -> None:
    found = graph(client)
    for kind, names in REQUIRED.items():
        assert found[kind]
        assert all(names <= one.keys() for one in found[kind]), kind
    (listed,) = found["dcat:Catalog"]
    datasets = {one["@id"] for one in found["dcat:Dataset"]}
    assert datasets == {one["@id"] for one in listed["dcat:dataset"]} == {f"{URL}/catalog/{t.id}" for t in catalogue}
    distributions = {one["@id"] for one in found["dcat:Distribution"]}
    assert distributions == {one["@id"] for each in found["dcat:Dataset"] for one in each["dcat:distribution"]}
    assert found["dct:LicenseDocument"][0]["@id"] == "https://creativecommons.org/licenses/by/4.0/"


def test_a_table_says_when_it_is_about_and_how_it_can_be_had(client: httpx.Client) -> None:
    found = graph(client, "/catalog/flows_between_states")
    (dataset,) = found["dcat:Dataset"]
    assert dataset["dct:temporal"][0]["dcat:startDate"] == [{"@value": "2010-01-01", "@type": "xsd:date"}]
    assert dataset["dct:temporal"][0]["dcat:endDate"] == [{"@value": "2011-06-30", "@type": "xsd:date"}]
    assert dataset["dct:accrualPeriodicity"][0]["@id"].endswith("/QUARTERLY")
    for one in found["dcat:Distribution"]:
        ((address,), (media,)) = one["dcat:downloadURL"], one["dcat:mediaType"]
        answer = client.get(address["@id"].removeprefix(URL))
        assert answer.status_code == 200, address
        assert media["@id"].endswith(answer.headers["content-type"].split(";")[0])


def test_one_address_has_every_format(client: httpx.Client) -> None:
    for name, media_type in TYPES.items():
        named = client.get("/catalog", params={"format": name})
        accepted = client.get("/catalog", headers={"Accept": f"text/html;q=0.3, {media_type};q=0.9"})
        assert named.headers["content-type"].split(";")[0] == media_type
        assert accepted.content == named.content
        assert "Accept" in named.headers["vary"].split(", ")
        assert named.headers["access-control-allow-origin"] == "*"
    assert client.get("/catalog", headers={"Accept": "*/*"}).headers["content-type"] == TYPES["jsonld"]
    refused = client.get("/catalog", params={"format": "n3"})
    assert (refused.status_code, "one of jsonld" in refused.json()["detail"]) == (400, True)
    assert client.get("/catalog/nothing").status_code == 404


ODD = 'a "quoted" \\ text\nwith <tags> & \u2028, \x01 and \ud800'


def test_what_is_larger_than_one_answer_is_offered_as_it_can_be_had(catalogue: Catalogue, tmp_path: Path) -> None:
    with asking(make_app(catalogue, Settings(state=tmp_path, most_cells=500, calls=0))) as client:
        for name in ("jobs_by_place_industry", "people"):
            dataset = client.get(f"/catalog/{name}?format=schema.org").json()
            offered = {one["name"]: one for one in dataset["distribution"]}
            assert ("xlsx" in offered) is (name == "people")
            assert {"csv", "SDMX-ML"} <= set(offered)
            assert ("tables/jobs_by_place_industry.parquet" in offered) is (name != "people")
            for one in offered.values():
                answer = client.get(one["contentUrl"].removeprefix(str(client.base_url).rstrip("/")))
                assert answer.status_code == 200, one
                assert answer.headers["content-type"].split(";")[0] == one["encodingFormat"]


@pytest.mark.parametrize(
    ("period", "span"),
    [
        ("2025", "2025-01-01/2025-12-31"),
        ("2010-2011", "2010-01-01/2011-12-31"),
        ("2026-Q1 to 2026-Q3", "2026-01-01/2026-09-30"),
        ("2024-02 – 2024-02", None),
        ("a winter", None),
        ("2011-2010", None),
    ],
)
def test_a_period_of_several_years_is_one_too(period: str, span: str | None, catalogue: Catalogue) -> None:
    table = replace(catalogue["jobs_by_place"], period=period)
    assert schema_org(table, Settings(), "").get("temporalCoverage") == span


def test_hostile_texts_stay_texts() -> None:
    things = [
        Thing(
            kind="dcat:Dataset",
            address='https://x.example/a b"><script>',
            said=[("dct:title", Literal(text=ODD, language="en")), ("dcat:theme", Address(address='x">\n'))],
        )
    ]
    (found,) = json.loads(write_json_ld(things))["@graph"]
    assert found["@id"] == "https://x.example/a%20b%22%3E%3Cscript%3E"
    document = etree.fromstring(write_rdf_xml(things))
    assert len(document.findall(".//{*}title")) == 1
    assert "<tags>" in (document.findtext(".//{*}title") or "")
    turtle = write_turtle(things).decode()
    assert "\n@prefix" in turtle
    assert '\\"quoted\\"' in turtle
    assert "<script>" not in turtle


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # rdflib's own
def test_the_formats_say_the_same(client: httpx.Client) -> None:
    rdflib = pytest.importorskip("rdflib", reason="pip install rdflib to compare graphs")
    from rdflib.compare import isomorphic

    graphs = []
    for name, reader in (("jsonld", "json-ld"), ("turtle", "turtle"), ("rdfxml", "xml")):
        content = client.get("/catalog", params={"format": name}).text
        graphs.append(rdflib.Graph().parse(data=content, format=reader))
    assert len(graphs[0]) > 1_000
    assert isomorphic(graphs[0], graphs[1])
    assert isomorphic(graphs[0], graphs[2])


def test_search_engines_find_a_data_set_in_the_head_of_a_page(client: httpx.Client) -> None:
    page = etree.HTML(client.get("/tables/people").text)
    (text,) = page.xpath("//head/script[@type='application/ld+json']/text()")
    found = json.loads(text)
    assert found == client.get("/catalog/people", params={"format": "schema.org"}).json()
    assert found["@type"] == "Dataset"
    assert 50 <= len(found["description"]) <= 5_000
    assert found["publisher"]["name"] == "Office <of> figures"
    assert {one["encodingFormat"] for one in found["distribution"]} >= {"text/csv", "application/vnd.apache.parquet"}
    listed = client.get("/catalog", params={"format": "schema.org"}).json()
    assert listed["@type"] == "DataCatalog"
    assert found["@id"] in {one["@id"] for one in listed["dataset"]}


def test_without_an_address_of_its_own_the_one_that_was_asked_counts(server: Server) -> None:
    found = patient.get(f"{server.url}/catalog").json()["@graph"]
    assert found[0]["@id"] == f"{server.url}/catalog"
