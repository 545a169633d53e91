"""What PxWeb 2 sends and reads, without its build: its requests, and the table that a reader would see, made alike.

Seen in its sources and on the wire of version 2.10: `tests.serve.page.test_pxweb2` shows the same in a browser.
"""

from itertools import product
from math import prod
from typing import Any

import pytest

from tests.serve import patient
from tests.serve.running import Server

TABLES = ("jobs_by_place", "jobs_by_industry", "turnover_by_state_industry", "flows_between_states", "people")


def get(server: Server, path: str, language: str = "en") -> dict[str, Any]:
    """A request of its client: it accepts JSON and names the language of the reader."""
    joined = "&" if "?" in path else "?"
    response = patient.get(f"{server.v2}{path}{joined}lang={language}", headers={"Accept": "application/json"})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def rendered(dataset: dict[str, Any]) -> dict[tuple[str, ...], str]:
    """The text of every cell by its codes: the figure and its status side by side, as the application has it."""
    codes = [list(dataset["dimension"][name]["category"]["index"]) for name in dataset["id"]]
    status = dataset.get("status", {})
    return {
        key: ("" if value is None else f"{value}") + status.get(str(at), "")
        for at, (key, value) in enumerate(zip(product(*codes), dataset["value"], strict=True))
    }


@pytest.mark.parametrize("language", ["en", "sv", "no", "ar"])
def test_the_list_of_tables_has_what_the_filters_need(language: str, server: Server) -> None:
    found = get(server, "/tables?includeDiscontinued=true&pageNumber=1&pageSize=10000", language)
    assert found["page"]["totalPages"] == 1
    units = {table["id"]: table["timeUnit"] for table in found["tables"]}
    assert units["flows_between_states"] == "Quarterly"
    assert set(units.values()) <= {"Annual", "Quarterly", "Monthly", "Other"}
    for table in found["tables"]:
        assert table["variableNames"]
        assert table["paths"][0][0]["label"]
        assert int(table["firstPeriod"][:4]) <= int(table["lastPeriod"][:4])


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_selected_and_shown_as_the_application_does(name: str, server: Server) -> None:
    described = get(server, f"/tables/{name}/metadata?defaultSelection=true&savedQuery=", "sv")
    assert get(server, f"/tables/{name}", "sv")["paths"]
    chosen = get(server, f"/tables/{name}/defaultselection", "sv")
    for variable in chosen["selection"]:
        known = described["dimension"][variable["variableCode"]]["category"]["index"]
        assert set(variable["valueCodes"]) <= set(known)
    px = described["extension"]["px"]
    assert set(px["stub"]) | set(px["heading"]) == set(described["dimension"]), "each is in rows or in columns"
    assert px["contents"] not in ("", described["label"]), "its title is made of what is counted and by what"
    assert isinstance(px["aggregallowed"], bool)
    for dimension in described["dimension"].values():
        labels = [one["label"] for one in dimension["extension"].get("codelists", ())]
        assert dimension["label"] not in labels, "no list to choose that is the variable itself"
    sent = [{"variableCode": v["variableCode"], "valueCodes": v["valueCodes"]} for v in chosen["selection"]]
    answer = patient.post(
        f"{server.v2}/tables/{name}/data?lang=sv&outputFormat=json-stat2",
        json={"selection": sent, "placement": chosen["placement"]},
        headers={"Accept": "application/json"},
    ).json()
    cells = rendered(answer)
    assert len(cells) == prod(answer["size"])
    assert all(cells.values()), "a figure, or a symbol in its place"
    symbols = {part for text in answer.get("status", {}).values() for part in text.split()}
    said = " ".join(answer["note"])
    assert all(f"{symbol} " in said for symbol in symbols), "what stands beside figures is explained"
    contents = answer["role"]["metric"][0]
    assert "value" not in answer["dimension"][contents]["category"]["index"], "the application would show nothing"


@pytest.mark.parametrize("format", ["xlsx", "csv", "px", "json-stat2", "html", "parquet"])
def test_what_is_shown_can_be_saved_and_its_query_kept(format: str, server: Server) -> None:  # noqa: A002
    chosen = get(server, "/tables/jobs_by_place/defaultselection")
    body = {"selection": chosen["selection"], "placement": chosen["placement"]}
    saved = patient.post(f"{server.v2}/tables/jobs_by_place/data?lang=en&outputFormat={format}", json=body)
    assert saved.status_code == 200
    assert "filename=" in saved.headers["content-disposition"]
    kept = patient.post(
        f"{server.v2}/savedqueries",
        json={"tableId": "jobs_by_place", "selection": body, "language": "sv", "outputFormat": format},
    )
    assert kept.status_code == 201
    name = kept.json()["id"]
    assert get(server, f"/savedqueries/{name}")["savedQuery"]["tableId"] == "jobs_by_place"
    assert get(server, f"/savedqueries/{name}/selection")["selection"]
    assert patient.get(f"{server.v2}/savedqueries/{name}/data").content == saved.content
