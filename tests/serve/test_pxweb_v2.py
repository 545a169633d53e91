"""PxWebApi version 2 on the wire: lists, metadata, refusals, caching, saved queries."""

import json
from math import prod
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve import patient
from tests.serve.running import Server, serving


def refused(response: httpx.Response, status: int) -> dict[str, Any]:
    """The problem that a refusal comes with."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert {"type", "title", "detail", "instance"} <= problem.keys()
    return problem


def test_lists_come_in_pages(server: Server) -> None:
    first = server.get("/tables", pageSize="3").json()
    assert [first["page"][name] for name in ("pageNumber", "pageSize")] == [1, 3]
    assert first["page"]["totalPages"] == -(-first["page"]["totalElements"] // 3)
    second = server.get("/tables", pageSize="3", pageNumber="2").json()
    assert not {table["id"] for table in first["tables"]} & {table["id"] for table in second["tables"]}
    refused(server.get("/tables", pageNumber="99"), 404)
    refused(server.get("/tables", pageNumber="0"), 400)
    refused(server.get("/tables", pastDays="soon"), 400)
    assert server.get("/tables", query="no such word").json()["page"]["totalElements"] == 0


def test_a_table_names_its_variables_and_periods(server: Server) -> None:
    table = server.get("/tables/indicators").json()
    assert (table["firstPeriod"], table["lastPeriod"], table["timeUnit"]) == ("2010-Q1", "2011-Q2", "Quarterly")
    assert table["variableNames"] == ["State", "Agency", "Quarter", "Indicator", "Contents"]


def test_metadata_have_roles_units_and_the_guarantee(server: Server) -> None:
    found = server.get("/tables/flows_between_states/metadata").json()
    assert found["role"] == {"time": ["quarter"], "geo": ["origin_state", "destination_state"], "metric": ["contents"]}
    assert found["dimension"]["contents"]["category"]["unit"]["moves_of_workers"] == {
        "base": "moves of workers",
        "decimals": 0,
    }
    assert found["extension"]["px"]["tableid"] == "flows_between_states"
    assert "no formal guarantee" in found["extension"]["guarantee"][0]
    assert found["value"] is None, "the document of the interface wants the field"
    dimension = found["dimension"]["quarter"]["extension"]
    assert dimension["codelists"] == dimension["codeLists"] == [], "all codes are no list beside the variable"


def test_metadata_name_what_is_counted_and_whether_there_is_copyright(server: Server) -> None:
    counted = {"jobs_by_place": "Jobs", "turnover_by_state_industry": "Turnover, total", "people": "People"}
    for table, expected in counted.items():
        found = server.get(f"/tables/{table}/metadata").json()["extension"]
        assert found["px"]["contents"] == expected
        assert found["px"]["copyright"] is True
        assert found["license"] == "CC-BY-4.0"


def test_symbols_are_explained_in_a_note_where_they_occur(server: Server) -> None:
    chosen = {"state": "*", "industry": "*", "contents": "value"}
    found = server.data("turnover_by_state_industry", **chosen).json()
    (note,) = [note for note in found["note"] if note.startswith("Symbols: ")]
    symbols = {part for symbol in found["status"].values() for part in symbol.split()}
    assert all(f"{symbol} " in note for symbol in symbols)
    assert ".. not published" in note
    assert "Symbols: " in str(server.get("/tables/turnover_by_state_industry/metadata").json()["note"])
    exact = server.data("people", region="*", contents="count").json()
    assert ("status" in exact) == ("Symbols: " in str(exact["note"]))


@pytest.mark.parametrize(
    "path",
    ["/config", "/tables", "/tables/people", "/tables/people/metadata", "/tables/people/data?valueCodes[job]=*"],
)
def test_a_language_that_is_not_spoken_falls_back(path: str, server: Server) -> None:
    own = patient.get(f"{server.v2}{path}")
    other = patient.get(f"{server.v2}{path}{'&' if '?' in path else '?'}lang=sv")
    assert own.status_code == other.status_code == 200
    assert other.json() == own.json()


def test_suppressed_figures_are_null_and_say_why(server: Server) -> None:
    found = server.data("turnover_by_state_industry", state="*", industry="*", contents="value").json()
    marked = [place for place, value in enumerate(found["value"]) if value is None]
    assert marked
    assert {found["status"][str(place)] for place in marked} == {".."}
    assert found["extension"]["status"]["label"][".."].startswith("not published")


def test_get_and_post_give_the_same(server: Server) -> None:
    get = server.data("turnover_by_state_industry", state="top(2)", industry="A,range(C,E)", contents="value,rse")
    body = {
        "selection": [
            {"variableCode": "State", "valueCodes": ["top(2)"]},
            {"variableCode": "industry", "valueCodes": ["A", "C", "D", "E"]},
            {"variableCode": "CONTENTS", "valueCodes": ["rse", "value"]},
        ]
    }
    post = patient.post(f"{server.v2}/tables/turnover_by_state_industry/data", json=body)
    assert get.status_code == 200
    assert get.content == post.content
    assert get.json()["size"] == [2, 4, 2]


def test_the_default_selection_is_what_no_selection_gives(server: Server) -> None:
    selection = server.get("/tables/people/defaultselection").json()
    post = patient.post(f"{server.v2}/tables/people/data", json={"selection": selection["selection"]})
    unselected = server.get("/tables/people/data").json()
    part, *notes = unselected["note"]
    assert part == (
        f"This is a part: nothing was selected, and these are {len(unselected['value'])} of the "
        f"{prod(server.get('/tables/people/metadata').json()['size'])} figures of the table. Select codes of every "
        "dimension; * is all of them."
    )
    assert unselected["extension"].pop("noteMandatory") == {"0": True}
    described = post.json()
    assert described["extension"].pop("noteMandatory") == {}
    assert {**unselected, "note": notes} == described
    file = server.get("/tables/people/data", outputFormat="csv").headers["content-disposition"]
    assert 'filename="people.part.csv"' in file


def test_a_default_selection_that_is_the_whole_table_is_no_part(server: Server) -> None:
    found = server.get("/tables/jobs_by_place/data").json()
    assert prod(found["size"]) == prod(server.get("/tables/jobs_by_place/metadata").json()["size"])
    assert not any("part" in note for note in found["note"][:1])


def test_no_figure_has_the_code_that_pxweb_2_takes_for_a_single_value(server: Server) -> None:
    for table in server.get("/tables").json()["tables"]:
        found = server.get(f"/tables/{table['id']}/metadata").json()
        assert "value" not in found["dimension"]["contents"]["category"]["index"], table["id"]


def test_the_value_may_be_asked_for_by_the_name_it_has_in_the_bundle(server: Server) -> None:
    question = {"state": "*", "industry": "*"}
    own = server.data("turnover_by_state_industry", contents="turnover", **question)
    assert own.status_code == 200
    assert server.data("turnover_by_state_industry", contents="value", **question).json() == own.json()
    sent = {"selection": [{"variableCode": "place", "valueCodes": ["*"]}]}
    sent["selection"].append({"variableCode": "contents", "valueCodes": ["value"]})
    posted = patient.post(f"{server.v2}/tables/jobs_by_place/data", json=sent)
    assert posted.json() == server.data("jobs_by_place", place="*", contents="jobs").json()


def test_names_of_parameters_do_not_mind_the_case(server: Server) -> None:
    address = (
        f"{server.v2}/tables/JOBS_by_Place/data?VALUECODES[Place]=top(1)&OutputFormat=CSV&outputformatparams=usecodes"
    )
    response = patient.get(address)
    assert response.text.splitlines()[0] == '"place","jobs","error","low","high","establishments","status"'


def test_what_is_refused_says_what_was_expected(server: Server) -> None:
    assert "one of its dimensions" in refused(server.data("jobs_by_place", sex="1"), 400)["detail"]
    assert "such as P00001" in refused(server.data("jobs_by_place", place="nowhere"), 400)["detail"]
    assert "one of json-stat2" in refused(server.data("jobs_by_place", "docx", place="*"), 400)["detail"]
    assert "place_size" in refused(server.data("jobs_by_industry", industry="*"), 400)["detail"]
    refused(server.get("/tables/jobs_by_place/data", outputFormatParams="Loud"), 400)
    refused(server.get("/tables/jobs_by_place/data", heading="sex"), 400)
    refused(server.get("/tables/jobs_by_place/data", heading="place", stub="place"), 400)
    refused(server.get("/tables/nothing"), 404)
    refused(server.get("/tables/nothing/data"), 404)
    refused(server.get("/codelists/nothing"), 404)
    refused(server.get("/nowhere"), 404)
    refused(patient.delete(f"{server.v2}/tables/jobs_by_place"), 405)
    forbidden = patient.delete(f"{server.v2}/tables/jobs_by_place/data")
    refused(forbidden, 405)
    assert forbidden.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"selection": 5}',
        b'{"selection": [{"valueCodes": ["A"]}]}',
        b"[" * 100_000,
        b"\xff\xfe",
        b"null null",
    ],
)
def test_a_body_that_is_no_selection_is_refused(body: bytes, server: Server) -> None:
    address = f"{server.v2}/tables/jobs_by_place/data"
    refused(patient.post(address, content=body, headers={"Content-Type": "application/json"}), 400)


def test_a_body_that_is_too_long_is_refused(server: Server) -> None:
    address = f"{server.v2}/tables/jobs_by_place/data"
    refused(patient.post(address, content=b"x" * 1_000_001), 413)

    def pieces() -> Any:
        for _ in range(300):
            yield b" " * 10_000

    refused(patient.post(address, content=pieces(), headers={"Content-Type": "application/json"}), 413)
    assert server.get("/config").status_code == 200


def test_a_client_that_has_the_answer_gets_nothing_but_headers(server: Server) -> None:
    first = server.data("jobs_by_place", place="*")
    assert first.headers["cache-control"].startswith("public")
    again = patient.get(first.url, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = server.data("jobs_by_place", place="top(3)")
    assert other.headers["etag"] != first.headers["etag"]


def test_formats_say_what_they_are(server: Server) -> None:
    types = {
        "json-stat2": "application/json",
        "csv": "text/csv; charset=utf-8",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "html": "text/html; charset=utf-8",
        "px": "application/octet-stream",
        "json-px": "application/json",
        "parquet": "application/vnd.apache.parquet",
    }
    assert list(types) == server.get("/config").json()["dataFormats"]
    for name, media_type in types.items():
        response = server.data("jobs_by_place", name, place="top(1)")
        assert response.headers["content-type"] == media_type
        kind, _, file = response.headers["content-disposition"].partition("; ")
        assert kind == ("attachment" if name in ("csv", "xlsx", "px", "parquet") else "inline")
        assert file.startswith('filename="jobs_by_place.')


@pytest.mark.slow
def test_a_saved_query_survives_a_restart(bundles: dict[str, Path], tmp_path: Path) -> None:
    query = {
        "tableId": "people",
        "language": "en",
        "outputFormat": "csv",
        "outputFormatParams": ["UseCodes"],
        "selection": {"selection": [{"variableCode": "region", "valueCodes": ["top(2)"]}]},
    }
    with serving(bundles["survey"], "--state", tmp_path / "state") as server:
        saved = patient.post(f"{server.v2}/savedqueries", json=query)
        assert saved.status_code == 201
        name = saved.json()["id"]
        again = patient.post(f"{server.v2}/savedqueries", json=query)
        assert again.json()["id"] == name
        server.process.kill()
    with serving(bundles["survey"], "--state", tmp_path / "state") as server:
        assert server.get(f"/savedqueries/{name}").json() == saved.json()
        chosen = server.get(f"/savedqueries/{name}/selection").json()["selection"]
        assert chosen[0] == {"variableCode": "region", "valueCodes": ["N", "E"], "codelist": None, "outputValues": None}
        data = server.get(f"/savedqueries/{name}/data")
        assert (
            data.text
            == server.get(
                "/tables/people/data",
                **{"valueCodes[region]": "N,E", "outputFormat": "csv", "outputFormatParams": "UseCodes"},
            ).text
        )
        wished = server.get(f"/savedqueries/{name}/data", outputFormat="json-stat2").json()
        assert wished["dimension"]["region"]["category"]["label"] == {"N": "N", "E": "E"}


@pytest.mark.parametrize("name", ["nothing", "..%2F..%2Fetc%2Fpasswd", "0" * 24, "%00"])
def test_a_query_that_nobody_saved_is_not_found(name: str, server: Server) -> None:
    for path in ("", "/data", "/selection"):
        refused(patient.get(f"{server.v2}/savedqueries/{name}{path}"), 404)


def test_a_query_without_an_answer_is_not_saved(server: Server) -> None:
    query = {"tableId": "jobs_by_place", "selection": {"selection": [{"variableCode": "sex", "valueCodes": ["1"]}]}}
    refused(patient.post(f"{server.v2}/savedqueries", json=query), 400)
    refused(patient.post(f"{server.v2}/savedqueries", json={**query, "tableId": "nothing"}), 404)
    refused(patient.post(f"{server.v2}/savedqueries", json={}), 400)


@pytest.mark.slow
def test_more_cells_than_the_limit_are_refused(bundles: dict[str, Path], tmp_path: Path) -> None:
    with serving(bundles["jobs"], "--state", tmp_path / "state", "--most-cells", "100") as server:
        assert server.get("/config").json()["maxDataCells"] == 100
        problem = refused(server.data("jobs_by_place", place="*"), 403)
        assert "at most 100 cells; found 250" in problem["detail"]
        assert server.data("jobs_by_place", place="*", contents="value").status_code == 200


@pytest.mark.slow
def test_groups_of_codes_are_a_code_list(bundles: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "groupings.toml"
    file.write_text(
        '[[grouping]]\nname = "ends"\ndimension = "job"\nlabel = "Ends"\n'
        'groups = { outer = { label = "a and c", codes = ["a", "c"] } }\n',
        encoding="utf-8",
    )
    with serving(bundles["survey"], "--groupings", file, "--state", tmp_path / "state") as server:
        codelist = server.get("/codelists/agg_ends").json()
        assert codelist["values"] == [{"code": "outer", "label": "a and c", "valueMap": ["a", "c"]}]
        parameters = {"codelist[job]": "agg_ends", "valueCodes[contents]": "count"}
        (grouped,) = server.get("/tables/people/data", **parameters).json()["value"]
        parts = server.data("people", job="a,c", contents="count").json()["value"]
        assert grouped == pytest.approx(sum(parts))
        posted = patient.post(
            f"{server.v2}/tables/people/data",
            json={
                "selection": [
                    {"variableCode": "job", "valueCodes": ["outer"], "codelist": "agg_ends"},
                    {"variableCode": "contents", "valueCodes": ["count"]},
                ]
            },
        )
        assert posted.json()["value"] == [grouped]
        refused(server.get("/tables/people/data", **{"codelist[job]": "agg_nothing"}), 400)


def test_the_openapi_document_describes_every_path_and_problem(server: Server) -> None:
    document = patient.get(f"{server.url}/openapi.json").json()
    assert {
        "/api/v2/tables/{id}/data",
        "/api/v2/savedqueries/{id}/selection",
        "/api/v1/{language}/{database}/{id}",
    } <= set(document["paths"])
    for operations in document["paths"].values():
        for operation in operations.values():
            assert operation["description"]
            for status, response in operation["responses"].items():
                if status >= "4":
                    assert list(response["content"]) == ["application/problem+json"]
    assert "422" not in json.dumps(document)
