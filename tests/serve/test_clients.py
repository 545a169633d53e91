"""Unmodified programs of others get the figures of the bundle."""

import io
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pxweb import PxApi
from pyjstat import pyjstat

from sfumato.bundle.read import open_cube
from tests.serve.running import Server

Rows = dict[tuple[str, ...], Any]


@pytest.fixture(scope="module")
def api(server: Server) -> PxApi:
    return PxApi(server.v2)


def published(bundle: Path, table: str, *by: str, column: str = "value") -> Rows:
    found = pq.read_table(bundle / f"tables/{table}.parquet")
    keys = zip(*(found[name].to_pylist() for name in by), strict=True)
    return dict(zip(keys, found[column].to_pylist(), strict=True))


def rows(answer: list[dict[str, Any]], *labels: str) -> Rows:
    return {tuple(row[label] for label in labels): row["value"] for row in answer}


def test_pxwebpy_finds_the_tables(api: PxApi) -> None:
    ids = [table["id"] for table in api.all_tables()]
    assert api.number_of_tables == len(ids)
    assert {"jobs_by_place", "turnover_by_state_industry", "indicators", "people"} <= set(ids)
    assert [table["id"] for table in api.search("turnover_by STATE", past_days=2)["tables"]] == [
        "turnover_by_state_industry"
    ]
    assert api.get_paths()
    assert [t["id"] for t in api.tables_on_path("a-survey")] == ["people"]


@pytest.mark.parametrize("column", ["value", "rse", "low"])
def test_pxwebpy_gets_the_whole_table(column: str, api: PxApi, bundles: dict[str, Path]) -> None:
    answer = api.get_table_data(
        "turnover_by_state_industry", {"state": ["*"], "industry": ["*"], "contents": [column]}, show="code"
    )
    expected = published(bundles["business"], "turnover_by_state_industry", "state", "industry", column=column)
    assert rows(answer, "State", "Industry") == expected


def test_pxwebpy_gets_everything_and_the_default(api: PxApi, bundles: dict[str, Path]) -> None:
    answer = api.get_table_data_all("jobs_by_place", show="code")
    values = rows([row for row in answer if row["Contents"] == "jobs"], "Place")
    assert values == published(bundles["jobs"], "jobs_by_place", "place")
    assert rows(api.get_table_data("jobs_by_place", show="code"), "Place", "Contents") == rows(
        answer, "Place", "Contents"
    )


def test_pxwebpy_is_told_which_variables_may_be_left_out(api: PxApi) -> None:
    business = api.get_table_variables("turnover_by_state_industry")
    assert [business[name]["elimination"] for name in ("state", "industry", "contents")] == [True, True, False]
    jobs = api.get_table_variables("jobs_by_industry")
    assert not any(variable["elimination"] for variable in jobs.values())
    assert jobs["industry"].get("codelists", []) == [], "all codes are no list beside the variable"
    codes = [value["code"] for value in api.get_code_list("vs_jobs_by_industry_industry")["values"]]
    assert codes == list(jobs["industry"]["category"]["label"])
    with_list = {"industry": ["*"], "place_size": ["*"], "contents": ["value"]}
    answer = api.get_table_data("jobs_by_industry", with_list, code_list={"industry": "vs_jobs_by_industry_industry"})
    assert len(answer) == len(codes) * len(jobs["place_size"]["category"]["label"])


def test_a_question_that_pxwebpy_splits_has_the_same_answer(api: PxApi, server: Server) -> None:
    small = PxApi(server.v2, disable_cache=True)
    small._client.configuration = {**small._client.configuration, "maxDataCells": 97}
    asked: dict[str, list[str] | str] = {
        "state": ["*"],
        "agency": ["*"],
        "quarter": ["2010-Q2", "2010-Q3"],
        "indicator": ["employment", "payroll"],
        "contents": ["value"],
    }
    names = ("State", "Agency", "Quarter", "Indicator")
    some = asked | {"state": ["A*", "C*"]}
    assert rows(small.get_table_data("indicators", some, show="code"), *names) == rows(
        api.get_table_data("indicators", some, show="code"), *names
    )


def test_pxwebpy_gets_sums_of_a_cube_with_their_errors(api: PxApi, bundles: dict[str, Path]) -> None:
    answer = api.get_table_data("people", {"job": ["*"], "contents": ["weighted", "weighted_error"]}, show="code")
    expected = open_cube(bundles["survey"], "people").totals(["job"])
    found = rows(answer, "Job", "Contents")
    for place, code in enumerate(("a", "b", "c")):
        assert found[code, "weighted"] == expected.values[place]
        assert found[code, "weighted_error"] == expected.errors[place]


def test_pxwebpy_shows_the_reason_of_a_refusal(api: PxApi) -> None:
    with pytest.raises(OSError, match="place_size"):
        api.get_table_data("jobs_by_industry", {"industry": ["11"]})


@pytest.mark.filterwarnings("ignore:Shouldn't use this function anymore:DeprecationWarning")  # pyjstat's own
@pytest.mark.parametrize(
    ("table", "by"),
    [
        ("jobs_by_industry", ("industry", "place_size")),
        ("flows_between_states", ("origin_state", "destination_state", "quarter")),
    ],
)
def test_pyjstat_reads_an_address(table: str, by: tuple[str, ...], server: Server, bundles: dict[str, Path]) -> None:
    selected = "&".join(f"valueCodes[{name}]=*" for name in by)
    address = f"{server.v2}/tables/{table}/data?outputFormat=json-stat2&{selected}&valueCodes[contents]=value"
    frame = pyjstat.Dataset.read(address).write("dataframe", naming="id")
    kind = "jobs" if table.startswith("jobs") else "federal"
    found = {
        key[:-1]: None if key[-1] != key[-1] else key[-1]
        for key in frame[[*by, "value"]].itertuples(index=False, name=None)
    }
    assert found == published(bundles[kind], table, *by)


def test_a_workbook_has_the_figures_the_marks_and_the_notes(server: Server, bundles: dict[str, Path]) -> None:
    response = server.data("profit_by_industry_size", "xlsx", industry="*", size="*")
    book = openpyxl.load_workbook(io.BytesIO(response.content))
    head, *lines = book["Table"].iter_rows(values_only=True)
    assert head[:3] == ("Industry", "Size by employment", "Profit, mean")
    values = list(published(bundles["business"], "profit_by_industry_size", "industry", "size").values())
    assert [None if line[2] == ".." else line[2] for line in lines] == values
    assert any(line[2] == ".." and line[-1] == "suppressed" for line in lines)
    notes = {row[0]: row[1] for row in book["Notes"].iter_rows(values_only=True)}
    assert notes["Table"] == "Mean profit by industry and size"
    assert notes["Source"] == "Office"
    assert notes[".."].startswith("not published")
    assert "no formal guarantee" in notes["Guarantee"]


def test_parquet_is_the_file_of_the_bundle(server: Server, bundles: dict[str, Path]) -> None:
    response = server.data("businesses_by_state_size", "parquet", state="*", size="*")
    found = pq.read_table(pa.BufferReader(response.content)).to_pydict()
    expected = pq.read_table(bundles["business"] / "tables/businesses_by_state_size.parquet").to_pydict()
    assert {name: found[name] for name in expected} == expected
