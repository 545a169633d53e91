"""PxWebApi version 1, as R's pxweb asks it."""

import json
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest
from pyjstat import pyjstat

from sfumato.serve.pxweb.v1 import FORMATS
from tests.serve import patient
from tests.serve.running import Server, serving
from tests.serve.test_pxweb_v2 import refused


@pytest.mark.parametrize("prefix", ["/api", "/api/v1", "/api/v1/en", "/api/v1/en/tables", "/api/v1/en/tables/people"])
def test_the_configuration_is_found_at_every_level(prefix: str, server: Server) -> None:
    found = patient.get(f"{server.url}{prefix}?config").json()
    assert all(found[name] >= 1 for name in ("maxValues", "maxCalls", "timeWindow", "CORS"))


def test_folders_lead_to_tables(server: Server) -> None:
    (database,) = patient.get(f"{server.url}/api/v1/en").json()
    listed = patient.get(f"{server.url}/api/v1/en/{database['dbid']}").json()
    assert {"id": "people", "type": "t"}.items() <= next(one for one in listed if one["id"] == "people").items()
    found = patient.get(f"{server.url}/api/v1/en/{database['dbid']}/indicators").json()
    assert [variable["code"] for variable in found["variables"]][-1] == "contents"
    assert [variable["code"] for variable in found["variables"] if variable.get("time")] == ["quarter"]
    assert all(len(variable["values"]) == len(variable["valueTexts"]) for variable in found["variables"])


def ask(server: Server, table: str, *query: dict[str, Any], **response: str) -> httpx.Response:
    """Send a question as R does: without a content type."""
    body = json.dumps({"query": list(query), "response": response})
    request = httpx.Request("POST", f"{server.url}/api/v1/en/tables/{table}", content=body)
    assert "content-type" not in request.headers
    with httpx.Client(timeout=patient.PATIENCE) as client:
        return client.send(request)


def item(code: str, *values: str, filter: str = "item") -> dict[str, Any]:  # noqa: A002
    return {"code": code, "selection": {"filter": filter, "values": list(values)}}


def test_rows_have_keys_and_values_as_texts(server: Server, bundles: dict[str, Path]) -> None:
    contents = item("contents", "value", "rse")
    found = ask(
        server, "turnover_by_state_industry", item("state", "*", filter="all"), item("industry", "A", "B"), contents
    )
    content = found.json()
    assert [(column["code"], column["type"]) for column in content["columns"]] == [
        ("state", "d"),
        ("industry", "d"),
        ("turnover", "c"),
        ("rse", "c"),
    ]
    rows = pq.read_table(bundles["business"] / "tables/turnover_by_state_industry.parquet").to_pylist()
    expected = {
        (row["state"], row["industry"]): [".." if row[name] is None else str(row[name]) for name in ("value", "rse")]
        for row in rows
        if row["industry"] in ("A", "B")
    }
    assert {tuple(row["key"]): row["values"] for row in content["data"]} == expected
    assert any("not published" in row.get("comment", "") for row in content["data"])


def test_the_top_is_the_latest_and_what_is_left_out_is_summed_away(server: Server) -> None:
    found = ask(server, "flows_between_states", item("quarter", "1", filter="top"), item("origin_state", "VA")).json()
    assert {row["key"][2] for row in found["data"]} == {"2011-Q2"}
    assert len(found["data"]) == 51
    (only,) = ask(server, "people", item("contents", "count")).json()["data"]
    assert only["key"] == []


@pytest.mark.filterwarnings("ignore:Shouldn't use this function anymore:DeprecationWarning")  # pyjstat's own
def test_json_stat_is_the_first_version_of_what_version_2_answers(server: Server) -> None:
    query = (item("job", "a", "b"), item("contents", "weighted"))
    first = ask(server, "people", *query, format="json-stat").json()
    frame = pyjstat.from_json_stat(first)[0]
    chosen = "valueCodes[job]=a,b&valueCodes[contents]=weighted"
    second = patient.get(f"{server.url}/api/v2/tables/people/data?{chosen}").json()
    assert frame["value"].tolist() == second["value"]


