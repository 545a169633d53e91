"""Saved queries: what has no answer is not kept, and what is asked of those that are kept is heard."""

from typing import Any

import httpx
import pytest

from tests.serve import patient
from tests.serve.running import Server


def saved(server: Server, selection: list[dict[str, Any]]) -> httpx.Response:
    body = {"tableId": "jobs_by_place_industry", "selection": {"selection": selection}, "language": "en"}
    return patient.post(f"{server.v2}/savedqueries", json=body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"selection": [{"variableCode": "", "valueCodes": []}]}',
        b'{"selection": [{"variableCode": "town"}]}',
        b'{"selection": [{"variableCode": "town", "codelist": "vs_town"}]}',
        b'{"selection": [{"variableCode": "place", "valueCodes": ["*"]}, {"variableCode": "town"}]}',
        b'{"selection": [], "placement": {"stub": ["town"]}}',
        b'{"selection": [], "placement": {"stub": ["place"], "heading": ["place"]}}',
        b'{"selection": [{"variableCode": "place", "valueCodes": ["*"]}, {"variableCode": "ownership", "valueCodes": ["*"]}]}',  # noqa: E501 — as it is sent
    ],
)
def test_what_has_no_answer_is_not_kept(server: Server, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    content = b'{"tableId": "jobs_by_place_industry", "selection": ' + body + b"}"
    kept = patient.post(f"{server.v2}/savedqueries", content=content, headers=headers)
    asked = patient.post(f"{server.v2}/tables/jobs_by_place_industry/data", content=body, headers=headers)
    assert kept.status_code == asked.status_code == 400, kept.text
    assert kept.json()["detail"] == asked.json()["detail"]


def test_one_question_is_kept_once_however_it_is_written(server: Server) -> None:
    ways: list[dict[str, Any]] = [
        {"tableId": "people", "language": "en", "outputFormat": "csv", "outputFormatParams": ["UseCodes"]},
        {"tableId": "people", "language": "SV", "outputFormat": "CSV", "outputFormatParams": [" usecodes", ""]},
    ]
    placed = [{"stub": ["region"], "heading": ["contents"]}, {"stub": ["REGION"] * 100, "heading": ["Contents"]}]
    chosen = [{"variableCode": "region", "valueCodes": ["*"]}]
    (name,) = {
        patient.post(
            f"{server.v2}/savedqueries", json={**way, "selection": {"selection": chosen, "placement": place}}
        ).json()["id"]
        for way, place in zip(ways, placed, strict=True)
    }
    assert patient.get(f"{server.v2}/savedqueries/{name}/data").text.startswith('"region",')


def test_what_is_asked_of_a_saved_query_is_heard_or_refused(server: Server) -> None:
    chosen = {"selection": [{"variableCode": "region", "valueCodes": ["*"]}], "placement": {"stub": ["contents"]}}
    kept = patient.post(
        f"{server.v2}/savedqueries", json={"tableId": "people", "selection": chosen, "outputFormat": "csv"}
    )
    address = f"{server.v2}/savedqueries/{kept.json()['id']}/data"
    first = [
        patient.get(f"{address}?{words}").text.split(",")[0]
        for words in ("", "outputFormatParams=UseCodes", "heading=contents&outputFormatParams=UseCodes")
    ]
    assert first == ['"Contents"', '"contents"', '"region"']
    for words in ("heading=town", "valueCodes[region]=N", "codelist[region]=vs_people_region"):
        assert patient.get(f"{address}?{words}").status_code == 400, words


@pytest.mark.parametrize(
    "query",
    ["valueCodes=N", "valueCode[region]=N", "valueCodes[town]=", "codelist=x", "outputValues[region]=some", "a[b]=c"],
)
def test_a_selection_that_is_misspelt_is_refused(server: Server, query: str) -> None:
    assert patient.get(f"{server.v2}/tables/people/data?{query}").status_code == 400


def test_nothing_is_selected_both_in_the_address_and_in_the_body(server: Server) -> None:
    body = {"selection": [{"variableCode": "region", "valueCodes": ["N"]}]}
    asked = patient.post(f"{server.v2}/tables/people/data?valueCodes[job]=a", json=body)
    assert asked.status_code == 400


def test_parameters_are_checked_also_where_those_of_the_query_are_used(server: Server) -> None:
    everything = [{"variableCode": name, "valueCodes": ["top(1)"]} for name in ("place", "industry", "ownership")]
    kept = saved(server, everything)
    assert kept.status_code == 201, kept.text
    address = f"{server.v2}/savedqueries/{kept.json()['id']}/data"
    assert patient.get(address).status_code == 200
    assert patient.get(address, params={"outputFormatParams": "Loudly"}).status_code == 400
