"""Saved queries: what selects nothing is left out, and what is no parameter is refused."""

from typing import Any

import httpx

from tests.serve.running import Server


def saved(server: Server, selection: list[dict[str, Any]]) -> httpx.Response:
    body = {"tableId": "jobs_by_place_industry", "selection": {"selection": selection}, "language": "en"}
    return httpx.post(f"{server.v2}/savedqueries", json=body)


def test_a_variable_without_a_name_or_codes_selects_nothing(server: Server) -> None:
    empty = saved(server, [{"variableCode": "", "valueCodes": []}])
    assert empty.status_code == saved(server, []).status_code < 500


def test_parameters_are_checked_also_where_those_of_the_query_are_used(server: Server) -> None:
    everything = [{"variableCode": name, "valueCodes": ["top(1)"]} for name in ("place", "industry", "ownership")]
    kept = saved(server, everything)
    assert kept.status_code == 201, kept.text
    address = f"{server.v2}/savedqueries/{kept.json()['id']}/data"
    assert httpx.get(address).status_code == 200
    assert httpx.get(address, params={"outputFormatParams": "Loudly"}).status_code == 400