def test_px_and_csv_are_those_of_version_2(server: Server) -> None:
    query = (item("job", "a", "b"), item("contents", "weighted"))
    chosen = "valueCodes[job]=a,b&valueCodes[contents]=weighted"
    for name in ("px", "csv"):
        second = patient.get(f"{server.url}/api/v2/tables/people/data?{chosen}&outputFormat={name}")
        assert ask(server, "people", *query, format=name).content == second.content


@pytest.mark.parametrize("name", ["json-stat2", "xlsx", "sdmx", "docx"])
def test_formats_that_version_1_does_not_have_are_refused_by_name(name: str, server: Server) -> None:
    response = ask(server, "people", format=name)
    refused(response, 400)
    assert "response.format: Input should be 'json', 'json-stat', 'px' or 'csv'" in response.json()["detail"]


@pytest.mark.parametrize(
    "body", ["", "[]", "{", '{"query": 5}', '{"query": [5]}', '{"response": {"format": []}}', "[" * 99_999]
)
def test_a_body_that_is_no_question_is_refused(body: str, server: Server) -> None:
    refused(patient.post(f"{server.url}/api/v1/en/tables/people", content=body), 400)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"selection": []}, "selection, which is unknown"),
        ({"query": [], "language": "en"}, "language, which is unknown"),
        ({"query": [item("job", "a") | {"codelist": "x"}]}, "query.0.codelist, which is unknown"),
        ({"query": [{"code": "job", "selection": {"filter": "item", "valueCodes": ["a"]}}]}, "valueCodes"),
        ({"query": [], "response": {"format": "json", "params": []}}, "response.params, which is unknown"),
        ({"query": None}, "query: "),
        ({"response": None}, "response: "),
        ({"query": [{"code": "job"}]}, "query.0.selection: Field required"),
        ({"query": [item("job", "a"), item("JOB", "b")]}, "found JOB"),
        ({"query": [item("job", "1", "2", filter="top")]}, "one number"),
        ({"query": [item("job", "a", filter="item:x")]}, "found item:x"),
        ({"query": [item("job", "a", filter="agg:")]}, "found agg:"),
    ],
)
def test_nothing_of_a_question_is_ignored(body: dict[str, Any], named: str, server: Server) -> None:
    response = patient.post(f"{server.url}/api/v1/en/tables/people", json=body)
    refused(response, 400)
    assert named in response.json()["detail"]


@pytest.mark.slow
def test_every_format_tells_the_log_what_was_asked(bundles: dict[str, Path], tmp_path: Path) -> None:
    chosen = [item(name, "*", filter="all") for name in ("region", "job", "level")]
    with serving(bundles["survey"], "--state", tmp_path / "state") as server:
        for name in FORMATS:
            assert ask(server, "people", *chosen, format=name).status_code == 200
    lines = (tmp_path / "state/audit/public.jsonl").read_text().splitlines()
    assert len(lines) == len(FORMATS)
    assert {json.dumps(json.loads(line)["asked"]) for line in lines} == {
        json.dumps(dict.fromkeys(("region", "job", "level", "contents"), "*"))
    }


def test_what_does_not_exist_is_refused(server: Server) -> None:
    refused(ask(server, "nothing"), 404)
    refused(patient.get(f"{server.url}/api/v1/en/elsewhere"), 404)
    refused(patient.get(f"{server.url}/api/v1/sv"), 400)
    refused(ask(server, "people", item("job", "a", filter="median")), 400)


def test_all_codes_are_meant_where_none_are_named(server: Server) -> None:
    named, unnamed = (ask(server, "people", item("region", *codes, filter="all")) for codes in (("*",), ()))
    assert len(named.json()["data"]) > 1
    assert unnamed.json()["data"] == named.json()["data"]
