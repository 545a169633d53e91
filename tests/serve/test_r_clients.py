"""Unmodified packages of R get the figures of the bundle: pxweb, which speaks PxWebApi 1, and rsdmx."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from sfumato.serve.app import make_app
from sfumato.serve.core.access import Settings
from sfumato.serve.core.catalogue import Catalogue
from sfumato.serve.pxweb import v1
from tests.serve.in_thread import asking
from tests.serve.patient import PATIENCE
from tests.serve.running import Server
from tests.serve.sdmx_reading import code_of
from tests.serve.test_clients import published

pytestmark = pytest.mark.slow
MISSING = "needs Rscript and the R package {0} (install.packages('{0}')); R_LIBS may name the folder that has it"
PXWEB = """
suppressMessages(library(pxweb))
asked <- jsonlite::fromJSON(commandArgs(TRUE)[1], simplifyVector = FALSE)
query <- lapply(asked$query, unlist)
found <- suppressWarnings(pxweb_get(asked$url, query = query))
frame <- suppressWarnings(as.data.frame(found, column.name.type = "code", variable.value.type = "code"))
comments <- as.data.frame(pxweb_data_comments(found))
cat("\\n", jsonlite::toJSON(list(frame = frame, comments = comments), digits = NA, na = "null", dataframe = "rows"))
"""
RSDMX = """
suppressMessages(library(rsdmx))
asked <- jsonlite::fromJSON(commandArgs(TRUE)[1])
frame <- as.data.frame(readSDMX(asked$url))
cat(jsonlite::toJSON(frame, digits = NA, na = "null", dataframe = "rows"))
"""


def ran(package: str, script: str, **asked: Any) -> Any:
    """What a script prints last; without R or the package tests are skipped."""
    if shutil.which("Rscript") is None:
        pytest.skip(MISSING.format(package))
    done = subprocess.run(
        ["Rscript", "-e", script, json.dumps(asked)], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    if "there is no package called" in done.stderr:
        pytest.skip(MISSING.format(package))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # progress comes before


def address(url: str, table: str) -> str:
    return f"{url}/api/v1/en/tables/{table}"


def test_pxweb_gets_the_figures_with_what_is_said_of_them(server: Server, bundles: dict[str, Path]) -> None:
    query = {"state": ["*"], "industry": ["*"], "contents": ["turnover"]}
    found = ran("pxweb", PXWEB, url=address(server.url, "turnover_by_state_industry"), query=query)
    values = {(row["state"], row["industry"]): row.get("turnover") for row in found["frame"]}
    assert values == published(bundles["business"], "turnover_by_state_industry", "state", "industry")
    said = {row["row_no"]: row["comment"] for row in found["comments"] if row["comment_type"] == "obs_comment"}
    lacking = {number for number, row in enumerate(found["frame"], 1) if row.get("turnover") is None}
    assert lacking
    assert all(said[number].startswith("not published") for number in lacking)


def test_pxweb_finds_that_there_is_nothing_to_say(server: Server) -> None:
    found = ran("pxweb", PXWEB, url=address(server.url, "people"), query={"contents": ["count"]})
    assert len(found["frame"]) == 1
    assert found["comments"] == []


@pytest.fixture
def small(catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A server whose clients have to ask in several parts."""
    monkeypatch.setattr(v1, "MOST_VALUES", 100)
    with asking(make_app(catalogue, Settings(state=tmp_path, most_cells=100, calls=0))) as client:
        yield client


@pytest.mark.parametrize(
    ("kind", "table", "by"),
    [
        ("business", "turnover_by_state_industry", ("state", "industry")),
        ("jobs", "jobs_by_place_industry", ("place", "industry", "ownership")),
    ],
)
def test_pxweb_splits_what_is_too_large(
    kind: str, table: str, by: tuple[str, ...], small: httpx.Client, bundles: dict[str, Path]
) -> None:
    expected = published(bundles[kind], table, *by)
    chosen = sorted({key[0] for key in expected})[:7]
    code = "turnover" if kind == "business" else "jobs"
    query = {by[0]: chosen, **{name: ["*"] for name in by[1:]}, "contents": [code]}
    base = str(small.base_url).replace("127.0.0.1", "localhost").rstrip("/")
    found = ran("pxweb", PXWEB, url=address(base, table), query=query)
    values = {tuple(row[name] for name in by): row.get(code) for row in found["frame"]}
    assert {key: value for key, value in values.items() if key in expected or value} == {
        key: value for key, value in expected.items() if key[0] in chosen
    }
    assert len(values) > 100


@pytest.mark.parametrize("written", ["genericdata", "structurespecificdata"])
def test_rsdmx_gets_the_figures(written: str, server: Server, bundles: dict[str, Path]) -> None:
    url = f"{server.url}/sdmx/2.1/data/jobs_by_industry/..jobs?format={written}"
    rows = ran("rsdmx", RSDMX, url=url)
    value = "obsValue" if written == "genericdata" else "OBS_VALUE"
    found = {(code_of(row["INDUSTRY"]), code_of(row["PLACE_SIZE"])): float(row[value]) for row in rows}
    assert found == published(bundles["jobs"], "jobs_by_industry", "industry", "place_size")


def test_rsdmx_gets_time_series(server: Server, bundles: dict[str, Path]) -> None:
    rows = ran("rsdmx", RSDMX, url=f"{server.url}/sdmx/2.1/data/flows_between_states/AL+AK..moves_of_workers")
    found = {(code_of(r["ORIGIN_STATE"]), code_of(r["DESTINATION_STATE"]), r["obsTime"]): r["obsValue"] for r in rows}
    table = pq.read_table(bundles["federal"] / "tables/flows_between_states.parquet").to_pylist()
    told = {(r["origin_state"], r["destination_state"], r["quarter"]): r["value"] for r in table}
    expected = {key: value for key, value in told.items() if key[0] in ("AL", "AK") and value is not None}
    assert {key: float(found[key]) for key in expected} == expected


def test_rsdmx_reads_code_lists(server: Server) -> None:
    rows = ran("rsdmx", RSDMX, url=f"{server.url}/sdmx/2.1/codelist/SFUMATO/CL_jobs_by_industry_PLACE_SIZE")
    assert [code_of(row["id"]) for row in rows] == ["0-100", "100-10k", "10k-100k", "100k+"]
