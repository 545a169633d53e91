"""Cells of which no number is shown, in everything that is published: each says so, and nothing says why."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.exact.rules import Reason
from sfumato.release import load
from sfumato.running import run
from sfumato.serve.core.catalogue import BundleSource, open_catalogue
from sfumato.serve.core.model import ServedTable
from sfumato.serve.core.selection import everything
from sfumato.serve.formats import FORMATS
from sfumato.serve.formats.layout import Options
from sfumato.serve.sdmx.flow import Flow
from sfumato.serve.sdmx.formats import WRITERS
from sfumato.serve.sdmx.query import DataQuery
from sfumato.serve.sdmx.series import SeriesData
from tests.tiny import TINY

RELEASE = """
[release]
title = "Businesses"
population = "businesses"
period = "2025"
ledger = "ledger.sqlite"
bundle = "bundle"

[data]
records = {{ path = "records.parquet", unit = "business" }}

[data.attributes]
place = {{ codes = ["A", "B"] }}
sector = {{ codes = ["1", "2"] }}

[[table]]
name = "number"
count = "records"
by = ["place", "sector"]
totals = true
protect = {{ {method} }}
"""
METHODS = {
    "suppression": 'method = "suppression", minimum_units = 3',
    "ranges": 'method = "ranges", classes = [1, 10, 20], minimum_units = 3',
}
EITHER = ((2, 8, 8, 2), (8, 2, 2, 8))
"""The number of businesses in A × 1, A × 2, B × 1 and B × 2: other cells are sensitive, and all sums are the same."""


def published(folder: Path, number: tuple[int, ...], method: str) -> Path:
    cells = [(place, sector) for place in "AB" for sector in "12"]
    rows = [cell for cell, times in zip(cells, number, strict=True) for _ in range(times)]
    columns = {"business": [f"b{at}" for at in range(len(rows))]}
    columns |= {name: [row[at] for row in rows] for at, name in enumerate(("place", "sector"))}
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "records.parquet")
    (folder / "release.toml").write_text(RELEASE.format(method=METHODS[method]), encoding="utf-8")
    return run(load(folder / "release.toml")).bundle


def served(bundle: Path) -> ServedTable:
    return open_catalogue([BundleSource(folder=bundle)])["number"]


def outputs(table: ServedTable) -> Iterator[tuple[str, bytes]]:
    """What every interface gives out of the table."""
    answer = table.answer(everything(table))
    for name, file_format in FORMATS.items():
        yield name, file_format.write(answer, Options())
    flow = Flow(table=table, agency="OFFICE")
    for data_format, write in WRITERS.items():
        written = write([SeriesData.of(flow, DataQuery.read(flow, "all", {}))], "Office")
        yield data_format.name, "".join(written).encode()


@pytest.mark.parametrize("method", METHODS)
def test_nothing_tells_which_cells_are_sensitive(tmp_path: Path, method: str) -> None:
    one, other = (published(tmp_path / str(at), number, method) for at, number in enumerate(EITHER))
    for path in sorted(one.rglob("*.*")):
        if path.name not in ("manifest.json", "structure.json"):  # which have the digests of data and of files
            assert path.read_bytes() == (other / path.relative_to(one)).read_bytes(), path.name
    structures = [json.loads((bundle / "structure.json").read_text(encoding="utf-8")) for bundle in (one, other)]
    assert structures[0]["tables"] == structures[1]["tables"]
    assert dict(outputs(served(one))).keys() >= {"json-stat2", "xlsx", "px", "html", "genericdata", "csvdata2"}
    tables = served(one), replace(served(other), updated=served(one).updated)
    for (name, content), (_, same) in zip(*map(outputs, tables), strict=True):
        assert content == same, name
    for path in (*one.rglob("*.json"), *one.rglob("*.csv"), *one.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert not any(reason.words in text for reason in Reason), path.name


@pytest.mark.parametrize("method", METHODS)
def test_every_format_says_that_a_cell_is_withheld(tmp_path: Path, method: str) -> None:
    table = served(published(tmp_path / "one", EITHER[0], method))
    content = {name: written.decode() for name, written in outputs(table) if name not in ("xlsx", "parquet")}
    figures = json.loads(content["json-stat2"])
    values = len(table.metrics)
    marks = {place: mark for place, mark in figures["status"].items() if int(place) % values == 0}
    assert [figures["value"][int(place)] for place in marks] == [None] * 4
    assert set(marks.values()) == {".."}
    assert "reveal too much" in figures["extension"]["status"]["label"][".."]
    assert content["csv"].count("suppressed") == 4
    assert content["html"].count("reveal too much") >= 1
    assert content["px"].count('".."') >= 4
    assert content["csvdata"].count(",Q,C") == 4
    assert content["csvdata"].count(",A,F") == len(figures["value"]) - 4
    assert content["genericdata"].count('id="CONF_STATUS" value="C"') == 4
    assert content["structurespecificdata"].count('OBS_STATUS="Q" CONF_STATUS="C"') == 4
    if method == "ranges":
        ends = [row for row in figures["value"] if row in (1, 9)]
        assert len(ends) == 8  # the ranges are figures of their own
        told = {metric.code: metric.label for metric in table.metrics}
        assert (told["low"], told["high"]) == ("Lower end of the range", "Upper end of the range")  # for certain


JOBS = """
[release]
title = "Jobs"
period = "2025"
ledger = "ledger.sqlite"
bundle = "bundle"

[data]
jobs = {{ path = "jobs.parquet", worker = "worker", workplace = "workplace" }}
workplaces = {{ path = "workplaces.parquet", key = "workplace" }}
workers = {{ path = "workers.parquet", key = "worker" }}
public = ["place", "industry"]

[data.attributes]
sex = {{ codes = ["F", "M"] }}

[[table]]
name = "number"
count = "jobs"
by = ["place", "sex"]
totals = {totals}
protect = {{ {method} }}
"""


@pytest.mark.parametrize("totals", ["true", "false"])
@pytest.mark.parametrize("method", ['method = "rounding"', 'method = "coarsening", minimum_units = 2'])
def test_totals_of_jobs_are_served_as_totals_and_no_code_beside_others(
    tmp_path: Path, totals: str, method: str
) -> None:
    for name, columns in TINY.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    (tmp_path / "release.toml").write_text(JOBS.format(totals=totals, method=method), encoding="utf-8")
    table = served(run(load(tmp_path / "release.toml")).bundle)
    total = "total" if totals == "true" else None
    assert [dimension.total for dimension in table.dimensions] == [total, total]
    assert [dimension.eliminable for dimension in table.dimensions] == [total is not None] * 2
